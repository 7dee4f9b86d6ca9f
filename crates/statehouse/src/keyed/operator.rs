//! Operators: keyed state in partitions, each with one owner at a time.
//!
//! A partition is a map with the operator's name in a guarded group, `OPERATOR/NUMBER`. Whoever owns the group is the operator
//! there, and its attempt is the epoch: whoever owned it before is refused on every write.

use contract::guards::GroupGuard;
use contract::keyed::{InputPosition, KeyedValue, MapSummary};
use contract::{Error, Rejection, names};

use super::commit::OwnKeyedOp;
use super::partition_commit::PartitionCommit;
use super::reads::{KeysPage, KeysRange};
use crate::OwnedGroup;
use crate::group::Group;
use crate::house::Space;
use crate::records::{ClaimOptions, Holder};

/// An operator: a stream processor's state, in partitions. Created by [`Statehouse::keyed`](crate::Statehouse::keyed).
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
/// use statehouse::keyed::Merge;
/// use statehouse::records::ClaimOptions;
/// let counts = house.keyed("wordcount");
/// let mut partition = counts.partition(3).acquire(&ClaimOptions::worker("w1"))?;
/// assert_eq!(partition.input_position("topic-a")?, None); // from the beginning
/// partition.commit().merge(b"hello", Merge::Add, 2).merge(b"world", Merge::Add, 1).advance("topic-a", 3).run()?;
/// assert_eq!(partition.get(b"hello")?.map(|found| found.value), Some(2.into()));
/// // Another worker takes over, and goes on where the last commit ended.
/// let mut next = counts.partition(3).acquire_by_force(&ClaimOptions::worker("w2"))?;
/// assert_eq!(next.input_position("topic-a")?.map(|at| at.position), Some(3));
/// assert_eq!(partition.commit().merge(b"hello", Merge::Add, 1).run().unwrap_err().code(), "SH-4002");
/// next.commit().merge(b"hello", Merge::Add, 1).advance("topic-a", 4).run()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Operator {
    space: Space,
    name: String,
}

/// Checks the name of an operator: that of a map, without a slash.
pub fn check_operator(name: &str) -> Result<(), Rejection> {
    if name.contains('/') {
        return Err(Rejection::InvalidName { what: "an operator's name", reason: "it contains a slash" });
    }
    names::check_map(name)
}

impl Operator {
    pub(crate) fn new(space: Space, name: String) -> Self {
        Self { space, name }
    }

    /// The operator's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn space(&self) -> &Space {
        &self.space
    }

    /// A partition, which need not exist yet.
    pub fn partition(&self, number: u32) -> Partition {
        Partition { operator: self.clone(), number }
    }

    fn group_of(&self, number: u32) -> String {
        format!("{}/{number}", self.name)
    }
}

/// A partition of an operator, for whoever reads it or wants to own it.
#[derive(Clone)]
pub struct Partition {
    operator: Operator,
    number: u32,
}

impl Partition {
    /// Its number.
    pub fn number(&self) -> u32 {
        self.number
    }

    pub(super) fn operator(&self) -> &Operator {
        &self.operator
    }

    /// The group that it is.
    pub fn group(&self) -> Group {
        self.operator.space.group(self.operator.group_of(self.number))
    }

    /// Owns the partition: waits for the lease of whoever owns it, as long as `options` say. Its groups are guarded from then
    /// on, if no guard covers them yet.
    pub fn acquire(&self, options: &ClaimOptions) -> Result<OwnedPartition, Error> {
        self.guard()?;
        self.taken_over(self.group().own(options)?)
    }

    /// Owns the partition at once, whoever owns it.
    pub fn acquire_by_force(&self, options: &ClaimOptions) -> Result<OwnedPartition, Error> {
        self.guard()?;
        self.taken_over(self.group().forced().own(options)?)
    }

    /// The partition, which was just acquired. A restore of the owner before is over: its commands are refused from now on.
    fn taken_over(&self, group: OwnedGroup) -> Result<OwnedPartition, Error> {
        match self.give_up_restore(&group).and_then(|()| self.next_number()) {
            Ok(next) => Ok(OwnedPartition { partition: self.clone(), group, next }),
            Err(error) => {
                // Nobody has its handle, so the next owner need not wait for the lease.
                drop(group.release());
                Err(error)
            }
        }
    }

    /// Gives up what an owner before has put aside, if it did not come to the end of its restore.
    pub fn give_up_restore(&self, by: &OwnedGroup) -> Result<(), Error> {
        match self.group().maps().restoring(&self.operator.name)? {
            None => Ok(()),
            Some(number) => {
                let map = self.operator.name.clone();
                by.commit().with_op(OwnKeyedOp::AbandonRestore(map, number)).run().map(drop)
            }
        }
    }

    /// The partition as this attempt owns it: one that [`acquire`](Self::acquire) has returned, here or in another process.
    pub fn owned(&self, attempt: u64) -> Result<OwnedPartition, Error> {
        self.owned_by(self.group().owned(attempt))
    }

    fn owned_by(&self, group: OwnedGroup) -> Result<OwnedPartition, Error> {
        Ok(OwnedPartition { partition: self.clone(), group, next: self.next_number()? })
    }

    fn next_number(&self) -> Result<u64, Error> {
        Ok(self.summary()?.map_or(0, |summary| summary.last_number) + 1)
    }

    /// The partition as nobody owns it: its writes carry no fence, so a guarded partition refuses them unless the handle is
    /// [forced](crate::Space::forced).
    pub(super) fn unowned(&self) -> OwnedPartition {
        OwnedPartition { partition: self.clone(), group: self.group().unowned(), next: 1 }
    }

    /// Guards the operator's groups, if no guard covers this one yet. [`acquire`](Self::acquire) does that too.
    pub fn guard(&self) -> Result<(), Error> {
        check_operator(&self.operator.name)?;
        match self.group().guard()? {
            Some(_) => Ok(()),
            None => self.operator.space.set_guard(&format!("{}/", self.operator.name), GroupGuard::new()),
        }
    }

    /// Who owns it now, if anybody does.
    pub fn owner(&self) -> Result<Option<Holder>, Error> {
        self.group().owner()
    }

    /// The value of a key.
    pub fn get(&self, key: &[u8]) -> Result<Option<KeyedValue>, Error> {
        self.group().maps().get(&self.operator.name, key)
    }

    /// Keys with their values, in the order of their bytes.
    pub fn scan(&self, range: &KeysRange) -> Result<KeysPage, Error> {
        self.group().maps().scan(&self.operator.name, range)
    }

    /// How far it has read an input; none if it has read nothing of it.
    pub fn input_position(&self, input: &str) -> Result<Option<InputPosition>, Error> {
        self.group().maps().position(&self.operator.name, input)
    }

    /// How far it has read its inputs, by name, at most `limit` (1 to 1,000) after one of them.
    pub fn input_positions(&self, after: Option<&str>, limit: usize) -> Result<Vec<(String, InputPosition)>, Error> {
        self.group().maps().positions(&self.operator.name, after, limit)
    }

    /// The partition as a whole; none if it holds nothing.
    pub fn summary(&self) -> Result<Option<MapSummary>, Error> {
        self.group().maps().summary(&self.operator.name)
    }

    /// Whether a restore is putting aside what the partition will hold.
    pub fn is_restoring(&self) -> Result<bool, Error> {
        Ok(self.group().maps().restoring(&self.operator.name)?.is_some())
    }
}

/// A partition that this handle owns, until it is released or lost. Every write carries its fence.
pub struct OwnedPartition {
    partition: Partition,
    group: OwnedGroup,
    /// The number of the next commit.
    next: u64,
}

/// For reading.
impl std::ops::Deref for OwnedPartition {
    type Target = Partition;

    fn deref(&self) -> &Partition {
        &self.partition
    }
}

impl OwnedPartition {
    /// The attempt by which it is owned. It only rises: whoever has a higher one owned the partition later.
    pub fn epoch(&self) -> u64 {
        self.group.attempt()
    }

    /// The group that it is, as its owner: for things of the other contracts beside its keys, to extend the lease, and to
    /// learn whether it was lost.
    pub fn owned_group(&self) -> &OwnedGroup {
        &self.group
    }

    /// The same partition by the same attempt, for another thread.
    pub(super) fn again(&self) -> OwnedPartition {
        let group = match self.epoch() {
            0 => self.group.unowned(),
            attempt => self.group.owned(attempt),
        };
        OwnedPartition { partition: self.partition.clone(), group, next: self.next }
    }

    /// Begins a commit.
    pub fn commit(&mut self) -> PartitionCommit<'_> {
        let commit = self.group.commit();
        PartitionCommit::new(self, commit)
    }

    /// Looks up the number of the next commit. Needed after a commit that was
    /// [answered later](PartitionCommit::run_later) failed: those after it are refused.
    pub fn refresh(&mut self) -> Result<(), Error> {
        self.next = self.next_number()?;
        Ok(())
    }

    /// Gives the partition up: the next one can own it at once.
    pub fn release(self) -> Result<(), Error> {
        self.group.release()
    }

    pub(super) fn map(&self) -> &str {
        &self.partition.operator.name
    }

    pub(super) fn take_number(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        number
    }
}
