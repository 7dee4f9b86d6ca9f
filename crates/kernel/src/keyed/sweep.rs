//! The sweep: rows that nobody needs any more go, in bounded steps: contents that were replaced, deleted keys that the seal has
//! passed, removed ones that no checkpoint needs, and the head of a deleted map after the retention of deleted things. In an ordered
//! map it also applies what a seal has left over.
//!
//! Touches: the rows of a map. Never: changes what becomes of an update.

use session::Halt;

use super::changed_map::{ChangedMap, note, put_head, read_head};
use super::chunks::Chunks;
use super::entry::Entry;
use super::head::MapHead;
use super::noting::{note_gone, unneeded};
use super::ordered::apply_sealed;
use super::update::one_less;
use crate::changes::Reason;
use crate::context::Applying;
use crate::contract::DueWork;
use crate::held::Was;
use crate::keys::keyed::{CONTENT_ROWS, read_version_and_key};
use crate::keys::{Keys, Kind, ThingId};

/// Waiting updates and other rows that a sweep of one map takes at a time. What is left is not due in the same tick.
const SWEPT_ROWS_MAX: u32 = 512;

/// Sweeps a map, and has the next sweep follow if there is more to do. Returns how many steps of its tick it took: one for each
/// row, so that a tick sweeps few maps with many rows, or many with few.
pub(super) fn sweep(applying: &mut Applying<'_>, work: &DueWork<'_>) -> Result<u32, Halt> {
    let map = work.thing();
    applying.delete_due(work.clock, work.at_us, work.of, &map);
    // The rows of a deleted branch go with it.
    let Some(before) = read_head(applying, &map)?.filter(|_| applying.is_live(work.id)) else { return Ok(1) };
    let mut changed = ChangedMap::sweeping(&map, before.clone());
    let mut left = SWEPT_ROWS_MAX as usize;
    let applied = apply_sealed(applying, &mut changed, &mut left)?;
    let mut head = changed.head;
    remove_unused(applying, &map, &mut head, &mut left)?;
    forget_deleted(applying, &map, &mut head, &mut left)?;
    forget_noted(applying, &map, &mut head, &mut left)?;
    let steps = (SWEPT_ROWS_MAX - u32::try_from(left).expect("it only falls")).max(1);
    if applied > 0 {
        // What readers see has changed.
        (head.commit, head.updated_us) = (applying.call.commit, applying.call.stamp.wall_us);
        note(applying, &map, &head, Reason::Written);
    }
    // While there is more, behind everything that is due by now, and not in the same tick.
    let now_us = applying.call.stamp.wall_us;
    let forget_us = before.updated_us.saturating_add(applying.catalogue.limits.tombstone_age_us);
    head.sweep_us = match head.deleted {
        _ if left == 0 => Some(now_us + 1),
        true if forget_us > now_us => Some(forget_us),
        true => {
            let key = applying.keys.map(&map);
            applying.held().delete(key, before.counted());
            return Ok(steps);
        }
        false => None,
    };
    if let Some(at_us) = head.sweep_us {
        applying.put_due(work.clock, at_us, work.of, &map);
    }
    put_head(applying, &map, Some(&before), &head);
    Ok(steps)
}

fn remove_unused(
    applying: &mut Applying<'_>,
    map: &ThingId<'_>,
    head: &mut MapHead,
    left: &mut usize,
) -> Result<(), Halt> {
    while let Some(number) = head.unused.first().copied() {
        for kind in CONTENT_ROWS {
            let mut chunks = Chunks::of(head, kind, number, applying.keys.map_rows(kind, map, number));
            while let Some(rows) = chunks.next(applying, left)? {
                for (key, row) in rows {
                    applying.held().delete_found(key, &row)?;
                }
            }
            chunks.leave(head);
        }
        if *left == 0 {
            return Ok(());
        }
        head.unused.remove(0);
        head.cursors.retain(|cursor| cursor.content != number);
    }
    Ok(())
}

fn forget_deleted(
    applying: &mut Applying<'_>,
    map: &ThingId<'_>,
    head: &mut MapHead,
    left: &mut usize,
) -> Result<(), Halt> {
    let Some(seal) = head.content.seal else { return Ok(()) };
    let (kind, number) = (Kind::KeyedDeleted, head.content.number);
    let mut chunks = Chunks::of(head, kind, number, applying.keys.sealed_rows(kind, map, number, seal));
    let content = &mut head.content;
    let entries = applying.keys.entry_prefix(map, content.number);
    while let Some(rows) = chunks.next(applying, left)? {
        for (row_key, _) in rows {
            let (_, key) = read_version_and_key(chunks.suffix(&row_key))
                .ok_or_else(|| Halt::Inconsistent("a foreign key among deleted keys".into()))?;
            let entry_key = Keys::entry_at(&entries, key);
            let row = applying.state.get(&entry_key)?;
            let row = row.ok_or_else(|| Halt::Inconsistent("D1: a deleted key has no entry".into()))?;
            content.forgotten = content.forgotten.max(content.changed_at(&Entry::decode(&row)?));
            content.deleted = one_less(content.deleted)?;
            applying.held().delete(entry_key, Was::part(row.len()));
            note_gone(applying, map, content, key)?;
            applying.state.delete(row_key);
        }
    }
    chunks.leave(head);
    Ok(())
}

fn forget_noted(
    applying: &mut Applying<'_>,
    map: &ThingId<'_>,
    head: &mut MapHead,
    left: &mut usize,
) -> Result<(), Halt> {
    let Some(range) = unneeded(applying, map, &head.content) else { return Ok(()) };
    let mut chunks = Chunks::of(head, Kind::KeyedGone, head.content.number, range);
    while let Some(rows) = chunks.next(applying, left)? {
        for (row_key, _) in rows {
            head.content.noting.count = one_less(head.content.noting.count)?;
            applying.state.delete(row_key);
        }
    }
    chunks.leave(head);
    Ok(())
}
