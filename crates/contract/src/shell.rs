//! Suggested commands: the arguments for programs, and a line that a POSIX shell reads as exactly these arguments.
//!
//! Keeps: a line is printable whatever its words contain, and running it runs one command with these words. Never: runs
//! anything.

use serde::Serialize;

use crate::terminal::is_control;

/// A suggested command.
///
/// ```
/// use statehouse_contract::shell::Suggested;
/// let suggested = Suggested::new(["statehouse", "why", "job"]).name("jobs.$(touch pwned)");
/// assert_eq!(suggested.shell(), "statehouse why job 'jobs.$(touch pwned)'");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suggested {
    argv: Vec<String>,
}

impl Suggested {
    /// A command from these words.
    pub fn new<Word: Into<String>>(argv: impl IntoIterator<Item = Word>) -> Self {
        Self { argv: argv.into_iter().map(Into::into).collect() }
    }

    /// Adds a flag and its value, which may start with a dash.
    pub fn flag(mut self, flag: &str, value: impl AsRef<str>) -> Self {
        self.argv.push(format!("{flag}={}", value.as_ref()));
        self
    }

    /// Inserts flags before the word at an index, or at the end.
    pub fn with_flags(mut self, place: usize, flags: Vec<String>) -> Self {
        let place = place.min(self.argv.len());
        self.argv.splice(place..place, flags);
        self
    }

    /// Adds a name as the last word, protected from being read as a flag if it starts with a dash.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        let name = name.into();
        if name.starts_with('-') {
            self.argv.push("--".to_owned());
        }
        self.argv.push(name);
        self
    }

    /// The words.
    pub fn argv(&self) -> &[String] {
        &self.argv
    }

    /// The line for a shell.
    pub fn shell(&self) -> String {
        line(&self.argv)
    }
}

/// As JSON, `{"argv": [...], "shell": "..."}`.
impl Serialize for Suggested {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut members = serializer.serialize_struct("Suggested", 2)?;
        members.serialize_field("argv", &self.argv)?;
        members.serialize_field("shell", &self.shell())?;
        members.end()
    }
}

/// Quotes words as a line that a POSIX shell reads as these words.
fn line(words: &[String]) -> String {
    let (mut set, mut line) = (String::new(), Vec::new());
    for word in words {
        match word.ends_with('\n') {
            // Command substitution strips trailing newlines, so a letter follows them and is removed afterwards.
            true => {
                let variable = format!("w{}", line.len());
                set += &format!("{variable}=$({}); ", printf(&format!("{word}.")));
                line.push(format!("\"${{{variable}%.}}\""));
            }
            false => line.push(quoted(word)),
        }
    }
    set + &line.join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_-./:=@,+".contains(letter);
    if word.contains(is_control) {
        return format!("\"$({})\"", printf(word));
    }
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// A `printf` of a word with control characters, written as octal numbers, which every `printf` supports.
fn printf(word: &str) -> String {
    let mut format = String::new();
    for letter in word.chars() {
        match letter {
            '\\' => format.push_str(r"\\"),
            '%' => format.push_str("%%"),
            // Between double quotes, an interactive shell expands it from its history.
            '!' => format.push_str(r"\041"),
            '\'' => format.push_str(r"'\''"),
            letter if is_control(letter) => {
                let mut bytes = [0; 4];
                let bytes = letter.encode_utf8(&mut bytes).bytes();
                bytes.for_each(|byte| format.push_str(&format!("\\{byte:03o}")));
            }
            letter => format.push(letter),
        }
    }
    format!("printf -- '{format}'")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Characters that mean something to a shell, to `printf` or to a terminal, and some that do not.
    const LETTERS: &[&str] = &[
        "a",
        "é",
        " ",
        "\n",
        "\t",
        "\x1b[2J",
        "\u{9b}",
        "\u{202e}",
        "\u{2028}",
        "$(touch pwned)",
        "`touch pwned`",
        "'",
        "\"",
        "\\",
        "%s",
        "-",
        "--",
        "$HOME",
        "!",
        "*",
        "~",
        "#",
        ";",
        "&",
        "|",
        ">pwned",
        "{a,b}",
        "\\n",
        "\\047",
        "😀",
        "=",
    ];

    #[test]
    fn a_shell_reads_every_line_as_its_words() {
        let folder = std::env::temp_dir().join(format!("statehouse-shell-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let pairs = LETTERS.iter().flat_map(|first| LETTERS.iter().map(move |second| format!("{first}{second}")));
        let words: Vec<String> = pairs.chain(["".into(), "x".repeat(1024), "a\n\n".into(), "\n".into()]).collect();
        // Several words per line, so that newlines occur in the middle too.
        for words in words.chunks(3) {
            let suggested = Suggested::new(["printf", r"%s\0"].into_iter().chain(words.iter().map(String::as_str)));
            let line = suggested.shell();
            assert!(!line.contains(is_control), "{line}");
            let done = Command::new("sh").arg("-c").arg(&line).current_dir(&folder).output().expect("sh runs");
            let said = String::from_utf8(done.stdout).expect("UTF-8");
            let read: Vec<_> = said.split_terminator('\0').collect();
            assert_eq!(read, words, "{line}\n{}", String::from_utf8_lossy(&done.stderr));
            assert!(std::fs::read_dir(&folder).expect("the folder").next().is_none(), "{line} made a file");
        }
        std::fs::remove_dir(&folder).expect("removed");
    }

    #[test]
    fn a_name_with_a_dash_is_no_flag() {
        let suggested = Suggested::new(["statehouse", "why", "job"]).flag("--space", "-s").name("--yes");
        assert_eq!(suggested.shell(), "statehouse why job --space=-s -- --yes");
        let json = serde_json::to_string(&Suggested::new(["a"]).name("b c")).expect("JSON");
        assert_eq!(json, r#"{"argv":["a","b c"],"shell":"a 'b c'"}"#);
    }
}
