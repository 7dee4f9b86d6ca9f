//! Guards on cells: conditions checked before a transaction is applied.
//!
//! Touches: nothing. A range guard reads at most what the transaction's author read, and stops at the first change.

use contract::limits::TRANSACTION_RANGE_CELLS_MAX;
use contract::{CellRejection, Rejection};
use kv::{Order, Staging};
use session::Halt;

use super::command::CellGuard;
use super::floor::Floor;
use super::row::Head;
use crate::keys::ThingId;
use crate::keys::cells::read_cell_key;
use crate::keys::names::is_name_in_group;
use crate::transact::scope::Scope;

/// Judges the newest version of a cell, if it has one.
type Judge<'guard> = &'guard dyn Fn(Option<&Head<'_>>) -> bool;

/// Checks a guard. `looked_at` counts the cells that those of the transaction have looked at in ranges.
pub(crate) fn check(
    state: &Staging,
    scope: &Scope<'_>,
    guard: &CellGuard<'_>,
    looked_at: &mut usize,
) -> Result<Result<(), Rejection>, Halt> {
    let (name, holds): (&str, Judge<'_>) = match guard {
        CellGuard::Absent(name) => (name, &|head| !head.is_some_and(Head::exists)),
        CellGuard::Exists(name) => (name, &|head| head.is_some_and(Head::exists)),
        CellGuard::VersionIs(name, version) => (name, &|head| head.and_then(Head::live_version) == Some(*version)),
        CellGuard::VersionBelow(name, version) => {
            (name, &|head| head.and_then(Head::live_version).is_none_or(|current| current < *version))
        }
        CellGuard::UnchangedSince(name, commit) => (name, &|head| head.is_none_or(|head| head.write.commit <= *commit)),
        CellGuard::RangeUnchangedSince(from, to, commit) => {
            return check_range(state, scope, (from, *to), *commit, looked_at);
        }
    };
    let cell = match scope.thing(name) {
        Ok(cell) => cell,
        Err(rejection) => return Ok(Err(rejection)),
    };
    let row = state.get(&scope.keys.cell_head(&cell))?;
    let head = row.as_deref().map(Head::decode).transpose()?;
    let was_forgotten = match guard {
        CellGuard::UnchangedSince(_, commit) if head.is_none() => floor(state, scope, &cell)?.commit > *commit,
        _ => false,
    };
    if holds(head.as_ref()) && !was_forgotten {
        return Ok(Ok(()));
    }
    Ok(Err(conflict(name, head.as_ref())))
}

fn check_range(
    state: &Staging,
    scope: &Scope<'_>,
    (from, to): (&str, Option<&str>),
    commit: u64,
    looked_at: &mut usize,
) -> Result<Result<(), Rejection>, Halt> {
    // The cell that has the group's own name is stored under its name alone.
    if let Some(group) = scope.group.filter(|group| *group >= from && to.is_none_or(|to| *group < to)) {
        let own = check(state, scope, &CellGuard::UnchangedSince(group, commit), looked_at)?;
        if own.is_err() {
            return Ok(own);
        }
    }
    let cell = match scope.thing("") {
        Ok(cell) => cell,
        Err(rejection) => return Ok(Err(rejection)),
    };
    if floor(state, scope, &cell)?.commit > commit {
        // One of them may have been in the range. Which ones were is not known any more.
        return Ok(Err(conflict(from, None)));
    }
    let range = scope.keys.cell_heads_between(&cell, from, to);
    for row in state.scan(&range, Order::Ascending) {
        let (key, row) = row?;
        *looked_at += 1;
        let checked = Rejection::check_limit("transaction_range_cells_max", TRANSACTION_RANGE_CELLS_MAX, *looked_at);
        if let Err(rejection) = checked {
            return Ok(Err(rejection));
        }
        if is_name_in_group(&key) {
            continue;
        }
        let head = Head::decode(&row)?;
        if head.write.commit > commit {
            let key = read_cell_key(&key).ok_or_else(|| Halt::Inconsistent("a foreign key among cells".into()))?;
            return Ok(Err(conflict(&key.name, Some(&head))));
        }
    }
    Ok(Ok(()))
}

fn floor(state: &Staging, scope: &Scope<'_>, cell: &ThingId<'_>) -> Result<Floor, Halt> {
    let key = scope.keys.cell_floor(cell.bucket, cell.space, cell.branch);
    let row = scope.keys.get_either(&key, |key| state.get(key))?;
    Floor::decode(row.as_deref())
}

fn conflict(name: &str, head: Option<&Head<'_>>) -> Rejection {
    Rejection::Cell(CellRejection::Conflict { cell: name.to_owned(), current: head.and_then(Head::live_version) })
}
