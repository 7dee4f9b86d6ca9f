//! The members of an event by name: those it may have, those only the store may set, and all others, which are kept.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::limits::EVENT_EXTRA_BYTES_MAX;
use crate::object_text::{self, Member};
use crate::value::Json;
use crate::{Rejection, RunRejection};

/// Members that an event may have.
pub(super) const MEMBERS: [&str; 12] = [
    "eventType",
    "eventData",
    "idempotencyKey",
    "eventId",
    "stepId",
    "engineAttemptId",
    "logicalAttemptId",
    "emittedAt",
    "adapterVersion",
    "engineRunRef",
    "causedBySignalId",
    "parentEventId",
];

/// Members that only the store may set.
pub(super) const GIVEN_BY_THE_STORE: [&str; 5] = ["runId", "runSeq", "prevSeq", "persistedAt", "commit"];

pub(super) fn invalid(what: impl Into<Cow<'static, str>>, reason: impl Into<Cow<'static, str>>) -> Rejection {
    Rejection::Run(RunRejection::InvalidEvent { what: what.into(), reason: reason.into() })
}

/// The members that the contract does not define, as one object, each in its original spelling.
pub(super) fn extra(members: &[Member<'_>]) -> Result<Option<Json>, Rejection> {
    let mut object = String::new();
    for member in members.iter().filter(|member| !is_known(&member.name)) {
        Json::new(member.json).map_err(|error| invalid(member.name.clone().into_owned(), error.to_string()))?;
        object.push(if object.is_empty() { '{' } else { ',' });
        object.push_str(member.spelled);
        object.push(':');
        object.push_str(member.json);
    }
    match object.is_empty() {
        true => Ok(None),
        false => Json::new(object + "}").map(Some).map_err(|error| invalid("event", error.to_string())),
    }
}

fn is_known(name: &str) -> bool {
    MEMBERS.contains(&name) || GIVEN_BY_THE_STORE.contains(&name)
}

/// Refuses repeated members, and members that only the store may set.
pub(super) fn check_names(members: &[Member<'_>]) -> Result<(), Rejection> {
    let mut seen = BTreeSet::new();
    for Member { name, .. } in members {
        if !seen.insert(name) {
            return Err(invalid(name.clone().into_owned(), "it is repeated"));
        }
        if name != "runId" && GIVEN_BY_THE_STORE.contains(&&**name) {
            return Err(invalid(name.clone().into_owned(), "only the store may set it"));
        }
    }
    Ok(())
}

/// Refuses extra members that would be repeated in the event, or be mistaken for defined ones.
pub(super) fn check_extra(extra: &Json) -> Result<(), Rejection> {
    Rejection::check_limit("event_extra_bytes_max", EVENT_EXTRA_BYTES_MAX, extra.as_str().len())?;
    let members = object_text::members(extra.as_str()).map_err(|error| invalid("extra", error.to_string()))?;
    check_names(&members)?;
    match members.iter().find(|member| is_known(&member.name)) {
        Some(known) => Err(invalid(known.name.clone().into_owned(), "it is not extra: the contract defines it")),
        None => Ok(()),
    }
}
