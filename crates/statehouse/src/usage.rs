//! What the things of a space take.

use contract::{Error, SpaceUsage};
use kernel::usage;
use node::error::from_halt;

use crate::house::{Space, Statehouse};

impl Space {
    /// How many things this space has in all its branches, and how many bytes they take, by contract.
    ///
    /// It is counted as things are written, so this reads one row.
    ///
    /// ```
    /// # let path = tempfile::tempdir()?;
    /// let house = statehouse::Statehouse::open(path.path())?;
    /// house.cells().set("greeting", "hello")?;
    /// let usage = house.space("default").usage()?;
    /// assert_eq!(usage.by_contract["cells"].things, 1);
    /// assert_eq!(usage.total(), usage.by_contract["cells"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn usage(&self) -> Result<SpaceUsage, Error> {
        let (view, catalogue) = self.scope.shard.view()?;
        let space = catalogue.space_named(&self.scope.space)?;
        usage::read(&*view, &self.scope.shard.keys(), space).map_err(|halt| from_halt(&halt))
    }
}

impl Statehouse {
    /// The same for all spaces together. Reads a row for each of them.
    pub fn usage(&self) -> Result<SpaceUsage, Error> {
        let (view, catalogue) = self.shard.view()?;
        let mut total = SpaceUsage::default();
        for (space, _) in catalogue.spaces() {
            total.add(&usage::read(&*view, &self.shard.keys(), space).map_err(|halt| from_halt(&halt))?);
        }
        Ok(total)
    }
}
