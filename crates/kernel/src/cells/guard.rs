//! Guards on cells: conditions checked before a transaction is applied.
//!
//! Touches: nothing. A range guard reads at most what the transaction's author read, and stops at the first change.

use contract::Rejection;
use contract::limits::TRANSACTION_RANGE_CELLS_MAX;
use kv::{Order, Staging};
use session::Halt;

use super::floor::Floor;
use super::row::Head;
use crate::catalogue::Catalogue;
use crate::command::Guard;
use crate::keys::names::is_name_in_group;
use crate::keys::{CellKey, Keys, ThingId};

/// The space, branch and group of a transaction.
pub(crate) struct Place<'transact> {
    pub(crate) catalogue: &'transact Catalogue,
    pub(crate) keys: Keys,
    pub(crate) space: u32,
    pub(crate) branch: u32,
    pub(crate) group: Option<&'transact str>,
}

impl Place<'_> {
    pub(crate) fn thing<'name>(&'name self, name: &'name str) -> Result<ThingId<'name>, Rejection> {
        self.catalogue.thing(self.space, self.branch, self.group, name)
    }
}

/// Judges the newest version of a cell, if it has one.
type Judge<'guard> = &'guard dyn Fn(Option<&Head<'_>>) -> bool;

/// Checks a guard. `looked_at` counts the cells that those of the transaction have looked at in ranges.
pub(crate) fn check(
    state: &Staging,
    place: &Place<'_>,
    guard: &Guard<'_>,
    looked_at: &mut usize,
) -> Result<Result<(), Rejection>, Halt> {
    let (name, holds): (&str, Judge<'_>) = match guard {
        Guard::CellAbsent(name) => (name, &|head| !head.is_some_and(Head::exists)),
        Guard::CellExists(name) => (name, &|head| head.is_some_and(Head::exists)),
        Guard::CellVersionIs(name, version) => (name, &|head| head.and_then(Head::live_version) == Some(*version)),
        Guard::CellVersionBelow(name, version) => {
            (name, &|head| head.and_then(Head::live_version).is_none_or(|current| current < *version))
        }
        Guard::CellUnchangedSince(name, commit) => (name, &|head| head.is_none_or(|head| head.write.commit <= *commit)),
        Guard::CellsUnchangedSince(from, to, commit) => {
            return check_range(state, place, (from, *to), *commit, looked_at);
        }
        other => unreachable!("a guard that is not about cells: {other:?}"),
    };
    let cell = match place.thing(name) {
        Ok(cell) => cell,
        Err(rejection) => return Ok(Err(rejection)),
    };
    let row = state.get(&place.keys.cell_head(&cell))?;
    let head = row.as_deref().map(Head::decode).transpose()?;
    let was_forgotten = match guard {
        Guard::CellUnchangedSince(_, commit) if head.is_none() => floor(state, place, &cell)?.commit > *commit,
        _ => false,
    };
    if holds(head.as_ref()) && !was_forgotten {
        return Ok(Ok(()));
    }
    Ok(Err(conflict(name, head.as_ref())))
}

fn check_range(
    state: &Staging,
    place: &Place<'_>,
    (from, to): (&str, Option<&str>),
    commit: u64,
    looked_at: &mut usize,
) -> Result<Result<(), Rejection>, Halt> {
    // The cell that has the group's own name is stored under its name alone.
    if let Some(group) = place.group.filter(|group| *group >= from && to.is_none_or(|to| *group < to)) {
        let own = check(state, place, &Guard::CellUnchangedSince(group, commit), looked_at)?;
        if own.is_err() {
            return Ok(own);
        }
    }
    let cell = match place.thing("") {
        Ok(cell) => cell,
        Err(rejection) => return Ok(Err(rejection)),
    };
    if floor(state, place, &cell)?.commit > commit {
        // One of them may have been in the range. Which ones were is not known any more.
        return Ok(Err(conflict(from, None)));
    }
    let range = place.keys.cell_heads_between(&cell, from, to);
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
            let key = CellKey::decode(&key).ok_or_else(|| Halt::Inconsistent("a foreign key among cells".into()))?;
            return Ok(Err(conflict(&key.name, Some(&head))));
        }
    }
    Ok(Ok(()))
}

fn floor(state: &Staging, place: &Place<'_>, cell: &ThingId<'_>) -> Result<Floor, Halt> {
    let key = place.keys.cell_floor(cell.bucket, cell.space, cell.branch);
    let row = place.keys.get_either(&key, |key| state.get(key))?;
    Floor::decode(row.as_deref())
}

fn conflict(name: &str, head: Option<&Head<'_>>) -> Rejection {
    Rejection::Conflict { cell: name.to_owned(), current: head.and_then(Head::live_version) }
}
