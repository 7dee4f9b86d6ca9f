//! What is known to be durable, in two small files written in turn: the kept entries of each shard, and the oldest
//! segment with any of them.
//!
//! Both files are reserved when the journal is created and stay open, so that writing one needs neither space nor a
//! descriptor. Keeps: J3. One of the two files is always intact: only the older one is ever overwritten with something
//! new. A file system may refuse a write to what it had reserved; then the older file is not intact until the next
//! attempt, and the newer one holds. Never: is ahead of the entries. It is written after the sync of the entries it names.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kv::{DecodeError, Reader, Writer};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::disk::{Disk, DiskFile};
use crate::error::JournalError;
use crate::frame::ShardId;

/// The kept entries of a shard that are known to be durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) first_kept: u64,
    pub(crate) last: u64,
}

/// The content of a watermark file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    /// The oldest segment with kept entries.
    pub(crate) first_segment: u64,
    pub(crate) marks: BTreeMap<ShardId, Mark>,
}

const MAGIC: [u8; 8] = *b"SHmarks\x02";
const FILE_NAMES: [&str; 2] = ["watermark.a", "watermark.b"];

const WRITE: &str = "write the journal's watermark";
const SYNC: &str = "sync the journal's watermark";

/// Reserved for a file when it is created.
const FILE_BYTES_MIN: u64 = 4096;

/// What a watermark needs beside its shards, and for each of them.
const FIXED_BYTES: u64 = 36;
const MARK_BYTES: u64 = 24;

pub(crate) struct Watermark<D: Disk> {
    disk: Arc<D>,
    directory: PathBuf,
    files: [Slot<D::File>; 2],
    id: u64,
    /// Counts the writes; odd ones go to the first file, even ones to the second.
    number: u64,
    known: Known,
    buffer: Vec<u8>,
}

/// One of the two files.
struct Slot<F> {
    /// None if it is missing; it is then created by the next write to it.
    file: Option<F>,
    intact: bool,
    /// Reserved.
    bytes: u64,
}

impl<D: Disk> Watermark<D> {
    /// Creates both files, or takes those of an interrupted creation. Nothing is written to them yet.
    pub(crate) fn create(disk: Arc<D>, directory: &Path, id: u64) -> Result<Self, JournalError> {
        let slot = |name| create(&*disk, &directory.join(name)).map_err(|error| JournalError::io(WRITE, error));
        let files = [slot(FILE_NAMES[0])?, slot(FILE_NAMES[1])?];
        let directory = directory.to_owned();
        Ok(Self { disk, directory, files, id, number: 0, known: Known::default(), buffer: Vec::new() })
    }

    /// Reads the newer of the intact files. Nothing is changed.
    pub(crate) fn open(disk: Arc<D>, directory: &Path, id: u64) -> Result<Self, JournalError> {
        let mut newest: Option<(u64, Known)> = None;
        let mut complaints = Vec::new();
        let files = FILE_NAMES.map(|name| match open(&*disk, &directory.join(name), id) {
            Ok((mut slot, decoded)) => {
                match decoded {
                    Ok((number, known)) => {
                        slot.intact = true;
                        if newest.as_ref().is_none_or(|(newer, _)| number > *newer) {
                            newest = Some((number, known));
                        }
                    }
                    Err(complaint) => complaints.push(format!("{name}: {}", complaint.what)),
                }
                slot
            }
            Err(complaint) => {
                complaints.push(format!("{name}: {complaint}"));
                Slot { file: None, intact: false, bytes: 0 }
            }
        });
        let Some((number, known)) = newest else {
            let what = format!("neither watermark file is readable: {}", complaints.join("; "));
            return Err(JournalError::damaged(directory.display(), what));
        };
        Ok(Self { disk, directory: directory.to_owned(), files, id, number, known, buffer: Vec::new() })
    }

    /// Makes what was found durable. A killed process may have left it in memory only, and the next write goes over the
    /// other file, which would then be the only one on disk. It is written again because a failed sync may have left
    /// the file looking clean.
    pub(crate) fn settle(&mut self) -> Result<(), JournalError> {
        encode(self.number, &self.known, self.id, &mut self.buffer);
        let Some(newest) = &self.files[position(self.number)].file else { return Ok(()) };
        let settled = newest.write_at(&self.buffer, 0).and_then(|()| newest.sync_data());
        settled.map_err(|error| JournalError::io(SYNC, error))
    }

    pub(crate) fn known(&self) -> &Known {
        &self.known
    }

    /// The bytes of both files.
    pub(crate) fn files_bytes(&self) -> u64 {
        self.files.iter().map(|slot| slot.bytes).sum()
    }

    /// Reserves space for so many shards.
    pub(crate) fn reserve(&mut self, shards: usize) -> io::Result<()> {
        let needed = (FIXED_BYTES + MARK_BYTES * shards as u64).next_multiple_of(FILE_BYTES_MIN);
        for slot in &mut self.files {
            if let Some(file) = slot.file.as_ref().filter(|_| slot.bytes < needed) {
                file.allocate(needed)?;
                slot.bytes = needed;
            }
        }
        Ok(())
    }

    /// Makes `known` durable in place of the older file, unless it already is. Without room, nothing more is known than
    /// before, and the next attempt may succeed.
    pub(crate) fn write(&mut self, known: Known) -> Result<(), JournalError> {
        while self.known != known || self.files.iter().any(|slot| !slot.intact) {
            self.write_next(&known)?;
        }
        Ok(())
    }

    /// Makes `known` durable in both files, so that it holds even if one of them is damaged later.
    pub(crate) fn write_to_both(&mut self, known: &Known) -> Result<(), JournalError> {
        self.write_next(known)?;
        self.write_next(known)
    }

    fn write_next(&mut self, known: &Known) -> Result<(), JournalError> {
        let number = self.number + 1;
        encode(number, known, self.id, &mut self.buffer);
        self.write_to(position(number))?;
        self.number = number;
        self.known.clone_from(known);
        Ok(())
    }

    fn write_to(&mut self, position: usize) -> Result<(), JournalError> {
        let refused = |error: io::Error| JournalError::no_room_or_io(WRITE, &error);
        let slot = &mut self.files[position];
        if slot.file.is_none() {
            *slot = create(&*self.disk, &self.directory.join(FILE_NAMES[position])).map_err(refused)?;
        }
        slot.intact = false;
        let file = slot.file.as_ref().expect("created above");
        file.write_at(&self.buffer, 0).map_err(refused)?;
        file.sync_data().map_err(|error| JournalError::io(SYNC, error))?;
        slot.intact = true;
        Ok(())
    }
}

/// Where the write of this number goes.
fn position(number: u64) -> usize {
    usize::from(number.is_multiple_of(2))
}

fn create<D: Disk>(disk: &D, path: &Path) -> io::Result<Slot<D::File>> {
    let file = match disk.create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => disk.open(path)?,
        created => created?,
    };
    file.allocate(FILE_BYTES_MIN)?;
    Ok(Slot { file: Some(file), intact: false, bytes: FILE_BYTES_MIN })
}

type Decoded = Result<(u64, Known), DecodeError>;

fn open<D: Disk>(disk: &D, path: &Path, id: u64) -> io::Result<(Slot<D::File>, Decoded)> {
    let file = disk.open(path)?;
    let bytes = file.length()?;
    let mut content = vec![0; usize::try_from(bytes).map_err(io::Error::other)?];
    let read = file.read_at(&mut content, 0)?;
    Ok((Slot { file: Some(file), intact: false, bytes }, decode(&content[..read], id)))
}

fn encode(number: u64, known: &Known, id: u64, bytes: &mut Vec<u8>) {
    let mut writer = Writer::new();
    writer.raw(&MAGIC).u64(number).u64(known.first_segment);
    writer.u32(u32::try_from(known.marks.len()).expect("fewer shards than that"));
    for (shard, mark) in &known.marks {
        writer.u64(*shard).u64(mark.first_kept).u64(mark.last);
    }
    let hash = xxh3_64_with_seed(writer.as_slice(), id);
    writer.u64(hash);
    *bytes = writer.finish();
}

/// A file that once held more shards may be longer than its last content.
fn decode(bytes: &[u8], id: u64) -> Decoded {
    let mut reader = Reader::new(bytes);
    if reader.raw(MAGIC.len())? != MAGIC {
        return Err(DecodeError { what: "a watermark without its magic bytes" });
    }
    let number = reader.u64()?;
    let first_segment = reader.u64()?;
    let count = reader.u32()?;
    let mut marks = BTreeMap::new();
    for _ in 0..count {
        let shard = reader.u64()?;
        marks.insert(shard, Mark { first_kept: reader.u64()?, last: reader.u64()? });
    }
    let covered = bytes.len() - reader.rest().len();
    if reader.u64()? != xxh3_64_with_seed(&bytes[..covered], id) {
        return Err(DecodeError { what: "a watermark whose hash does not match its bytes" });
    }
    Ok((number, Known { first_segment, marks }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Known {
        let mark = |first_kept, last| Mark { first_kept, last };
        Known { first_segment: 3, marks: BTreeMap::from([(1, mark(90, 100)), (2, mark(7, 7))]) }
    }

    fn encoded(known: &Known) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode(9, known, 5, &mut bytes);
        bytes
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let bytes = encoded(&known());
        assert_eq!(decode(&bytes, 5), Ok((9, known())));
        for position in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[position / 8] ^= 1 << (position % 8);
            assert!(decode(&flipped, 5).is_err(), "bit {position}");
        }
    }

    #[test]
    fn the_reserved_bytes_are_what_a_watermark_takes() {
        let bytes = encoded(&known()).len() as u64;
        assert_eq!(bytes, FIXED_BYTES + 2 * MARK_BYTES);
    }

    /// The bytes of `docs/formats/journal.md`, example 4. A change here is a change of the format.
    #[test]
    fn golden_bytes() {
        let hex: String = encoded(&known()).iter().map(|byte| format!("{byte:02x}")).collect();
        let golden = "53486d61726b7302 0900000000000000 0300000000000000 02000000\
            0100000000000000 5a00000000000000 6400000000000000\
            0200000000000000 0700000000000000 0700000000000000 8e0975e05d6c06e3";
        assert_eq!(hex, golden.replace(char::is_whitespace, ""));
    }
}
