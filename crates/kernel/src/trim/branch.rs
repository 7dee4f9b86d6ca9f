//! Deleted branches: the rows of every contract and the dead letters go in bounded steps; then the branch is forgotten.

use kv::{Key, KeyRange, Order, Staging, View};
use session::Halt;

use crate::catalogue::Catalogue;
use crate::context::Applying;
use crate::contract::{Contract, delete_some};
use crate::contracts::with_contracts;
use crate::keys::{Keys, Kind};
use crate::outbox::dead_letters;

macro_rules! erasing {
    ($($folder:ident: $contract:ident { $kind:ident, $act:ident, $guard:ident, $item:ident, $trim:ident })*) => {
        /// Every kind of row that things have in a bucket of a branch.
        const ROWS: &[&[Kind]] = &[$(crate::$folder::contract::$contract::ROWS),*];

        /// Those that [`erase_some`] removes.
        const ERASED: &[&[Kind]] = &[$(crate::$folder::contract::$contract::ERASED),*];

        /// Removes some things of a deleted branch in a bucket.
        pub(super) fn erase_some(
            applying: &mut Applying<'_>,
            bucket: u16,
            space: u32,
            branch: u32,
        ) -> Result<(), Halt> {
            if is_deleted(applying.catalogue, space, branch) {
                dead_letters::erase_some(applying, bucket, space, branch)?;
                $(crate::$folder::contract::$contract::erase_some(applying, bucket, space, branch)?;)*
            }
            Ok(())
        }

        /// The rows of the shard that belong to a branch.
        fn shard_rows(keys: &Keys, space: u32, branch: u32) -> Vec<KeyRange> {
            [$(crate::$folder::contract::$contract::shard_rows(keys, space, branch)),*].concat()
        }

        /// The rows of a branch in a bucket that outlive its things.
        fn floors(keys: &Keys, bucket: u16, space: u32, branch: u32) -> impl Iterator<Item = Key> {
            [$(crate::$folder::contract::$contract::floor(keys, bucket, space, branch)),*].into_iter().flatten()
        }
    };
}

with_contracts!(erasing);

/// Removes some of what belongs to a deleted branch as a whole. Returns whether nothing of it is left.
pub(super) fn erase_rest(applying: &mut Applying<'_>, space: u32, branch: u32) -> Result<bool, Halt> {
    let (keys, catalogue) = (applying.keys, applying.catalogue);
    if !is_deleted(catalogue, space, branch) {
        return Ok(false);
    }
    for range in shard_rows(&keys, space, branch) {
        delete_some(&mut applying.held(), &range)?;
    }
    let state = &mut *applying.state;
    for bucket in catalogue.buckets_here() {
        for kind in ROWS.iter().copied().flatten().chain(&[Kind::DeadLetter]) {
            if has_rows(state, &keys.rows_of_branch(*kind, bucket, space, branch))? {
                return Ok(false);
            }
        }
    }
    for range in shard_rows(&keys, space, branch) {
        if has_rows(state, &range)? {
            return Ok(false);
        }
    }
    for floor in catalogue.buckets_here().flat_map(|bucket| floors(&keys, bucket, space, branch)) {
        if keys.get_either(&floor, |key| state.get(key))?.is_some() {
            state.delete(floor);
        }
    }
    Ok(true)
}

/// The buckets in which a deleted branch has things that [`erase_some`] removes.
pub(super) fn buckets_to_erase(
    view: &dyn View,
    keys: &Keys,
    catalogue: &Catalogue,
    space: u32,
    branch: u32,
) -> Result<Vec<u16>, Halt> {
    let mut found = Vec::new();
    for bucket in catalogue.buckets_here() {
        for kind in ERASED.iter().copied().flatten().chain(&[Kind::DeadLetter]) {
            let range = keys.rows_of_branch(*kind, bucket, space, branch);
            if view.scan(&range, Order::Ascending).next().transpose()?.is_some() {
                found.push(bucket);
                break;
            }
        }
    }
    Ok(found)
}

fn has_rows(state: &Staging, range: &KeyRange) -> Result<bool, Halt> {
    Ok(state.scan(range, Order::Ascending).next().transpose()?.is_some())
}

fn is_deleted(catalogue: &Catalogue, space: u32, branch: u32) -> bool {
    catalogue.space(space).is_ok_and(|space| space.live_branch(branch).is_err())
}
