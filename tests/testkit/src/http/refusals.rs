//! Turns a refusal back into the contract's error: the same variant with the same members.

use std::collections::BTreeSet;
use std::sync::Mutex;

use client::Error as ClientError;
use client::Refusal;
use contract::guards::OWNER_RECORD;
use contract::{
    AccessRejection, CellRejection, Error, Failure, FailureKind, Outcome, RecordRejection, RefusalReason, Rejection,
    RunRejection, SessionRejection, WantedKind,
};
use serde::de::DeserializeOwned;
use wire::values::UserJson;

/// The requested version is no longer kept. No contract has this error.
pub const HISTORY_GIVEN_UP: &str = "SH-1033";

/// The contract's error for a failed call.
///
/// # Panics
/// If a member is missing, no contract has the code, or there was no answer at all.
pub fn error(failed: ClientError) -> Error {
    match failed {
        ClientError::Refused(refusal) => match rejection(&refusal) {
            Some(rejection) => rejection.into(),
            None => failure(&refusal).into(),
        },
        // The outcome of a request without an answer is unknown.
        ClientError::NoAnswer { .. } => Failure::unknown(FailureKind::Closed, failed.to_string()).into(),
        other => panic!("{other}"),
    }
}

/// A member of a refusal.
///
/// # Panics
/// If it is absent or of another kind.
pub fn member<T: DeserializeOwned>(failed: &ClientError, name: &str) -> T {
    match failed {
        ClientError::Refused(refusal) => of(refusal, name),
        other => panic!("{other} is no refusal"),
    }
}

fn of<T: DeserializeOwned>(refusal: &Refusal, name: &str) -> T {
    refusal.member(name).unwrap_or_else(|| panic!("{name} is missing, or of another kind, in {refusal:?}"))
}

fn rejection(refusal: &Refusal) -> Option<Rejection> {
    let text = |name| of::<String>(refusal, name);
    // The owner of a group is said to be the group.
    let record = || refusal.member("record").unwrap_or_else(|| OWNER_RECORD.to_owned());
    let number = |name| of::<u64>(refusal, name);
    let optional = |name| of::<Option<u64>>(refusal, name);
    let fixed = |name| kept_once(of(refusal, name));
    let reason = || RefusalReason::saying(&text("reason")).expect("a reason of the contract");
    let wanted = || WantedKind::saying(&text("wanted")).expect("a kind of the contract");
    Some(match refusal.code.as_str() {
        "SH-1001" => Rejection::InvalidName { what: fixed("what"), reason: fixed("reason") },
        "SH-1002" => Rejection::LimitExceeded { limit: fixed("limit"), max: number("max"), got: number("got") },
        "SH-1003" => {
            Rejection::Cell(CellRejection::Conflict { cell: text("cell"), current: optional("current_version") })
        }
        "SH-1004" => Rejection::TwoGroups { group: text("group"), other: text("other") },
        "SH-1005" => Rejection::NoSuchSpace { space: text("space") },
        "SH-1006" => Rejection::NoSuchBranch { branch: text("branch") },
        "SH-1007" => Rejection::AlreadyExists { what: fixed("what"), name: text("name") },
        "SH-1008" => Rejection::MainBranch,
        "SH-1020" => Rejection::NotHere { bucket: u16::try_from(number("bucket")).expect("a bucket") },
        "SH-1021" => Rejection::Record(RecordRejection::Held {
            record: record(),
            attempt: number("attempt"),
            holder: of(refusal, "holder"),
            until_ms: number("until"),
        }),
        "SH-1022" => Rejection::NoSuchGuard { prefix: text("prefix") },
        "SH-1023" => Rejection::NoSuchDeadLetter { group: text("group"), number: number("number") },
        "SH-4003" => Rejection::Unfenced {
            what: fixed("what"),
            name: text("name"),
            holder: of(refusal, "holder"),
            until_ms: optional("until"),
        },
        "SH-1009" => Rejection::CatalogueBehind { needed: number("needed"), have: number("have") },
        "SH-1011" => Rejection::TransactionLost { reason: fixed("reason") },
        "SH-1012" => Rejection::TransactionState { reason: fixed("reason") },
        "SH-1013" => Rejection::Record(RecordRejection::NoSuchRecord { record: text("record") }),
        "SH-1014" => Rejection::Record(RecordRejection::NoSuchType { name: text("name") }),
        "SH-1015" => Rejection::Record(RecordRejection::WrongState {
            record: text("record"),
            state: text("state"),
            reason: reason(),
        }),
        "SH-1016" => Rejection::Record(RecordRejection::WrongKind {
            record: text("record"),
            field: text("field"),
            wanted: wanted(),
        }),
        "SH-1017" => Rejection::Record(RecordRejection::Conflict {
            record: text("record"),
            current: optional("current_version"),
        }),
        "SH-1018" => Rejection::InvalidDeclaration { what: text("what"), reason: reason() },
        "SH-1019" => {
            let absent = refusal.member("absent") == Some(true);
            let current = (!absent).then(|| of::<UserJson>(refusal, "current").0);
            Rejection::Record(RecordRejection::FieldConflict { record: text("record"), field: text("field"), current })
        }
        "SH-2023" => Rejection::Damaged { from: text("from"), to: text("to") },
        "SH-3001" => {
            Rejection::Run(RunRejection::InvalidEvent { what: text("what").into(), reason: text("reason").into() })
        }
        "SH-3002" => Rejection::Run(RunRejection::NoSuchRun { run: text("run") }),
        "SH-3003" => Rejection::Run(RunRejection::SequenceConflict {
            run: text("run"),
            expected: number("expected"),
            last: number("last"),
        }),
        "SH-3004" => Rejection::Run(RunRejection::KeyReused { run: text("run"), seq: number("seq") }),
        "SH-3005" => Rejection::Run(RunRejection::Closed { run: text("run"), last: number("last") }),
        "SH-3006" => Rejection::Run(RunRejection::Archived { run: text("run"), last: number("last") }),
        "SH-4002" => Rejection::Record(RecordRejection::Fenced {
            record: record(),
            given: number("given"),
            attempt: number("attempt"),
            state: text("state"),
            holder: of(refusal, "holder"),
        }),
        "SH-5001" => Rejection::Session(SessionRejection::Busy { limit: fixed("limit"), max: number("max") }),
        "SH-5003" => {
            Rejection::Session(SessionRejection::Evicted { request: number("request"), floor: number("floor") })
        }
        "SH-5007" => Rejection::Session(SessionRejection::WrongSecret),
        "SH-5004" => Rejection::Session(SessionRejection::Expired),
        "SH-5008" => Rejection::Session(SessionRejection::OtherSpace { space: text("space") }),
        "SH-5006" => Rejection::Session(SessionRejection::RequestReused { request: number("request") }),
        "SH-5005" => Rejection::Session(SessionRejection::UnreadableCommand {
            machine: u16::try_from(number("machine")).expect("a machine's number"),
        }),
        "SH-6003" => Rejection::Access(AccessRejection::NoSuchPrincipal { principal: text("principal") }),
        "SH-6004" => Rejection::Access(AccessRejection::NoSuchToken { token: text("token") }),
        "SH-6005" => {
            Rejection::Access(AccessRejection::TokensInUse { principal: text("principal"), max: number("max") })
        }
        "SH-6006" => Rejection::Access(AccessRejection::IdentityTaken {
            identity: text("identity"),
            principal: text("principal"),
        }),
        _ => return None,
    })
}

fn failure(refusal: &Refusal) -> Failure {
    let kinds = [
        FailureKind::Busy,
        FailureKind::Closed,
        FailureKind::Stopped,
        FailureKind::Corrupt,
        FailureKind::CannotOpen,
        FailureKind::Halted,
        FailureKind::Bug,
        FailureKind::NotOwner,
    ];
    let kind = kinds.into_iter().find(|kind| kind.code() == refusal.code);
    let kind = kind.unwrap_or_else(|| panic!("this is no code of a contract: {refusal:?}"));
    let message = refusal.detail.strip_suffix(&format!(" [{}]", refusal.code)).unwrap_or(&refusal.detail);
    match refusal.outcome {
        Outcome::NotApplied => Failure::not_applied(kind, message),
        Outcome::Unknown => Failure::unknown(kind, message),
    }
}

/// A text that is a constant in the contract. There are few, so each is leaked once.
fn kept_once(text: String) -> &'static str {
    static KNOWN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut known = KNOWN.lock().expect("no panic");
    if let Some(known) = known.get(text.as_str()) {
        return known;
    }
    let kept: &'static str = text.leak();
    known.insert(kept);
    kept
}
