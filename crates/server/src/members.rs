//! The members of a rejection in its problem: from them a client can reconstruct the exact rejection.

use contract::Rejection;

/// Members as JSON text.
macro_rules! of {
    ($($name:literal => $value:expr),* $(,)?) => {
        vec![$(($name, serde_json::to_string(&$value).expect("a member is JSON"))),*]
    };
}

/// The members of a rejection. A `null` version means that the thing does not exist.
pub(crate) fn members(rejection: &Rejection) -> Vec<(&'static str, String)> {
    match rejection {
        Rejection::InvalidName { what, reason } => of!["what" => what, "reason" => reason],
        Rejection::InvalidEvent { what, reason } => of!["what" => what, "reason" => reason],
        Rejection::InvalidDeclaration { what, reason } => of!["what" => what, "reason" => reason.text()],
        Rejection::LimitExceeded { limit, max, got } => of!["limit" => limit, "max" => max, "got" => got],
        Rejection::Conflict { cell, current } => of!["cell" => cell, "current_version" => current],
        Rejection::RecordConflict { record, current } => of!["record" => record, "current_version" => current],
        Rejection::FieldConflict { record, field, current } => {
            of!["record" => record, "field" => field, "absent" => current.is_none(), "current" => current]
        }
        Rejection::TwoGroups { group, other } => of!["group" => group, "other" => other],
        Rejection::NoSuchSpace { space } => of!["space" => space],
        Rejection::NoSuchBranch { branch } => of!["branch" => branch],
        Rejection::AlreadyExists { what, name } => of!["what" => what, "name" => name],
        Rejection::CatalogueBehind { needed, have } => of!["needed" => needed, "have" => have],
        Rejection::NoSuchRun { run } => of!["run" => run],
        Rejection::SequenceConflict { run, expected, last } => {
            of!["run" => run, "expected" => expected, "last" => last]
        }
        Rejection::KeyReused { run, seq } => of!["run" => run, "seq" => seq],
        Rejection::RunClosed { run, last } | Rejection::RunArchived { run, last } => {
            of!["run" => run, "last" => last]
        }
        Rejection::Evicted { request, floor } => of!["request" => request, "floor" => floor],
        Rejection::RequestReused { request } => of!["request" => request],
        Rejection::SessionBusy { limit, max } => of!["limit" => limit, "max" => max],
        Rejection::UnreadableCommand { machine } => of!["machine" => machine],
        Rejection::TransactionLost { reason } | Rejection::TransactionState { reason } => of!["reason" => reason],
        Rejection::NoSuchRecord { record } => of!["record" => record],
        Rejection::NoSuchType { name } => of!["name" => name],
        Rejection::WrongState { record, state, reason } => {
            of!["record" => record, "state" => state, "reason" => reason.text()]
        }
        Rejection::WrongKind { record, field, wanted } => {
            of!["record" => record, "field" => field, "wanted" => wanted.text()]
        }
        Rejection::Damaged { from, to } => of!["from" => from, "to" => to],
        Rejection::Fenced { record, given, attempt, state, holder } => {
            of!["record" => record, "given" => given, "attempt" => attempt, "state" => state, "holder" => holder]
        }
        _ => of![],
    }
}
