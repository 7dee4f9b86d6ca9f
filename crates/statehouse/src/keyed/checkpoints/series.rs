//! A series of checkpoints: those of one partition, or those of several together, by number.
//!
//! Touches: objects. Keeps: a number is given once; a checkpoint is there when its marker says so, and a manifest counts if it is the one
//! that the marker means. Never: reads the manifests of other partitions to find those of one.

use std::collections::BTreeMap;
use std::rc::Rc;

use contract::{Error, KeyedRejection};
use objects::{Objects, ObjectsError};

use super::Checkpoints;
use super::error::CheckpointError;
use super::manifest::{BYTES_MAX, Mark, MarkedPart, Part, Standing, checksum};
use super::names::{Series, folder_of, folder_of_checkpoint, read_number};
use crate::keyed::Operator;
use crate::keyed::operator::check_operator;

/// A page of a list ends when its checkpoints have so many partitions.
const LISTED_PARTITIONS_MAX: usize = 200_000;

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
    /// How many earlier checkpoints are needed to restore it; 0 if it is full.
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

/// Committed checkpoints of a partition, the last ones first.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListedCheckpoints {
    /// The checkpoints.
    pub checkpoints: Vec<CheckpointInfo>,
    /// If there may be more: those before this number.
    pub before: Option<u64>,
}

/// A committed checkpoint: its marker.
pub(super) struct Whole {
    pub(super) number: u64,
    pub(super) mark: Mark,
}

impl Whole {
    pub(super) fn part(&self, partition: u32) -> Option<&MarkedPart> {
        self.mark.part(partition)
    }

    /// The same, after what was not needed any more was removed, or not.
    pub(super) fn info_after(&self, removed: Result<(), CheckpointError>) -> CheckpointInfo {
        CheckpointInfo { not_removed: removed.err().map(|error| error.to_string()), ..self.info() }
    }

    pub(super) fn info(&self) -> CheckpointInfo {
        let parts = &self.mark.parts;
        let sum = |of: fn(&MarkedPart) -> u64| parts.iter().map(of).sum();
        CheckpointInfo {
            number: self.number,
            partitions: parts.iter().map(|part| part.partition).collect(),
            keys: sum(|part| part.keys),
            bytes: sum(|part| part.bytes),
            depth: parts.iter().map(|part| part.depth).max().unwrap_or(0),
            base: parts.iter().filter_map(|part| part.base).max(),
            commit: parts.iter().map(|part| part.commit).min().unwrap_or(0),
            made_us: self.mark.made_us,
            not_removed: None,
        }
    }
}

/// Committed checkpoints of a series; each marker is read once.
pub(super) struct Markers<'place> {
    place: &'place AtPlace,
    committed: BTreeMap<u64, Rc<Whole>>,
}

impl<'place> Markers<'place> {
    pub(super) fn new(place: &'place AtPlace) -> Self {
        Self { place, committed: BTreeMap::new() }
    }

    /// A committed checkpoint; none if it was not committed, or was removed.
    pub(super) fn committed(&mut self, number: u64) -> Result<Option<Rc<Whole>>, CheckpointError> {
        if let Some(known) = self.committed.get(&number) {
            return Ok(Some(Rc::clone(known)));
        }
        let found = self.place.committed(number)?.map(Rc::new);
        // One that is not committed yet may be later.
        self.committed.extend(found.iter().map(|whole| (number, Rc::clone(whole))));
        Ok(found)
    }

    /// The last committed checkpoint that has the partition, if there is one.
    pub(super) fn last_with(&mut self, partition: u32) -> Result<Option<Rc<Whole>>, CheckpointError> {
        for number in self.place.numbers()? {
            let found = self.committed(number)?.filter(|whole| whole.part(partition).is_some());
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// The part of a partition in a checkpoint, and those that it builds on: the newest first.
    pub(super) fn chain(&mut self, number: Option<u64>, partition: u32) -> Result<Vec<(u64, Part)>, CheckpointError> {
        let place = self.place;
        let first = match number {
            Some(number) => Some(number),
            None => self.last_with(partition)?.map(|whole| whole.number),
        };
        let missing = |number| KeyedRejection::NoCommittedCheckpoint { of: place.of.clone(), number };
        let mut next = first.ok_or_else(|| missing(None))?;
        let mut chain = Vec::new();
        loop {
            let whole = self.committed(next)?;
            let marked = whole.as_ref().and_then(|whole| whole.part(partition)).ok_or_else(|| missing(Some(next)))?;
            let part = place.marked_part(next, marked)?.ok_or_else(|| missing(Some(next)))?;
            let base = part.base;
            chain.push((next, part));
            match base {
                None => return Ok(chain),
                Some(base) if base < next => next = base,
                Some(_) => {
                    return Err(CheckpointError::damaged(&place.name(next, "marker"), "it builds on a later one"));
                }
            }
        }
    }
}

/// A series, where it lies.
#[derive(Clone)]
pub(super) struct AtPlace {
    pub(super) objects: Objects,
    pub(super) folder: String,
    /// For messages: what the checkpoints are of.
    pub(super) of: String,
}

impl AtPlace {
    /// Where a series of an operator lies. A space or a branch that does not exist has none, whatever it is called.
    pub(super) fn new(checkpoints: &Checkpoints, of: &Operator, series: Series) -> Result<Self, Error> {
        let (space, operator) = (of.space(), of.name());
        check_operator(operator)?;
        space.branch_number()?;
        let of = match series {
            Series::Alone(partition) => format!("partition {operator}/{partition}"),
            Series::Together => format!("operator {operator:?}, taken together"),
        };
        let folder = folder_of(&space.scope.space, &space.scope.branch, operator, series);
        Ok(Self { objects: checkpoints.objects.clone(), folder, of })
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
        let parts = partitions.iter().copied().map(MarkedPart::begun).collect();
        let mark = Mark { standing: Standing::Begun, parts, made_us: now_us };
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
    fn committed(&self, number: u64) -> Result<Option<Whole>, CheckpointError> {
        let mark = self.ended(number)?.filter(|mark| mark.standing == Standing::Committed);
        Ok(mark.map(|mark| Whole { number, mark }))
    }

    /// The manifest that a marker means; none if the checkpoint is being removed.
    fn marked_part(&self, number: u64, marked: &MarkedPart) -> Result<Option<Part>, CheckpointError> {
        let damaged = |what: &str| {
            let name = self.name(number, &format!("part-{}", marked.partition));
            Err(CheckpointError::damaged(&name, what))
        };
        match self.part(number, marked.partition)? {
            Some((part, found)) if found == marked.checksum => Ok(Some(part)),
            Some(_) => damaged("it is not the one that was committed"),
            // The marker goes first.
            None if self.ended(number)?.is_none() => Ok(None),
            None => damaged("it is missing"),
        }
    }

    /// Whether it was begun, and may be committed yet. One whose `begun` is damaged may not.
    pub(super) fn is_unfinished(&self, number: u64) -> Result<bool, CheckpointError> {
        let is_there = |mark: Result<Option<Mark>, CheckpointError>| match mark {
            Ok(mark) => Ok(Some(mark.is_some())),
            Err(CheckpointError::Store(_)) => Ok(None),
            Err(error) => Err(error),
        };
        Ok(is_there(self.ended(number))? == Some(false) && is_there(self.begun(number))? == Some(true))
    }

    /// Those that have a partition, from the last to the first; what is damaged is left out.
    pub(super) fn list(
        &self,
        partition: u32,
        before: Option<u64>,
        limit: usize,
    ) -> Result<ListedCheckpoints, CheckpointError> {
        let (mut checkpoints, mut partitions) = (Vec::new(), 0);
        let numbers = self.numbers()?.into_iter().filter(|number| before.is_none_or(|before| *number < before));
        for number in numbers {
            let whole = undamaged(self.committed(number))?.filter(|whole| whole.part(partition).is_some());
            let Some(info) = whole.map(|whole| whole.info()) else { continue };
            partitions += info.partitions.len();
            checkpoints.push(info);
            if checkpoints.len() >= limit || partitions >= LISTED_PARTITIONS_MAX {
                return Ok(ListedCheckpoints { checkpoints, before: Some(number) });
            }
        }
        Ok(ListedCheckpoints { checkpoints, before: None })
    }

    /// What a checkpoint may build on: the one before it that has the partition, if that is there with all that it needs.
    pub(super) fn base_for(&self, number: u64, partition: u32) -> Result<Option<(u64, Part)>, CheckpointError> {
        let mut markers = Markers::new(self);
        for earlier in self.numbers()?.into_iter().filter(|earlier| *earlier < number) {
            let has_it = match markers.committed(earlier) {
                Ok(found) => found.is_some_and(|whole| whole.part(partition).is_some()),
                // What is damaged is nothing to build on.
                Err(CheckpointError::Store(_)) => return Ok(None),
                Err(error) => return Err(error),
            };
            if has_it {
                return undamaged(markers.chain(Some(earlier), partition).map(|chain| chain.into_iter().next()));
            }
        }
        Ok(None)
    }
}

/// What is damaged is not there.
pub(super) fn undamaged<T>(found: Result<Option<T>, CheckpointError>) -> Result<Option<T>, CheckpointError> {
    match found {
        Err(CheckpointError::Store(_)) => Ok(None),
        found => found,
    }
}
