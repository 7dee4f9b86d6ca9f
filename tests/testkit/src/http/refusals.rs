//! A problem, as the error of the contract that it stands for: the same variant with the same members.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use contract::{Error, Failure, FailureKind, RefusalReason, Rejection, WantedKind};
use serde_json::Value as JsonValue;
use serde_json::value::RawValue;

use super::message::Response;
use super::values::from_text;

/// Refusals of the server itself, which no contract knows: malformed, nothing of that name, no such route or method.
pub const MALFORMED: &str = "SH-1030";
/// See [`MALFORMED`].
pub const NOT_FOUND: &str = "SH-1031";

/// The code of a problem; empty if it has none.
pub fn code(response: &Response) -> String {
    let members: BTreeMap<String, Box<RawValue>> = serde_json::from_slice(&response.body).unwrap_or_default();
    members.get("code").and_then(|code| serde_json::from_str(code.get()).ok()).unwrap_or_default()
}

/// The error that a refusal stands for.
///
/// # Panics
/// If a member is missing, or the code is none of a contract.
pub fn refusal(response: &Response) -> Error {
    let raw = response.members();
    // What a field holds is the user's: it may be a number that no tree takes.
    let plain = raw.iter().filter(|(name, _)| *name != "current");
    let read = |json: &RawValue| serde_json::from_str::<JsonValue>(json.get()).expect("JSON");
    let tree = plain.map(|(name, json)| (name.clone(), read(json))).collect();
    let problem = Members { json: tree, raw };
    let code = problem.text("code");
    match rejection(&code, &problem) {
        Some(rejection) => rejection.into(),
        None => failure(&code, &problem).into(),
    }
}

fn rejection(code: &str, problem: &Members) -> Option<Rejection> {
    let text = |name| problem.text(name);
    let fixed = |name| problem.fixed(name);
    let number = |name| problem.number(name);
    let reason = || RefusalReason::saying(&text("reason")).expect("a reason of the contract");
    let wanted = || WantedKind::saying(&text("wanted")).expect("a kind of the contract");
    Some(match code {
        "SH-1001" => Rejection::InvalidName { what: fixed("what"), reason: fixed("reason") },
        "SH-1002" => Rejection::LimitExceeded { limit: fixed("limit"), max: number("max"), got: number("got") },
        "SH-1003" => Rejection::Conflict { cell: text("cell"), current: problem.optional("current_version") },
        "SH-1004" => Rejection::TwoGroups { group: text("group"), other: text("other") },
        "SH-1005" => Rejection::NoSuchSpace { space: text("space") },
        "SH-1006" => Rejection::NoSuchBranch { branch: text("branch") },
        "SH-1007" => Rejection::AlreadyExists { what: fixed("what"), name: text("name") },
        "SH-1008" => Rejection::MainBranch,
        "SH-1009" => Rejection::CatalogueBehind { needed: number("needed"), have: number("have") },
        "SH-1011" => Rejection::TransactionLost { reason: fixed("reason") },
        "SH-1012" => Rejection::TransactionState { reason: fixed("reason") },
        "SH-1013" => Rejection::NoSuchRecord { record: text("record") },
        "SH-1014" => Rejection::NoSuchType { name: text("name") },
        "SH-1015" => Rejection::WrongState { record: text("record"), state: text("state"), reason: reason() },
        "SH-1016" => Rejection::WrongKind { record: text("record"), field: text("field"), wanted: wanted() },
        "SH-1017" => Rejection::RecordConflict { record: text("record"), current: problem.optional("current_version") },
        "SH-1018" => Rejection::InvalidDeclaration { what: text("what"), reason: reason() },
        "SH-1019" => {
            let held = problem.member("absent") != &JsonValue::Bool(true);
            let current = held.then(|| from_text(problem.raw["current"].get()));
            Rejection::FieldConflict { record: text("record"), field: text("field"), current }
        }
        "SH-3001" => Rejection::InvalidEvent { what: text("what").into(), reason: text("reason").into() },
        "SH-3002" => Rejection::NoSuchRun { run: text("run") },
        "SH-3003" => {
            Rejection::SequenceConflict { run: text("run"), expected: number("expected"), last: number("last") }
        }
        "SH-3004" => Rejection::KeyReused { run: text("run"), seq: number("seq") },
        "SH-3005" => Rejection::RunClosed { run: text("run"), last: number("last") },
        "SH-3006" => Rejection::RunArchived { run: text("run"), last: number("last") },
        "SH-4002" => Rejection::Fenced {
            record: text("record"),
            given: number("given"),
            attempt: number("attempt"),
            state: text("state"),
            holder: problem.member("holder").as_str().map(str::to_owned),
        },
        "SH-5001" => Rejection::SessionBusy { limit: fixed("limit"), max: number("max") },
        "SH-5003" => Rejection::Evicted { request: number("request"), floor: number("floor") },
        "SH-5004" => Rejection::SessionExpired,
        "SH-5006" => Rejection::RequestReused { request: number("request") },
        "SH-5005" => {
            Rejection::UnreadableCommand { machine: u16::try_from(number("machine")).expect("a machine's number") }
        }
        _ => return None,
    })
}

fn failure(code: &str, problem: &Members) -> Failure {
    let kinds = [
        FailureKind::Busy,
        FailureKind::Closed,
        FailureKind::Stopped,
        FailureKind::Corrupt,
        FailureKind::CannotOpen,
        FailureKind::Halted,
        FailureKind::Bug,
    ];
    let kind = kinds.into_iter().find(|kind| kind.code() == code);
    let kind = kind.unwrap_or_else(|| panic!("{code} is no code of a contract: {}", problem.json));
    let detail = problem.text("detail");
    let message = detail.strip_suffix(&format!(" [{code}]")).unwrap_or(&detail);
    match problem.text("outcome").as_str() {
        "not_applied" => Failure::not_applied(kind, message),
        "unknown" => Failure::unknown(kind, message),
        other => panic!("{other} is no outcome"),
    }
}

/// The members of a problem.
struct Members {
    json: JsonValue,
    raw: BTreeMap<String, Box<RawValue>>,
}

impl Members {
    fn member(&self, name: &str) -> &JsonValue {
        self.json.get(name).unwrap_or_else(|| panic!("{name} is missing in {}", self.json))
    }

    fn text(&self, name: &str) -> String {
        let text = self.member(name).as_str();
        text.unwrap_or_else(|| panic!("{name} is no text in {}", self.json)).to_owned()
    }

    fn number(&self, name: &str) -> u64 {
        self.member(name).as_u64().unwrap_or_else(|| panic!("{name} is no number in {}", self.json))
    }

    fn optional(&self, name: &str) -> Option<u64> {
        if self.member(name).is_null() { None } else { Some(self.number(name)) }
    }

    /// A text that the contract keeps as a constant. There are few, so each is kept once for the life of the program.
    fn fixed(&self, name: &str) -> &'static str {
        static KNOWN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
        let text = self.text(name);
        let mut known = KNOWN.lock().expect("no panic");
        if let Some(known) = known.get(text.as_str()) {
            return known;
        }
        let kept: &'static str = text.leak();
        known.insert(kept);
        kept
    }
}
