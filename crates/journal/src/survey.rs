//! Searches raw journal files for entries, trusting nothing but an entry's own hash.
//!
//! Used when the layer below wants to drop the end of a file, to tell a torn tail from rot (J3): a torn tail is what
//! was being written when power failed, so nothing in or behind it was ever called durable.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use raft_engine::env::{FileSystem, Permission};

use crate::frame::{Entry, MAGIC, MAGIC_OFFSET, ShardId};
use crate::watermark::Marks;

/// The files that hold entries: appended ones, and ones that were copied together.
const FILE_ENDINGS: [&str; 2] = [".raftlog", ".rewrite"];

/// An entry found in a file.
struct Found {
    offset: usize,
    entry: Entry,
}

/// Says why `file` must not be cut at `offset`, if it must not.
pub(crate) fn reason_not_to_cut<F: FileSystem>(
    file_system: &F,
    file: &Path,
    offset: usize,
    marks: &Marks,
    seed: u64,
) -> io::Result<Option<String>> {
    let mut last_kept = BTreeMap::<ShardId, u64>::new();
    let mut dropped = Vec::new();
    for found in entries_in(file_system, file, seed)? {
        if found.offset < offset {
            keep(&mut last_kept, &found.entry);
        } else {
            dropped.push(found.entry);
        }
    }
    // Older files matter only for shards whose watermark this file does not reach.
    let mut older = older_files(file)?;
    while marks.iter().any(|(shard, mark)| last_kept.get(shard).copied().unwrap_or(0) < *mark) {
        let Some(file) = older.pop() else { break };
        for found in entries_in(file_system, &file, seed)? {
            keep(&mut last_kept, &found.entry);
        }
    }

    for entry in dropped {
        let kept = last_kept.get(&entry.shard).copied().unwrap_or(0);
        if entry.durable > kept {
            return Ok(Some(format!(
                "entry {} of shard {} is readable behind the damage and says that entry {} was durable, but the \
                 readable entries before the damage end at {kept}",
                entry.index, entry.shard, entry.durable
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

fn keep(last_kept: &mut BTreeMap<ShardId, u64>, entry: &Entry) {
    let last = last_kept.entry(entry.shard).or_default();
    *last = (*last).max(entry.index);
}

/// Every entry in a file, in file order.
fn entries_in<F: FileSystem>(file_system: &F, file: &Path, seed: u64) -> io::Result<Vec<Found>> {
    let handle = Arc::new(file_system.open(file, Permission::ReadOnly)?);
    let mut bytes = Vec::new();
    file_system.new_reader(handle)?.read_to_end(&mut bytes)?;
    let mut found = Vec::new();
    let mut position = 0;
    while let Some(magic) = find(&bytes[position..], &MAGIC).map(|at| at + position) {
        position = magic + MAGIC.len();
        let Some(offset) = magic.checked_sub(MAGIC_OFFSET) else { continue };
        if let Ok((entry, _, length)) = Entry::decode(&bytes[offset..], seed) {
            found.push(Found { offset, entry });
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

/// The other files with entries in the same directory, oldest first (their names sort by age).
fn older_files(file: &Path) -> io::Result<Vec<std::path::PathBuf>> {
    let Some(directory) = file.parent() else { return Ok(Vec::new()) };
    let mut files = Vec::new();
    for listed in std::fs::read_dir(directory)? {
        let path = listed?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if path != file && FILE_ENDINGS.iter().any(|ending| name.ends_with(ending)) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
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
}
