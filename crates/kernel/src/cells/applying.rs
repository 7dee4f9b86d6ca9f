//! The cells of the command at hand.

use super::{OpContext, StagedCells};
use crate::catalogue::Space;
use crate::context::Applying;

impl Applying<'_> {
    /// The cells, to be written.
    pub(crate) fn cells(&mut self) -> StagedCells<'_> {
        StagedCells { state: self.state, keys: self.keys, folded: self.folded }
    }

    /// The context of an operation on a cell of a space.
    pub(crate) fn cell_context(&self, space: &Space) -> OpContext {
        OpContext {
            commit: self.call.commit,
            wall_us: self.call.stamp.wall_us,
            retention: space.retention,
            limits: self.catalogue.limits,
        }
    }
}
