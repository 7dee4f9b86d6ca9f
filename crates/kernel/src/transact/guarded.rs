//! Guarded groups: what a command may do there without the fence of the group's owner.
//!
//! Keeps: O1 (in a guarded group nobody but its owner writes, unless the guard opens a name or the command is forced).
//! What the store does by itself, such as expiry, rescue and retention, does not come this way.

use contract::Rejection;
use contract::catalogue::MAIN_BRANCH;
use contract::guards::{GroupGuard, OWNER_RECORD};
use session::Halt;

use super::scope::Scope;
use crate::command::Op;
use crate::command::act::{Act, Open};
use crate::context::Applying;
use crate::contract::{Contract, Holding};
use crate::contracts::with_contracts;
use crate::keys::ThingId;

/// The guard of a group that a command must obey: it has not shown that it may write everything there. That its fences
/// hold was checked before.
pub(super) fn obeyed<'scope>(
    applying: &Applying<'_>,
    scope: &'scope Scope<'_>,
    group: &str,
) -> Option<&'scope GroupGuard> {
    scope.of_space.guards.of_group(group).filter(|_| !may_write(applying, scope))
}

/// Refuses an operation in a guarded group that only its owner may do.
pub(super) fn check(
    applying: &Applying<'_>,
    scope: &Scope<'_>,
    group: &str,
    guard: &GroupGuard,
    op: &Op<'_>,
) -> Result<Result<(), Rejection>, Halt> {
    if is_open(applying, scope, group, guard, op)? {
        return Ok(Ok(()));
    }
    Ok(Err(unfenced("group", group, holding_in(applying, scope, scope.branch, group)?)))
}

/// Refuses what only the owner of a guarded group may do, whatever the guard opens.
pub(crate) fn check_owner(
    applying: &Applying<'_>,
    scope: &Scope<'_>,
    group: &str,
) -> Result<Result<(), Rejection>, Halt> {
    match obeyed(applying, scope, group) {
        None => Ok(Ok(())),
        Some(_) => Ok(Err(unfenced("group", group, holding_in(applying, scope, scope.branch, group)?))),
    }
}

/// Refuses a command for a user's machine in a guarded group. The state of a machine is in no branch; who owns the group on
/// `main` owns it.
pub(crate) fn check_machine(
    applying: &Applying<'_>,
    scope: &Scope<'_>,
    group: &str,
) -> Result<Result<(), Rejection>, Halt> {
    let main = scope.of_space.branch_named(MAIN_BRANCH).unwrap_or_default();
    let on_main = scope.branch == main || scope.fences.is_empty();
    if scope.of_space.guards.of_group(group).is_none() || (on_main && may_write(applying, scope)) || scope.force {
        return Ok(Ok(()));
    }
    Ok(Err(unfenced("group", group, holding_in(applying, scope, main, group)?)))
}

/// Whether a command may write everything in the group.
fn may_write(applying: &Applying<'_>, scope: &Scope<'_>) -> bool {
    #[cfg(feature = "canary")]
    if crate::canary::fences_are_skipped() {
        return true;
    }
    scope.force || applying.from_its_own_group || scope.fences.iter().any(|fence| fence.record == OWNER_RECORD)
}

/// Who owns a group in a branch, if anybody does.
fn holding_in(applying: &Applying<'_>, scope: &Scope<'_>, branch: u32, group: &str) -> Result<Option<Holding>, Halt> {
    match scope.catalogue.thing(scope.space, branch, Some(group), OWNER_RECORD) {
        Ok(owner) => holding_of(applying, &owner),
        Err(_) => Ok(None),
    }
}

/// A write without the fence of whoever holds something, if anybody does.
pub(crate) fn unfenced(what: &'static str, name: &str, holding: Option<Holding>) -> Rejection {
    let (holder, until_ms) = holding.map_or((None, None), |Holding { holder, until_ms }| (holder, Some(until_ms)));
    Rejection::Unfenced { what, name: name.to_owned(), holder, until_ms }
}

macro_rules! open_acts {
    ($($folder:ident: $contract:ident { $kind:ident, $act:ident, $guard:ident, $item:ident, $trim:ident })*) => {
        /// Who holds a thing, if anybody does.
        fn holding_of(applying: &Applying<'_>, thing: &ThingId<'_>) -> Result<Option<Holding>, Halt> {
            $(if let Some(holding) = crate::$folder::contract::$contract::holding(applying, thing)? {
                return Ok(Some(holding));
            })*
            Ok(None)
        }

        /// Whether anybody may do this in a guarded group.
        fn is_open(
            applying: &Applying<'_>,
            scope: &Scope<'_>,
            group: &str,
            guard: &GroupGuard,
            op: &Op<'_>,
        ) -> Result<bool, Halt> {
            match op {
                $(Op::$kind(name, act) => match act.open(name) {
                    Open::Everywhere => Ok(true),
                    _ if !guard.is_open(name) => Ok(false),
                    Open::Never => Ok(false),
                    Open::Always => Ok(true),
                    Open::IfAbsent => {
                        let Ok(thing) = scope.catalogue.thing(scope.space, scope.branch, Some(group), name) else {
                            return Ok(false);
                        };
                        let is_there = crate::$folder::contract::$contract::is_there(applying, &thing)?;
                        Ok(!is_there)
                    }
                },)*
                Op::Send(_) | Op::Push(..) => Ok(false),
            }
        }
    };
}

with_contracts!(open_acts);

#[cfg(test)]
mod tests;
