//! Branches of a space: creating, listing, deleting.

use contract::{Error, names};
use kernel::CatalogueChange;

use crate::house::{Space, change};

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
        change(&self.scope.shard, CatalogueChange::CreateBranch { space, name: name.to_owned() })?;
        Ok(self.branch(name))
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
        change(&self.scope.shard, CatalogueChange::DeleteBranch { space, branch })?;
        self.scope.shard.wake_walker();
        Ok(())
    }
}
