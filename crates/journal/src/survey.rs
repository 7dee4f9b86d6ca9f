//! Looks into raw journal files, trusting nothing but an entry's own hash.
//!
//! Used when the layer below wants to drop the end of a file, to tell a torn tail from bit rot (J3): a torn tail is
//! what was being written at a power failure. Each batch is synced before the next is written, so a complete batch
//! after the damage proves that the damage is not a tail.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use raft_engine::env::{FileSystem, Permission};

use crate::frame::{Entry, MAGIC, MAGIC_OFFSET, ShardId};
use crate::watermark::Marks;

/// The files with entries: appended ones, and compacted ones.
const FILE_ENDINGS: [&str; 2] = [".raftlog", ".rewrite"];

/// The first bytes of the engine's files, before the version.
const FILE_MAGIC: &[u8] = b"RAFT-LOG-FILE-HEADER-9986AB3E47F320B394C8E84916EB0ED5";

/// Where the first batch of a file starts, at most: after the magic bytes, version and alignment.
const FILE_HEADER_BYTES: usize = FILE_MAGIC.len() + 16;

/// The batch header before the first entry of a batch.
const BATCH_HEADER_BYTES: usize = 16;

/// An entry found in a file.
struct Found {
    offset: usize,
    bytes: usize,
    entry: Entry,
}

impl Found {
    /// Where the batch starts, if this entry is its first. Only the first entry of a batch follows the newest durable
    /// one, or none at all.
    fn batch_start(&self) -> Option<usize> {
        let Entry { index, durable, previous_hash, .. } = self.entry;
        let is_first = index == durable + 1 || previous_hash == 0;
        // The engine wraps an entry into a field: one byte of tag, then its length in groups of 7 bits.
        let length_bytes = (usize::BITS - self.bytes.leading_zeros()).div_ceil(7) as usize;
        let before = BATCH_HEADER_BYTES + 1 + length_bytes;
        is_first.then(|| self.offset.checked_sub(before)).flatten()
    }
}

/// Says why `file` must not be cut at `offset`, if it must not.
pub(crate) fn reason_not_to_cut<F: FileSystem>(
    file_system: &F,
    file: &Path,
    offset: usize,
    marks: &Marks,
    seed: u64,
) -> io::Result<Option<String>> {
    let others = other_files(file)?;
    if let Some(newer) = others.iter().rfind(|other| is_newer(other, file)) {
        let newer = newer.display();
        return Ok(Some(format!("only the last file can have a torn end, and {newer} follows")));
    }
    let mut last_kept = BTreeMap::<ShardId, u64>::new();
    let mut dropped = Vec::new();
    for found in entries_in(file_system, file, seed)? {
        if found.offset < offset {
            keep(&mut last_kept, &found.entry);
        } else {
            dropped.push(found);
        }
    }
    // What must have been durable: by the watermark, and by what the dropped entries say about earlier ones.
    let mut claimed = marks.clone();
    for found in &dropped {
        let durable = claimed.entry(found.entry.shard).or_default();
        *durable = found.entry.durable.max(*durable);
    }
    // Older files matter only for shards of which this file does not reach that far.
    let mut older = others;
    while claimed.iter().any(|(shard, durable)| last_kept.get(shard).copied().unwrap_or(0) < *durable) {
        let Some(file) = older.pop() else { break };
        for found in entries_in(file_system, &file, seed)? {
            keep(&mut last_kept, &found.entry);
        }
    }

    // The header of the very first file is synced with its first batch, so both may be torn.
    let batch_torn = offset.max(FILE_HEADER_BYTES);
    for found in dropped {
        let Entry { index, shard, durable, .. } = found.entry;
        if found.batch_start().is_some_and(|start| start > batch_torn) {
            return Ok(Some(format!(
                "entry {index} of shard {shard} is readable behind the damage, in a batch of its \
                 own, so what is damaged was durable"
            )));
        }
        let kept = last_kept.get(&shard).copied().unwrap_or(0);
        if durable > kept {
            return Ok(Some(format!(
                "entry {index} of shard {shard} is readable behind the damage and says that entry \
                 {durable} was durable, but the readable entries before the damage end at {kept}"
            )));
        }
    }
    for (shard, mark) in marks {
        let kept = last_kept.get(shard).copied().unwrap_or(0);
        if kept < *mark {
            return Ok(Some(format!(
                "entry {mark} of shard {shard} was durable, but the readable entries end at {kept}"
            )));
        }
    }
    Ok(None)
}

/// Whether a file below `directory` holds an entry of any journal, or a part of one.
pub(crate) fn holds_entries<F: FileSystem>(file_system: &F, directory: &Path) -> io::Result<bool> {
    for file in files_in(directory)? {
        if find(&bytes_of(file_system, &file)?, &MAGIC).is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The first file whose header asks for aligned batches, which this journal never writes. The engine would trust a
/// damaged alignment, and reserve memory for that many bytes of padding.
pub(crate) fn damaged_header<F: FileSystem>(file_system: &F, directory: &Path) -> io::Result<Option<PathBuf>> {
    const VERSION_2: [u8; 8] = 2_u64.to_be_bytes();
    for file in files_in(directory)? {
        let mut header = [0; FILE_HEADER_BYTES];
        let handle = Arc::new(file_system.open(&file, Permission::ReadOnly)?);
        let length = file_system.new_reader(handle)?.read(&mut header)?;
        let version_2 = header[..length].strip_prefix(FILE_MAGIC).and_then(|rest| rest.strip_prefix(&VERSION_2));
        if version_2.is_some_and(|alignment| alignment.iter().any(|byte| *byte != 0)) {
            return Ok(Some(file));
        }
    }
    Ok(None)
}

/// The files with entries in a directory, oldest first (their names sort by age).
pub(crate) fn files_in(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let listed = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed?,
    };
    let mut files = Vec::new();
    for listed in listed {
        let path = listed?.path();
        if ending(&path).is_some() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The path of a file of appended entries.
pub(crate) fn append_file(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("{number:016}{}", FILE_ENDINGS[0]))
}

/// The number of a file of appended entries.
pub(crate) fn append_file_number(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.strip_suffix(FILE_ENDINGS[0])?.parse().ok()
}

fn ending(path: &Path) -> Option<&'static str> {
    let name = path.file_name()?.to_str()?;
    FILE_ENDINGS.into_iter().find(|ending| name.ends_with(ending))
}

fn other_files(file: &Path) -> io::Result<Vec<PathBuf>> {
    let Some(directory) = file.parent() else {
        return Ok(Vec::new());
    };
    let mut files = files_in(directory)?;
    files.retain(|other| other != file);
    Ok(files)
}

/// Whether `other` follows `file` in the same queue of files.
fn is_newer(other: &Path, file: &Path) -> bool {
    ending(other) == ending(file) && other.file_name() > file.file_name()
}

fn keep(last_kept: &mut BTreeMap<ShardId, u64>, entry: &Entry) {
    let last = last_kept.entry(entry.shard).or_default();
    *last = (*last).max(entry.index);
}

fn bytes_of<F: FileSystem>(file_system: &F, file: &Path) -> io::Result<Vec<u8>> {
    let handle = Arc::new(file_system.open(file, Permission::ReadOnly)?);
    let mut bytes = Vec::new();
    file_system.new_reader(handle)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Every entry in a file, in file order.
fn entries_in<F: FileSystem>(file_system: &F, file: &Path, seed: u64) -> io::Result<Vec<Found>> {
    let bytes = bytes_of(file_system, file)?;
    let mut found = Vec::new();
    let mut position = 0;
    while let Some(magic) = find(&bytes[position..], &MAGIC).map(|at| at + position) {
        position = magic + MAGIC.len();
        let Some(offset) = magic.checked_sub(MAGIC_OFFSET) else {
            continue;
        };
        if let Ok((entry, _, length)) = Entry::decode(&bytes[offset..], seed) {
            found.push(Found { offset, bytes: length, entry });
            position = offset + length;
        }
    }
    Ok(found)
}

fn find(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    // Skipping from first byte to first byte keeps this fast enough for files of zeros and of text.
    let first = *pattern.first()?;
    let mut position = 0;
    loop {
        position += bytes.get(position..)?.iter().position(|byte| *byte == first)?;
        if bytes[position..].starts_with(pattern) {
            return Some(position);
        }
        position += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_found_wherever_it_stands() {
        assert_eq!(find(b"SSHentry\x01", &MAGIC), Some(1));
        assert_eq!(find(b"SHentrySHentry\x01x", &MAGIC), Some(7));
        assert_eq!(find(b"SHentry", &MAGIC), None);
        assert_eq!(find(b"", &MAGIC), None);
    }

    #[test]
    fn the_start_of_a_batch_is_known_from_its_first_entry_only() {
        let found = |index, previous_hash, bytes| {
            let entry = Entry { index, shard: 1, term: 1, durable: 6, previous_hash, payload: Vec::new() };
            Found { offset: 1000, bytes, entry }.batch_start()
        };
        assert_eq!(found(7, 5, 127), Some(1000 - 16 - 1 - 1));
        assert_eq!(found(7, 5, 128), Some(1000 - 16 - 1 - 2));
        assert_eq!(found(7, 5, 16_384), Some(1000 - 16 - 1 - 3));
        assert_eq!(found(8, 5, 127), None);
        assert_eq!(found(1001, 0, 127), Some(1000 - 16 - 1 - 1), "the first of a shard");
    }
}
