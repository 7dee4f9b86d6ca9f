//! Steps of the walk, as a command names them.

use kv::{DecodeError, Reader, Writer};

use crate::keys::CellKey;

/// One step of the walk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrimStep {
    /// Discards the due versions of a cell, or some of the cell if its branch was deleted.
    Cell(CellKey),
    /// Removes some things of a deleted branch from a bucket: of every contract but cells, which have steps of their own.
    Records {
        /// Which bucket.
        bucket: u16,
        /// The branch's space.
        space: u32,
        /// The branch.
        branch: u32,
    },
    /// Forgets a deleted branch, if it has no row left.
    Branch {
        /// Its space.
        space: u32,
        /// Its number.
        branch: u32,
    },
    /// Forgets a deleted cell, or some of its old versions.
    ForgetCell(CellKey),
    /// Forgets a deleted record.
    ForgetRecord(CellKey),
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

const CELL: u8 = 1;
const BRANCH: u8 = 2;
const RECORDS: u8 = 3;
const LANES: u8 = 4;
const FORGET_CELL: u8 = 5;
const FORGET_RECORD: u8 = 6;
const FILL_INDEXES: u8 = 7;

impl TrimStep {
    pub(crate) fn encode(&self, writer: &mut Writer) {
        match self {
            TrimStep::Cell(cell) => encode_thing(writer, CELL, cell),
            TrimStep::ForgetCell(cell) => encode_thing(writer, FORGET_CELL, cell),
            TrimStep::ForgetRecord(record) => encode_thing(writer, FORGET_RECORD, record),
            TrimStep::Records { bucket, space, branch } => {
                writer.u8(RECORDS).u16(*bucket).u32(*space).u32(*branch);
            }
            TrimStep::Branch { space, branch } => {
                writer.u8(BRANCH).u32(*space).u32(*branch);
            }
            TrimStep::Lanes { space, branch, queue, bucket } => {
                writer.u8(LANES).u32(*space).u32(*branch).bytes(queue.as_bytes()).u16(*bucket);
            }
            TrimStep::FillIndexes { space, record_type } => {
                writer.u8(FILL_INDEXES).u32(*space).u32(*record_type);
            }
        }
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match reader.u8()? {
            CELL => TrimStep::Cell(decode_thing(reader)?),
            FORGET_CELL => TrimStep::ForgetCell(decode_thing(reader)?),
            FORGET_RECORD => TrimStep::ForgetRecord(decode_thing(reader)?),
            RECORDS => TrimStep::Records { bucket: reader.u16()?, space: reader.u32()?, branch: reader.u32()? },
            BRANCH => TrimStep::Branch { space: reader.u32()?, branch: reader.u32()? },
            LANES => TrimStep::Lanes {
                space: reader.u32()?,
                branch: reader.u32()?,
                queue: reader.text()?.to_owned(),
                bucket: reader.u16()?,
            },
            FILL_INDEXES => TrimStep::FillIndexes { space: reader.u32()?, record_type: reader.u32()? },
            _ => {
                return Err(DecodeError { what: "a step of an unknown kind" });
            }
        })
    }
}

fn encode_thing(writer: &mut Writer, step: u8, thing: &CellKey) {
    writer.u8(step).u16(thing.bucket).u32(thing.space).u32(thing.branch);
    writer.optional_text(thing.group.as_deref()).bytes(thing.name.as_bytes());
}

fn decode_thing(reader: &mut Reader<'_>) -> Result<CellKey, DecodeError> {
    let (bucket, space, branch) = (reader.u16()?, reader.u32()?, reader.u32()?);
    let group = reader.optional_text()?.map(str::to_owned);
    Ok(CellKey { bucket, space, branch, group, name: reader.text()?.to_owned() })
}
