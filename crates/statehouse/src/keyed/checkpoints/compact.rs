//! A checkpoint that builds on others becomes one that builds on none: their rows are merged, without the store.
//!
//! Touches: objects. Keeps: the new one has the same state, and counts when its marker is there.

use std::io::Write;

use contract::KeyedRejection;
use kernel::keyed::rows::ContentRows;

use super::error::CheckpointError;
use super::manifest::{Mark, Part, Standing};
use super::merge::Merged;
use super::rows::RowsWriter;
use super::series::{AtPlace, CheckpointInfo, Markers};
use super::{CheckpointChoice, CheckpointOptions, Checkpoints};
use crate::keyed::Partition;

impl Partition {
    /// Writes the last checkpoint of this partition's series once more, as a full one, and removes those that are not kept. The next
    /// incremental one builds on it. While another one is being taken, it is given up.
    pub fn compact_checkpoints(
        &self,
        at: &Checkpoints,
        choice: &CheckpointChoice,
        options: &CheckpointOptions,
    ) -> Result<CheckpointInfo, CheckpointError> {
        let place = self.series(at, choice)?;
        let missing = || KeyedRejection::NoCommittedCheckpoint { of: place.of.clone(), number: choice.number };
        let mut markers = Markers::new(&place);
        let whole = markers.last_with(self.number())?.ok_or_else(missing)?;
        // Its number would make an earlier state the last one.
        let given_up = |number| KeyedRejection::CheckpointGivenUp { of: place.of.clone(), number, missing: 0 };
        if let Some(chosen) = choice.number.filter(|chosen| *chosen != whole.number) {
            return Err(given_up(chosen).into());
        }
        if whole.mark.parts.iter().all(|part| part.base.is_none()) {
            return Ok(whole.info());
        }
        // So it would for a partition that a later one has, too.
        if place.has_later_state(&mut markers, whole.number, &whole.mark)? {
            return Err(given_up(whole.number).into());
        }
        let partitions: Vec<u32> = whole.mark.parts.iter().map(|part| part.partition).collect();
        let now_us = self.operator().space().scope.shard.clock().wall_us();
        let number = place.begin(&partitions, now_us)?;
        // One that was begun in between would be older than this one, and have a later state.
        for between in whole.number + 1..number {
            if place.is_unfinished(between)? {
                place.end(number, Mark { standing: Standing::GivenUp, parts: Vec::new(), made_us: now_us })?;
                return Err(given_up(number).into());
            }
        }
        let mut parts = Vec::with_capacity(partitions.len());
        for partition in partitions {
            let part = merge_part(&place, &mut markers, (whole.number, number), partition)?;
            place.write_part(number, &part)?;
            let name = place.name(number, &format!("part-{partition}"));
            let written = place.part(number, partition)?;
            parts.push(written.ok_or_else(|| CheckpointError::damaged(&name, "it was removed meanwhile"))?);
        }
        let whole = place.commit(number, &parts, now_us)?;
        let removed = place.retire(options.keep);
        Ok(whole.info_after(removed))
    }
}

/// Merges a partition from a checkpoint to another.
fn merge_part(
    place: &AtPlace,
    markers: &mut Markers<'_>,
    (from, to): (u64, u64),
    partition: u32,
) -> Result<Part, CheckpointError> {
    let chain = markers.chain(Some(from), partition)?;
    let newest = &chain[0].1;
    let readers = chain.iter().map(|(number, part)| place.rows(*number, part)).collect::<Result<_, _>>()?;
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
