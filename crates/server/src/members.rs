//! What a rejection carries, as members of its problem: a client can tell from them which rejection it was, to the last
//! number.

use contract::Rejection;
use serde_json::{Value as JsonValue, json};

/// The members of a rejection, but for the value that a field holds; see [`current_of`]. A version that is `null` belongs to what does not exist.
pub(crate) fn members(rejection: &Rejection) -> JsonValue {
    match rejection {
        Rejection::InvalidName { what, reason } => json!({ "what": what, "reason": reason }),
        Rejection::InvalidEvent { what, reason } => json!({ "what": what, "reason": reason }),
        Rejection::InvalidDeclaration { what, reason } => json!({ "what": what, "reason": reason.text() }),
        Rejection::LimitExceeded { limit, max, got } => json!({ "limit": limit, "max": max, "got": got }),
        Rejection::Conflict { cell, current } => json!({ "cell": cell, "current_version": current }),
        Rejection::RecordConflict { record, current } => json!({ "record": record, "current_version": current }),
        Rejection::FieldConflict { record, field, current } => {
            json!({ "record": record, "field": field, "absent": current.is_none(), "current": null })
        }
        Rejection::TwoGroups { group, other } => json!({ "group": group, "other": other }),
        Rejection::NoSuchSpace { space } => json!({ "space": space }),
        Rejection::NoSuchBranch { branch } => json!({ "branch": branch }),
        Rejection::AlreadyExists { what, name } => json!({ "what": what, "name": name }),
        Rejection::CatalogueBehind { needed, have } => json!({ "needed": needed, "have": have }),
        Rejection::NoSuchRun { run } => json!({ "run": run }),
        Rejection::SequenceConflict { run, expected, last } => {
            json!({ "run": run, "expected": expected, "last": last })
        }
        Rejection::KeyReused { run, seq } => json!({ "run": run, "seq": seq }),
        Rejection::RunClosed { run, last } | Rejection::RunArchived { run, last } => {
            json!({ "run": run, "last": last })
        }
        Rejection::Evicted { request, floor } => json!({ "request": request, "floor": floor }),
        Rejection::RequestReused { request } => json!({ "request": request }),
        Rejection::SessionBusy { limit, max } => json!({ "limit": limit, "max": max }),
        Rejection::UnreadableCommand { machine } => json!({ "machine": machine }),
        Rejection::TransactionLost { reason } | Rejection::TransactionState { reason } => json!({ "reason": reason }),
        Rejection::NoSuchRecord { record } => json!({ "record": record }),
        Rejection::NoSuchType { name } => json!({ "name": name }),
        Rejection::WrongState { record, state, reason } => {
            json!({ "record": record, "state": state, "reason": reason.text() })
        }
        Rejection::WrongKind { record, field, wanted } => {
            json!({ "record": record, "field": field, "wanted": wanted.text() })
        }
        Rejection::Fenced { record, given, attempt, state, holder } => {
            json!({ "record": record, "given": given, "attempt": attempt, "state": state, "holder": holder })
        }
        _ => json!({}),
    }
}

/// The value that a field holds instead of what was expected, as JSON text: it is the user's, and kept as it was written.
pub(crate) fn current_of(rejection: &Rejection) -> Option<String> {
    match rejection {
        Rejection::FieldConflict { current: Some(current), .. } => Some(current.to_json_text()),
        _ => None,
    }
}
