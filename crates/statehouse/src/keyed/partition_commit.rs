//! A commit of a partition: what changed, and how far its inputs were read, at once.

use contract::Error;
use contract::keyed::{LogicalTime, Merge, Updated};
use contract::value::Value;
use node::error::unexpected_answer;
use node::pending::Pending;

use super::commit::KeyedDone;
use super::operator::OwnedPartition;
use super::updates::MapCommit;
use crate::commit::{Commit, Committed, Done};

/// A commit of a partition, begun by [`OwnedPartition::commit`].
#[must_use = "nothing is done before `run`"]
pub struct PartitionCommit<'partition> {
    partition: &'partition mut OwnedPartition,
    map: MapCommit,
    rest: Commit,
}

/// A committed one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartitionCommitted {
    /// The commit number, which orders it among all writes of the store.
    pub commit: u64,
    /// Its number in the partition.
    pub number: u64,
    /// What became of each update.
    pub updated: Updated,
}

impl<'partition> PartitionCommit<'partition> {
    pub(super) fn new(partition: &'partition mut OwnedPartition, rest: Commit) -> Self {
        Self { partition, map: MapCommit::numbered(0), rest }
    }

    /// Puts a value with a version.
    pub fn put(mut self, key: &[u8], value: impl Into<Value>, version: impl Into<LogicalTime>) -> Self {
        self.map.updates.add_put(key, &value.into(), version.into());
        self
    }

    /// Deletes a key with a version.
    pub fn delete(mut self, key: &[u8], version: impl Into<LogicalTime>) -> Self {
        self.map.updates.add_delete(key, version.into());
        self
    }

    /// Merges an integer into a key.
    pub fn merge(mut self, key: &[u8], merge: Merge, operand: i64) -> Self {
        self.map.updates.add_merge(key, merge, operand);
        self
    }

    /// Merges an integer into a key with a version, in an ordered partition.
    pub fn merge_at(mut self, key: &[u8], merge: Merge, operand: i64, version: impl Into<LogicalTime>) -> Self {
        self.map.updates.add_merge_at(key, merge, operand, version.into());
        self
    }

    /// Removes a merged key.
    pub fn remove(mut self, key: &[u8]) -> Self {
        self.map.updates.add_remove(key);
        self
    }

    /// Says how far an input was read with this commit, once for each input, in any order.
    pub fn advance(mut self, input: impl Into<String>, position: u64) -> Self {
        self.map.add_position(input.into(), position);
        self
    }

    /// Raises the seal, after the updates of this commit.
    pub fn seal(mut self, version: impl Into<LogicalTime>) -> Self {
        self.map.set_seal(version.into());
        self
    }

    /// Adds operations of any contract in the group of the partition, messages included.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
    /// use statehouse::records::ClaimOptions;
    /// let mut partition = house.keyed("totals").partition(0).acquire(&ClaimOptions::worker("w1"))?;
    /// let report = house.group("reports").commit().set_cell("last", 7);
    /// partition.commit().put(b"eur", 10, 7).advance("orders", 7).with(|commit| commit.set_cell("day", 7).send(report)).run()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with(self, add: impl FnOnce(Commit) -> Commit) -> Self {
        Self { rest: add(self.rest), ..self }
    }

    /// Commits, durably.
    pub fn run(self) -> Result<PartitionCommitted, Error> {
        let Self { partition, map, rest } = self;
        let (number, pending) = send(partition, map, rest);
        match pending.wait() {
            Ok(done) => committed(number, done),
            Err(error) => {
                // Its number is free again, unless nobody knows what became of it; then the view knows it by now, or the store is
                // closed.
                partition.refresh()?;
                Err(error)
            }
        }
    }

    /// [`run`](Self::run), answered later: with the results of the operations that [`with`](Self::with) has added, and in the
    /// end what became of the updates. The next commit can be sent meanwhile; if this one is refused, so is that one.
    pub fn run_later(self) -> Pending<(Committed, Vec<Done>)> {
        send(self.partition, self.map, self.rest).1
    }
}

fn send(partition: &mut OwnedPartition, mut map: MapCommit, rest: Commit) -> (u64, Pending<(Committed, Vec<Done>)>) {
    let number = partition.take_number();
    map.set_number(number);
    (number, rest.commit_map(partition.map(), map).run_each_later())
}

fn committed(number: u64, (committed, mut done): (Committed, Vec<Done>)) -> Result<PartitionCommitted, Error> {
    match done.pop() {
        Some(Done::Map(KeyedDone::Updated(updated))) => {
            Ok(PartitionCommitted { commit: committed.commit, number, updated })
        }
        other => Err(unexpected_answer("a commit of a partition", &other)),
    }
}
