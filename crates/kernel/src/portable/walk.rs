//! Every thing that a view holds, bucket by bucket.
//!
//! Touches: nothing. Keeps: K3 while it reads: a version missing from a cell's history is an error, never skipped. A thing
//! with a damaged part is left out as a whole; of a cell's history, what is older than the damage is. The damaged ranges
//! are returned.

use std::collections::BTreeSet;

use contract::runs::StepSnapshot;
use kv::{Bytes, KeyRange, KvError, Order, View};
use session::Halt;

use super::Item;
use crate::catalogue::{BranchId, Catalogue, SpaceId};
use crate::cells::floor::Floor;
use crate::cells::row::{Head, Old};
use crate::keys::due::{Due, DueClock, DueOf, read_due_suffix};
use crate::keys::messages::read_publish_key;
use crate::keys::names::is_name_in_group;
use crate::keys::sessions::{Owned, read_hosted_key, read_owned_suffix};
use crate::keys::things::{OwnedId, read_thing_key};
use crate::keys::{GENERATION_BYTES, Keys, Kind};
use crate::outbox::Stored;
use crate::records::row::{Content, Row, read_value};
use crate::records::write::decode_floor;
use crate::runs::row::{EventRow, RunHead, decode_step};

/// Passes every thing of a view, or of one space, to `take`. Deleted branches are left out. Returns the damaged ranges
/// that it met: things in them are missing.
pub fn walk<E: From<Halt>>(
    view: &dyn View,
    keys: &Keys,
    catalogue: &Catalogue,
    space: Option<SpaceId>,
    take: &mut dyn FnMut(&Item<'_>) -> Result<(), E>,
) -> Result<Vec<KeyRange>, E> {
    let mut walk = Walk { view, keys, catalogue, only: space, take, damaged: BTreeSet::new() };
    for bucket in 0..catalogue.buckets.count() {
        walk.bucket(bucket)?;
    }
    walk.members()?;
    Ok(walk.damaged.into_iter().collect())
}

struct Walk<'walk, E> {
    view: &'walk dyn View,
    keys: &'walk Keys,
    catalogue: &'walk Catalogue,
    only: Option<SpaceId>,
    take: &'walk mut dyn FnMut(&Item<'_>) -> Result<(), E>,
    damaged: BTreeSet<KeyRange>,
}

impl<E: From<Halt>> Walk<'_, E> {
    fn bucket(&mut self, bucket: u16) -> Result<(), E> {
        let floor = self.floor(&self.keys.record_floor(bucket))?;
        let floor = floor.map(|row| decode_floor(&row)).transpose()?.unwrap_or_default();
        let (version, attempt, commit) = (floor.version, floor.attempt, floor.commit);
        (self.take)(&Item::Bucket { bucket, version, attempt, commit })?;
        let (catalogue, only) = (self.catalogue, self.only);
        for (space, found) in catalogue.spaces().filter(|(space, _)| only.is_none_or(|only| only == *space)) {
            for (branch, _) in found.branches().filter(|(_, branch)| !branch.deleted) {
                self.cell_floor(bucket, space, branch)?;
                self.cells(bucket, space, branch)?;
                self.records(bucket, space, branch)?;
                self.runs(bucket, space, branch)?;
            }
        }
        self.due(bucket)?;
        self.published(bucket)?;
        self.machine_states(bucket)
    }

    fn includes(&self, space: SpaceId) -> bool {
        self.only.is_none_or(|only| only == space)
    }

    fn is_live(&self, id: &OwnedId) -> bool {
        self.includes(id.space) && self.catalogue.space(id.space).is_ok_and(|it| it.live_branch(id.branch).is_ok())
    }

    /// The value at a key; none if it is damaged.
    fn get(&mut self, key: &[u8]) -> Result<Option<Option<Bytes>>, E> {
        self.unless_damaged(self.view.get(key))
    }

    /// A floor; none also if both of its copies are damaged.
    fn floor(&mut self, key: &[u8]) -> Result<Option<Bytes>, E> {
        let view = self.view;
        Ok(self.unless_damaged(self.keys.get_either(key, |key| view.get(key)))?.flatten())
    }

    fn unless_damaged<T>(&mut self, read: Result<T, KvError>) -> Result<Option<T>, E> {
        match read {
            Ok(found) => Ok(Some(found)),
            Err(KvError::Damaged(damaged)) => {
                self.damaged.insert(damaged.range);
                Ok(None)
            }
            Err(other) => Err(Halt::from(other).into()),
        }
    }

    /// Whether a range is whole.
    fn is_whole(&mut self, range: &KeyRange) -> Result<bool, E> {
        let mut is_whole = true;
        for row in self.view.scan(range, Order::Ascending) {
            match row {
                Ok(_) => {}
                Err(KvError::Damaged(damaged)) => {
                    self.damaged.insert(damaged.range);
                    is_whole = false;
                }
                Err(other) => return Err(Halt::from(other).into()),
            }
        }
        Ok(is_whole)
    }

    /// Passes the rows of a range to `take`, without those that are damaged.
    fn rows(
        &mut self,
        range: &KeyRange,
        mut take: impl FnMut(&mut Self, &[u8], &Bytes) -> Result<(), E>,
    ) -> Result<(), E> {
        for row in self.view.scan(range, Order::Ascending) {
            match row {
                Ok((key, value)) => take(self, &key, &value)?,
                Err(KvError::Damaged(damaged)) => {
                    self.damaged.insert(damaged.range);
                }
                Err(other) => return Err(Halt::from(other).into()),
            }
        }
        Ok(())
    }

    /// Passes the rows of things of a kind to `take`. The index of names is derived from them.
    fn things(
        &mut self,
        kind: Kind,
        bucket: u16,
        space: SpaceId,
        branch: BranchId,
        mut take: impl FnMut(&mut Self, &[u8], &Bytes) -> Result<(), E>,
    ) -> Result<(), E> {
        let range = self.keys.rows_of_branch(kind, bucket, space, branch);
        self.rows(&range, |walk, key, row| if is_name_in_group(key) { Ok(()) } else { take(walk, key, row) })
    }

    fn cell_floor(&mut self, bucket: u16, space: SpaceId, branch: BranchId) -> Result<(), E> {
        let row = self.floor(&self.keys.cell_floor(bucket, space, branch))?;
        match Floor::decode(row.as_deref())? {
            Floor { version: 0, .. } => Ok(()),
            Floor { version, commit, updated_at } => {
                (self.take)(&Item::CellFloor { bucket, space, branch, version, commit, updated_at })
            }
        }
    }

    fn cells(&mut self, bucket: u16, space: SpaceId, branch: BranchId) -> Result<(), E> {
        self.things(Kind::CellHead, bucket, space, branch, |walk, key, row| {
            let cell = id_of(key, space, branch)?;
            let head = Head::decode(row)?;
            walk.older_versions(bucket, &cell, &head)?;
            (walk.take)(&Item::Cell { cell: &cell, version: head.version, write: head.write })
        })
    }

    fn older_versions(&mut self, bucket: u16, cell: &OwnedId, head: &Head<'_>) -> Result<(), E> {
        if head.oldest == head.version {
            return Ok(());
        }
        let id = cell.in_bucket(bucket);
        let (start, end) = (self.keys.cell_old(&id, head.oldest), self.keys.cell_old(&id, head.version));
        let range = KeyRange { start: start.to_vec(), end: Some(end.to_vec()) };
        let mut version = self.oldest_whole(&range, head)?;
        let range = KeyRange { start: self.keys.cell_old(&id, version).to_vec(), ..range };
        self.rows(&range, |walk, key, row| {
            if last_number(key) != Some(version) {
                return Ok(()); // The count below finds it.
            }
            (walk.take)(&Item::CellVersion { cell, version, write: Old::decode(row)? })?;
            version += 1;
            Ok(())
        })?;
        if version != head.version {
            let message = format!("K3: version {version} of cell {:?} is missing from its history", cell.name);
            return Err(Halt::Inconsistent(message).into());
        }
        Ok(())
    }

    /// The version from which on the history of a cell is whole.
    fn oldest_whole(&mut self, range: &KeyRange, head: &Head<'_>) -> Result<u64, E> {
        let mut oldest = Some(head.oldest);
        for row in self.view.scan(range, Order::Ascending) {
            match row {
                Ok((key, _)) => oldest = oldest.or_else(|| last_number(&key)),
                Err(KvError::Damaged(damaged)) => {
                    self.damaged.insert(damaged.range);
                    oldest = None;
                }
                Err(other) => return Err(Halt::from(other).into()),
            }
        }
        Ok(oldest.unwrap_or(head.version))
    }

    fn records(&mut self, bucket: u16, space: SpaceId, branch: BranchId) -> Result<(), E> {
        self.things(Kind::Record, bucket, space, branch, |walk, key, row| {
            let record = id_of(key, space, branch)?;
            let mut row = Row::decode(row)?;
            let mut large = Vec::new();
            for field in &row.fields {
                large.push(match field.content {
                    Content::Inline(_) => None,
                    Content::Apart { .. } => {
                        let key = walk.keys.record_field(&record.in_bucket(bucket), field.name);
                        let Some(value) = walk.get(&key)? else { return Ok(()) };
                        let missing = || Halt::Inconsistent(format!("R5: a field of record {:?} is gone", record.name));
                        Some(value.ok_or_else(missing)?)
                    }
                });
            }
            for (field, value) in row.fields.iter_mut().zip(&large) {
                if let Some(value) = value {
                    let value = read_value(value);
                    let value = value.map_err(|error| Halt::Undecodable { what: "a large field", error })?;
                    field.content = Content::Inline(value);
                }
            }
            (walk.take)(&Item::Record { record: &record, row })
        })
    }

    fn runs(&mut self, bucket: u16, space: SpaceId, branch: BranchId) -> Result<(), E> {
        self.things(Kind::Run, bucket, space, branch, |walk, key, row| {
            let run = id_of(key, space, branch)?;
            let id = run.in_bucket(bucket);
            let events = walk.keys.run_events_after(&id, 0);
            let steps = walk.keys.run_rows(Kind::RunStep, &id);
            if !walk.is_whole(&events)? || !walk.is_whole(&steps)? {
                return Ok(());
            }
            (walk.take)(&Item::Run { run: &run, head: RunHead::decode(row)? })?;
            walk.rows(&events, |walk, key, row| {
                let seq = last_number(key).ok_or_else(|| foreign("events"))?;
                (walk.take)(&Item::Event { run: &run, seq, event: EventRow::decode(row)? })
            })?;
            let prefix = walk.keys.run_step(&id, "").len();
            walk.rows(&steps, |walk, key, row| {
                let name = std::str::from_utf8(&key[prefix..]).map_err(|_| foreign("steps"))?;
                let step: StepSnapshot = decode_step(name, row)?;
                (walk.take)(&Item::Step { run: &run, step })
            })
        })
    }

    /// Scheduled things that no record mentions.
    fn due(&mut self, bucket: u16) -> Result<(), E> {
        let prefix = self.keys.due_prefix(DueClock::Wall, bucket);
        self.rows(&KeyRange::prefix(&prefix), |walk, key, row| {
            let (at_us, due) = read_due_suffix(&key[prefix.len()..]).ok_or_else(|| foreign("what is due"))?;
            match due {
                Due::Send { commit, ordinal } => walk.message(Some(at_us), commit, ordinal, row),
                Due::Thing(DueOf::Run, run) if walk.is_live(&run) => {
                    (walk.take)(&Item::RunRemoval { run: &run, at_us })
                }
                _ => Ok(()),
            }
        })
    }

    fn published(&mut self, bucket: u16) -> Result<(), E> {
        self.rows(&KeyRange::prefix(&self.keys.publish_prefix(bucket)), |walk, key, row| {
            let (_, commit, ordinal) = read_publish_key(key).ok_or_else(|| foreign("messages"))?;
            walk.message(None, commit, ordinal, row)
        })
    }

    fn message(&mut self, due_us: Option<u64>, commit: u64, ordinal: u32, row: &[u8]) -> Result<(), E> {
        let message = Stored::decode(row)?;
        if !self.includes(message.space) {
            return Ok(());
        }
        (self.take)(&Item::Message { due_us, commit, ordinal, message })
    }

    fn machine_states(&mut self, bucket: u16) -> Result<(), E> {
        self.rows(&self.keys.hosted_of_bucket(bucket), |walk, key, value| {
            let (space, machine, group, key) = read_hosted_key(key).ok_or_else(|| foreign("machines"))?;
            if !walk.includes(space) {
                return Ok(());
            }
            (walk.take)(&Item::MachineState { space, machine, group: &group, key, value })
        })
    }

    fn members(&mut self) -> Result<(), E> {
        let prefix = self.keys.all_owned();
        self.rows(&KeyRange::prefix(&prefix), |walk, key, _| {
            let (session, suffix) = key[prefix.len()..].split_first_chunk().ok_or_else(|| foreign("what is owned"))?;
            let (_, owned) = read_owned_suffix(suffix).ok_or_else(|| foreign("what is owned"))?;
            match owned {
                Owned::Member { space, machine, group } if walk.includes(space) => {
                    let session = u64::from_be_bytes(*session);
                    (walk.take)(&Item::MachineMember { session, space, machine, group: &group })
                }
                _ => Ok(()),
            }
        })
    }
}

/// The thing in the key of a cell, a record or a run.
fn id_of(key: &[u8], space: SpaceId, branch: BranchId) -> Result<OwnedId, Halt> {
    read_thing_key(key, space, branch).ok_or_else(|| foreign("things with names"))
}

/// The number at the end of a key.
fn last_number(key: &[u8]) -> Option<u64> {
    debug_assert!(key.len() > GENERATION_BYTES);
    key.last_chunk().map(|number| u64::from_be_bytes(*number))
}

fn foreign(among: &str) -> Halt {
    Halt::Inconsistent(format!("a foreign key among {among}"))
}
