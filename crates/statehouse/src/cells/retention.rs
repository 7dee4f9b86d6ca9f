//! How much history the cells of a space keep.

use contract::{Error, Retention};
use kernel::CatalogueChange;

use crate::house::Space;
use crate::sender::change;

impl Space {
    /// Sets how much history the cells of this space keep.
    pub fn set_retention(&self, retention: Retention) -> Result<(), Error> {
        let (_, catalogue) = self.scope.shard.view()?;
        let space = catalogue.space_named(&self.scope.space)?;
        change(&self.scope.shard, self.scope.sender.as_ref(), CatalogueChange::SetRetention { space, retention })
    }

    /// How much history the cells of this space keep.
    pub fn retention(&self) -> Result<Retention, Error> {
        let (_, catalogue) = self.scope.shard.view()?;
        Ok(catalogue.space(catalogue.space_named(&self.scope.space)?)?.retention)
    }
}
