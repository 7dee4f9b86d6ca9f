//! What a checkpoint has of a map: all of its rows at one view, or those that changed since an earlier one.
//!
//! Touches: nothing. Never: holds more than a row of each kind in memory.

use contract::keyed::Policy;
use kv::{KeyRange, Order, Rows, View};
use session::Halt;

use super::entry::Entry;
use super::head::MapHead;
use super::rows::ContentRow;
use crate::keys::keyed::read_version_and_key;
use crate::keys::{Keys, Kind, ThingId};

/// An earlier checkpoint, as far as the one that follows it needs to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Base {
    /// The last command before its view.
    pub commit: u64,
    /// The command that began it.
    pub begun: u64,
}

/// Ranges of removed keys that are merged at most: each checkpoint that was begun and did not end leaves one more.
const GONE_RANGES_MAX: usize = 64;

/// Whether what has changed since an earlier checkpoint is known.
pub fn can_follow(view: &dyn View, keys: &Keys, map: &ThingId<'_>, head: &MapHead, base: &Base) -> Result<bool, Halt> {
    let content = &head.content;
    let noted = content.noting.from != 0 && content.noting.from <= base.begun;
    // Entries of ordered maps change when updates begin to wait, which no commit number says.
    if !noted || base.commit < content.since || head.policy == Policy::Ordered {
        return Ok(false);
    }
    Ok(gone_ranges(view, keys, map, head, base)?.len() <= GONE_RANGES_MAX)
}

/// Gives the rows of a map in order: keys, positions, waiting updates, the last answer. With a base, only the keys that have
/// changed since, and those that are gone.
pub fn rows<E: From<Halt>>(
    view: &dyn View,
    keys: &Keys,
    map: &ThingId<'_>,
    head: &MapHead,
    base: Option<&Base>,
    take: &mut dyn FnMut(&ContentRow<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let number = head.content.number;
    key_rows(view, keys, map, head, base, take)?;
    let of = |kind| keys.map_rows(kind, map, number);
    each(view, &of(Kind::KeyedPosition), |input, row| {
        let input = std::str::from_utf8(input).map_err(|_| foreign("input positions"))?;
        take(&ContentRow::Position(input, row))
    })?;
    each(view, &of(Kind::KeyedWaiting), |suffix, row| {
        let (version, key) = read_version_and_key(suffix).ok_or_else(|| foreign("waiting updates"))?;
        take(&ContentRow::Waiting(version, key, row))
    })?;
    each(view, &of(Kind::KeyedAnswer), |_, row| take(&ContentRow::Answer(row)))
}

fn key_rows<E: From<Halt>>(
    view: &dyn View,
    keys: &Keys,
    map: &ThingId<'_>,
    head: &MapHead,
    base: Option<&Base>,
    take: &mut dyn FnMut(&ContentRow<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let range = keys.map_rows(Kind::KeyedEntry, map, head.content.number);
    let Some(base) = base else {
        return each(view, &range, |key, row| take(&ContentRow::Key(key, row)));
    };
    let mut gone = Gone::since(view, keys, map, head, base)?;
    each(view, &range, |key, row| {
        while let Some(before) = gone.take_before(key)? {
            take(&ContentRow::Gone(&before))?;
        }
        let entry = Entry::decode(row)?;
        match head.content.changed_at(&entry) > base.commit {
            true => take(&ContentRow::Key(key, row)),
            false => Ok(()),
        }
    })?;
    while let Some(before) = gone.take_next()? {
        take(&ContentRow::Gone(&before))?;
    }
    Ok(())
}

/// Gives the rows of a range, each with what follows the beginning that all have in common.
fn each<E: From<Halt>>(
    view: &dyn View,
    range: &KeyRange,
    mut take: impl FnMut(&[u8], &[u8]) -> Result<(), E>,
) -> Result<(), E> {
    for row in view.scan(range, Order::Ascending) {
        let (key, row) = row.map_err(Halt::from)?;
        take(&key[range.start.len()..], &row)?;
    }
    Ok(())
}

fn foreign(what: &str) -> Halt {
    Halt::Inconsistent(format!("a foreign key among {what}"))
}

/// The ranges of removed keys that are noted since a checkpoint: one for each checkpoint that was begun, if it has any. At most
/// one more than are merged.
fn gone_ranges(
    view: &dyn View,
    keys: &Keys,
    map: &ThingId<'_>,
    head: &MapHead,
    base: &Base,
) -> Result<Vec<KeyRange>, Halt> {
    let number = head.content.number;
    let all = keys.map_rows(Kind::KeyedGone, map, number);
    let (mut ranges, mut noted) = (Vec::new(), base.begun);
    while ranges.len() <= GONE_RANGES_MAX {
        let from = KeyRange { start: keys.gone_prefix(map, number, noted).to_vec(), end: all.end.clone() };
        let Some((key, _)) = view.scan(&from, Order::Ascending).next().transpose()? else { break };
        let found = key[all.start.len()..].first_chunk().ok_or_else(|| foreign("removed keys"))?;
        let found = u64::from_be_bytes(*found);
        ranges.push(KeyRange::prefix(&keys.gone_prefix(map, number, found)));
        noted = found + 1;
    }
    Ok(ranges)
}

/// Keys that are gone since a checkpoint, in order. One that came back is among them too.
struct Gone<'view> {
    ranges: Vec<GoneRange<'view>>,
}

struct GoneRange<'view> {
    rows: Rows<'view>,
    prefix: usize,
    next: Option<Vec<u8>>,
}

impl GoneRange<'_> {
    fn advance(&mut self) -> Result<(), Halt> {
        self.next = self.rows.next().transpose()?.map(|(key, _)| key[self.prefix..].to_vec());
        Ok(())
    }
}

impl<'view> Gone<'view> {
    fn since(view: &'view dyn View, keys: &Keys, map: &ThingId<'_>, head: &MapHead, base: &Base) -> Result<Self, Halt> {
        let mut ranges = Vec::new();
        for range in gone_ranges(view, keys, map, head, base)? {
            let mut one =
                GoneRange { rows: view.scan(&range, Order::Ascending), prefix: range.start.len(), next: None };
            one.advance()?;
            ranges.push(one);
        }
        Ok(Self { ranges })
    }

    fn smallest(&self) -> Option<&Vec<u8>> {
        self.ranges.iter().filter_map(|range| range.next.as_ref()).min()
    }

    /// The next key that is gone, if it comes before this one, which is there.
    fn take_before(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, Halt> {
        while self.smallest().is_some_and(|smallest| smallest == key) {
            self.take_next()?;
        }
        match self.smallest().is_some_and(|smallest| smallest.as_slice() < key) {
            true => self.take_next(),
            false => Ok(None),
        }
    }

    fn take_next(&mut self) -> Result<Option<Vec<u8>>, Halt> {
        let Some(smallest) = self.smallest().cloned() else { return Ok(None) };
        for range in self.ranges.iter_mut().filter(|range| range.next.as_ref() == Some(&smallest)) {
            range.advance()?;
        }
        Ok(Some(smallest))
    }
}
