//! A transaction: guards first, then operations in order, all or nothing.
//!
//! Touches: whatever its operations touch, in one group. Keeps: K7 (a rejected transaction changes nothing).

pub(crate) mod guarded;
pub(crate) mod limits;
mod numbered;
pub(crate) mod scope;

use contract::access::audit::Decision;
use contract::object_text::ObjectText;
use contract::{RefusalReason, Rejection};
use session::Halt;

use self::limits::within_limits;
use self::numbered::Numbered;
use self::scope::Scope;
use crate::answer::{Answer, OpOutcome};
use crate::audit::{self, Recorded};
use crate::catalogue::Catalogue;
use crate::command::{Guard, Op, Transact};
use crate::conflicts::note_conflict;
use crate::context::Applying;
use crate::contract::{Contract, Outcome};
use crate::contracts::with_contracts;
use crate::keys::ThingId;
use crate::outbox;

pub(crate) fn transact(applying: &mut Applying<'_>, transact: &Transact<'_>) -> Result<Answer, Halt> {
    let body_bytes = applying.call.body.len();
    Ok(match try_transact(applying, transact, body_bytes)? {
        Ok(Transacted { commit, outcomes }) => match record_force(applying, transact)? {
            Ok(()) => Answer::Done { commit, outcomes },
            Err(rejection) => {
                applying.undo();
                Answer::Rejected(rejection)
            }
        },
        Err(rejection) => {
            applying.undo();
            if let Ok(scope) = Scope::of(applying.catalogue, applying.keys, transact) {
                note_conflict(applying, &scope, &rejection)?;
            }
            Answer::Rejected(rejection)
        }
    })
}

/// A write that is forced by somebody who is known is recorded, or not done.
fn record_force(applying: &mut Applying<'_>, transact: &Transact<'_>) -> Result<Result<(), Rejection>, Halt> {
    if !transact.force || applying.call.sender.is_none() {
        return Ok(Ok(()));
    }
    let mut on = ObjectText::default();
    if let Ok(space) = applying.catalogue.space(transact.space) {
        let branch = space.live_branch(transact.branch).map_or("", |branch| &branch.name);
        on.text("space", &space.name).text("branch", branch);
    }
    on.text_if("group", group_of(transact));
    audit::record(applying, &Recorded { act: "write", on: &on.finish(), decision: Decision::Forced })
}

/// A transaction that was applied, now or before.
#[derive(Clone, Debug)]
pub(crate) struct Transacted {
    /// The command that applied it.
    pub(crate) commit: u64,
    pub(crate) outcomes: Vec<OpOutcome>,
}

/// Applies a transaction, perhaps in part: who calls undoes it if it is refused. `body_bytes` are those of its command.
pub(crate) fn try_transact(
    applying: &mut Applying<'_>,
    transact: &Transact<'_>,
    body_bytes: usize,
) -> Result<Result<Transacted, Rejection>, Halt> {
    if let Err(rejection) = within_limits(applying.catalogue, body_bytes, transact) {
        return Ok(Err(rejection));
    }
    let scope = match Scope::of(applying.catalogue, applying.keys, transact) {
        Ok(scope) => scope,
        Err(rejection) => return Ok(Err(rejection)),
    };
    if let Err(rejection) = check_one_group(transact) {
        return Ok(Err(rejection));
    }
    if let Err(rejection) = check_scope(applying, &scope)? {
        return Ok(Err(rejection));
    }
    let numbered = match Numbered::of(&scope, transact)? {
        Ok(numbered) => numbered,
        Err(rejection) => return Ok(Err(rejection)),
    };
    let group = group_of(transact).unwrap_or_default();
    let guard = guarded::obeyed(applying, &scope, group);
    // Who may not write here is not told what was answered to somebody else.
    if let Some(numbered) = numbered.as_ref().filter(|_| guard.is_none()) {
        match numbered.first_answer(applying)? {
            Ok(Some(first)) => return Ok(Ok(first)),
            Ok(None) => {}
            Err(rejection) => return Ok(Err(rejection)),
        }
    }
    let mut looked_at = 0;
    for guard in &transact.guards {
        #[cfg(feature = "canary")]
        if crate::canary::guards_are_skipped() {
            break;
        }
        if let Err(rejection) = check_guard(applying, &scope, guard, &mut looked_at)? {
            return Ok(Err(rejection));
        }
    }
    let mut outcomes = Vec::with_capacity(transact.ops.len());
    for op in &transact.ops {
        if let Some(guard) = guard
            && let Err(rejection) = guarded::check(applying, &scope, group, guard, op)?
        {
            return Ok(Err(rejection));
        }
        match apply_op(applying, &scope, transact, op)? {
            Ok(outcome) => outcomes.push(outcome),
            Err(rejection) => return Ok(Err(rejection)),
        }
    }
    let done = Transacted { commit: applying.call.commit, outcomes };
    if let Some(numbered) = &numbered {
        numbered.keep(applying, &done)?;
    }
    Ok(Ok(done))
}

fn apply_op(applying: &mut Applying<'_>, scope: &Scope<'_>, transact: &Transact<'_>, op: &Op<'_>) -> Outcome {
    let name = op.name().or_else(|| group_of(transact)).unwrap_or_default();
    #[cfg(feature = "canary")]
    crate::canary::panic_if_planted(name);
    let thing = match scope.thing(name) {
        Ok(thing) => thing,
        Err(rejection) => return Ok(Err(rejection)),
    };
    act(applying, scope, &thing, op)
}

macro_rules! dispatch {
    ($($folder:ident: $contract:ident { $kind:ident, $act:ident, $guard:ident, $item:ident, $trim:ident })*) => {
        /// Does what an operation says, as its contract does it.
        fn act(applying: &mut Applying<'_>, scope: &Scope<'_>, thing: &ThingId<'_>, op: &Op<'_>) -> Outcome {
            match op {
                $(Op::$kind(_, act) => crate::$folder::contract::$contract::act(applying, scope, thing, act),)*
                Op::Push(session, payload) => {
                    applying.pushes.push(*session, *payload);
                    Ok(Ok(OpOutcome::Sent))
                }
                Op::Send(message) => Ok(outbox::send::send(applying, thing, message)?.map(|()| OpOutcome::Sent)),
            }
        }

        /// Checks what the scope of a transaction says of things.
        pub(crate) fn check_scope(applying: &mut Applying<'_>, scope: &Scope<'_>) -> Result<Result<(), Rejection>, Halt> {
            $(if let Err(rejection) = crate::$folder::contract::$contract::check_scope(applying, scope)? {
                return Ok(Err(rejection));
            })*
            Ok(Ok(()))
        }

        fn check_guard(
            applying: &Applying<'_>,
            scope: &Scope<'_>,
            guard: &Guard<'_>,
            looked_at: &mut usize,
        ) -> Result<Result<(), Rejection>, Halt> {
            match guard {
                $(Guard::$kind(guard) => crate::$folder::contract::$contract::check(applying, scope, guard, looked_at),)*
            }
        }
    };
}

with_contracts!(dispatch);

/// The group of a transaction: the one that it names, or the name of the one thing that it touches.
pub(crate) fn group_of<'bytes>(transact: &Transact<'bytes>) -> Option<&'bytes str> {
    let fence = transact.fences.first().map(|fence| fence.record);
    let named = transact.group.or(fence).or_else(|| transact.ops.iter().find_map(Op::name));
    named.or_else(|| transact.guards.iter().find_map(Guard::name))
}

/// The bucket of a transaction's group, if this shard owns it; none if it touches nothing.
pub(crate) fn bucket_here(catalogue: &Catalogue, transact: &Transact<'_>) -> Result<Option<u16>, Rejection> {
    let space = catalogue.space(transact.space)?;
    group_of(transact).map(|group| catalogue.bucket_here(space, group)).transpose()
}

/// Without a group, a transaction may touch one name only.
fn check_one_group(transact: &Transact<'_>) -> Result<(), Rejection> {
    let Some(group) = group_of(transact) else {
        let what = "a transaction".to_owned();
        return match transact.ops.is_empty() {
            true => Ok(()),
            false => Err(Rejection::InvalidDeclaration { what, reason: RefusalReason::NoGroup }),
        };
    };
    if transact.group.is_some() {
        return Ok(());
    }
    let fences = transact.fences.iter().map(|fence| fence.record);
    let names = transact.ops.iter().filter_map(Op::name).chain(transact.guards.iter().filter_map(Guard::name));
    match names.chain(fences).find(|name| *name != group) {
        None => Ok(()),
        Some(other) => Err(Rejection::TwoGroups { group: group.to_owned(), other: other.to_owned() }),
    }
}
