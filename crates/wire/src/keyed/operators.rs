//! Operators: keyed state in partitions, each with one owner at a time.

use super::updates::{KeyUpdate, NotApplied};
use super::version::Version;
use super::{PolicyText, ShownMap};
use crate::contracts::{Done, Guard, Operation};
use crate::owners::Holder;
use crate::schema::{left_out, object};
use crate::values::{DurationText, Members, PageCursor};

object! {
    /// Selects operators to list.
    request ListOperators {
        /// Only names with this prefix.
        prefix: Option<String>,
        /// The cursor of the previous page.
        cursor: Option<PageCursor>,
        /// Maximum number of operators.
        limit: Option<u64>,
    }

    /// A page of operators that hold something, in name order. It may have fewer than the limit, or none, and a cursor.
    answer OperatorList {
        /// Their names.
        operators: Vec<String>,
        /// Where the next page starts, if there may be one.
        cursor: Option<PageCursor>,
    }

    /// Selects partitions to list.
    request ListPartitions {
        /// The cursor of the previous page.
        cursor: Option<PageCursor>,
        /// Maximum number of partitions.
        limit: Option<u64>,
    }

    /// A partition that holds something.
    answer ShownPartition {
        /// Its number.
        partition: u32,
        /// The group that it is.
        group: String,
        /// Keys that have a value.
        keys: u64,
        /// Deleted keys whose versions are remembered until the seal passes them.
        deleted: u64,
        /// How its updates are applied.
        policy: PolicyText,
        /// Updates that wait for the seal.
        waiting: u64,
        /// The number of the last numbered commit; 0 if there was none.
        last_number: u64,
        /// The version up to which the source has finished.
        seal: Option<Version>,
        /// The commit of the last change.
        commit: u64,
        /// When it was changed.
        updated_at: String,
    }

    /// A page of the partitions of an operator, in the order of their numbers as text. It may have fewer than the limit, or none, and a
    /// cursor.
    answer PartitionList {
        /// The operator.
        operator: String,
        /// Its partitions that hold something.
        partitions: Vec<ShownPartition>,
        /// Where the next page starts, if there may be one.
        cursor: Option<PageCursor>,
    }

    /// A partition of an operator, and who owns it.
    answer PartitionRead {
        /// The operator.
        operator: String,
        /// The number of the partition.
        partition: u32,
        /// The group that it is.
        group: String,
        /// The prefix of the guard that decides about the group; null if it is not guarded.
        guard: Option<String>,
        /// Who owns it; null if nobody does.
        holder: Option<Holder>,
        /// What it holds; null if that is nothing.
        map: Option<ShownMap>,
        /// Whether a restore is putting aside what it will hold.
        restoring: bool,
    }

    /// Owns a partition. Its group is guarded from then on.
    request AcquirePartition {
        /// The worker's own name, shown in answers.
        worker: Option<String>,
        /// The lease; 30 s by default.
        lease: Option<DurationText>,
        /// How long to wait if another owns it; at most a minute.
        wait: Option<DurationText>,
    }

    /// A partition that the caller owns.
    answer PartitionAcquired {
        /// The operator.
        operator: String,
        /// The number of the partition.
        partition: u32,
        /// The group that it is: to extend and to release it.
        group: String,
        /// The token of the owner: keep it, and send it as `Statehouse-Owner` with every commit.
        token: String,
        /// The attempt by which it is owned. It only rises.
        epoch: u64,
        /// The number of the next commit.
        next: u64,
        /// The version up to which the source has finished.
        seal: Option<Version>,
    }

    /// A commit of a partition: what changed, and how far its inputs were read, at once.
    request CommitPartition {
        /// Its number: one more than that of the commit before; the first is 1. Sent again, it gets its first answer.
        number: u64,
        /// The updates, in order: another order is another commit.
        updates: Option<Vec<KeyUpdate>>,
        /// How far each input was read with it, in any order. Positions never go back.
        positions: Option<Members<u64>>,
        /// The version up to which the source has finished, once this is committed.
        seal: Option<Version>,
        /// Further conditions, on things of the partition's group.
        "if" guards: Option<Vec<Guard>>,
        /// Further operations of any contract in the partition's group, done before the updates.
        "do" operations: Option<Vec<Operation>>,
    }

    /// A committed one.
    answer PartitionCommitted {
        /// The commit, which orders it among all writes of the store.
        commit: u64,
        /// Its number in the partition.
        number: u64,
        /// How many updates there were.
        updates: u64,
        /// How many were applied; in an ordered partition they are when the seal reaches their versions.
        applied: u64,
        /// The others, by their places.
        not_applied: Vec<NotApplied>,
        /// The result of each further operation.
        done: Vec<Done>,
    }
}

left_out! {
    ListOperators { prefix, cursor, limit }
    ListPartitions { cursor, limit }
    AcquirePartition { worker, lease, wait }
}

impl AcquirePartition {
    /// Owns a partition as the worker of this name.
    pub fn by(worker: impl Into<String>) -> Self {
        Self { worker: Some(worker.into()), ..Self::default() }
    }
}

impl CommitPartition {
    /// The commit of this number, empty.
    pub fn numbered(number: u64) -> Self {
        Self { number, updates: None, positions: None, seal: None, guards: None, operations: None }
    }

    /// Adds an update.
    pub fn update(mut self, update: KeyUpdate) -> Self {
        self.updates.get_or_insert_default().push(update);
        self
    }

    /// Says how far an input was read with it.
    pub fn advance(mut self, input: impl Into<String>, position: u64) -> Self {
        self.positions.get_or_insert_default().0.push((input.into(), position));
        self
    }

    /// Raises the seal, after the updates.
    pub fn seal(mut self, version: impl Into<Version>) -> Self {
        self.seal = Some(version.into());
        self
    }

    /// Adds a condition.
    pub fn only_if(mut self, guard: Guard) -> Self {
        self.guards.get_or_insert_default().push(guard);
        self
    }

    /// Adds an operation of any contract in the partition's group.
    pub fn with(mut self, operation: Operation) -> Self {
        self.operations.get_or_insert_default().push(operation);
        self
    }
}
