//! Figures: the lines `show TOPIC ITEM FIGURE (goal GOAL) ok|short` in a program's output.
//!
//! Touches: a child process and the writer its output is passed on to. Keeps: output appears as it arrives, and the end of
//! it is kept if something is short; a failure, a silence and an unreadable line each become a short figure. Never: judges
//! a number; the program compares its figure with its goal.

use std::collections::VecDeque;
use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

/// As many lines of a program's end are kept, and as much of each.
const LAST_LINES: usize = 24;
const LAST_LINE_CHARS: usize = 400;

/// One line to show.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Figure {
    /// The whole line.
    pub(super) text: String,
    /// The goal was missed.
    pub(super) short: bool,
    /// Whether the program reported it; false for figures we add when it failed.
    pub(super) measured: bool,
}

impl Figure {
    /// A figure by the program.
    pub(super) fn measured(text: String, short: bool) -> Self {
        Self { text, short, measured: true }
    }

    /// The figure shown when there is none, or none to trust.
    fn broken(topic: &str, item: &str, what: &str) -> Self {
        let text = format!("show {topic} {item} {what} (goal -) short");
        Self { text, short: true, measured: false }
    }

    /// Reads a line if it concerns this item, or one of its parts such as `ITEM.part`.
    fn parse(topic: &str, item: &str, line: &str) -> Option<Self> {
        let line = line.trim();
        let about = line.strip_prefix("show ")?.strip_prefix(topic)?.strip_prefix(' ')?;
        if !about.starts_with(item) {
            return None;
        }
        let figure = about.split_once(' ').map_or("", |(_, figure)| figure);
        let (said, short) = match (figure.strip_suffix(") ok"), figure.strip_suffix(") short")) {
            (Some(said), _) => (said, false),
            (None, Some(said)) => (said, true),
            (None, None) => ("", true),
        };
        let is_whole = said.split_once(" (goal ").is_some_and(|(figure, _)| !figure.is_empty());
        if is_whole {
            return Some(Self::measured(line.to_string(), short));
        }
        // A misspelt `short` must not pass for silence while other parts report ok.
        Some(Self::broken(topic, item, "unreadable-line"))
    }
}

/// All figures so far, in order of arrival.
#[derive(Default)]
pub(super) struct Report {
    figures: Vec<Figure>,
    a_program_failed: bool,
    /// What each program with a short figure said last, apart from figures.
    last_lines: VecDeque<String>,
}

impl Report {
    /// Adds a figure.
    pub(super) fn push(&mut self, figure: Figure) {
        self.figures.push(figure);
    }

    /// The figures, in order of arrival.
    pub(super) fn figures(&self) -> &[Figure] {
        &self.figures
    }

    /// What each program with a short figure said last, apart from figures: whoever sees only the end of a long log learns
    /// why it failed.
    pub(super) fn last_lines(&self) -> impl Iterator<Item = &str> {
        self.last_lines.iter().map(String::as_str)
    }

    /// Whether every program succeeded and no figure satisfies the predicate.
    pub(super) fn is_free_of(&self, is_such: impl Fn(&Figure) -> bool) -> bool {
        !self.a_program_failed && !self.figures.iter().any(is_such)
    }

    /// Runs a program to its end, passes its output on, and collects its figures.
    pub(super) fn collect(
        &mut self,
        topic: &str,
        item: &str,
        command: &mut Command,
        output: &mut dyn Write,
    ) -> Result<(), String> {
        let mut found = Vec::new();
        let mut last_lines = VecDeque::new();
        let mut child =
            command.stdout(Stdio::piped()).spawn().map_err(|error| format!("start {command:?}: {error}"))?;
        if let Some(stdout) = child.stdout.take() {
            let mut lines = BufReader::new(stdout);
            let mut line = Vec::new();
            // Bytes, not text: a program that prints rubbish must not hide its later figures.
            while lines.read_until(b'\n', &mut line).map_err(|error| format!("{item}: {error}"))? > 0 {
                let passed_on = output.write_all(&line).and_then(|()| output.flush());
                passed_on.map_err(|error| format!("standard output: {error}"))?;
                let said = String::from_utf8_lossy(&line);
                match Figure::parse(topic, item, &said) {
                    Some(figure) => found.push(figure),
                    None => remember(&mut last_lines, &said),
                }
                line.clear();
            }
        }
        let status = child.wait().map_err(|error| format!("wait for {item}: {error}"))?;
        self.a_program_failed |= !status.success();
        if found.is_empty() {
            found.push(Figure::broken(topic, item, "no-result"));
        } else if !status.success() && !found.iter().any(|figure| figure.short) {
            found.push(Figure::broken(topic, item, "program-failed"));
        }
        if found.iter().any(|figure| figure.short) {
            self.last_lines.append(&mut last_lines);
        }
        self.figures.append(&mut found);
        Ok(())
    }
}

fn remember(last_lines: &mut VecDeque<String>, line: &str) {
    let line: String = line.trim_end().chars().take(LAST_LINE_CHARS).collect();
    if !line.is_empty() {
        last_lines.push_back(line);
    }
    if last_lines.len() > LAST_LINES {
        last_lines.pop_front();
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.figures.iter().try_for_each(|figure| writeln!(formatter, "{}", figure.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds a shell script to a report. Returns its output as it was passed on.
    fn add(report: &mut Report, script: &str) -> Vec<u8> {
        let mut output = Vec::new();
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        report.collect("cells", "speed", &mut command, &mut output).unwrap();
        output
    }

    /// The passed-on output of a shell script, and the report about it.
    fn collect(script: &str) -> (String, String, bool) {
        let mut report = Report::default();
        let output = add(&mut report, script);
        let short = !report.is_free_of(|figure| figure.short);
        (String::from_utf8(output).unwrap(), report.to_string(), short)
    }

    #[test]
    fn figures_are_collected_and_the_rest_is_passed_on() {
        let script = "echo warming up; \
                      echo 'show cells speed.set-256 90 k/s (goal >80 k/s) ok'; \
                      echo 'show cells other 1 (goal 2) short'; \
                      echo 'show cells speed.get 5us (goal <9us) ok'";
        let (output, report, short) = collect(script);
        assert_eq!(output.lines().count(), 4);
        assert_eq!(
            report,
            "show cells speed.set-256 90 k/s (goal >80 k/s) ok\n\
             show cells speed.get 5us (goal <9us) ok\n"
        );
        assert!(!short);
    }

    #[test]
    fn a_short_figure_is_short() {
        let (_, report, short) = collect("echo 'show cells speed 1 (goal 2) short'; exit 1");
        assert_eq!(report, "show cells speed 1 (goal 2) short\n");
        assert!(short);
    }

    #[test]
    fn a_program_that_fails_is_seen_whatever_its_figures_are_worth() {
        let mut report = Report::default();
        add(&mut report, "echo 'show cells speed 1 (goal 2) short'; exit 1");
        assert!(!report.is_free_of(|_| false));
    }

    #[test]
    fn the_end_of_what_a_failed_program_said_is_kept() {
        let mut report = Report::default();
        add(&mut report, "seq 100; echo 'show cells speed 1 (goal 2) short'; echo it was slow");
        add(&mut report, "echo all went well; echo 'show cells speed 3 (goal 2) ok'");
        let last: Vec<_> = report.last_lines().collect();
        assert_eq!(last.len(), LAST_LINES);
        assert_eq!(last[LAST_LINES - 2..], ["100", "it was slow"]);
    }

    #[test]
    fn silence_is_short() {
        for script in ["echo nothing", "exit 3"] {
            let (_, report, short) = collect(script);
            assert_eq!(report, "show cells speed no-result (goal -) short\n");
            assert!(short);
        }
    }

    #[test]
    fn a_program_that_fails_after_good_figures_is_short() {
        let (_, report, short) = collect("echo 'show cells speed 3 (goal 2) ok'; exit 1");
        assert_eq!(report, "show cells speed 3 (goal 2) ok\nshow cells speed program-failed (goal -) short\n");
        assert!(short);
    }

    #[test]
    fn a_line_that_cannot_be_read_is_short() {
        for line in [
            "show cells speed",
            "show cells speed 3 ok",
            "show cells speed 3 (goal 2) SHORT",
            "show cells speed 3 (goal 2)",
        ] {
            let figure = Figure::parse("cells", "speed", line).unwrap();
            assert!(figure.short && !figure.measured, "{line}");
        }
        for line in ["", "show", "show cells", "show cell speed 3 (goal 2) ok", "a speed of 3"] {
            assert_eq!(Figure::parse("cells", "speed", line), None, "{line}");
        }
    }
}
