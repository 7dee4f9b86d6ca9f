//! Records in exports and imports.
//!
//! Keeps: R5 of what is put: a record is put with every row derived from it.

use session::Halt;

use super::attempt;
use super::contract::Records;
use super::item::RecordItem;
use super::row::{Content, NO_STATE, Row, read_value};
use super::write::{self, decode_floor};
use crate::catalogue::{BranchId, SpaceId};
use crate::keys::Kind;
use crate::keys::due::DueOf;
use crate::keys::things::OwnedId;
use crate::portable::Item;
use crate::portable::new_shard::{BuildError, NewShard};
use crate::portable::part::Portable;
use crate::portable::walking::{Walking, id_of};

impl Portable for Records {
    type Item<'row> = RecordItem<'row>;
    type Begun = ();

    fn walk_bucket<E: From<Halt>>(walk: &mut Walking<'_, E>, bucket: u16) -> Result<(), E> {
        let floor = walk.floor(&walk.keys.record_floor(bucket))?;
        let floor = floor.map(|row| decode_floor(&row)).transpose()?.unwrap_or_default();
        let write::Floor { version, attempt, commit } = floor;
        (walk.take)(&Item::Record(RecordItem::Floor { bucket, version, attempt, commit }))
    }

    fn walk<E: From<Halt>>(walk: &mut Walking<'_, E>, bucket: u16, space: SpaceId, branch: BranchId) -> Result<(), E> {
        walk.things(Kind::Record, bucket, space, branch, |walk, key, row| {
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
            (walk.take)(&Item::Record(RecordItem::Record { record: &record, row }))
        })
    }

    fn put(shard: &mut NewShard<'_>, (): &mut (), item: &RecordItem<'_>) -> Result<(), BuildError> {
        match item {
            RecordItem::Floor { bucket, version, attempt, commit } => {
                let floor = write::Floor { version: *version, attempt: *attempt, commit: shard.changed_by(*commit) };
                put_floor(shard, *bucket, floor)
            }
            RecordItem::Record { record, row } => put_record(shard, record, row),
        }
    }

    fn release(shard: &mut NewShard<'_>, of: DueOf, id: &OwnedId) -> Result<bool, BuildError> {
        if of != DueOf::Lease {
            return Ok(false);
        }
        let record = shard.place(id)?;
        let released = shard.applying(|applying| attempt::release_imported(applying, &record))?;
        shard.staged_bytes += released.unwrap_or(0);
        Ok(released.is_some())
    }

    fn end((): &mut ()) -> Result<(), BuildError> {
        Ok(())
    }
}

fn put_record(shard: &mut NewShard<'_>, record: &OwnedId, row: &Row<'_>) -> Result<(), BuildError> {
    let id = shard.place(record)?;
    shard.absent(&shard.keys.record(&id), "record", &record.name)?;
    let numbers = row.numbers;
    let declared = shard.contracts.catalogue.record_type(id.space, numbers.record_type);
    let states = declared.map_or(0, |declared| declared.definition.states.len());
    let stated = if declared.is_some() { usize::from(numbers.state) < states } else { numbers.state == NO_STATE };
    if !stated || (numbers.is_held() && declared.is_none()) {
        let message = format!("record {:?} is in a state that its type does not have", record.name);
        return Err(BuildError::Refused(message));
    }
    if !row.fields.is_sorted_by(|one, other| one.name < other.name) {
        return Err(BuildError::Refused(format!("the fields of record {:?} are out of order", record.name)));
    }
    for session in [numbers.holder_session, numbers.life_session].into_iter().filter(|session| *session != 0) {
        shard.was_owned_by(session, id.bucket)?;
    }
    shard.staged_bytes += row.fields.iter().map(|field| field.content.len()).sum::<usize>();
    shard.applying(|applying| write::put_whole(applying, &id, row.clone()))
}

/// Puts the counters from which the records of a bucket without rows continue.
fn put_floor(shard: &mut NewShard<'_>, bucket: u16, floor: write::Floor) -> Result<(), BuildError> {
    shard.check_bucket(bucket)?;
    if (floor.version, floor.attempt) != (0, 0) {
        shard.state.put_encoded(shard.keys.record_floor(bucket), |writer| floor.encode(writer));
    }
    Ok(())
}
