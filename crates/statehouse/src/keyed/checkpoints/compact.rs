//! A checkpoint that builds on others becomes one that builds on none: their rows are merged, without the store.
//!
//! Touches: objects. Keeps: the new one has the same state, and counts when its marker is there.

use std::io::Write;

use contract::KeyedRejection;
use kernel::keyed::rows::ContentRows;
use objects::ObjectsError;

use super::error::CheckpointError;
use super::manifest::{Mark, Part, Standing};
use super::merge::Merged;
use super::rows::{RowsReader, RowsWriter};
use super::series::{AtPlace, CheckpointInfo};
use super::{CheckpointChoice, CheckpointOptions, Checkpoints};
use crate::keyed::Partition;

impl Partition {
    /// Writes the last checkpoint of this partition's series once more, as one that has everything, and removes those that are not
    /// kept. The next one of changes builds on it. While another one is being taken, it is given up.
    pub fn compact_checkpoints(
        &self,
        at: &Checkpoints,
        choice: &CheckpointChoice,
        options: &CheckpointOptions,
    ) -> Result<CheckpointInfo, CheckpointError> {
        let place = self.series(at, choice);
        let missing = || KeyedRejection::NoCommittedCheckpoint { of: place.of.clone(), number: choice.number };
        let whole = place.last_with(self.number())?.ok_or_else(missing)?;
        // Its number would make an earlier state the last one.
        let given_up = |number| KeyedRejection::CheckpointGivenUp { of: place.of.clone(), number, missing: 0 };
        if let Some(chosen) = choice.number.filter(|chosen| *chosen != whole.number) {
            return Err(given_up(chosen).into());
        }
        if whole.parts.iter().all(|part| part.base.is_none()) {
            return Ok(whole.info());
        }
        let partitions: Vec<u32> = whole.parts.iter().map(|part| part.partition).collect();
        let now_us = self.operator().space().scope.shard.clock().wall_us();
        let number = place.begin(&partitions, now_us)?;
        // One that was begun in between would be older than this one, and have a later state.
        for between in whole.number + 1..number {
            let unfinished = place.begun(between)?.is_some() && place.ended(between)?.is_none();
            if unfinished {
                place.end(number, Mark { standing: Standing::GivenUp, partitions: Vec::new(), made_us: now_us })?;
                return Err(given_up(number).into());
            }
        }
        let mut parts = Vec::with_capacity(partitions.len());
        for partition in partitions {
            let part = merge_part(&place, whole.number, number, partition)?;
            place.write_part(number, &part)?;
            let name = place.name(number, &format!("part-{partition}"));
            let written = place.part(number, partition)?;
            parts.push(written.ok_or_else(|| CheckpointError::damaged(&name, "it was removed meanwhile"))?);
        }
        let whole = place.commit(number, parts, now_us)?;
        let removed = place.retire(options.keep);
        Ok(whole.info_after(removed))
    }
}

fn merge_part(place: &AtPlace, from: u64, to: u64, partition: u32) -> Result<Part, CheckpointError> {
    let chain = place.chain(Some(from), partition)?;
    let newest = &chain[0].1;
    let mut readers = Vec::with_capacity(chain.len());
    for (number, part) in &chain {
        let name = place.name(*number, &part.rows);
        let reader = match place.objects.reader(&name) {
            Err(ObjectsError::Missing { .. }) => return Err(CheckpointError::damaged(&name, "it is missing")),
            found => found?,
        };
        readers.push((name.clone(), RowsReader::new(reader, name, part.seed, part.extent)?));
    }
    let rows = format!("part-{partition}.compact.rows");
    let seed = newest.seed.rotate_left(1) ^ to;
    let mut writer = RowsWriter::new(place.objects.writer(&place.name(to, &rows))?, seed)?;
    Merged::new(readers).each(|row| {
        let rows = ContentRows::read(row).map_err(|error| CheckpointError::damaged(&rows, error.to_string()))?;
        for row in rows.iter() {
            writer.row(&row)?;
        }
        Ok(())
    })?;
    let (mut out, extent) = writer.finish()?;
    out.flush()?;
    out.finish()?;
    Ok(Part { rows, seed, extent, base: None, depth: 0, ..newest.clone() })
}
