//! Branches of a space: creating, listing, deleting.

use contract::{Error, names};
use kernel::CatalogueChange;

use crate::house::Space;
use crate::sender::change;

impl Space {
    /// Creates an empty branch.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
    /// let space = house.space("default");
    /// space.create_branch("draft")?;
    /// space.branch("draft").cells().set("title", "?")?;
    /// assert_eq!(space.cells().get("title")?, None);
    /// assert_eq!(space.branches()?, ["main", "draft"]);
    /// space.delete_branch("draft")?;
    /// assert!(space.branch("draft").cells().get("title").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn create_branch(&self, name: &str) -> Result<Space, Error> {
        names::check_branch(name)?;
        let (_, catalogue) = self.scope.shard.view()?;
        let space = catalogue.space_named(&self.scope.space)?;
        change(
            &self.scope.shard,
            self.scope.sender.as_ref(),
            CatalogueChange::CreateBranch { space, name: name.to_owned() },
        )?;
        Ok(self.branch(name))
    }

    /// The number of the branch that this handle is on. No other branch of the store ever has it, also if one gets the name.
    pub fn branch_number(&self) -> Result<u32, Error> {
        Ok(self.scope.current()?.1.branch)
    }

    /// The space at the branch that has the name now: once that is deleted, the handle does not reach a later one of the
    /// same name.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
    /// let space = house.space("default");
    /// let pinned = space.create_branch("draft")?.pinned()?;
    /// pinned.cells().set("title", "?")?;
    /// space.delete_branch("draft")?;
    /// space.create_branch("draft")?.cells().set("title", "!")?;
    /// assert_eq!(pinned.cells().get("title").unwrap_err().code(), "SH-1006");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn pinned(&self) -> Result<Space, Error> {
        Ok(Space { scope: self.scope.pinned()? })
    }

    /// The names of the branches, oldest first.
    pub fn branches(&self) -> Result<Vec<String>, Error> {
        let (_, catalogue) = self.scope.shard.view()?;
        let space = catalogue.space(catalogue.space_named(&self.scope.space)?)?;
        Ok(space.branches().filter(|(_, branch)| !branch.deleted).map(|(_, branch)| branch.name.clone()).collect())
    }

    /// Deletes a branch other than `main`. Its content disappears at once and is removed from disk in the background.
    pub fn delete_branch(&self, name: &str) -> Result<(), Error> {
        let (_, catalogue) = self.scope.shard.view()?;
        let space = catalogue.space_named(&self.scope.space)?;
        let branch = catalogue.space(space)?.branch_named(name)?;
        change(&self.scope.shard, self.scope.sender.as_ref(), CatalogueChange::DeleteBranch { space, branch })?;
        self.scope.shard.wake_walker();
        Ok(())
    }
}
