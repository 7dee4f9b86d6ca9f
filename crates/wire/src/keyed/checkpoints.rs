//! Checkpoints of partitions: taken, listed and restored, in the place that the server keeps them.

use super::version::Version;
use crate::schema::{left_out, object};
use crate::values::{DurationText, PageCursor};

object! {
    /// Takes a checkpoint of a partition.
    request TakeCheckpoint {
        /// Whether it is full, also if an incremental one is possible.
        full: Option<bool>,
        /// How long to wait until it is committed; at most a minute. It goes on after that.
        wait: Option<DurationText>,
    }

    /// A checkpoint that was begun, and what it has if it is committed.
    answer CheckpointTaken {
        /// The operator.
        operator: String,
        /// The number of the partition.
        partition: u32,
        /// The number of the checkpoint.
        number: u64,
        /// Whether it is committed; false if it goes on after the wait.
        committed: bool,
        /// Keys that have a value.
        keys: Option<u64>,
        /// The bytes of its rows.
        bytes: Option<u64>,
        /// The number of the checkpoint that it builds on; null if it is full.
        base: Option<u64>,
        /// The last commit of the store that it has.
        commit: Option<u64>,
        /// Why checkpoints that are not needed any more could not be removed; the next one tries again.
        not_removed: Option<String>,
    }

    /// Selects checkpoints to list.
    request ListCheckpoints {
        /// Those that several partitions have taken together, instead of those of this partition alone.
        together: Option<bool>,
        /// The cursor of the previous page.
        cursor: Option<PageCursor>,
        /// Maximum number of checkpoints.
        limit: Option<u64>,
    }

    /// A committed checkpoint.
    answer ShownCheckpoint {
        /// Its number.
        number: u64,
        /// Its partitions.
        partitions: Vec<u32>,
        /// Keys that have a value.
        keys: u64,
        /// The bytes of its rows.
        bytes: u64,
        /// How many earlier checkpoints are needed to restore it; 0 if it is full.
        depth: u64,
        /// The number of the checkpoint that it builds on; null if it is full.
        base: Option<u64>,
        /// The last commit of the store that it has; of several partitions, the earliest of them.
        commit: u64,
        /// When it was committed.
        made_at: String,
    }

    /// The committed checkpoints that have a partition, from the last to the first.
    answer CheckpointList {
        /// The operator.
        operator: String,
        /// The number of the partition.
        partition: u32,
        /// The checkpoints.
        checkpoints: Vec<ShownCheckpoint>,
        /// Where the next page starts, if there may be one.
        cursor: Option<PageCursor>,
    }

    /// Takes a partition over, and restores it from a checkpoint.
    request RestorePartition {
        /// The number of the checkpoint; the last one by default.
        checkpoint: Option<u64>,
        /// Whether it is one of those that several partitions have taken together.
        together: Option<bool>,
        /// The worker's own name, shown in answers.
        worker: Option<String>,
        /// The lease; 30 s by default.
        lease: Option<DurationText>,
        /// How long to wait until it is restored; at most a minute. It goes on after that.
        wait: Option<DurationText>,
    }

    /// A partition that the caller owns, and that is restored or being restored.
    answer PartitionRestored {
        /// The operator.
        operator: String,
        /// The number of the partition.
        partition: u32,
        /// The group that it is: to extend and to release it.
        group: String,
        /// The number of the checkpoint.
        checkpoint: u64,
        /// The token of the owner: keep it, and send it as `Statehouse-Owner` with every commit.
        token: String,
        /// The attempt by which it is owned. It only rises.
        epoch: u64,
        /// Whether it is restored; false if that goes on after the wait. Commits until then are gone with what it held.
        restored: bool,
        /// The number of the next commit; null while it is being restored.
        next: Option<u64>,
        /// The version up to which the source has finished.
        seal: Option<Version>,
    }
}

left_out! {
    TakeCheckpoint { full, wait }
    ListCheckpoints { together, cursor, limit }
    RestorePartition { checkpoint, together, worker, lease, wait }
}

impl RestorePartition {
    /// Restores the last checkpoint as the worker of this name.
    pub fn by(worker: impl Into<String>) -> Self {
        Self { worker: Some(worker.into()), ..Self::default() }
    }
}
