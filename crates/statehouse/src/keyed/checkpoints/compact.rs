//! A checkpoint that builds on others becomes one that builds on none: their rows are merged, without the store.
//!
//! Touches: objects. Keeps: the new one has the same state, and counts when its marker is there.

use std::io::Write;

use kernel::keyed::rows::ContentRows;

use super::error::CheckpointError;
use super::manifest::{Mark, Part, Standing};
use super::merge::Merged;
use super::rows::{RowsReader, RowsWriter};
use super::series::{AtPlace, CheckpointInfo, Whole};
use super::{CheckpointChoice, CheckpointOptions, Checkpoints};
use crate::keyed::Partition;

impl Partition {
    /// Writes the last checkpoint of this partition's series once more, as one that has everything, and removes those that are not
    /// kept. The next one of changes builds on it.
    pub fn compact_checkpoints(
        &self,
        at: &Checkpoints,
        choice: &CheckpointChoice,
        options: &CheckpointOptions,
    ) -> Result<CheckpointInfo, CheckpointError> {
        let place = self.series(at, choice);
        let chain = place.chain(choice.number, self.number())?;
        let Some(whole) = place.committed(chain[0].0)?.filter(|_| chain.len() > 1) else {
            return Ok(place.committed(chain[0].0)?.map(|whole| whole.info()).expect("it was there"));
        };
        let partitions: Vec<u32> = whole.parts.iter().map(|part| part.partition).collect();
        let now_us = self.operator().space().scope.shard.clock().wall_us();
        let number = place.begin(&partitions, now_us)?;
        let mut parts = Vec::with_capacity(partitions.len());
        for partition in partitions {
            let part = merge_part(&place, whole.number, number, partition)?;
            place.write_part(number, &part)?;
            let name = place.name(number, &format!("part-{partition}"));
            let written = place.part(number, partition)?;
            parts.push(written.ok_or_else(|| CheckpointError::damaged(&name, "it was removed meanwhile"))?);
        }
        let partitions = parts.iter().map(|(part, checksum)| (part.partition, *checksum)).collect();
        let mark = place.end(number, Mark { standing: Standing::Committed, partitions, made_us: now_us })?;
        place.retire(options.keep)?;
        Ok(Whole { number, mark, parts: parts.into_iter().map(|(part, _)| part).collect() }.info())
    }
}

fn merge_part(place: &AtPlace, from: u64, to: u64, partition: u32) -> Result<Part, CheckpointError> {
    let chain = place.chain(Some(from), partition)?;
    let newest = &chain[0].1;
    let mut readers = Vec::with_capacity(chain.len());
    for (number, part) in &chain {
        let name = place.name(*number, &part.rows);
        let reader = place.objects.reader(&name)?;
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
