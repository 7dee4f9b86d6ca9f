//! Cells: named values, each with a version that counts its writes and never restarts.
//!
//! The newest version of a cell is one row (its *head*); an older version gets its own row when it is displaced. A cell
//! that was written once is therefore one row, and a get is one read.
//!
//! Touches: the `CellHead`, `CellOld` and `CellFloor` rows. Keeps: K2 (versions rise by one with every write, across
//! delete and re-create; a deleted cell that was forgotten goes on at a higher one), K3 (old versions are contiguous:
//! from the head's `oldest` to just below its version) and K8 (an existing cell of a named group is in the index of
//! names).

mod applying;
pub mod at;
pub mod cas;
pub mod command;
pub(crate) mod contract;
pub mod delete;
pub(crate) mod erase;
pub(crate) mod floor;
pub mod get;
pub mod guard;
pub mod history;
pub mod init;
pub mod item;
pub mod list;
mod portable;
pub(crate) mod rejection;
pub mod retention;
pub mod row;
pub mod set;
pub mod trim;
mod write;

use kv::{Bytes, Staging, View};
use session::Halt;

use crate::changes::{Noted, Reason, Subject};
use crate::folded::Folded;
use crate::held::{HeldRows, Was};
use crate::keys::{Keys, Kind, ThingId};
use crate::names;
use ::contract::{Limits, Retention};
use floor::Floor;
use row::{Head, Old};

/// Reading cells.
pub trait ReadCells {
    /// The row of the newest version.
    fn head(&self, cell: &ThingId<'_>) -> Result<Option<Bytes>, Halt>;

    /// The row of an older version.
    fn old(&self, cell: &ThingId<'_>, version: u64) -> Result<Option<Bytes>, Halt>;

    /// What is known of the cells that were forgotten; a cell without rows starts above them.
    fn floor(&self, cell: &ThingId<'_>) -> Result<Floor, Halt>;
}

/// Writing cells.
pub trait WriteCells {
    /// Replaces the newest version, or adds the first one.
    fn put_head(&mut self, cell: &ThingId<'_>, before: Option<&Head<'_>>, head: &Head<'_>);

    /// Adds an older version.
    fn put_old(&mut self, cell: &ThingId<'_>, version: u64, old: &Old<'_>);

    /// Removes an older version. It is read, because its bytes are counted.
    fn delete_old(&mut self, cell: &ThingId<'_>, version: u64) -> Result<(), Halt>;

    /// Removes the newest version.
    fn delete_head(&mut self, cell: &ThingId<'_>, before: &Head<'_>);

    /// Replaces what is known of the cells that were forgotten.
    fn put_floor(&mut self, cell: &ThingId<'_>, floor: Floor);

    /// Adds a cell of a named group to the index of names, or removes it.
    fn set_listed(&mut self, cell: &ThingId<'_>, listed: bool);

    /// Notes in the change feed that the cell has a new version.
    fn note(&mut self, commit: u64, cell: &ThingId<'_>, version: u64, reason: Reason);
}

/// The context of an operation besides its cell.
#[derive(Clone, Copy, Debug)]
pub struct OpContext {
    /// The command's number.
    pub commit: u64,
    /// The entry's wall time.
    pub wall_us: u64,
    /// How much history the space keeps.
    pub retention: Retention,
    /// Bounds.
    pub limits: Limits,
}

/// Cells as a view has them.
#[derive(Clone, Copy)]
pub struct ViewCells<'view> {
    /// Committed state.
    pub view: &'view dyn View,
    /// Whose keys.
    pub keys: Keys,
}

impl ReadCells for ViewCells<'_> {
    fn head(&self, cell: &ThingId<'_>) -> Result<Option<Bytes>, Halt> {
        Ok(self.view.get(&self.keys.cell_head(cell))?)
    }

    fn old(&self, cell: &ThingId<'_>, version: u64) -> Result<Option<Bytes>, Halt> {
        Ok(self.view.get(&self.keys.cell_old(cell, version))?)
    }

    fn floor(&self, cell: &ThingId<'_>) -> Result<Floor, Halt> {
        let key = self.keys.cell_floor(cell.bucket, cell.space, cell.branch);
        let row = self.keys.get_either(&key, |key| self.view.get(key))?;
        Floor::decode(row.as_deref())
    }
}

/// Cells while a command is being applied.
pub struct StagedCells<'staging> {
    /// Committed state with the writes so far.
    pub state: &'staging mut Staging,
    /// Whose keys.
    pub keys: Keys,
    /// Where changes are noted.
    pub(crate) folded: &'staging mut Folded,
}

impl StagedCells<'_> {
    fn held(&mut self) -> HeldRows<'_> {
        HeldRows { state: self.state, folded: self.folded }
    }
}

impl ReadCells for StagedCells<'_> {
    fn head(&self, cell: &ThingId<'_>) -> Result<Option<Bytes>, Halt> {
        Ok(self.state.get(&self.keys.cell_head(cell))?)
    }

    fn old(&self, cell: &ThingId<'_>, version: u64) -> Result<Option<Bytes>, Halt> {
        Ok(self.state.get(&self.keys.cell_old(cell, version))?)
    }

    fn floor(&self, cell: &ThingId<'_>) -> Result<Floor, Halt> {
        let key = self.keys.cell_floor(cell.bucket, cell.space, cell.branch);
        let row = self.keys.get_either(&key, |key| self.state.get(key))?;
        Floor::decode(row.as_deref())
    }
}

impl WriteCells for StagedCells<'_> {
    fn put_head(&mut self, cell: &ThingId<'_>, before: Option<&Head<'_>>, head: &Head<'_>) {
        let key = self.keys.cell_head(cell);
        self.held().put(key, before.map(Head::counted), head.exists(), |writer| head.encode(writer));
    }

    fn put_old(&mut self, cell: &ThingId<'_>, version: u64, old: &Old<'_>) {
        let key = self.keys.cell_old(cell, version);
        self.held().put(key, None, false, |writer| old.encode(writer));
    }

    fn delete_old(&mut self, cell: &ThingId<'_>, version: u64) -> Result<(), Halt> {
        let row = match old_row(self, cell, version) {
            // Nobody knows its size. It stays where it is, and counted, and nothing leads there any more.
            Err(halt) if halt.set_apart().is_some() => return Ok(()),
            row => row?,
        };
        let key = self.keys.cell_old(cell, version);
        self.held().delete(key, Was::part(row.len()));
        Ok(())
    }

    fn delete_head(&mut self, cell: &ThingId<'_>, before: &Head<'_>) {
        let key = self.keys.cell_head(cell);
        self.held().delete(key, before.counted());
    }

    fn put_floor(&mut self, cell: &ThingId<'_>, floor: Floor) {
        let key = self.keys.cell_floor(cell.bucket, cell.space, cell.branch);
        self.state.put_encoded(key, |writer| floor.encode(writer));
    }

    fn set_listed(&mut self, cell: &ThingId<'_>, listed: bool) {
        names::set_listed(self.state, &self.keys, Kind::CellHead, cell, listed);
    }

    fn note(&mut self, commit: u64, cell: &ThingId<'_>, version: u64, reason: Reason) {
        let ThingId { space, branch, group, name, .. } = *cell;
        let change = Noted { subject: Subject::Cell, reason, space, branch, group, name, version };
        self.folded.changes.note(commit, &change);
    }
}

/// The row of an older version that must be there (K3).
fn old_row(cells: &impl ReadCells, cell: &ThingId<'_>, version: u64) -> Result<Bytes, Halt> {
    cells.old(cell, version)?.ok_or_else(|| {
        Halt::Inconsistent(format!("K3: version {version} of cell {:?} is missing from its history", cell.name))
    })
}

#[cfg(test)]
mod tests;
