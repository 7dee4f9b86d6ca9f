//! A series of checkpoints: those of one partition, or those of several together, by number.
//!
//! Touches: objects. Keeps: a number is given once; a checkpoint is there when its marker says so and its manifests fit the marker.
//! Never: removes what a checkpoint that is kept needs.

use std::collections::{BTreeMap, BTreeSet};

use contract::KeyedRejection;
use objects::{Objects, ObjectsError};

use super::Checkpoints;
use super::error::CheckpointError;
use super::manifest::{BYTES_MAX, Mark, Part, Standing, checksum};
use super::names::{Series, folder_of, folder_of_checkpoint, read_number};
use crate::house::Space;

/// A committed checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckpointInfo {
    /// Its number in its series.
    pub number: u64,
    /// Its partitions.
    pub partitions: Vec<u32>,
    /// Keys that have a value.
    pub keys: u64,
    /// The bytes of its rows.
    pub bytes: u64,
    /// How many earlier checkpoints are needed to restore it; 0 if it has everything.
    pub depth: u32,
    /// The number of the checkpoint that it builds on.
    pub base: Option<u64>,
    /// The last commit of the store that it has; of several parts, the earliest of them.
    pub commit: u64,
    /// When it was committed, µs since 1970 in UTC.
    pub made_us: u64,
    /// It was just taken, and what is not needed any more could not be removed, for this reason. It counts all the same.
    pub not_removed: Option<String>,
}

/// A committed checkpoint, with its parts.
pub(super) struct Whole {
    pub(super) number: u64,
    pub(super) mark: Mark,
    pub(super) parts: Vec<Part>,
}

impl Whole {
    pub(super) fn part(&self, partition: u32) -> Option<&Part> {
        self.parts.iter().find(|part| part.partition == partition)
    }

    /// The same, after what was not needed any more was removed, or not.
    pub(super) fn info_after(&self, removed: Result<(), CheckpointError>) -> CheckpointInfo {
        CheckpointInfo { not_removed: removed.err().map(|error| error.to_string()), ..self.info() }
    }

    pub(super) fn info(&self) -> CheckpointInfo {
        let sum = |of: fn(&Part) -> u64| self.parts.iter().map(of).sum();
        CheckpointInfo {
            number: self.number,
            partitions: self.parts.iter().map(|part| part.partition).collect(),
            keys: sum(|part| part.counts.keys),
            bytes: sum(|part| part.extent.bytes),
            depth: self.parts.iter().map(|part| part.depth).max().unwrap_or(0),
            base: self.parts.iter().filter_map(|part| part.base).max(),
            commit: self.parts.iter().map(|part| part.taken.commit).min().unwrap_or(0),
            made_us: self.mark.made_us,
            not_removed: None,
        }
    }
}

/// A series, where it lies.
#[derive(Clone)]
pub(super) struct AtPlace {
    pub(super) objects: Objects,
    folder: String,
    /// For messages: what the checkpoints are of.
    pub(super) of: String,
}

impl AtPlace {
    pub(super) fn new(checkpoints: &Checkpoints, space: &Space, operator: &str, series: Series) -> Self {
        let of = match series {
            Series::Alone(partition) => format!("partition {operator}/{partition}"),
            Series::Together => format!("operator {operator:?}, taken together"),
        };
        let folder = folder_of(&space.scope.space, &space.scope.branch, operator, series);
        Self { objects: checkpoints.objects.clone(), folder, of }
    }

    pub(super) fn name(&self, number: u64, object: &str) -> String {
        format!("{}/{object}", folder_of_checkpoint(&self.folder, number))
    }

    /// The numbers that were given, from the last to the first.
    pub(super) fn numbers(&self) -> Result<Vec<u64>, CheckpointError> {
        let folders = self.objects.folders(&self.folder)?;
        let mut numbers: Vec<u64> = folders.iter().filter_map(|folder| read_number(folder)).collect();
        numbers.sort_unstable_by(|one, other| other.cmp(one));
        Ok(numbers)
    }

    /// Takes the next number.
    pub(super) fn begin(&self, partitions: &[u32], now_us: u64) -> Result<u64, CheckpointError> {
        let partitions = partitions.iter().map(|partition| (*partition, 0)).collect();
        let mark = Mark { standing: Standing::Begun, partitions, made_us: now_us };
        let mut number = self.numbers()?.first().map_or(1, |last| last + 1);
        loop {
            match self.objects.create(&self.name(number, "begun"), &mark.encode()) {
                Ok(()) => return Ok(number),
                Err(ObjectsError::Exists { .. }) => number += 1,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Who takes part in a checkpoint that was begun; none if there is no such checkpoint.
    pub(super) fn begun(&self, number: u64) -> Result<Option<Mark>, CheckpointError> {
        self.read(&self.name(number, "begun"))?.map(|(name, bytes)| Mark::decode(&name, &bytes)).transpose()
    }

    /// How a checkpoint has ended; none while it has not.
    pub(super) fn ended(&self, number: u64) -> Result<Option<Mark>, CheckpointError> {
        self.read(&self.name(number, "marker"))?.map(|(name, bytes)| Mark::decode(&name, &bytes)).transpose()
    }

    /// Ends a checkpoint. Whoever does it first decides: returns how it has ended.
    pub(super) fn end(&self, number: u64, mark: Mark) -> Result<Mark, CheckpointError> {
        match self.objects.create(&self.name(number, "marker"), &mark.encode()) {
            Ok(()) => Ok(mark),
            Err(ObjectsError::Exists { .. }) => {
                let ended = self.ended(number)?;
                ended.ok_or_else(|| CheckpointError::damaged(&self.name(number, "marker"), "it was removed meanwhile"))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The manifest of a part, and its checksum; none if it was not written.
    pub(super) fn part(&self, number: u64, partition: u32) -> Result<Option<(Part, u64)>, CheckpointError> {
        let Some((name, bytes)) = self.read(&self.name(number, &format!("part-{partition}")))? else { return Ok(None) };
        let part = Part::decode(&name, &bytes)?;
        match part.partition == partition {
            true => Ok(Some((part, checksum(&bytes)))),
            false => Err(CheckpointError::damaged(&name, "it is of another partition")),
        }
    }

    pub(super) fn write_part(&self, number: u64, part: &Part) -> Result<(), CheckpointError> {
        match self.objects.create(&self.name(number, &format!("part-{}", part.partition)), &part.encode()) {
            // Whoever owned the partition before has written its part; it is as good.
            Ok(()) | Err(ObjectsError::Exists { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn read(&self, name: &str) -> Result<Option<(String, Vec<u8>)>, CheckpointError> {
        match self.objects.read(name, BYTES_MAX) {
            Ok(bytes) => Ok(Some((name.to_owned(), bytes))),
            Err(ObjectsError::Missing { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// A committed checkpoint; none if it was not committed, or was removed.
    pub(super) fn committed(&self, number: u64) -> Result<Option<Whole>, CheckpointError> {
        let Some(mark) = self.ended(number)?.filter(|mark| mark.standing == Standing::Committed) else {
            return Ok(None);
        };
        let mut parts = Vec::with_capacity(mark.partitions.len());
        for (partition, meant) in &mark.partitions {
            match self.part(number, *partition)? {
                Some((part, found)) if found == *meant => parts.push(part),
                Some(_) => {
                    let name = self.name(number, &format!("part-{partition}"));
                    return Err(CheckpointError::damaged(&name, "it is not the one that was committed"));
                }
                // It is being removed: the marker goes first.
                None if self.ended(number)?.is_none() => return Ok(None),
                None => {
                    let name = self.name(number, &format!("part-{partition}"));
                    return Err(CheckpointError::damaged(&name, "it is missing"));
                }
            }
        }
        Ok(Some(Whole { number, mark, parts }))
    }

    /// The last committed checkpoint that has the partition, if there is one.
    pub(super) fn last_with(&self, partition: u32) -> Result<Option<Whole>, CheckpointError> {
        for number in self.numbers()? {
            let found = self.committed(number)?.filter(|whole| whole.part(partition).is_some());
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// The part of a partition in a checkpoint, and those that it builds on: the newest first.
    pub(super) fn chain(&self, number: Option<u64>, partition: u32) -> Result<Vec<(u64, Part)>, CheckpointError> {
        let missing = |number| KeyedRejection::NoCommittedCheckpoint { of: self.of.clone(), number };
        let first = match number {
            Some(number) => self.committed(number)?.filter(|whole| whole.part(partition).is_some()),
            None => self.last_with(partition)?,
        };
        let mut next = first.ok_or_else(|| missing(number))?;
        let mut chain = Vec::new();
        loop {
            let part = next.part(partition).expect("it was looked for").clone();
            let (base, is_late) = (part.base, chain.len() > part.depth as usize + 1_000);
            chain.push((next.number, part));
            let Some(base) = base else { return Ok(chain) };
            if base >= next.number || is_late {
                return Err(CheckpointError::damaged(&self.name(next.number, "marker"), "it builds on a later one"));
            }
            let found = self.committed(base)?.filter(|whole| whole.part(partition).is_some());
            next = found.ok_or_else(|| missing(Some(base)))?;
        }
    }

    /// What is there, from the last to the first; what is damaged is left out.
    pub(super) fn list(&self) -> Result<Vec<CheckpointInfo>, CheckpointError> {
        let mut found = Vec::new();
        for number in self.numbers()? {
            match self.committed(number) {
                Ok(whole) => found.extend(whole.map(|whole| whole.info())),
                Err(CheckpointError::Store(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// What a checkpoint may build on: the one before it that has the partition, if that is there with all that it needs.
    pub(super) fn base_for(&self, number: u64, partition: u32) -> Result<Option<(u64, Part)>, CheckpointError> {
        for earlier in self.numbers()?.into_iter().filter(|earlier| *earlier < number) {
            let has_it = match self.committed(earlier) {
                Ok(found) => found.is_some_and(|whole| whole.part(partition).is_some()),
                // What is damaged is nothing to build on.
                Err(CheckpointError::Store(_)) => return Ok(None),
                Err(error) => return Err(error),
            };
            if has_it {
                return match self.chain(Some(earlier), partition) {
                    Ok(chain) => Ok(chain.into_iter().next()),
                    Err(CheckpointError::Store(_)) => Ok(None),
                    Err(error) => Err(error),
                };
            }
        }
        Ok(None)
    }

    /// Commits a checkpoint whose parts are written. It is given up instead if somebody has ended it, if what it builds on is gone, or
    /// if a later one is there: the last one must have the last state.
    pub(super) fn commit(&self, number: u64, parts: Vec<(Part, u64)>, now_us: u64) -> Result<Whole, CheckpointError> {
        let marked = parts.iter().map(|(part, checksum)| (part.partition, *checksum)).collect();
        let mark = Mark { standing: Standing::Committed, partitions: marked, made_us: now_us };
        let given_up = || KeyedRejection::CheckpointGivenUp { of: self.of.clone(), number, missing: 0 };
        if self.begun(number)?.is_none() {
            return Err(given_up().into());
        }
        let ended = match self.may_be_committed(number, &parts)? {
            true => self.end(number, mark.clone())?,
            false => self.end(number, Mark { standing: Standing::GivenUp, ..mark.clone() })?,
        };
        if ended.standing != Standing::Committed || ended.partitions != mark.partitions {
            return Err(given_up().into());
        }
        Ok(Whole { number, mark: ended, parts: parts.into_iter().map(|(part, _)| part).collect() })
    }

    fn may_be_committed(&self, number: u64, parts: &[(Part, u64)]) -> Result<bool, CheckpointError> {
        for later in self.numbers()?.into_iter().take_while(|later| *later > number) {
            let committed = self.ended(later)?.filter(|mark| mark.standing == Standing::Committed);
            let has_one = |mark: &Mark| parts.iter().any(|(part, _)| mark.has(part.partition));
            if committed.as_ref().is_some_and(has_one) {
                return Ok(false);
            }
        }
        for (part, _) in parts {
            match part.base.map(|base| self.chain(Some(base), part.partition)) {
                None | Some(Ok(_)) => {}
                Some(Err(CheckpointError::Store(_))) => return Ok(false),
                Some(Err(error)) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Removes, for each partition, all but the last committed ones and what those build on. What was not committed before the last one
    /// of all its partitions is given up. While something is not committed yet, what it may build on stays.
    pub(super) fn retire(&self, keep: usize) -> Result<(), CheckpointError> {
        let (mut kept, mut needed, mut in_use) = (BTreeMap::<u32, usize>::new(), BTreeSet::new(), BTreeSet::new());
        for number in self.numbers()? {
            match self.committed(number) {
                Ok(Some(whole)) => {
                    let of = |part: &Part| kept.get(&part.partition).copied().unwrap_or(0);
                    let is_last = whole.parts.iter().any(|part| of(part) < keep.max(1));
                    let is_used = whole.parts.iter().any(|part| in_use.contains(&part.partition));
                    if !is_last && !is_used && !needed.contains(&number) {
                        self.remove(number)?;
                        continue;
                    }
                    needed.extend(whole.parts.iter().filter_map(|part| part.base));
                    // One that cannot be restored does not count: the one before it may be the last that can.
                    for part in &whole.parts {
                        if self.chain(Some(number), part.partition).is_ok() {
                            *kept.entry(part.partition).or_default() += 1;
                        }
                    }
                }
                Ok(None) => {
                    let begun = self.begun(number)?.map(|mark| mark.partitions).unwrap_or_default();
                    match begun.iter().all(|(partition, _)| kept.contains_key(partition)) {
                        true => self.give_up(number)?,
                        // It may be committed yet.
                        false => in_use.extend(begun.into_iter().map(|(partition, _)| partition)),
                    }
                }
                // Somebody may want to look at it.
                Err(CheckpointError::Store(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Ends a checkpoint that was not committed, and removes its parts. The mark stays until the next time, for whoever is still
    /// writing it.
    fn give_up(&self, number: u64) -> Result<(), CheckpointError> {
        if self.ended(number)?.is_some_and(|mark| mark.standing == Standing::GivenUp) {
            return self.remove(number);
        }
        let mark = self.begun(number)?.unwrap_or_else(|| Mark {
            standing: Standing::GivenUp,
            partitions: Vec::new(),
            made_us: 0,
        });
        let ended = self.end(number, Mark { standing: Standing::GivenUp, ..mark })?;
        if ended.standing == Standing::Committed {
            return Ok(());
        }
        let folder = folder_of_checkpoint(&self.folder, number);
        for (name, _) in self.objects.list(&folder)? {
            if !name.ends_with("/begun") && !name.ends_with("/marker") {
                self.objects.delete(&name)?;
            }
        }
        Ok(())
    }

    /// Removes a checkpoint; first what makes it one.
    pub(super) fn remove(&self, number: u64) -> Result<(), CheckpointError> {
        self.objects.delete(&self.name(number, "marker"))?;
        let folder = folder_of_checkpoint(&self.folder, number);
        for (name, _) in self.objects.list(&folder)? {
            if !name.ends_with("/begun") {
                self.objects.delete(&name)?;
            }
        }
        // The number stays taken as long as there is anything of it.
        Ok(self.objects.delete(&self.name(number, "begun"))?)
    }
}
