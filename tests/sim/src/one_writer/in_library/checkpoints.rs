//! Checkpoints of a partition, through every handle that there is on one: their beginning, and their end.

use std::time::Duration;

use statehouse::keyed::{
    CheckpointError, CheckpointOptions, Checkpoints, OwnedPartition, Partition, StartedCheckpoint,
};
use statehouse::records::ClaimOptions;
use statehouse::{Space, Statehouse};

use super::{Cells, HANDLES, Handle, REPLACED};
use crate::directories::fast_directory;

const OPERATOR: &str = "checkpointed";

pub(super) fn try_all(house: &Statehouse, cells: &mut Cells) {
    let folder = fast_directory().expect("a directory");
    let to = Checkpoints::open(folder.path().to_str().expect("text")).expect("a folder");
    let space = house.space("default");
    for (number, handle) in (0..).zip(HANDLES) {
        let of_space = |space: &Space| space.keyed(OPERATOR).partition(number);
        let old = own(&of_space(&space), "first");
        // It begins while it owns the partition, and ends when it does not.
        let begun_before = old.start_checkpoint(&to);
        let right = own(&of_space(&space), "second");
        let (begun, expected) = match handle {
            Handle::Plain => (of_space(&space).start_checkpoint(&to), "SH-4003"),
            Handle::Old => (old.start_checkpoint(&to), REPLACED),
            Handle::Right => (right.start_checkpoint(&to), "done"),
            Handle::Forced => (of_space(&space.forced()).start_checkpoint(&to), "done"),
            Handle::OfAnotherBranch => (own(&of_space(&space.branch("other")), "third").start_checkpoint(&to), "done"),
        };
        cells.compare(&|| format!("a checkpoint by a {handle:?} handle"), taken(begun), expected);
        if matches!(handle, Handle::Old) {
            let what = || "the end of a checkpoint that a replaced owner has begun".to_owned();
            cells.compare(&what, taken(begun_before), REPLACED);
        }
    }
}

/// Owns a partition that has a map.
fn own(partition: &Partition, worker: &str) -> OwnedPartition {
    let lease = ClaimOptions::worker(worker).lease(Duration::from_secs(600));
    let mut owned = partition.acquire_by_force(&lease).expect("own");
    let epoch = owned.epoch();
    owned.commit().put(b"k", 1, epoch).run().expect("a commit");
    owned
}

/// The code of a refusal, at the beginning or at the end.
fn taken(begun: Result<StartedCheckpoint, CheckpointError>) -> &'static str {
    let ended = begun.and_then(|begun| begun.finish(&CheckpointOptions::default()));
    ended.err().map_or("done", |error| error.code().unwrap_or("the folder failed"))
}
