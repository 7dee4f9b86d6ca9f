//! The guards of a space: groups that only their owner writes.

use contract::Error;
use kernel::CatalogueChange;

pub use contract::guards::GroupGuard;

use crate::house::Space;
use crate::sender::change;

impl Space {
    /// Guards the groups whose names begin with `prefix`: from now on only their [owner](crate::Group::own) writes them, and
    /// their records are claimed by name only. The longest prefix decides. What is open may be created, and appended to,
    /// by anybody. In place of an earlier guard of the same prefix.
    pub fn set_guard(&self, prefix: &str, guard: GroupGuard) -> Result<(), Error> {
        guard.check(prefix)?;
        self.change_guard(prefix, Some(guard))
    }

    /// Removes the guard of exactly this prefix. Records that became ready while it stood are claimed by name until they are
    /// written again.
    pub fn remove_guard(&self, prefix: &str) -> Result<(), Error> {
        self.change_guard(prefix, None)
    }

    /// The guards of this space, by prefix.
    pub fn guards(&self) -> Result<Vec<(String, GroupGuard)>, Error> {
        let (_, catalogue) = self.scope.shard.view()?;
        let space = catalogue.space(catalogue.space_named(&self.scope.space)?)?;
        Ok(space.guards.iter().map(|(prefix, guard)| (prefix.to_owned(), guard.clone())).collect())
    }

    fn change_guard(&self, prefix: &str, guard: Option<GroupGuard>) -> Result<(), Error> {
        let (_, catalogue) = self.scope.shard.view()?;
        let space = catalogue.space_named(&self.scope.space)?;
        change(
            &self.scope.shard,
            self.scope.sender.as_ref(),
            CatalogueChange::SetGuard { space, prefix: prefix.to_owned(), guard },
        )
    }
}
