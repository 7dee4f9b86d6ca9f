//! The sweep: rows that nobody needs any more go, in bounded steps: contents that were replaced, deleted keys that the seal has
//! passed, removed ones that no checkpoint needs, and the head of a deleted map after the retention of deleted things. In an ordered map it also applies what a seal has
//! left over.
//!
//! Touches: the rows of a map. Never: changes what becomes of an update.

use kv::{KeyRange, Order};
use session::Halt;

use super::changed_map::{ChangedMap, note, put_head, read_head};
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

/// Rows that one step removes. Each step is in an entry of its own, so that other due work goes on.
pub(super) const SWEPT_ROWS_MAX: usize = 512;

/// Does a step, and has the next one follow if there is more to do.
pub(super) fn sweep(applying: &mut Applying<'_>, work: &DueWork<'_>) -> Result<(), Halt> {
    let map = work.thing();
    applying.delete_due(work.clock, work.at_us, work.of, &map);
    // The rows of a deleted branch go with it.
    let Some(before) = read_head(applying, &map)?.filter(|_| applying.is_live(work.id)) else { return Ok(()) };
    let mut changed = ChangedMap::sweeping(&map, before.clone());
    let mut left = SWEPT_ROWS_MAX;
    apply_sealed(applying, &mut changed, &mut left)?;
    let applied = left < SWEPT_ROWS_MAX;
    let mut head = changed.head;
    remove_unused(applying, &map, &mut head, &mut left)?;
    forget_deleted(applying, &map, &mut head, &mut left)?;
    forget_noted(applying, &map, &mut head, &mut left)?;
    if applied {
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
            return Ok(());
        }
        false => None,
    };
    if let Some(at_us) = head.sweep_us {
        applying.put_due(work.clock, at_us, work.of, &map);
    }
    put_head(applying, &map, Some(&before), &head);
    Ok(())
}

fn remove_unused(
    applying: &mut Applying<'_>,
    map: &ThingId<'_>,
    head: &mut MapHead,
    left: &mut usize,
) -> Result<(), Halt> {
    while let Some(number) = head.unused.first().copied() {
        for kind in CONTENT_ROWS {
            let range = applying.keys.map_rows(kind, map, number);
            for (key, row) in some_rows(applying, &range, *left)? {
                applying.held().delete_found(key, &row)?;
                *left -= 1;
            }
        }
        if *left == 0 {
            return Ok(());
        }
        head.unused.remove(0);
    }
    Ok(())
}

fn forget_deleted(
    applying: &mut Applying<'_>,
    map: &ThingId<'_>,
    head: &mut MapHead,
    left: &mut usize,
) -> Result<(), Halt> {
    let content = &mut head.content;
    let range = applying.keys.map_rows(Kind::KeyedDeleted, map, content.number);
    let entries = applying.keys.entry_prefix(map, content.number);
    for (row_key, _) in some_rows(applying, &range, *left)? {
        let (version, key) = read_version_and_key(&row_key[range.start.len()..])
            .ok_or_else(|| Halt::Inconsistent("a foreign key among deleted keys".into()))?;
        if !content.seals(version) {
            break;
        }
        let entry_key = Keys::entry_at(&entries, key);
        let row = applying.state.get(&entry_key)?;
        let row = row.ok_or_else(|| Halt::Inconsistent("D1: a deleted key has no entry".into()))?;
        content.forgotten = content.forgotten.max(content.changed_at(&Entry::decode(&row)?));
        content.deleted = one_less(content.deleted)?;
        applying.held().delete(entry_key, Was::part(row.len()));
        note_gone(applying, map, content, key)?;
        applying.state.delete(row_key);
        *left -= 1;
    }
    Ok(())
}

fn forget_noted(
    applying: &mut Applying<'_>,
    map: &ThingId<'_>,
    head: &mut MapHead,
    left: &mut usize,
) -> Result<(), Halt> {
    let Some(range) = unneeded(applying, map, &head.content) else { return Ok(()) };
    for (row_key, _) in some_rows(applying, &range, *left)? {
        head.content.noting.count = one_less(head.content.noting.count)?;
        applying.state.delete(row_key);
        *left -= 1;
    }
    Ok(())
}

fn some_rows(applying: &Applying<'_>, range: &KeyRange, rows_max: usize) -> Result<Vec<(kv::Key, kv::Bytes)>, Halt> {
    Ok(applying.state.scan(range, Order::Ascending).take(rows_max).collect::<Result<_, _>>()?)
}
