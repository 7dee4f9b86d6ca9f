//! Guards on keyed state: conditions checked before a transaction is applied.
//!
//! Touches: nothing. A guard on a range reads at most what the transaction's author read, and stops at the first change.

use contract::keyed::shown_key;
use contract::limits::TRANSACTION_RANGE_CELLS_MAX;
use contract::{KeyedRejection, Rejection};
use kv::{KeyRange, Order};
use session::Halt;

use super::changed_map::read_head;
use super::command::KeyedGuard;
use super::entry::{Entry, decode_position};
use super::head::MapHead;
use crate::context::Applying;
use crate::keys::{Keys, Kind, ThingId};
use crate::transact::scope::Scope;

/// Checks a guard. `looked_at` counts the things that those of the transaction have looked at in ranges.
pub(super) fn check(
    applying: &Applying<'_>,
    scope: &Scope<'_>,
    guard: &KeyedGuard<'_>,
    looked_at: &mut usize,
) -> Result<Result<(), Rejection>, Halt> {
    let name = crate::command::act::Condition::name(guard).unwrap_or_default();
    let map = match scope.thing(name) {
        Ok(map) => map,
        Err(rejection) => return Ok(Err(rejection)),
    };
    let head = read_head(applying, &map)?;
    if let KeyedGuard::PositionIs(_, input, expected) = *guard {
        let current = match head.as_ref().filter(|head| !head.deleted) {
            None => None,
            Some(head) => {
                let key = applying.keys.input_position(&map, head.content.number, input);
                let row = applying.state.get(&key)?;
                row.as_deref().map(decode_position).transpose()?.map(|position| position.position)
            }
        };
        let conflict = || KeyedRejection::PositionConflict { map: name.into(), input: input.into(), current };
        return Ok(if current == expected { Ok(()) } else { Err(conflict().into()) });
    }
    if let KeyedGuard::RangeUnchangedSince(_, from, to, commit) = *guard {
        return check_range(applying, &map, head.as_ref(), (from, to), commit, looked_at);
    }
    let (key, judge): (&[u8], Judge<'_>) = match guard {
        KeyedGuard::Absent(_, key) => (key, &|found| found.is_none_or(|entry| !entry.has_value())),
        KeyedGuard::Exists(_, key) => (key, &|found| found.is_some_and(Entry::has_value)),
        KeyedGuard::VersionIs(_, key, version) => (key, &|found| found.and_then(Entry::version) == Some(*version)),
        KeyedGuard::VersionBelow(_, key, version) => {
            (key, &|found| found.and_then(Entry::version).is_none_or(|current| current < *version))
        }
        KeyedGuard::UnchangedSince(_, key, commit) => {
            if was_forgotten_since(head.as_ref(), *commit) && entry_row(applying, &map, head.as_ref(), key)?.is_none() {
                return Ok(Err(conflict(&map, key, None)));
            }
            let changed_at = |entry: &Entry<'_>| head.as_ref().map_or(0, |head| head.content.changed_at(entry));
            (key, &move |found| found.is_none_or(|entry| changed_at(entry) <= *commit))
        }
        KeyedGuard::RangeUnchangedSince(..) | KeyedGuard::PositionIs(..) => unreachable!("they were checked above"),
    };
    let row = entry_row(applying, &map, head.as_ref(), key)?;
    let entry = row.as_deref().map(Entry::decode).transpose()?;
    Ok(match judge(entry.as_ref()) {
        true => Ok(()),
        false => Err(conflict(&map, key, entry.as_ref())),
    })
}

/// Judges what is known of a key.
type Judge<'guard> = &'guard dyn Fn(Option<&Entry<'_>>) -> bool;

fn entry_row(
    applying: &Applying<'_>,
    map: &ThingId<'_>,
    head: Option<&MapHead>,
    key: &[u8],
) -> Result<Option<kv::Bytes>, Halt> {
    let Some(head) = head.filter(|head| !head.deleted) else { return Ok(None) };
    Ok(applying.state.get(&Keys::entry_at(&applying.keys.entry_prefix(map, head.content.number), key))?)
}

/// Whether a key whose row is gone may have been changed since a commit: by its removal, or with the whole map.
fn was_forgotten_since(head: Option<&MapHead>, commit: u64) -> bool {
    head.is_some_and(|head| head.content.forgotten > commit || (head.deleted && head.commit > commit))
}

fn check_range(
    applying: &Applying<'_>,
    map: &ThingId<'_>,
    head: Option<&MapHead>,
    (from, to): (&[u8], Option<&[u8]>),
    commit: u64,
    looked_at: &mut usize,
) -> Result<Result<(), Rejection>, Halt> {
    if was_forgotten_since(head, commit) {
        return Ok(Err(conflict(map, from, None)));
    }
    let Some(head) = head.filter(|head| !head.deleted) else { return Ok(Ok(())) };
    let prefix = applying.keys.entry_prefix(map, head.content.number);
    let all = applying.keys.map_rows(Kind::KeyedEntry, map, head.content.number);
    let end = to.map(|to| Keys::entry_at(&prefix, to).to_vec()).or(all.end);
    let range = KeyRange { start: Keys::entry_at(&prefix, from).to_vec(), end };
    for row in applying.state.scan(&range, Order::Ascending) {
        let (key, row) = row?;
        *looked_at += 1;
        let checked = Rejection::check_limit("transaction_range_cells_max", TRANSACTION_RANGE_CELLS_MAX, *looked_at);
        if let Err(rejection) = checked {
            return Ok(Err(rejection));
        }
        let entry = Entry::decode(&row)?;
        if head.content.changed_at(&entry) > commit {
            return Ok(Err(conflict(map, &key[prefix.len()..], Some(&entry))));
        }
    }
    Ok(Ok(()))
}

fn conflict(map: &ThingId<'_>, key: &[u8], entry: Option<&Entry<'_>>) -> Rejection {
    let current = entry.and_then(Entry::version).map(|version| version.to_string());
    KeyedRejection::Conflict { map: map.name.to_owned(), key: shown_key(key), current }.into()
}
