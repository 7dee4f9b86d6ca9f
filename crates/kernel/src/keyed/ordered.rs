//! Ordered maps: updates wait until the seal reaches their versions, and are then applied in the order of these.
//!
//! Touches: waiting updates, entries, and the numbers in the map's head. Keeps: D1 (each update counts once: a version at which
//! one waits is taken, and one that the seal has passed is over) and D3. Never: refuses an update once it waits: whether
//! it fits is checked when it comes.

use contract::keyed::limits::KEYED_WAITING_MAX;
use contract::keyed::{LogicalTime, Merge, Policy, UpdateOutcome, shown_key};
use contract::{KeyedRejection, Rejection};
use kv::{Bytes, DecodeError, Reader, Writer};
use session::Halt;

use super::changed_map::ChangedMap;
use super::chunks::Chunks;
use super::entry::{Entry, KeyState, Use, Waiting};
use super::update::{Updating, one_less};
use crate::context::Applying;
use crate::held::Was;
use crate::keys::keyed::read_version_and_key;
use crate::keys::{Keys, Kind};

const FORMAT: u8 = 1;

/// An update that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitingUpdate<'row> {
    /// Puts a value: its kind and payload.
    Put(&'row [u8]),
    Delete,
    Merge(Merge, i64),
}

const PUT: u8 = 1;
const DELETE: u8 = 2;
const ADD: u8 = 3;
const MIN: u8 = 4;
const MAX: u8 = 5;

impl<'row> WaitingUpdate<'row> {
    pub(super) fn encode(&self, writer: &mut Writer) {
        writer.u8(FORMAT);
        match self {
            WaitingUpdate::Put(value) => writer.u8(PUT).raw(value),
            WaitingUpdate::Delete => writer.u8(DELETE),
            WaitingUpdate::Merge(Merge::Min, operand) => writer.u8(MIN).i64(*operand),
            WaitingUpdate::Merge(Merge::Max, operand) => writer.u8(MAX).i64(*operand),
            WaitingUpdate::Merge(_, operand) => writer.u8(ADD).i64(*operand),
        };
    }

    pub(super) fn decode(row: &'row [u8]) -> Result<Self, Halt> {
        let read = || {
            let mut reader = Reader::new(row);
            reader.format(FORMAT)?;
            let update = match reader.u8()? {
                PUT => WaitingUpdate::Put(reader.raw(reader.rest().len())?),
                DELETE => WaitingUpdate::Delete,
                ADD => WaitingUpdate::Merge(Merge::Add, reader.i64()?),
                MIN => WaitingUpdate::Merge(Merge::Min, reader.i64()?),
                MAX => WaitingUpdate::Merge(Merge::Max, reader.i64()?),
                _ => return Err(DecodeError { what: "a waiting update of an unknown kind" }),
            };
            reader.end().map(|()| update)
        };
        read().map_err(|error| Halt::Undecodable { what: "a waiting update", error })
    }

    /// What it makes of a key without a value.
    fn needs(&self) -> Use {
        match self {
            WaitingUpdate::Put(_) => Use::Put,
            WaitingUpdate::Delete => Use::Unknown,
            WaitingUpdate::Merge(..) => Use::Merged,
        }
    }

    /// Whether it is for a key that is put or merged like this.
    pub(super) fn fits(&self, state: KeyState<'_>) -> bool {
        let (of, needs) = (use_of(state), self.needs());
        of == Use::Unknown || needs == Use::Unknown || of == needs
    }

    /// The state of a key for which it waits: it says what the key is for, if nothing else does.
    pub(super) fn used<'state>(&self, state: KeyState<'state>) -> KeyState<'state> {
        if let KeyState::Nothing(Use::Unknown) = state { KeyState::Nothing(self.needs()) } else { state }
    }

    /// How far it moves an integer.
    fn added(&self) -> u64 {
        match self {
            WaitingUpdate::Put(_) | WaitingUpdate::Delete | WaitingUpdate::Merge(Merge::Min | Merge::Max, _) => 0,
            WaitingUpdate::Merge(_, operand) => operand.unsigned_abs(),
        }
    }

    /// How large an integer it may put in the place of another.
    fn extreme(&self) -> u64 {
        match self {
            WaitingUpdate::Merge(Merge::Min | Merge::Max, operand) => operand.unsigned_abs(),
            WaitingUpdate::Put(_) | WaitingUpdate::Delete | WaitingUpdate::Merge(..) => 0,
        }
    }
}

/// Lets an update of a key wait for the seal, unless it was sent before or comes too late.
pub(super) fn accept(
    applying: &mut Applying<'_>,
    changed: &mut ChangedMap<'_>,
    key: &[u8],
    version: LogicalTime,
    update: &WaitingUpdate<'_>,
) -> Updating {
    let content = changed.head.content;
    if let Some(current) = content.seal.filter(|seal| version <= *seal) {
        return Ok(Ok(UpdateOutcome::Stale { current }));
    }
    let waiting_key = applying.keys.waiting_update(changed.map, content.number, version, key);
    if let Some(row) = applying.state.get(&waiting_key)? {
        let same = WaitingUpdate::decode(&row)? == *update;
        return Ok(Ok(if same { UpdateOutcome::Duplicate } else { UpdateOutcome::VersionConflict }));
    }
    let entry_key = Keys::entry_at(&applying.keys.entry_prefix(changed.map, content.number), key);
    let row = applying.state.get(&entry_key)?;
    let before = row.as_deref().map(Entry::decode).transpose()?;
    // A key without a row may have been changed by any command up to the last that removed one.
    let new = Entry { commit: content.forgotten, waiting: Waiting::default(), state: KeyState::Nothing(Use::Unknown) };
    let Entry { commit, waiting, state } = before.unwrap_or(new);
    if !update.fits(state) {
        let (map, key, is_merged) = (changed.map.name.to_owned(), shown_key(key), use_of(state) == Use::Merged);
        return Ok(Err(KeyedRejection::WrongUse { map, key, is_merged }.into()));
    }
    let count = waiting.count as usize + 1;
    if let Err(rejection) = Rejection::check_limit("keyed_waiting_max", KEYED_WAITING_MAX as usize, count) {
        return Ok(Err(rejection));
    }
    let Some(waiting) = one_more(state, waiting, update) else {
        let value = if let KeyState::Merged(value) = state { value } else { 0 };
        let operand = if let WaitingUpdate::Merge(_, operand) = update { *operand } else { 0 };
        let (map, key) = (changed.map.name.to_owned(), shown_key(key));
        return Ok(Err(KeyedRejection::Overflow { map, key, value, operand }.into()));
    };
    let after = Entry { commit, waiting, state: update.used(state) };
    applying.held().put(waiting_key, None, false, |writer| update.encode(writer));
    let was = row.as_ref().map(|row| Was::part(row.len()));
    applying.held().put(entry_key, was, false, |writer| after.encode(writer));
    changed.head.content.waiting += 1;
    Ok(Ok(UpdateOutcome::Applied))
}

fn use_of(state: KeyState<'_>) -> Use {
    match state {
        KeyState::Put { .. } => Use::Put,
        KeyState::Merged(_) => Use::Merged,
        KeyState::Nothing(of) => of,
        // An ordered map has none of these: the seal says what is over.
        KeyState::Deleted(_) => Use::Unknown,
    }
}

/// What waits with one update more, if the value fits into 64 bits then, in any order.
pub(super) fn one_more(state: KeyState<'_>, waiting: Waiting, update: &WaitingUpdate<'_>) -> Option<Waiting> {
    let count = waiting.count.checked_add(1)?;
    let added = waiting.added.checked_add(update.added())?;
    let extreme = waiting.extreme.max(update.extreme());
    let value = if let KeyState::Merged(value) = state { value.unsigned_abs() } else { 0 };
    let whole = value.max(extreme).checked_add(added);
    // What only takes the place of others overflows nothing.
    let fits = added == 0 || whole.is_some_and(|whole| whole <= i64::MAX.unsigned_abs());
    fits.then_some(Waiting { count, added, extreme })
}

/// Applies waiting updates that the seal has reached, in order, at most `left` of them and within the budget of the entry.
/// Returns how many. `left` is 0 then if there may be more.
pub(super) fn apply_sealed(
    applying: &mut Applying<'_>,
    changed: &mut ChangedMap<'_>,
    left: &mut usize,
) -> Result<usize, Halt> {
    let Some(seal) = changed.head.content.seal.filter(|_| changed.head.policy == Policy::Ordered) else {
        return Ok(0);
    };
    let (kind, number) = (Kind::KeyedWaiting, changed.head.content.number);
    let range = applying.keys.sealed_rows(kind, changed.map, number, seal);
    let mut chunks = Chunks::of(&changed.head, kind, number, range);
    let (mut applied, mut left_here) = (0, (*left).min(applying.budget.updates));
    while let Some(rows) = chunks.next(applying, &mut left_here)? {
        for (row_key, row) in &rows {
            let (version, key) = read_version_and_key(chunks.suffix(row_key))
                .ok_or_else(|| Halt::Inconsistent("a foreign key among waiting updates".into()))?;
            apply_one(applying, changed, version, key, row)?;
        }
        applied += rows.len();
    }
    chunks.leave(&mut changed.head);
    applying.budget.updates -= applied;
    *left = if left_here == 0 { 0 } else { *left - applied };
    Ok(applied)
}

fn apply_one(
    applying: &mut Applying<'_>,
    changed: &mut ChangedMap<'_>,
    version: LogicalTime,
    key: &[u8],
    waiting_row: &Bytes,
) -> Result<(), Halt> {
    let update = WaitingUpdate::decode(waiting_row)?;
    let content = &mut changed.head.content;
    let entry_key = Keys::entry_at(&applying.keys.entry_prefix(changed.map, content.number), key);
    let wrong = |what: &str| Halt::Inconsistent(format!("D1: a waiting update of key {:?} {what}", shown_key(key)));
    let row = applying.state.get(&entry_key)?.ok_or_else(|| wrong("has no entry"))?;
    let Entry { waiting, state, .. } = Entry::decode(&row)?;
    let count = waiting.count.checked_sub(1).ok_or_else(|| wrong("is not counted"))?;
    let added = waiting.added.checked_sub(update.added()).ok_or_else(|| wrong("adds more than is counted"))?;
    let had_value = matches!(state, KeyState::Put { .. } | KeyState::Merged(_));
    let after = match (update, state) {
        (WaitingUpdate::Put(value), KeyState::Put { .. } | KeyState::Nothing(_)) => KeyState::Put { version, value },
        (WaitingUpdate::Merge(merge, operand), KeyState::Merged(value)) => {
            KeyState::Merged(merge.of(value, operand).ok_or_else(|| wrong("overflows"))?)
        }
        (WaitingUpdate::Merge(_, operand), KeyState::Nothing(_)) => KeyState::Merged(operand),
        // As long as something waits, it is for what the key was for.
        (WaitingUpdate::Delete, state) => KeyState::Nothing(use_of(state)),
        (WaitingUpdate::Put(_) | WaitingUpdate::Merge(..), _) => return Err(wrong("does not fit its key")),
    };
    let commit = applying.call.commit;
    let entry = Entry { commit, waiting: Waiting { count, added, extreme: waiting.extreme }, state: after };
    content.waiting = one_less(content.waiting)?;
    if had_value {
        content.keys = one_less(content.keys)?;
    }
    let waiting_key = applying.keys.waiting_update(changed.map, content.number, version, key);
    let was = Was::part(row.len());
    if entry.has_value() {
        content.keys += 1;
    } else if count == 0 {
        content.forgotten = commit;
        applying.held().delete(entry_key, was);
        applying.held().delete(waiting_key, Was::part(waiting_row.len()));
        return Ok(());
    }
    applying.held().put(entry_key, Some(was), false, |writer| entry.encode(writer));
    applying.held().delete(waiting_key, Was::part(waiting_row.len()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Part of the stored format; `docs/formats/keyed.md`.
    #[test]
    fn golden_waiting_updates() {
        let one = [1, 0, 0, 0, 0, 0, 0, 0];
        let merged = |code: u8| [&[1, code][..], &one].concat();
        for (update, bytes) in [
            (WaitingUpdate::Put(&[3, b'x']), vec![1, 1, 3, b'x']),
            (WaitingUpdate::Delete, vec![1, 2]),
            (WaitingUpdate::Merge(Merge::Add, 1), merged(3)),
            (WaitingUpdate::Merge(Merge::Min, 1), merged(4)),
            (WaitingUpdate::Merge(Merge::Max, 1), merged(5)),
        ] {
            let mut writer = Writer::new();
            update.encode(&mut writer);
            assert_eq!(writer.as_slice(), bytes);
            assert_eq!(WaitingUpdate::decode(&bytes).expect("an update"), update);
        }
        assert!(WaitingUpdate::decode(&[1, 6]).is_err() && WaitingUpdate::decode(&[1, 2, 0]).is_err());
    }
}
