//! A problem or a note, whatever it is about: what it says, and how it looks to programs.
//!
//! Touches: nothing.

use std::time::Duration;

use contract::catalogue::{DEFAULT_SPACE, MAIN_BRANCH};
use contract::shell::Suggested;
use serde_json::{Value as JsonValue, json};

/// The severity of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Severity {
    /// Something is broken, or will be.
    Critical,
    /// Something needs attention.
    Warning,
    /// Nothing is wrong, but somebody may want to know: the status stays `ok`.
    Note,
}

impl Severity {
    fn name(self) -> &'static str {
        match self {
            Severity::Critical => "critical",
            Severity::Warning => "warning",
            Severity::Note => "note",
        }
    }
}

/// A problem or a note.
#[derive(Debug, PartialEq)]
pub(crate) struct Trouble {
    /// The kind of problem, for programs.
    pub(crate) problem: &'static str,
    pub(crate) severity: Severity,
    /// The thing it concerns.
    pub(crate) object: String,
    /// The finding, in a sentence.
    pub(crate) text: String,
    /// The measured number.
    pub(crate) number: f64,
    /// Above or below this it is a problem.
    pub(crate) threshold: f64,
    /// The unit of both.
    pub(crate) unit: &'static str,
    /// A command that shows more and changes nothing.
    pub(crate) command: Suggested,
}

impl Trouble {
    pub(crate) fn json(&self) -> JsonValue {
        json!({
            "problem": self.problem,
            "severity": self.severity.name(),
            "object": self.object,
            "text": self.text,
            "number": self.number,
            "threshold": self.threshold,
            "unit": self.unit,
            "command": self.command,
        })
    }
}

/// A command with the flags that select a space and a branch.
pub(crate) fn in_place(mut command: Suggested, space: &str, branch: &str) -> Suggested {
    if space != DEFAULT_SPACE {
        command = command.flag("--space", space);
    }
    if branch != MAIN_BRANCH {
        command = command.flag("--branch", branch);
    }
    command
}

/// A duration in the largest unit that makes sense to a person.
pub(crate) fn long_time(time: Duration) -> String {
    const DAY: u64 = 24 * 60 * 60;
    match time.as_secs() {
        seconds if seconds < 2 * 60 * 60 => format!("{} minutes", seconds / 60),
        seconds if seconds < 2 * DAY => format!("{} hours", seconds / 3_600),
        seconds => format!("{} days", seconds / DAY),
    }
}

#[allow(clippy::cast_precision_loss, reason = "it is shown")]
pub(crate) fn number(count: u64) -> f64 {
    count as f64
}
