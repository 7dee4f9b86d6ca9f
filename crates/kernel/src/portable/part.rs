//! What a contract does for exports and imports.

use session::Halt;

use super::new_shard::{BuildError, NewShard};
use super::walking::Walking;
use crate::catalogue::{BranchId, SpaceId};
use crate::keys::due::DueOf;
use crate::keys::things::OwnedId;

/// A contract whose things are exported and imported.
pub(crate) trait Portable {
    /// A thing, or a part of one.
    type Item<'row>;
    /// A thing whose parts are being put.
    type Begun: Default;

    /// Passes on what it has of a bucket that is in no branch.
    fn walk_bucket<E: From<Halt>>(_walk: &mut Walking<'_, E>, _bucket: u16) -> Result<(), E> {
        Ok(())
    }

    /// Passes on what is due on a thing, if nothing else says so.
    fn walk_due<E: From<Halt>>(_walk: &mut Walking<'_, E>, _of: DueOf, _id: &OwnedId, _at_us: u64) -> Result<(), E> {
        Ok(())
    }

    /// Passes the things of a branch in a bucket on.
    fn walk<E: From<Halt>>(walk: &mut Walking<'_, E>, bucket: u16, space: SpaceId, branch: BranchId) -> Result<(), E>;

    /// Puts an item, with every row derived from it.
    fn put(shard: &mut NewShard<'_>, begun: &mut Self::Begun, item: &Self::Item<'_>) -> Result<(), BuildError>;

    /// Releases a thing that is held, on which this is due. Returns whether it was held.
    fn release(_shard: &mut NewShard<'_>, _of: DueOf, _id: &OwnedId) -> Result<bool, BuildError> {
        Ok(false)
    }

    /// Something else follows: what was begun must be complete.
    fn end(begun: &mut Self::Begun) -> Result<(), BuildError>;
}
