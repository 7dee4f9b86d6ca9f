//! What is known to be durable, in two small files written in turn: the newest entry of each shard, and the oldest
//! file.
//!
//! Keeps: J3. One of the two files is always intact: only the older one is ever overwritten. Never: is ahead of the
//! entries. It is written after the sync of the entries it names, about once a second.

use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kv::{DecodeError, Reader, Writer};
use raft_engine::env::{FileSystem, Handle, Permission};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::disk::Disk;
use crate::error::JournalError;
use crate::frame::ShardId;

/// The newest durable index of each shard.
pub(crate) type Marks = BTreeMap<ShardId, u64>;

/// The content of a watermark file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    /// The oldest file with kept entries; 0 while files are being deleted.
    pub(crate) first_file: u64,
    pub(crate) marks: Marks,
}

const MAGIC: [u8; 8] = *b"SHmarks\x01";
const FILE_NAMES: [&str; 2] = ["watermark.a", "watermark.b"];

pub(crate) struct Watermark<D: Disk> {
    disk: Arc<D>,
    directory: PathBuf,
    seed: u64,
    /// Counts the writes; the file to write next is the one with the lower number.
    number: u64,
    known: Known,
    /// How many of the two files are intact.
    whole: usize,
}

impl<D: Disk> Watermark<D> {
    /// The watermark of a journal without entries, not yet on disk.
    pub(crate) fn new(disk: Arc<D>, directory: &Path, seed: u64) -> Self {
        let directory = directory.to_owned();
        Self { disk, directory, seed, number: 0, known: Known::default(), whole: 0 }
    }

    /// Reads the newer of the intact files.
    pub(crate) fn open(disk: Arc<D>, directory: &Path, seed: u64) -> Result<Self, JournalError> {
        let mut watermark = Self::new(disk, directory, seed);
        let mut newest = None;
        let mut complaints = Vec::new();
        for name in FILE_NAMES {
            match read(&*watermark.disk, &directory.join(name), seed) {
                Ok((number, known, handle)) => {
                    watermark.whole += 1;
                    if watermark.whole == 1 || number > watermark.number {
                        (watermark.number, watermark.known) = (number, known);
                        newest = Some(handle);
                    }
                }
                Err(complaint) => complaints.push(format!("{name}: {complaint}")),
            }
        }
        let Some(newest) = newest else {
            let what = format!("neither watermark file is readable: {}", complaints.join("; "));
            return Err(JournalError::damaged(directory.display(), what));
        };
        // A killed process may have left it in memory only, and the next write overwrites the other file, which would
        // then be the only one on disk.
        newest.sync().map_err(|error| JournalError::io("sync the journal's watermark", error))?;
        Ok(watermark)
    }

    pub(crate) fn known(&self) -> &Known {
        &self.known
    }

    /// Makes `known` durable in place of the older file, unless it already is.
    pub(crate) fn write(&mut self, known: Known) -> Result<(), JournalError> {
        while self.known != known || self.whole < FILE_NAMES.len() {
            let number = self.number + 1;
            let name = FILE_NAMES[usize::from(number.is_multiple_of(2))];
            write(&*self.disk, &self.directory.join(name), &encode(number, &known, self.seed))
                .map_err(|error| JournalError::io("write the journal's watermark", error))?;
            self.number = number;
            self.known.clone_from(&known);
            self.whole = (self.whole + 1).min(FILE_NAMES.len());
        }
        Ok(())
    }
}

fn write<D: Disk>(disk: &D, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let handle = match disk.open(path, Permission::ReadWrite) {
        Err(error) if !path.exists() => {
            tracing::debug!(%error, "watermark file is new");
            Arc::new(disk.create(path)?)
        }
        opened => Arc::new(opened?),
    };
    let mut writer = disk.new_writer(handle.clone())?;
    writer.seek(SeekFrom::Start(0))?;
    writer.write_all(bytes)?;
    handle.sync()
}

type Whole<D> = (u64, Known, Arc<<D as FileSystem>::Handle>);

fn read<D: Disk>(disk: &D, path: &Path, seed: u64) -> Result<Whole<D>, String> {
    let mut bytes = Vec::new();
    let handle = disk.open(path, Permission::ReadOnly).map_err(|error| error.to_string())?;
    let handle = Arc::new(handle);
    let mut reader = disk.new_reader(handle.clone()).map_err(|error| error.to_string())?;
    reader.read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    let (number, known) = decode(&bytes, seed).map_err(|error| error.to_string())?;
    Ok((number, known, handle))
}

fn encode(number: u64, known: &Known, seed: u64) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.raw(&MAGIC).u64(number).u64(known.first_file);
    writer.u32(u32::try_from(known.marks.len()).expect("fewer shards than that"));
    for (shard, index) in &known.marks {
        writer.u64(*shard).u64(*index);
    }
    let hash = xxh3_64_with_seed(writer.as_slice(), seed);
    writer.u64(hash);
    writer.finish()
}

/// A file that once held more shards may be longer than its last content.
fn decode(bytes: &[u8], seed: u64) -> Result<(u64, Known), DecodeError> {
    let mut reader = Reader::new(bytes);
    if reader.raw(MAGIC.len())? != MAGIC {
        return Err(DecodeError { what: "a watermark without its magic bytes" });
    }
    let number = reader.u64()?;
    let first_file = reader.u64()?;
    let count = reader.u32()?;
    let mut marks = Marks::new();
    for _ in 0..count {
        marks.insert(reader.u64()?, reader.u64()?);
    }
    let covered = bytes.len() - reader.rest().len();
    if reader.u64()? != xxh3_64_with_seed(&bytes[..covered], seed) {
        return Err(DecodeError { what: "a watermark whose hash does not match its bytes" });
    }
    Ok((number, Known { first_file, marks }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Known {
        Known { first_file: 3, marks: Marks::from([(1, 100), (2, 7)]) }
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let bytes = encode(9, &known(), 5);
        assert_eq!(decode(&bytes, 5), Ok((9, known())));
        for position in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[position / 8] ^= 1 << (position % 8);
            assert!(decode(&flipped, 5).is_err(), "bit {position}");
        }
    }

    /// The bytes of `docs/formats/journal.md`, example 2. A change here is a change of the format.
    #[test]
    fn golden_bytes() {
        let golden = "53486d61726b7301 0900000000000000 0300000000000000 02000000\
            0100000000000000 6400000000000000 0200000000000000 0700000000000000\
            3fb80e7924dc5c5f";
        let hex: String = encode(9, &known(), 5).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, golden.replace(char::is_whitespace, ""));
    }
}
