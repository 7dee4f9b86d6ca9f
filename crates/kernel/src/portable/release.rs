//! Releases what was held in the shard that a new one was built from: whoever holds it works for that one.
//!
//! Touches: held records, in commands of their own that the change feed has. Keeps: R2 and R4: no attempt is begun, and that of the
//! shard before is over here. Never: counts as a failure of the attempt.

use kv::{KeyRange, Order, Store};
use session::Halt;

use super::build::is_full;
use super::new_shard::{BuildError, NewShard};
use super::part::Portable;
use crate::applied::Applied;
use crate::catalogue::Catalogue;
use crate::contracts::with_contracts;
use crate::keys::Keys;
use crate::keys::due::{Due, DueClock, DueOf, read_due_suffix};
use crate::keys::things::OwnedId;

macro_rules! releases {
    ($($folder:ident: $contract:ident { $kind:ident, $act:ident, $guard:ident, $item:ident, $trim:ident })*) => {
        /// Releases a thing, if the contract that this is due on holds it.
        fn release(shard: &mut NewShard<'_>, of: DueOf, id: &OwnedId) -> Result<bool, BuildError> {
            let mut released = false;
            $(released |= crate::$folder::contract::$contract::release(shard, of, id)?;)*
            Ok(released)
        }
    };
}

with_contracts!(releases);

/// Releases everything that is held in a shard that was just built. Returns how much it was.
pub fn release_held(store: &dyn Store, keys: Keys) -> Result<u64, BuildError> {
    let view = store.view()?;
    let missing = || Halt::Inconsistent("a shard that was built has no applied row".into());
    let mut applied = Applied::decode(&view.get(&keys.applied())?.ok_or_else(missing)?)?;
    let catalogue = Catalogue::load(&*view, &keys)?;
    let buckets: Vec<u16> = catalogue.buckets_here().collect();
    // Each batch is a command: what it has changed is told under a number of its own.
    applied.commit += 1;
    let mut shard = NewShard::new(store, keys, catalogue, applied)?;
    let mut count = 0;
    for bucket in buckets {
        // Whatever is held has a lease, and that is due by cluster time.
        let prefix = keys.due_prefix(DueClock::Cluster, bucket);
        for row in view.scan(&KeyRange::prefix(&prefix), Order::Ascending) {
            let (key, _) = row?;
            let Some((_, Due::Thing(of, id))) = read_due_suffix(&key[prefix.len()..]) else { continue };
            count += u64::from(release(&mut shard, of, &id)?);
            shard.state.savepoint();
            if is_full(&shard) {
                shard.flush()?;
                shard.applied.commit += 1;
            }
        }
    }
    if count > 0 {
        shard.flush()?;
        store.commit(kv::Batch::new().put(keys.applied(), shard.applied.encode()))?;
        store.persist()?;
    }
    Ok(count)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::script::Stage;

    #[test]
    fn the_rows_of_what_is_released_count_to_what_is_staged() {
        let mut stage = Stage::new(1);
        stage.say("declare job for jobs. lease 30s; put jobs.1 n=y*1000; claim jobs.1; put jobs.2 n=y*1000");
        let (store, keys) = (stage.store(), stage.kernel.keys());
        let catalogue = stage.kernel.catalogue().clone();
        let mut shard = NewShard::new(store, keys, catalogue, *stage.kernel.applied()).unwrap();
        for (record, is_held) in [("jobs.1", true), ("jobs.2", false)] {
            let id = OwnedId { space: 1, branch: 1, group: None, name: record.into() };
            let before = shard.staged_bytes;
            assert_eq!(release(&mut shard, DueOf::Lease, &id).unwrap(), is_held);
            assert_eq!(shard.staged_bytes - before > 1_000, is_held, "{record}");
        }
    }
}
