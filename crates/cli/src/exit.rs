//! How a command ends: eight exit codes, and the message for every one but 0.
//!
//! Keeps: one table decides the exit code of every refusal, and one (`next.rs`) the next step. A message names what was refused, why, and one safe
//! next step, as a complete command where there is one. Text from names or servers cannot forge a line. Never: writes to stdout, which
//! holds results only.

use std::fmt;
use std::process::ExitCode;

use client::Outcome;
use hyper::StatusCode;
use serde_json::{Value as JsonValue, json};
use statehouse::shell::Suggested;
use statehouse::terminal;

use crate::config::ConfigError;
use crate::next::next_of;
use crate::output::{Format, Output, columns_of};
use crate::raw_json;
use crate::table::paragraph;

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

/// Error codes whose exit code does not follow from their HTTP status.
const BY_CODE: &[(&str, Exit)] = &[
    ("SH-1011", Exit::Conflict),
    ("SH-1032", Exit::Other),
    ("SH-2002", Exit::Unavailable),
    ("SH-2003", Exit::Unavailable),
    ("SH-2004", Exit::Other),
    ("SH-2005", Exit::Unavailable),
    ("SH-2020", Exit::Unavailable),
    ("SH-2021", Exit::Unavailable),
    ("SH-2024", Exit::Unavailable),
    ("SH-3006", Exit::Conflict),
    ("SH-5003", Exit::Conflict),
    ("SH-5004", Exit::NotFound),
];

/// The exit code of a refusal by the API.
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

/// The start of every message.
const BEGIN: &str = "statehouse: ";
const NEXT_STEP: &str = "  next: ";

/// Why a command failed.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) code: Option<String>,
    pub(crate) detail: String,
    pub(crate) next: Option<String>,
    /// The command for the next step.
    pub(crate) command: Option<Suggested>,
    /// Whether the detail is several lines of our own making.
    lines: bool,
    /// The API's problem document.
    problem: Option<Box<JsonValue>>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, detail: impl Into<String>) -> Self {
        Self { exit, code: None, detail: detail.into(), next: None, command: None, lines: false, problem: None }
    }

    /// The command line is invalid.
    pub(crate) fn usage(detail: impl Into<String>) -> Self {
        Self::new(Exit::Usage, detail)
    }

    pub(crate) fn other(detail: impl Into<String>) -> Self {
        Self::new(Exit::Other, detail)
    }

    /// A check failed.
    pub(crate) fn check(detail: impl Into<String>) -> Self {
        Self::new(Exit::CheckFailed, detail)
    }

    /// The reader of our output closed it, which is not an error.
    pub(crate) fn nobody_reads() -> Self {
        Self::new(Exit::Done, "")
    }

    /// Sets the next step.
    pub(crate) fn next(mut self, next: impl Into<String>) -> Self {
        (self.next, self.command) = (Some(next.into()), None);
        self
    }

    /// Sets the next step, with its command.
    pub(crate) fn run(mut self, next: impl Into<String>, command: Suggested) -> Self {
        (self.next, self.command) = (Some(next.into()), Some(command));
        self
    }

    /// Marks the detail as several lines of our own making, in which outside text cannot end a line.
    pub(crate) fn of_lines(mut self) -> Self {
        self.lines = true;
        self
    }

    /// The answer did not come from a statehouse server.
    pub(crate) fn unreadable(detail: &str) -> Self {
        Self::new(Exit::Unavailable, detail)
            .run("check that --url names a statehouse server", Suggested::new(["statehouse", "status"]))
    }

    /// A refusal by the API.
    pub(crate) fn refused(status: StatusCode, problem: JsonValue) -> Self {
        let code = problem["code"].as_str().map(str::to_owned);
        let detail = match problem["detail"].as_str() {
            // The library's messages end with their code, which is printed in front here.
            Some(detail) => match &code {
                Some(code) => detail.trim_end_matches(&format!(" [{code}]")).to_owned(),
                None => detail.to_owned(),
            },
            None => format!("the server answered {status}"),
        };
        let (next, command) = code.as_deref().map(|code| next_of(code, &problem)).unzip();
        let exit = exit_of(code.as_deref(), status);
        Self { exit, code, detail, next, command: command.flatten(), lines: false, problem: Some(Box::new(problem)) }
    }

    /// The group that another attempt owns, if that is why.
    pub(crate) fn owned_group(&self) -> Option<String> {
        let of_owner = matches!(self.code.as_deref(), Some("SH-1021" | "SH-4002"));
        self.problem.as_ref().filter(|_| of_owner)?["group"].as_str().map(str::to_owned)
    }

    /// Prints the failure to stderr: as text, or as one JSON object where results are JSON.
    pub(crate) fn say(&self, output: &Output) {
        if self.exit == Exit::Done {
            return;
        }
        match output.format {
            Format::Table | Format::Raw => {
                let paint = output.color.for_stderr();
                let text = self.text(columns_of(std::io::stderr()));
                let text = text.strip_prefix(BEGIN).unwrap_or(&text);
                eprint!("{}{text}", paint.bad(BEGIN));
            }
            Format::Json | Format::Jsonl => eprintln!("{}", terminal::json(&raw_json::line(&self.to_json()))),
        }
    }

    /// The message: what failed, and what to do next. On a terminal, lines wrap between words; a command never wraps.
    fn text(&self, columns: Option<usize>) -> String {
        let mut text = match self.lines {
            true => format!("{BEGIN}{}\n", terminal::lines(&self.to_string())),
            false => paragraph(BEGIN, &self.to_string(), columns),
        };
        let next = self.next.as_deref().unwrap_or_default();
        match (&self.command, columns) {
            (None, _) if next.is_empty() => {}
            (None, _) => text += &paragraph(NEXT_STEP, next, columns),
            (Some(command), None) => text += &paragraph(NEXT_STEP, &format!("{next}: {}", command.shell()), None),
            (Some(command), Some(_)) => {
                text += &paragraph(NEXT_STEP, &format!("{next}:"), columns);
                text += &format!("{}$ {}\n", " ".repeat(NEXT_STEP.len()), command.shell());
            }
        }
        text
    }

    fn to_json(&self) -> JsonValue {
        let mut json = match self.problem.as_deref() {
            Some(problem @ JsonValue::Object(_)) => problem.clone(),
            _ => json!({ "code": self.code, "detail": self.detail }),
        };
        json["exit"] = (self.exit as u8).into();
        json["next"] = self.next.clone().into();
        json["command"] = json!(self.command);
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
            Some(error) => Failure::from(error),
            None => Failure::other(error.to_string()),
        }
    }
}

impl From<&ConfigError> for Failure {
    fn from(error: &ConfigError) -> Self {
        let command = Suggested::new(["statehouse", "config", "init"]);
        Failure::usage(error.to_string()).of_lines().run("fix it; see all settings", command)
    }
}

/// The failure of a call.
impl From<client::Error> for Failure {
    fn from(error: client::Error) -> Self {
        let unknown = match error.outcome() {
            Outcome::Unknown => "; it may or may not have been done",
            Outcome::NotApplied => "",
        };
        match &error {
            client::Error::Refused(refusal) => {
                let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                let problem = raw_json::parse(&String::from_utf8_lossy(&refusal.document));
                Self::refused(status, problem.unwrap_or_default())
            }
            client::Error::NoAnswer { server, cause, .. } => {
                Self::new(Exit::Unavailable, format!("cannot reach {server}: {cause}{unknown}")).run(
                    "check that it runs, or name another with --url; for a server to try things on",
                    Suggested::new(["statehouse", "dev"]),
                )
            }
            client::Error::TimedOut { server, limit, .. } => {
                let cause = format!("no answer within {} ms{unknown}", limit.as_millis());
                Self::new(Exit::Unavailable, format!("cannot reach {server}: {cause}")).run(
                    "try again with a longer --timeout, or check the server",
                    Suggested::new(["statehouse", "status"]),
                )
            }
            client::Error::TokenWithoutTls { .. } => Self::usage(error.to_string()).next(error.next_step()),
            client::Error::Unsendable { cause } => Self::usage(cause),
            other => Self::unreadable(&format!("{other}{unknown}")),
        }
    }
}

/// An error from the library, where a command uses it without the API.
impl From<statehouse::Error> for Failure {
    fn from(error: statehouse::Error) -> Self {
        let problem = json!({ "code": error.code(), "detail": error.to_string(), "retryable": error.retryable() });
        Self::refused(StatusCode::INTERNAL_SERVER_ERROR, problem)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::next::next_steps;

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
            let said = numbers(row("exit code"));
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
        assert!(failure.next.is_some());
    }

    #[test]
    fn a_next_step_names_the_thing_or_is_the_page_of_the_code() {
        let next = |problem: JsonValue| {
            let failure = Failure::refused(StatusCode::CONFLICT, problem);
            failure.command.map(|command| command.shell())
        };
        let named = json!({ "code": "SH-1003", "detail": "", "cell": "a $(touch b)" });
        assert_eq!(next(named), Some("statehouse cell get 'a $(touch b)'".into()));
        let dashed = json!({ "code": "SH-4002", "detail": "", "record": "--yes" });
        assert_eq!(next(dashed), Some("statehouse why job -- --yes".into()));
        assert_eq!(next(json!({ "code": "SH-4002", "detail": "" })), Some("statehouse explain SH-4002".into()));
        assert_eq!(next(json!({ "code": "SH-1016", "detail": "" })), Some("statehouse explain SH-1016".into()));
        let mut known = std::collections::BTreeSet::new();
        for (code, _) in next_steps() {
            assert!(server::errors::page(code).is_some(), "{code} is not a code");
            assert!(known.insert(code), "{code} has two next steps");
        }
    }

    #[test]
    fn a_detail_takes_its_line_and_no_other() {
        let failure = Failure::other("no \x1b[2J\nstatehouse: done").run("see", Suggested::new(["ls"]).name("a\nb c"));
        let said = "statehouse: no \\u{1b}[2J\\nstatehouse: done\n  next: see: ls \"$(printf -- 'a\\012b c')\"\n";
        assert_eq!(failure.text(None), said);
        let long = Failure::other("word ".repeat(40)).run("see", Suggested::new(["ls"]).name("x".repeat(100)));
        let lines = long.text(Some(80));
        assert!(
            lines.lines().filter(|line| line.chars().count() > 80).eq([format!("        $ ls {}", "x".repeat(100))])
        );
    }
}
