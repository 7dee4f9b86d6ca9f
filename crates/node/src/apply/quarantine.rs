//! The quarantine list: which parts of which tables count as damaged, and from which entry on; `docs/formats/quarantine.md`.
//!
//! Touches: the file `QUARANTINE`. Keeps: a command is answered `Damaged` only after the part that it met is durable
//! here, so that a replay gives the same answer (0010 of `docs/adr`). Never: forgets a part while its table is there.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use contract::Error;
use kv::{DecodeError, KeyRange, KvError, Reader, Writer};
use xxhash_rust::xxh3::xxh3_64;

use crate::directory::cannot_use;
use crate::directory::owner_only;
use crate::error::cannot_open;

const FILE: &str = "QUARANTINE";
/// The last byte is the format.
const MAGIC: [u8; 8] = *b"SHQUARA\x01";
/// The list is read as a whole. A store with more damaged parts should be salvaged.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// A part of a table that counts as damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Apart {
    /// The number of the table.
    pub table: u64,
    /// Where the damage is in its file.
    pub offset: u64,
    /// The keys of the part.
    pub(crate) keys: KeyRange,
    /// The first entry that was applied without it.
    pub from_entry: u64,
    /// Whether it was found while entries were replayed. Commands of `from_entry` and later ones may then have been
    /// acknowledged before, and have no effect now.
    pub in_replay: bool,
}

/// The list of a directory.
pub struct Quarantine {
    path: PathBuf,
    /// The identity of the directory.
    id: u64,
    list: Mutex<Vec<Apart>>,
}

impl Quarantine {
    /// Reads the list of a directory; without a file it is empty.
    pub(crate) fn open(directory: &Path, id: u64) -> Result<Self, Error> {
        let path = directory.join(FILE);
        owner_only::clear_unfinished(&path);
        let list = match std::fs::metadata(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(cannot_use(&path, "read", &error)),
            Ok(found) => {
                let refused = |reason: &str| cannot_open(format!("{} is damaged: {reason}", path.display()));
                if found.len() > FILE_BYTES_MAX {
                    return Err(refused("it is too long"));
                }
                let bytes = std::fs::read(&path).map_err(|error| cannot_use(&path, "read", &error))?;
                decode_file(&bytes, id).map_err(|error| refused(error.what))?
            }
        };
        Ok(Self { path, id, list: Mutex::new(list) })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Apart>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn list(&self) -> Vec<Apart> {
        self.lock().clone()
    }

    /// Replaces the list; it is durable when this returns. Without space it can be tried again: each attempt has a file
    /// of its own. Any other failure is final.
    pub(crate) fn replace(&self, list: &[Apart]) -> Result<(), KvError> {
        let encoded = encode(list, self.id);
        let twice = [encoded.as_slice(), &encoded].concat();
        owner_only::replace(&self.path, &twice).map_err(|error| match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => KvError::NoSpace {
                action: "write the quarantine list",
                bytes_needed: twice.len() as u64,
                reason: error.to_string(),
            },
            _ => KvError::Poisoned { first: format!("could not write {}: {error}", self.path.display()) },
        })?;
        *self.lock() = list.to_vec();
        Ok(())
    }
}

fn encode(list: &[Apart], id: u64) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.raw(&MAGIC).u64(id).u32(u32::try_from(list.len()).expect("bounded by the size of the file"));
    for part in list {
        writer.u64(part.table).u64(part.offset).u64(part.from_entry).bool(part.in_replay);
        writer.bytes(&part.keys.start).bytes(part.keys.end.as_deref().unwrap_or_default());
    }
    writer.u64(xxh3_64(writer.as_slice()));
    writer.finish()
}

fn decode(bytes: &[u8], id: u64) -> Result<Vec<Apart>, DecodeError> {
    let wrong = |what| DecodeError { what };
    let (checked, checksum) = bytes.split_last_chunk::<8>().ok_or(wrong("it has no hash"))?;
    if xxh3_64(checked) != u64::from_le_bytes(*checksum) {
        return Err(wrong("its hash does not match"));
    }
    let mut reader = Reader::new(checked.strip_prefix(&MAGIC).ok_or(wrong("it has an unknown format"))?);
    if reader.u64()? != id {
        return Err(wrong("it belongs to another directory"));
    }
    let mut list = Vec::new();
    for _ in 0..reader.u32()? {
        let (table, offset, from_entry, in_replay) = (reader.u64()?, reader.u64()?, reader.u64()?, reader.bool()?);
        let (start, end) = (reader.bytes()?.to_vec(), reader.bytes()?.to_vec());
        let keys = KeyRange { start, end: Some(end) };
        if keys.is_empty() {
            return Err(wrong("it has a part without keys"));
        }
        list.push(Apart { table, offset, keys, from_entry, in_replay });
    }
    reader.end()?;
    Ok(list)
}

/// The file holds the list twice; either copy is enough.
fn decode_file(bytes: &[u8], id: u64) -> Result<Vec<Apart>, DecodeError> {
    let (first, second) = bytes.split_at(bytes.len() / 2);
    decode(first, id).or_else(|error| decode(second, id).map_err(|_| error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> Vec<Apart> {
        let keys = KeyRange::between(*b"b\0", *b"d\0");
        vec![
            Apart { table: 7, offset: 4_096, keys: keys.clone(), from_entry: 12, in_replay: false },
            Apart { table: 9, offset: 0, keys, from_entry: 13, in_replay: true },
        ]
    }

    /// The bytes of `docs/formats/quarantine.md`. A change here is a change of the format.
    #[test]
    fn golden_quarantine() {
        let hex: String = encode(&list()[..1], 0x1122).iter().map(|byte| format!("{byte:02x}")).collect();
        let page = include_str!("../../../../docs/formats/quarantine.md");
        let block = page.split("```").nth(1).expect("an example");
        let example: String =
            block.lines().map(|line| line.split('#').next().expect("a line")).flat_map(str::split_whitespace).collect();
        assert_eq!(hex, example);
    }

    #[test]
    fn a_list_is_read_as_written_and_one_copy_is_enough() {
        let folder = tempfile::tempdir().expect("a folder");
        let quarantine = Quarantine::open(folder.path(), 5).expect("opened");
        assert_eq!(quarantine.list(), []);
        quarantine.replace(&list()).expect("written");
        assert_eq!(Quarantine::open(folder.path(), 5).expect("opened").list(), list());
        assert!(Quarantine::open(folder.path(), 6).is_err(), "the list of another directory");
        let bytes = std::fs::read(folder.path().join(FILE)).expect("read");
        for place in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[place] ^= 4;
            assert_eq!(decode_file(&changed, 5), Ok(list()), "byte {place}");
            changed[(place + bytes.len() / 2) % bytes.len()] ^= 1;
            assert!(decode_file(&changed, 5).is_err(), "byte {place} of both");
        }
        assert!(decode_file(&bytes[..bytes.len() - 1], 5).is_err());
    }
}
