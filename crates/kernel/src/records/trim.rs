//! Records in the walk: deleted records that are forgotten, lanes of empty queues, and indexes that are being filled.

use kv::{Bytes, DecodeError, KeyRange, Reader, View, Writer};
use session::Halt;

use super::counts::count_ready;
use super::erase::{LANES_LOOKED_AT_MAX, forget_record, remove_lanes};
use super::fill::fill;
use super::lanes::Lanes;
use super::row::decode_numbers;
use crate::catalogue::{Catalogue, FilledType};
use crate::command::act::unlisted;
use crate::command::trim_step::TrimStep;
use crate::context::Applying;
use crate::keys::Keys;
use crate::keys::due::{Due, DueClock, DueOf, read_due_suffix};
use crate::keys::queues::{QueueId, read_lanes_key};
use crate::keys::things::{OwnedId, ThingKey};
use crate::trim::finding::{Finding, Situation};

/// What a step of the walk does to records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordTrim {
    /// Forgets a deleted record.
    Forget(ThingKey),
    /// Removes the lanes of a queue that lead to nothing, in some buckets.
    Lanes {
        /// The queue's space.
        space: u32,
        /// Its branch.
        branch: u32,
        /// Its name.
        queue: String,
        /// The first bucket to look at.
        bucket: u16,
    },
    /// Fills indexes of a type that were declared when there were records already, for some records.
    FillIndexes {
        /// The type's space.
        space: u32,
        /// The type.
        record_type: u32,
    },
}

const LANES: u8 = 4;
const FORGET: u8 = 6;
const FILL_INDEXES: u8 = 7;

impl RecordTrim {
    /// The codes that steps begin with. No other contract has one of them.
    pub(crate) const CODES: &'static [u8] = &[LANES, FORGET, FILL_INDEXES];

    /// Whether it makes the store larger.
    pub(crate) fn grows(&self) -> bool {
        matches!(self, RecordTrim::FillIndexes { .. })
    }

    pub(crate) fn encode(&self, writer: &mut Writer) {
        match self {
            RecordTrim::Forget(record) => record.encode(writer.u8(FORGET)),
            RecordTrim::Lanes { space, branch, queue, bucket } => {
                writer.u8(LANES).u32(*space).u32(*branch).bytes(queue.as_bytes()).u16(*bucket);
            }
            RecordTrim::FillIndexes { space, record_type } => {
                writer.u8(FILL_INDEXES).u32(*space).u32(*record_type);
            }
        }
    }

    /// Reads a step after its code.
    pub(crate) fn decode(code: u8, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match code {
            FORGET => RecordTrim::Forget(ThingKey::decode(reader)?),
            LANES => RecordTrim::Lanes {
                space: reader.u32()?,
                branch: reader.u32()?,
                queue: reader.text()?.to_owned(),
                bucket: reader.u16()?,
            },
            FILL_INDEXES => RecordTrim::FillIndexes { space: reader.u32()?, record_type: reader.u32()? },
            _ => unlisted(code),
        })
    }
}

pub(super) fn apply(applying: &mut Applying<'_>, step: &RecordTrim) -> Result<Option<FilledType>, Halt> {
    match step {
        RecordTrim::Forget(record) => forget_record(applying, &record.id())?,
        RecordTrim::Lanes { space, branch, queue, bucket } => {
            remove_lanes(applying, QueueId { space: *space, branch: *branch, name: queue }, *bucket)?;
        }
        RecordTrim::FillIndexes { space, record_type } => {
            let is_filled = fill(applying, *space, *record_type)?;
            return Ok(is_filled.then_some(FilledType { space: *space, record_type: *record_type }));
        }
    }
    Ok(None)
}

/// Finds the deleted records of a bucket: they are in the index of what is due, until they are forgotten.
pub(super) fn find_deleted(finding: &mut Finding<'_>, bucket: u16) -> Result<(), Halt> {
    let situation = finding.situation;
    if !situation.forgets {
        return Ok(());
    }
    let due_prefix = situation.keys.due_prefix(DueClock::Wall, bucket);
    finding.among(KeyRange::prefix(&due_prefix), |key, _| {
        let deleted = deleted_record(situation.view, situation.keys, bucket, &key[due_prefix.len()..])?;
        Ok(deleted.map(|record| RecordTrim::Forget(record).into()).into_iter().collect())
    })
}

/// Finds the lanes of queues in which nothing is ready.
pub(super) fn find_empty_lanes(finding: &mut Finding<'_>) -> Result<(), Halt> {
    let situation = finding.situation;
    finding.among(situation.keys.all_lanes(), |key, row| empty_lanes(&situation, key, row))
}

/// Steps for the types whose indexes are being filled.
pub(super) fn find_unfilled(catalogue: &Catalogue) -> Vec<TrimStep> {
    let of_space = |(space, found): (u32, &crate::catalogue::Space)| {
        let filling = found.types.iter().filter(|declared| declared.is_filling());
        filling.map(|declared| RecordTrim::FillIndexes { space, record_type: declared.id }.into()).collect::<Vec<_>>()
    };
    catalogue.spaces().flat_map(of_space).collect()
}

/// The record of an entry of a due index, if it is deleted.
fn deleted_record(view: &dyn View, keys: &Keys, bucket: u16, suffix: &[u8]) -> Result<Option<ThingKey>, Halt> {
    let Some((_, Due::Thing(DueOf::Expiry, id))) = read_due_suffix(suffix) else {
        return Ok(None);
    };
    let row = view.get(&keys.record(&id.in_bucket(bucket)))?;
    let is_deleted = row.map_or(Ok(false), |row| decode_numbers(&row).map(|numbers| numbers.deleted))?;
    let OwnedId { space, branch, group, name } = id;
    Ok(is_deleted.then_some(ThingKey { bucket, space, branch, group, name }))
}

/// Steps for the lanes of a queue, if nothing in it is ready.
fn empty_lanes(situation: &Situation<'_>, key: &[u8], row: Bytes) -> Result<Vec<TrimStep>, Halt> {
    let (space, branch, name) =
        read_lanes_key(key).ok_or_else(|| Halt::Inconsistent("a foreign key among lanes".into()))?;
    let is_live = situation.catalogue.space(space).is_ok_and(|found| found.live_branch(branch).is_ok());
    let queue = QueueId { space, branch, name: &name };
    if !is_live || count_ready(situation.view, situation.keys, situation.catalogue, queue)? > 0 {
        return Ok(Vec::new());
    }
    let lanes = Lanes::decode(Some(row))?;
    let firsts = lanes.iter().step_by(LANES_LOOKED_AT_MAX).map(|(bucket, _)| bucket);
    Ok(firsts.map(|bucket| RecordTrim::Lanes { space, branch, queue: name.clone(), bucket }.into()).collect())
}
