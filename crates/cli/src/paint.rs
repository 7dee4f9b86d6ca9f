//! Colours, on terminals that support them and unless disabled.
//!
//! Keeps: colour carries no information that the words do not. Never: colours output for programs, or text whose control characters are
//! not spelled out yet.

use std::io::IsTerminal;

use clap::ValueEnum;

/// When output is coloured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR is set or TERM is dumb.
    #[default]
    Auto,
    Always,
    Never,
}

/// Paints one stream, or leaves it plain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Paint(bool);

const BOLD: &str = "1";
const RED: &str = "1;31";
const GREEN: &str = "32";
const YELLOW: &str = "33";

impl Color {
    pub(crate) fn for_stdout(self) -> Paint {
        self.paint(std::io::stdout().is_terminal(), &|name| std::env::var(name).ok())
    }

    pub(crate) fn for_stderr(self) -> Paint {
        self.paint(std::io::stderr().is_terminal(), &|name| std::env::var(name).ok())
    }

    fn paint(self, terminal: bool, environment: &dyn Fn(&str) -> Option<String>) -> Paint {
        let asked_for_none = || environment("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = || environment("TERM").is_some_and(|term| term == "dumb");
        Paint(match self {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => terminal && !asked_for_none() && !dumb(),
        })
    }
}

impl Paint {
    pub(crate) fn title(self, text: &str) -> String {
        self.with(BOLD, text)
    }

    pub(crate) fn bad(self, text: &str) -> String {
        self.with(RED, text)
    }

    pub(crate) fn good(self, text: &str) -> String {
        self.with(GREEN, text)
    }

    pub(crate) fn warning(self, text: &str) -> String {
        self.with(YELLOW, text)
    }

    /// A screen of `/status` or of checks: its marks, and the word in its first line.
    pub(crate) fn screen(self, text: &str) -> String {
        if !self.0 {
            return text.to_owned();
        }
        text.lines().map(|line| self.screen_line(line) + "\n").collect()
    }

    fn screen_line(self, line: &str) -> String {
        if let Some(rest) = line.strip_prefix("statehouse ") {
            let words = [
                ("  OK  ", Self::good as fn(Self, &str) -> String),
                ("  DEGRADED  ", Self::warning),
                ("  STOPPED  ", Self::bad),
            ];
            let found = words.iter().find_map(|(word, paint)| Some((rest.split_once(word)?, word.trim(), paint)));
            return match found {
                Some(((before, after), word, paint)) => format!("statehouse {before}  {}  {after}", paint(self, word)),
                None => line.to_owned(),
            };
        }
        let marks = [
            (" x ", Self::bad as fn(Self, &str) -> String),
            (" ! ", Self::warning),
            ("✗ ", Self::bad),
            ("✓ ", Self::good),
        ];
        match marks.iter().find_map(|(mark, paint)| Some((line.strip_prefix(mark)?, mark, paint))) {
            Some((rest, mark, paint)) => format!("{}{rest}", paint(self, mark)),
            None if line.starts_with("   $ ") => self.title(line),
            None => line.to_owned(),
        }
    }

    fn with(self, code: &str, text: &str) -> String {
        match self.0 {
            true => format!("\x1b[{code}m{text}\x1b[0m"),
            false => text.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_go_before_the_environment_and_that_before_the_terminal() {
        let nothing = |_: &str| None;
        let no_color = |name: &str| (name == "NO_COLOR").then(|| "1".to_owned());
        let empty = |name: &str| (name == "NO_COLOR").then(String::new);
        let dumb = |name: &str| (name == "TERM").then(|| "dumb".to_owned());
        assert_eq!(Color::Auto.paint(true, &nothing), Paint(true));
        assert_eq!(Color::Auto.paint(false, &nothing), Paint(false));
        assert_eq!(Color::Auto.paint(true, &no_color), Paint(false));
        assert_eq!(Color::Auto.paint(true, &empty), Paint(true), "an empty NO_COLOR says nothing");
        assert_eq!(Color::Auto.paint(true, &dumb), Paint(false));
        assert_eq!(Color::Always.paint(false, &no_color), Paint(true));
        assert_eq!(Color::Never.paint(true, &nothing), Paint(false));
    }

    #[test]
    fn a_screen_keeps_its_words() {
        let screen = "statehouse 0.1.0  DEGRADED  ready  1 problem\n x disk: low\n   $ df -h\n";
        let painted = Paint(true).screen(screen);
        assert!(
            painted.contains("\x1b[33mDEGRADED\x1b[0m") && painted.contains("\x1b[1;31m x \x1b[0mdisk"),
            "{painted}"
        );
        let plain =
            ["0", "1", "1;31", "33"].iter().fold(painted, |text, code| text.replace(&format!("\x1b[{code}m"), ""));
        assert_eq!(plain, screen);
        assert_eq!(Paint(false).screen(screen), screen);
    }
}
