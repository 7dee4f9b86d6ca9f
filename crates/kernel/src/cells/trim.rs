//! Cells in the walk: versions whose time is over, cells of deleted branches, and deleted cells that are forgotten.

use kv::{DecodeError, Reader, Writer};
use session::Halt;

use super::retention::{may_be_due, trim_cell};
use super::row::Head;
use super::{erase, floor};
use crate::catalogue::Catalogue;
use crate::command::act::unlisted;
use crate::context::Applying;
use crate::keys::ThingId;
use crate::keys::cells::read_cell_key;
use crate::keys::names::is_name_in_group;
use crate::keys::things::ThingKey;
use crate::trim::finding::Finding;

/// What a step of the walk does to a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CellTrim {
    /// Discards the due versions of a cell, or some of the cell if its branch was deleted.
    Due(ThingKey),
    /// Forgets a deleted cell, or some of its old versions.
    Forget(ThingKey),
}

const DUE: u8 = 1;
const FORGET: u8 = 5;

impl CellTrim {
    /// The codes that steps begin with. No other contract has one of them.
    pub(crate) const CODES: &'static [u8] = &[DUE, FORGET];

    /// Whether it makes the store larger.
    pub(crate) fn grows(&self) -> bool {
        false
    }

    pub(crate) fn encode(&self, writer: &mut Writer) {
        match self {
            CellTrim::Due(cell) => cell.encode(writer.u8(DUE)),
            CellTrim::Forget(cell) => cell.encode(writer.u8(FORGET)),
        }
    }

    /// Reads a step after its code.
    pub(crate) fn decode(code: u8, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match code {
            DUE => ThingKey::decode(reader).map(CellTrim::Due),
            FORGET => ThingKey::decode(reader).map(CellTrim::Forget),
            _ => unlisted(code),
        }
    }
}

pub(super) fn apply(applying: &mut Applying<'_>, step: &CellTrim) -> Result<(), Halt> {
    match step {
        CellTrim::Due(cell) => trim(applying, &cell.id()),
        CellTrim::Forget(cell) => floor::forget(&mut applying.cells(), &cell.id()),
    }
}

fn trim(applying: &mut Applying<'_>, cell: &ThingId<'_>) -> Result<(), Halt> {
    let Ok(space) = applying.catalogue.space(cell.space) else {
        return Ok(());
    };
    if space.live_branch(cell.branch).is_err() {
        return erase::remove_some(&mut applying.cells(), cell);
    }
    let context = applying.cell_context(space);
    trim_cell(&mut applying.cells(), &context, cell)?;
    Ok(())
}

/// Finds the cells of a bucket that have something due.
pub(super) fn find(finding: &mut Finding<'_>, bucket: u16) -> Result<(), Halt> {
    let situation = finding.situation;
    finding.among(situation.keys.cell_heads_of_bucket(bucket), |key, row| {
        if is_name_in_group(key) {
            return Ok(Vec::new());
        }
        let cell = read_cell_key(key).ok_or_else(|| Halt::Inconsistent("a foreign key among cells".into()))?;
        let head = Head::decode(&row)?;
        Ok(if situation.forgets && !head.exists() {
            vec![CellTrim::Forget(cell).into()]
        } else if is_due(situation.catalogue, &cell, &head, situation.now_us) {
            vec![CellTrim::Due(cell).into()]
        } else {
            Vec::new()
        })
    })
}

fn is_due(catalogue: &Catalogue, cell: &ThingKey, head: &Head<'_>, now_us: u64) -> bool {
    match catalogue.space(cell.space) {
        Err(_) => false,
        Ok(space) => space.live_branch(cell.branch).is_err() || may_be_due(head, space.retention, now_us),
    }
}
