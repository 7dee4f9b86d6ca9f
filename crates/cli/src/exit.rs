//! How a command ends: eight exit codes, and what is said when it was not 0.
//!
//! Keeps: one table decides the exit code of every refusal, and one the next step; a message names what was refused, why, and one
//! thing that can safely be done next. Never: writes to stdout, which holds results only.

use std::fmt;
use std::process::ExitCode;

use hyper::StatusCode;
use serde_json::{Value as JsonValue, json};

use crate::config::ConfigError;
use crate::output::Format;
use crate::raw_json;

/// The exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    Done = 0,
    Other = 1,
    Usage = 2,
    NotFound = 3,
    Conflict = 4,
    Unavailable = 5,
    Denied = 6,
    CheckFailed = 7,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

/// Codes whose exit code is not the one of their HTTP status.
const BY_CODE: &[(&str, Exit)] = &[
    ("SH-1011", Exit::Conflict),
    ("SH-1032", Exit::Other),
    ("SH-2002", Exit::Unavailable),
    ("SH-2003", Exit::Unavailable),
    ("SH-2004", Exit::Other),
    ("SH-2005", Exit::Unavailable),
    ("SH-3006", Exit::Conflict),
    ("SH-5003", Exit::Conflict),
    ("SH-5004", Exit::NotFound),
];

/// What can safely be done after a refusal. Any other code has a page that says it.
const NEXT: &[(&str, &str)] = &[
    ("SH-1003", "read the cell again (`statehouse cell get`), then decide again"),
    ("SH-1005", "list the spaces: `statehouse space ls`"),
    ("SH-1006", "list the branches: `statehouse branch ls`"),
    ("SH-1014", "list the types: `statehouse rec type`"),
    ("SH-1015", "see why: `statehouse why job NAME`"),
    ("SH-1017", "read the record again (`statehouse rec get`), then decide again"),
    ("SH-1019", "read the record again (`statehouse rec get`), then decide again"),
    ("SH-1032", "see whether the server is of another version: `statehouse version`"),
    ("SH-1060", "use the server's address or localhost, or list the name in its setting server.hosts"),
    ("SH-2001", "try again in a second"),
    ("SH-2005", "talk to the server that has it open (--url), or look at it: `statehouse doctor DIR`"),
    ("SH-3003", "read on from there: `statehouse run tail RUN`"),
    ("SH-4002", "stop working on it; see who has it: `statehouse why job NAME`"),
    ("SH-5004", "list the sessions: `statehouse session ls`"),
];

/// Which exit code a refusal of the API has.
pub(crate) fn exit_of(code: Option<&str>, status: StatusCode) -> Exit {
    if let Some((_, exit)) = BY_CODE.iter().find(|(known, _)| Some(*known) == code) {
        return *exit;
    }
    match status.as_u16() {
        200..=299 => Exit::Done,
        400 | 405 | 411 | 413 | 414 | 415 | 422 | 431 => Exit::Usage,
        401 | 403 | 421 => Exit::Denied,
        404 => Exit::NotFound,
        409 | 412 => Exit::Conflict,
        408 | 429 | 502 | 503 | 504 | 507 => Exit::Unavailable,
        _ => Exit::Other,
    }
}

/// Why a command did not do what it was asked.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) code: Option<String>,
    pub(crate) detail: String,
    pub(crate) next: Option<String>,
    /// What the API said.
    problem: Option<JsonValue>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, detail: impl Into<String>) -> Self {
        Self { exit, code: None, detail: detail.into(), next: None, problem: None }
    }

    /// The command line asks for something that makes no sense.
    pub(crate) fn usage(detail: impl Into<String>) -> Self {
        Self::new(Exit::Usage, detail)
    }

    pub(crate) fn other(detail: impl Into<String>) -> Self {
        Self::new(Exit::Other, detail)
    }

    /// Something was looked at and is not as it should be.
    pub(crate) fn check(detail: impl Into<String>) -> Self {
        Self::new(Exit::CheckFailed, detail)
    }

    /// The reader of our output went away, which is its right.
    pub(crate) fn nobody_reads() -> Self {
        Self::new(Exit::Done, "")
    }

    pub(crate) fn next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }

    /// A refusal of the API.
    pub(crate) fn refused(status: StatusCode, problem: JsonValue) -> Self {
        let code = problem["code"].as_str().map(str::to_owned);
        let detail = match problem["detail"].as_str() {
            // Texts of the library end in their code, which is printed in front here.
            Some(detail) => match &code {
                Some(code) => detail.trim_end_matches(&format!(" [{code}]")).to_owned(),
                None => detail.to_owned(),
            },
            None => format!("the server answered {status}"),
        };
        let next = NEXT.iter().find(|(known, _)| Some(*known) == code.as_deref()).map(|(_, next)| (*next).to_owned());
        let next = next.or_else(|| code.as_ref().map(|code| format!("see `statehouse explain {code}`")));
        Self { exit: exit_of(code.as_deref(), status), code, detail, next, problem: Some(problem) }
    }

    /// Says it on stderr: as text, or as one JSON object where results are JSON.
    pub(crate) fn say(&self, format: Format) {
        if self.exit == Exit::Done {
            return;
        }
        match format {
            Format::Table | Format::Raw => {
                eprintln!("statehouse: {self}");
                if let Some(next) = &self.next {
                    eprintln!("  next: {next}");
                }
            }
            Format::Json | Format::Jsonl => eprintln!("{}", raw_json::line(&self.to_json())),
        }
    }

    fn to_json(&self) -> JsonValue {
        let mut json = match &self.problem {
            Some(problem @ JsonValue::Object(_)) => problem.clone(),
            _ => json!({ "code": self.code, "detail": self.detail }),
        };
        json["exit"] = (self.exit as u8).into();
        json["next"] = self.next.clone().into();
        json
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.code {
            Some(code) => write!(formatter, "{code}: {}", self.detail),
            None => write!(formatter, "{}", self.detail),
        }
    }
}

impl From<Box<dyn std::error::Error>> for Failure {
    fn from(error: Box<dyn std::error::Error>) -> Self {
        if let Some(error) = error.downcast_ref::<statehouse::Error>() {
            return Failure::from(error.clone());
        }
        match error.downcast_ref::<ConfigError>() {
            Some(error) => Failure::usage(error.to_string()).next("see `statehouse config show --origins`"),
            None => Failure::other(error.to_string()),
        }
    }
}

/// An error of the library, where a command uses it without the API.
impl From<statehouse::Error> for Failure {
    fn from(error: statehouse::Error) -> Self {
        let problem = json!({ "code": error.code(), "detail": error.to_string(), "retryable": error.retryable() });
        Self::refused(StatusCode::INTERNAL_SERVER_ERROR, problem)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_decides_before_the_status() {
        let exit = |code, status: u16| exit_of(code, StatusCode::from_u16(status).expect("a status"));
        assert_eq!(exit(Some("SH-1031"), 404), Exit::NotFound);
        assert_eq!(exit(Some("SH-1003"), 412), Exit::Conflict);
        assert_eq!(exit(Some("SH-1002"), 413), Exit::Usage);
        assert_eq!(exit(Some("SH-2004"), 503), Exit::Other);
        assert_eq!(exit(Some("SH-3006"), 410), Exit::Conflict);
        assert_eq!(exit(Some("SH-2001"), 429), Exit::Unavailable);
        assert_eq!(exit(None, 401), Exit::Denied);
        assert_eq!(exit(None, 410), Exit::Other);
    }

    #[test]
    fn every_page_says_the_exit_code_that_its_code_has() {
        let mut compared = 0;
        for code in server::errors::codes() {
            let page = server::errors::page(code).expect("a page");
            let row =
                |name: &str| page.lines().find_map(|line| line.strip_prefix(&format!("| {name} |"))).unwrap_or("");
            let numbers = |text: &str| -> Vec<u16> {
                text.split(|letter: char| !letter.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
            };
            let said = numbers(row("exit code of the command"));
            let statuses = numbers(row("over HTTP")).into_iter().filter(|status| (400..600).contains(status));
            for status in statuses {
                let exit = exit_of(Some(code), StatusCode::from_u16(status).expect("a status"));
                assert_eq!(said, [exit as u16], "{code} with {status}");
                compared += 1;
            }
        }
        assert!(compared >= 50, "only {compared} were compared");
    }

    #[test]
    fn a_refusal_is_named_once_with_a_next_step() {
        let problem = json!({ "code": "SH-1003", "detail": "cell \"a\" is at version 2 [SH-1003]" });
        let failure = Failure::refused(StatusCode::PRECONDITION_FAILED, problem);
        assert_eq!(failure.to_string(), "SH-1003: cell \"a\" is at version 2");
        assert!(failure.next.expect("a next step").contains("statehouse cell get"));
    }
}
