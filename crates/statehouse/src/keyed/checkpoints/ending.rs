//! How a checkpoint ends: it is committed or given up, and is removed when it is not needed any more.
//!
//! Touches: objects. Keeps: the last checkpoint of a partition has its last state. Never: removes what a checkpoint that is kept needs.

use std::collections::{BTreeMap, BTreeSet};

use contract::KeyedRejection;

use super::error::CheckpointError;
use super::manifest::{Mark, MarkedPart, Part, Standing};
use super::names::folder_of_checkpoint;
use super::series::{AtPlace, Markers, Whole, undamaged};

impl AtPlace {
    /// Commits a checkpoint whose parts are written. It is given up instead if somebody has ended it, if what it builds on is gone, or
    /// if a later one or a later state is there: the last one must have the last state.
    pub(super) fn commit(&self, number: u64, parts: &[(Part, u64)], now_us: u64) -> Result<Whole, CheckpointError> {
        let marked = parts.iter().map(|(part, checksum)| MarkedPart::committed(part, *checksum)).collect();
        let mark = Mark { standing: Standing::Committed, parts: marked, made_us: now_us };
        let given_up = || KeyedRejection::CheckpointGivenUp { of: self.of.clone(), number, missing: 0 };
        if self.begun(number)?.is_none() {
            return Err(given_up().into());
        }
        let mut markers = Markers::new(self);
        if !self.may_be_committed(&mut markers, number, &mark)? {
            self.end(number, Mark { standing: Standing::GivenUp, ..mark })?;
            return Err(given_up().into());
        }
        let ended = self.end(number, mark.clone())?;
        if ended.standing != Standing::Committed || ended.parts != mark.parts {
            return Err(given_up().into());
        }
        // Others that end right now did not see this marker, nor this one theirs.
        let is_removed = self.begun(number)?.is_none();
        if is_removed || self.has_later_state(&mut markers, number, &mark)? {
            self.objects.delete(&self.name(number, "marker"))?;
            if !is_removed {
                self.end(number, Mark { standing: Standing::GivenUp, ..mark })?;
            }
            return Err(given_up().into());
        }
        Ok(Whole { number, mark })
    }

    fn may_be_committed(&self, markers: &mut Markers<'_>, number: u64, mark: &Mark) -> Result<bool, CheckpointError> {
        for later in self.numbers()?.into_iter().take_while(|later| *later > number) {
            let committed = undamaged(markers.committed(later))?;
            if committed.is_some_and(|whole| mark.parts.iter().any(|part| whole.part(part.partition).is_some())) {
                return Ok(false);
            }
        }
        for part in &mark.parts {
            let Some(base) = part.base else { continue };
            let found = undamaged(markers.committed(base))?;
            if found.is_none_or(|whole| whole.part(part.partition).is_none()) {
                return Ok(false);
            }
        }
        Ok(!self.has_later_state(markers, number, mark)?)
    }

    /// Whether another committed checkpoint has a later state of one of the partitions, from the same store.
    pub(super) fn has_later_state(
        &self,
        markers: &mut Markers<'_>,
        number: u64,
        mark: &Mark,
    ) -> Result<bool, CheckpointError> {
        for other in self.numbers()?.into_iter().filter(|other| *other != number) {
            let Some(whole) = undamaged(markers.committed(other))? else { continue };
            let is_later = |part: &MarkedPart| {
                let found = whole.part(part.partition).filter(|found| found.store == part.store);
                found.is_some_and(|found| found.commit > part.commit)
            };
            if mark.parts.iter().any(is_later) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Removes, for each partition, all but the last committed ones and what those build on. What was not committed before the last one
    /// of all its partitions is given up. While something is not committed yet, what it may build on stays.
    pub(super) fn retire(&self, keep: usize) -> Result<(), CheckpointError> {
        let mut there = There { markers: Markers::new(self), objects: BTreeMap::new() };
        let (mut kept, mut latest) = (BTreeMap::<u32, usize>::new(), BTreeMap::<(u32, u64), u64>::new());
        let (mut needed, mut in_use) = (BTreeSet::new(), BTreeSet::new());
        for number in self.numbers()? {
            let whole = match there.markers.committed(number) {
                Ok(whole) => whole,
                // Somebody may want to look at it.
                Err(CheckpointError::Store(_)) => continue,
                Err(error) => return Err(error),
            };
            let Some(whole) = whole else {
                self.retire_uncommitted(number, &kept, &mut in_use)?;
                continue;
            };
            let parts = &whole.mark.parts;
            let is_last = parts.iter().any(|part| {
                // A later state under an earlier number stays: the later number is given up in this moment.
                let is_latest = latest.get(&(part.partition, part.store)).is_some_and(|commit| part.commit > *commit);
                is_latest || kept.get(&part.partition).copied().unwrap_or(0) < keep.max(1)
            });
            let is_used = parts.iter().any(|part| in_use.contains(&part.partition));
            if !is_last && !is_used && !needed.contains(&number) {
                self.remove(number)?;
                continue;
            }
            needed.extend(parts.iter().filter_map(|part| part.base));
            for part in parts {
                let commit = latest.entry((part.partition, part.store)).or_default();
                *commit = part.commit.max(*commit);
                // One that cannot be restored does not count: the one before it may be the last that can.
                if there.has_all_of(self, number, part.partition)? {
                    *kept.entry(part.partition).or_default() += 1;
                }
            }
        }
        Ok(())
    }

    fn retire_uncommitted(
        &self,
        number: u64,
        kept: &BTreeMap<u32, usize>,
        in_use: &mut BTreeSet<u32>,
    ) -> Result<(), CheckpointError> {
        let is_given_up = self.ended(number)?.is_some();
        let begun = match self.begun(number) {
            Ok(mark) => mark.map(|mark| mark.parts).unwrap_or_default(),
            // It cannot be committed, and somebody may want to look at it.
            Err(CheckpointError::Store(_)) => return Ok(()),
            Err(error) => return Err(error),
        };
        match begun.iter().all(|part| kept.contains_key(&part.partition)) {
            true if is_given_up => self.remove_given_up(number),
            true => self.give_up(number, begun),
            false => {
                // It may be committed yet.
                in_use.extend(begun.iter().map(|part| part.partition).filter(|_| !is_given_up));
                Ok(())
            }
        }
    }

    /// Ends a checkpoint that was not committed, and removes its parts. The mark stays until the next time, for whoever is still
    /// writing it.
    fn give_up(&self, number: u64, parts: Vec<MarkedPart>) -> Result<(), CheckpointError> {
        let ended = self.end(number, Mark { standing: Standing::GivenUp, parts, made_us: 0 })?;
        match ended.standing {
            Standing::Committed => Ok(()),
            Standing::Begun | Standing::GivenUp => self.remove_parts(number),
        }
    }

    /// Removes a checkpoint that was given up. Whoever commits it late finds either that mark, or that it is not begun any more.
    fn remove_given_up(&self, number: u64) -> Result<(), CheckpointError> {
        self.remove_parts(number)?;
        self.objects.delete(&self.name(number, "begun"))?;
        Ok(self.objects.delete(&self.name(number, "marker"))?)
    }

    /// Removes a committed checkpoint; first what makes it one.
    fn remove(&self, number: u64) -> Result<(), CheckpointError> {
        self.objects.delete(&self.name(number, "marker"))?;
        self.remove_parts(number)?;
        // The number stays taken as long as there is anything of it.
        Ok(self.objects.delete(&self.name(number, "begun"))?)
    }

    fn remove_parts(&self, number: u64) -> Result<(), CheckpointError> {
        for (name, _) in self.objects.list(&folder_of_checkpoint(&self.folder, number))? {
            if !name.ends_with("/begun") && !name.ends_with("/marker") {
                self.objects.delete(&name)?;
            }
        }
        Ok(())
    }
}

/// What a series has, by markers and listings: reading every manifest of thousands of partitions would take hours.
struct There<'place> {
    markers: Markers<'place>,
    /// The objects of a checkpoint with their sizes.
    objects: BTreeMap<u64, BTreeMap<String, u64>>,
}

impl There<'_> {
    /// Whether a part and all that it builds on are there, as large as they were written.
    fn has_all_of(&mut self, place: &AtPlace, number: u64, partition: u32) -> Result<bool, CheckpointError> {
        let mut next = number;
        loop {
            let whole = undamaged(self.markers.committed(next))?;
            let Some(part) = whole.as_ref().and_then(|whole| whole.part(partition)) else { return Ok(false) };
            if !self.has(place, next, part)? {
                return Ok(false);
            }
            match part.base {
                None => return Ok(true),
                Some(base) if base < next => next = base,
                Some(_) => return Ok(false),
            }
        }
    }

    fn has(&mut self, place: &AtPlace, number: u64, part: &MarkedPart) -> Result<bool, CheckpointError> {
        let objects = match self.objects.entry(number) {
            std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::btree_map::Entry::Vacant(vacant) => {
                let folder = folder_of_checkpoint(&place.folder, number);
                let listed = place.objects.list(&folder)?.into_iter();
                vacant.insert(listed.map(|(name, bytes)| (name[folder.len() + 1..].to_owned(), bytes)).collect())
            }
        };
        let manifest = format!("part-{}", part.partition);
        let rows = format!("{manifest}.");
        let of_rows = objects.range(rows.clone()..).take_while(|(name, _)| name.starts_with(&rows));
        let has_rows = of_rows.map(|(_, bytes)| *bytes).any(|bytes| bytes == part.bytes);
        Ok(has_rows && objects.contains_key(&manifest))
    }
}
