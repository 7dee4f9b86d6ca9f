//! The one place where a record's row is written, with every row that follows from it: its name in the index of names, its
//! place in the schedule, its declared indexes, its large fields, counts and the change feed.
//!
//! Keeps: R1 (versions rise by one with every write), R2 (attempts rise by one, or above those of earlier histories), R3 (a record never leaves a terminal
//! state), R5 (every index matches the record) and K8 (an existing record of a named group is in the index of names).

use contract::records::types::{ReadyOrder, StateKind};
use kv::{Bytes, Writer};
use session::Halt;

use super::index;
use super::owned;
use super::queue::queue_of;
use super::row::{Content, INLINE_BYTES_MAX, NO_STATE, Row, decode_numbers};
use crate::catalogue::Declared;
use crate::catalogue::types::OWNER_ID;
use crate::changes::{Noted, Reason, Subject};
use crate::context::Applying;
use crate::counts::{CountOf, Counted};
use crate::keys::due::{DueClock, DueOf};
use crate::keys::queues::ReadyPlace;
use crate::keys::{Kind, ThingId};
use crate::names;
use crate::value::ValueRef;

/// A record about to be read or changed by a command.
pub(crate) struct Opened {
    bytes: Option<Bytes>,
    floor: Floor,
}

/// The counters from which the records of a bucket without rows continue.
#[derive(Clone, Copy, Default)]
pub(crate) struct Floor {
    pub(crate) version: u64,
    pub(crate) attempt: u64,
    /// The last command that changed one of them.
    pub(crate) commit: u64,
}

impl Opened {
    /// The row's bytes, if there is one.
    pub(crate) fn into_bytes(self) -> Option<Bytes> {
        self.bytes
    }

    /// The record; one that does not exist is marked as deleted.
    pub(crate) fn row(&self) -> Result<Row<'_>, Halt> {
        match &self.bytes {
            Some(bytes) => Row::decode(bytes),
            None => Ok(Row::fresh(self.floor.version, self.floor.attempt)),
        }
    }
}

/// Finds a record. If it has expired, the expiry is committed first.
pub(crate) fn open(applying: &mut Applying<'_>, record: &ThingId<'_>) -> Result<Opened, Halt> {
    let key = applying.keys.record(record);
    // Nothing has written the record since its fence was checked: whatever does opens it first.
    let bytes = match applying.fenced_row.take_if(|(of, _)| *of == key) {
        Some((_, bytes)) => Some(bytes),
        None => applying.state.get(&key)?,
    };
    let Some(bytes) = bytes else {
        return Ok(Opened { bytes: None, floor: read_floor(applying, record.bucket)? });
    };
    if decode_numbers(&bytes)?.expired_at(applying.call.stamp.wall_us) {
        remove(applying, record, &Row::decode(&bytes)?, Reason::Expired)?;
        let bytes = applying.state.get(&key)?;
        return Ok(Opened { bytes, floor: Floor::default() });
    }
    Ok(Opened { bytes: Some(bytes), floor: Floor::default() })
}

/// The row of a record as it is, expired or not.
pub(crate) fn peek(applying: &Applying<'_>, record: &ThingId<'_>) -> Result<Option<Bytes>, Halt> {
    Ok(applying.state.get(&applying.keys.record(record))?)
}

/// Fields that a write adds to a record, most of the time.
const ADDED_FIELDS: usize = 4;

/// The row that the next write of a record starts with.
pub(crate) fn successor<'row>(applying: &Applying<'_>, before: &Row<'row>) -> Row<'row> {
    // With room for the fields that a write usually adds.
    let mut fields = Vec::with_capacity(before.fields.len() + ADDED_FIELDS);
    fields.extend_from_slice(&before.fields);
    let mut after = Row { numbers: before.numbers, worker: before.worker, fields, row_bytes: 0 };
    after.numbers.version += 1;
    after.numbers.commit = applying.call.commit;
    after.numbers.updated_us = applying.call.stamp.wall_us;
    if before.numbers.deleted {
        after.numbers.deleted = false;
        after.numbers.created_us = applying.call.stamp.wall_us;
        after.numbers.expires_us = 0;
        after.numbers.failures = 0;
    }
    after
}

/// Writes the version after `before`, which [`successor`] has started.
pub(crate) fn store(
    applying: &mut Applying<'_>,
    record: &ThingId<'_>,
    before: &Row<'_>,
    after: Row<'_>,
    reason: Reason,
) -> Result<u64, Halt> {
    let version = after.numbers.version;
    assert!(version == before.numbers.version + 1, "R1: {before:?} then {after:?}");
    let attempts = after.numbers.attempt - before.numbers.attempt;
    let is_next = attempts <= 1 || after.numbers.attempt == applying.attempts_above + 1;
    assert!(is_next, "R2: {before:?} then {after:?}");
    if let Some(declared) = applying.declared(record, before) {
        let finished = !before.numbers.deleted && declared.kind(before.numbers.state) == StateKind::Terminal;
        let left = finished && !after.numbers.deleted && after.numbers.state != before.numbers.state;
        assert!(!left, "R3: {before:?} then {after:?}");
    }
    let place = |row: &Row<'_>| (row.numbers.deleted, row.numbers.record_type, row.numbers.state);
    if place(before) != place(&after) {
        count(applying, record, before, -1);
        count(applying, record, &after, 1);
    }
    rewrite(applying, record, before, after)?;
    let ThingId { space, branch, group, name, .. } = *record;
    let change = Noted { subject: Subject::Record, reason, space, branch, group, name, version };
    applying.folded.changes.note(applying.call.commit, &change);
    Ok(version)
}

/// Writes a record's row and what follows from it. With an unchanged version this is not a write that anyone sees.
pub(crate) fn rewrite(
    applying: &mut Applying<'_>,
    record: &ThingId<'_>,
    before: &Row<'_>,
    mut after: Row<'_>,
) -> Result<(), Halt> {
    after.numbers.by_name = !after.numbers.deleted && is_claimed_by_name(applying, record, &after);
    update_derived(applying, record, before, &mut after)?;
    put_row(applying, record, before, &after);
    Ok(())
}

/// Whether only a claim by name takes a record: an owner, and whatever is in a group that only its owner writes. A record
/// that was passed over stays so until it is written.
fn is_claimed_by_name(applying: &Applying<'_>, record: &ThingId<'_>, row: &Row<'_>) -> bool {
    row.numbers.record_type == OWNER_ID || applying.is_guarded(record)
}

/// Whether a record in no queue can be claimed.
fn is_free(applying: &Applying<'_>, record: &ThingId<'_>, row: &Row<'_>) -> bool {
    let numbers = &row.numbers;
    let ready = |declared: &Declared| declared.kind(numbers.state) == StateKind::Ready;
    numbers.by_name && !numbers.deleted && !numbers.waiting && applying.declared(record, row).is_some_and(ready)
}

/// Takes a ready record out of its queue, for good: no claim of the next records can have it.
pub(super) fn pass_over(applying: &mut Applying<'_>, record: &ThingId<'_>) -> Result<(), Halt> {
    let opened = open(applying, record)?;
    let before = opened.row()?;
    if before.numbers.deleted {
        return Ok(());
    }
    let mut after = before.clone();
    after.numbers.by_name = true;
    update_derived(applying, record, &before, &mut after)?;
    put_row(applying, record, &before, &after);
    Ok(())
}

/// Writes a record's row alone.
pub(super) fn put_row(applying: &mut Applying<'_>, record: &ThingId<'_>, before: &Row<'_>, after: &Row<'_>) {
    let key = applying.keys.record(record);
    applying.held().put(key, before.counted(), !after.numbers.deleted, |writer| after.encode(writer));
}

/// Removes a record's row alone.
fn delete_row(applying: &mut Applying<'_>, record: &ThingId<'_>, row: &Row<'_>) {
    let was = row.counted().expect("only a row that was read is removed");
    let key = applying.keys.record(record);
    applying.held().delete(key, was);
}

/// Writes what follows from a record's row.
fn update_derived(
    applying: &mut Applying<'_>,
    record: &ThingId<'_>,
    before: &Row<'_>,
    after: &mut Row<'_>,
) -> Result<(), Halt> {
    let place_before = ready_place(applying, record, before);
    let place_after = ready_place(applying, record, after);
    if place_before != place_after {
        if let Some((place, waiting)) = place_before {
            leave(applying, record, place, waiting);
        }
        if let Some((place, waiting)) = place_after {
            enter(applying, record, place, waiting)?;
        }
    }
    if is_free(applying, record, after) && !is_free(applying, record, before) {
        applying.windows.note_freed(Subject::Record, record);
    }
    let (old, new) = (before.numbers, &mut after.numbers);
    new.lease_entry_us =
        move_entry(applying, record, (DueClock::Cluster, DueOf::Lease), old.lease_entry_us, new.lease_us);
    new.expires_entry_us =
        move_entry(applying, record, (DueClock::Wall, DueOf::Expiry), old.expires_entry_us, new.expires_us);
    if old.deleted != after.numbers.deleted {
        names::set_listed(applying.state, &applying.keys, Kind::Record, record, !after.numbers.deleted);
    }
    owned::update(applying, record, &old, &after.numbers);
    index::update(applying, record, before, after)?;
    store_large_fields(applying, record, before, after);
    Ok(())
}

/// Deletes or expires a record: only its counters are kept, until they may be removed too.
pub(crate) fn remove(
    applying: &mut Applying<'_>,
    record: &ThingId<'_>,
    before: &Row<'_>,
    reason: Reason,
) -> Result<u64, Halt> {
    let mut after = Row::fresh(before.numbers.version, before.numbers.attempt);
    after.numbers.version += 1;
    after.numbers.commit = applying.call.commit;
    after.numbers.created_us = before.numbers.created_us;
    after.numbers.updated_us = applying.call.stamp.wall_us;
    let kept_us = applying.catalogue.limits.tombstone_age_us;
    after.numbers.expires_us = applying.call.stamp.wall_us.saturating_add(kept_us);
    store(applying, record, before, after, reason)
}

/// Removes the row of a deleted record: its counters go into the bucket's floor, so that they never restart.
pub(crate) fn forget(applying: &mut Applying<'_>, record: &ThingId<'_>, row: &Row<'_>) -> Result<(), Halt> {
    let floor = read_floor(applying, record.bucket)?;
    let numbers = row.numbers;
    let raised = Floor {
        version: floor.version.max(numbers.version),
        attempt: floor.attempt.max(numbers.attempt),
        commit: floor.commit.max(numbers.commit),
    };
    let key = applying.keys.record_floor(record.bucket);
    applying.state.put_encoded(key, |writer| raised.encode(writer));
    applying.delete_due(DueClock::Wall, numbers.expires_entry_us, DueOf::Expiry, record);
    delete_row(applying, record, row);
    Ok(())
}

/// Removes a record of a deleted branch with every derived row. Nobody can ask for it any more.
pub(crate) fn erase(applying: &mut Applying<'_>, record: &ThingId<'_>, row: &Row<'_>) -> Result<(), Halt> {
    let mut gone = Row::fresh(row.numbers.version, row.numbers.attempt);
    update_derived(applying, record, row, &mut gone)?;
    delete_row(applying, record, row);
    Ok(())
}

const FLOOR_FORMAT: u8 = 2;

impl Floor {
    pub(crate) fn encode(self, writer: &mut Writer) {
        writer.u8(FLOOR_FORMAT).u64(self.version).u64(self.attempt).u64(self.commit);
    }
}

/// Puts a complete record, with everything derived from its row. The record must not exist yet.
pub(crate) fn put_whole(applying: &mut Applying<'_>, record: &ThingId<'_>, row: Row<'_>) -> Result<(), Halt> {
    count(applying, record, &row, 1);
    // Its entries in the schedule are created at their current times, wherever they were before.
    let mut row = row;
    (row.numbers.lease_entry_us, row.numbers.expires_entry_us) = (0, 0);
    rewrite(applying, record, &Row::fresh(0, 0), row)
}

pub(crate) fn read_floor(applying: &Applying<'_>, bucket: u16) -> Result<Floor, Halt> {
    let key = applying.keys.record_floor(bucket);
    match applying.keys.get_either(&key, |key| applying.state.get(key))? {
        None => Ok(Floor::default()),
        Some(row) => decode_floor(&row),
    }
}

/// Reads the floor of a bucket.
pub(crate) fn decode_floor(row: &[u8]) -> Result<Floor, Halt> {
    let read = || {
        let mut reader = kv::Reader::new(row);
        reader.format(FLOOR_FORMAT)?;
        let floor = Floor { version: reader.u64()?, attempt: reader.u64()?, commit: reader.u64()? };
        reader.end().map(|()| floor)
    };
    read().map_err(|error| Halt::Undecodable { what: "the floor of a bucket's records", error })
}

/// An entry that is too early stays: the tick that finds it moves it. Extending therefore costs no write.
fn move_entry(
    applying: &mut Applying<'_>,
    record: &ThingId<'_>,
    (clock, of): (DueClock, DueOf),
    entry_us: u64,
    due_us: u64,
) -> u64 {
    if due_us != 0 && entry_us != 0 && entry_us <= due_us {
        return entry_us;
    }
    if entry_us != 0 {
        applying.delete_due(clock, entry_us, of, record);
    }
    if due_us != 0 {
        applying.put_due(clock, due_us, of, record);
    }
    due_us
}

/// The position of a ready record in the ready index, and whether it still waits.
fn ready_place(applying: &Applying<'_>, record: &ThingId<'_>, row: &Row<'_>) -> Option<(ReadyPlace, bool)> {
    let declared = applying.declared(record, row)?;
    if row.numbers.deleted || declared.kind(row.numbers.state) != StateKind::Ready {
        return None;
    }
    // A pause of one that is claimed by name ends like that of any other.
    if row.numbers.by_name && !row.numbers.waiting {
        return None;
    }
    let order = match &declared.definition.ready_order {
        ReadyOrder::Oldest => 0,
        ReadyOrder::Field(field) => match row.field(field).map(|field| field.content) {
            Some(Content::Inline(ValueRef::Integer(order))) => order,
            _ => 0,
        },
    };
    Some((ReadyPlace { order, ready_us: row.numbers.ready_us }, row.numbers.waiting))
}

fn enter(applying: &mut Applying<'_>, record: &ThingId<'_>, place: ReadyPlace, waiting: bool) -> Result<(), Halt> {
    match waiting {
        true => applying.put_due(DueClock::Wall, place.ready_us, DueOf::Ready, record),
        false => applying.put_ready(record, place)?,
    }
    Ok(())
}

fn leave(applying: &mut Applying<'_>, record: &ThingId<'_>, place: ReadyPlace, waiting: bool) {
    match waiting {
        true => applying.delete_due(DueClock::Wall, place.ready_us, DueOf::Ready, record),
        false => applying.delete_ready(record, place),
    }
}

fn count(applying: &mut Applying<'_>, record: &ThingId<'_>, row: &Row<'_>, by: i64) {
    let numbers = row.numbers;
    // Owners are in no queue, and each group that was ever owned has one.
    if numbers.deleted || numbers.state == NO_STATE || numbers.record_type == OWNER_ID {
        return;
    }
    let counted = Counted {
        of: CountOf::Records,
        space: record.space,
        branch: record.branch,
        queue: queue_of(record.name),
        record_type: numbers.record_type,
        state: numbers.state,
    };
    applying.folded.count(counted, by);
}

/// Writes large values to separate rows, and removes such rows of removed or rewritten fields.
fn store_large_fields(applying: &mut Applying<'_>, record: &ThingId<'_>, before: &Row<'_>, after: &mut Row<'_>) {
    for old in &before.fields {
        let kept = after.field(old.name).is_some_and(|new| matches!(new.content, Content::Apart { .. }));
        if let Some(was) = old.content.counted().filter(|_| !kept) {
            let key = applying.keys.record_field(record, old.name);
            applying.held().delete(key, was);
        }
    }
    for field in &mut after.fields {
        if let Content::Inline(value) = field.content
            && value.len() > INLINE_BYTES_MAX
        {
            let key = applying.keys.record_field(record, field.name);
            // If there was one, it was removed above.
            applying.held().put(key, None, false, |writer| value.encode(writer));
            field.content = Content::Apart { bytes: u32::try_from(value.len()).expect("values are bounded") };
        }
    }
}

impl<'entry> Applying<'entry> {
    /// The type of a record, if it has one.
    pub(crate) fn declared(&self, record: &ThingId<'_>, row: &Row<'_>) -> Option<&'entry Declared> {
        let catalogue = self.catalogue;
        catalogue.record_type(record.space, row.numbers.record_type)
    }
}
