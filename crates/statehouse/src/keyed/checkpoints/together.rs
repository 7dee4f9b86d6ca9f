//! A checkpoint of several partitions of an operator: it begins with a number, each partition writes its part when its owner has
//! come to the point where it should be taken, and a marker is written last.
//!
//! Touches: objects. Keeps: it counts when all parts are there, and not before; who ends it first decides how.

use std::thread;
use std::time::Duration;

use contract::{Error, KeyedRejection, Rejection};

use super::error::CheckpointError;
use super::manifest::{JOINT_PARTITIONS_MAX, Mark, MarkedPart, Standing};
use super::names::Series;
use super::series::{AtPlace, CheckpointInfo};
use super::{CheckpointOptions, Checkpoints};
use crate::keyed::{Operator, OwnedPartition};

/// The pause between two looks at whether all parts are there.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A checkpoint of several partitions that was begun, for whoever coordinates it.
pub struct JointCheckpoint {
    place: AtPlace,
    number: u64,
    partitions: Vec<u32>,
    operator: Operator,
}

impl Operator {
    /// Begins a checkpoint of several partitions. Their owners, here or in other processes, are told its number, and
    /// [take part](OwnedPartition::join_checkpoint).
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
    /// # use std::time::Duration;
    /// use statehouse::keyed::{CheckpointChoice, CheckpointOptions, Checkpoints, Merge};
    /// use statehouse::records::ClaimOptions;
    /// let checkpoints = Checkpoints::open(directory.path().join("checkpoints").to_str().unwrap())?;
    /// let (counts, options) = (house.keyed("wordcount"), CheckpointOptions::default());
    /// let begun = counts.begin_checkpoint(&checkpoints, &[0, 1])?;
    /// for number in [0, 1] {
    ///     let mut owned = counts.partition(number).acquire(&ClaimOptions::worker("w1"))?;
    ///     owned.commit().merge(b"hello", Merge::Add, 2).advance("topic-a", 3).run()?;
    ///     owned.join_checkpoint(&checkpoints, begun.number(), &options)?;
    /// }
    /// let taken = begun.commit(Duration::from_secs(10), &options)?;
    /// assert_eq!((taken.partitions, taken.keys), (vec![0, 1], 2));
    /// let choice = CheckpointChoice::latest().together();
    /// counts.partition(1).restore(&checkpoints, &choice, &ClaimOptions::worker("w2"))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn begin_checkpoint(&self, to: &Checkpoints, partitions: &[u32]) -> Result<JointCheckpoint, CheckpointError> {
        let place = AtPlace::new(to, self, Series::Together)?;
        let mut partitions = partitions.to_vec();
        partitions.sort_unstable();
        partitions.dedup();
        let limit = Rejection::check_limit("joint_partitions_max", JOINT_PARTITIONS_MAX, partitions.len());
        limit.map_err(Error::from)?;
        let number = place.begin(&partitions, self.now_us())?;
        Ok(JointCheckpoint { place, number, partitions, operator: self.clone() })
    }

    fn now_us(&self) -> u64 {
        self.space().scope.shard.clock().wall_us()
    }
}

impl OwnedPartition {
    /// Writes the part of this partition in a checkpoint of several, as the partition is now. Again, it changes nothing.
    pub fn join_checkpoint(
        &self,
        to: &Checkpoints,
        number: u64,
        options: &CheckpointOptions,
    ) -> Result<(), CheckpointError> {
        let place = AtPlace::new(to, self.operator(), Series::Together)?;
        let begun = place.begun(number)?;
        let takes_part = |mark: &Mark| mark.part(self.number()).is_some();
        if !begun.as_ref().is_some_and(takes_part) || place.ended(number)?.is_some() {
            return Err(KeyedRejection::NoCommittedCheckpoint { of: place.of.clone(), number: Some(number) }.into());
        }
        if place.part(number, self.number())?.is_some() {
            return Ok(());
        }
        // What the store notes for the one before is needed until this one is committed; the next part says that it was.
        if let Some((_, part)) = place.base_for(number, self.number())?
            && part.store == self.operator().space().scope.shard.id()
        {
            self.end_checkpoint(part.taken.begun)?;
        }
        self.write_part(&place, number, options).map(drop)
    }
}

impl JointCheckpoint {
    /// Its number, which the owners of the partitions need.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Waits for all parts, and commits it. If they are not there in time, it is given up
    /// ([SH-8017](https://github.com/statehouse/statehouse/blob/main/docs/errors/SH-8017.md)).
    pub fn commit(self, timeout: Duration, options: &CheckpointOptions) -> Result<CheckpointInfo, CheckpointError> {
        let clock = self.operator.space().scope.shard.clock();
        let began_us = clock.monotonic_us();
        let mut found = Vec::new();
        loop {
            for partition in &self.partitions[found.len()..] {
                match self.place.part(self.number, *partition)? {
                    Some(part) => found.push(part),
                    None => break,
                }
            }
            let missing = self.partitions.len() - found.len();
            if missing == 0 {
                break;
            }
            if Duration::from_micros(clock.monotonic_us().saturating_sub(began_us)) >= timeout {
                return self.give_up(missing);
            }
            thread::sleep(LOOK_EVERY);
        }
        let whole = self.place.commit(self.number, &found, self.operator.now_us())?;
        let removed = self.place.retire(options.keep);
        Ok(whole.info_after(removed))
    }

    /// Gives it up.
    pub fn abort(self) -> Result<(), CheckpointError> {
        self.end_without().map(drop)
    }

    fn end_without(&self) -> Result<Mark, CheckpointError> {
        let parts = self.partitions.iter().copied().map(MarkedPart::begun).collect();
        self.place.end(self.number, Mark { standing: Standing::GivenUp, parts, made_us: self.operator.now_us() })
    }

    fn give_up(&self, missing: usize) -> Result<CheckpointInfo, CheckpointError> {
        self.end_without()?;
        Err(self.given_up(missing))
    }

    fn given_up(&self, missing: usize) -> CheckpointError {
        KeyedRejection::CheckpointGivenUp { of: self.place.of.clone(), number: self.number, missing }.into()
    }
}
