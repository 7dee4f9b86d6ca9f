//! The manifest of a backup, before the image; `docs/formats/backup.md` is the specification.

use std::io::{Read, Write};

use kv::{DecodeError, KeyRange, Reader, Writer};
use xxhash_rust::xxh3::xxh3_64;

use crate::transfer::TransferError;

const MAGIC: [u8; 8] = *b"SHbackup";
const FORMAT: u32 = 4;
/// The format of a backup that lists what is missing. One that is whole has the format above.
const FORMAT_WITH_GAPS: u32 = 5;

/// A manifest is far below this: numbers, the name of a release, and what is missing.
const MANIFEST_BYTES_MAX: usize = 64 << 20;

/// Bytes of the two hashes at the end.
const TRAILER_BYTES: u64 = 64;

/// The manifest of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Manifest {
    /// The identity of the directory that it was taken from.
    pub store_id: u64,
    /// The number of the last command in it.
    pub commit: u64,
    /// The journal's last entry in it.
    pub applied_index: u64,
    /// The hash over everything ever applied.
    pub effects_hash: u64,
    /// Wall time of the last entry in it, µs.
    pub state_us: u64,
    /// When it was created, by the clock of the machine, µs.
    pub made_us: u64,
    /// Rows of the image.
    pub rows: u64,
    /// Bytes of the image.
    pub image_bytes: u64,
    /// The release that created it.
    pub release: String,
    /// What is missing, because the bytes that held it were damaged.
    pub missing: Vec<MissingRange>,
}

/// A range of rows that a backup does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MissingRange {
    /// The first thing of the range: kind, name and space.
    pub from: String,
    /// The last one.
    pub to: String,
    /// The keys of its rows, without their generation.
    pub(crate) keys: KeyRange,
}

impl Manifest {
    fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.u64(self.store_id).u64(self.commit).u64(self.applied_index).u64(self.effects_hash);
        writer.u64(self.state_us).u64(self.made_us).u64(self.rows).u64(self.image_bytes);
        writer.bytes(self.release.as_bytes());
        if !self.missing.is_empty() {
            writer.u32(u32::try_from(self.missing.len()).expect("bounded by the number of blocks"));
            for range in &self.missing {
                writer.bytes(range.from.as_bytes()).bytes(range.to.as_bytes());
                writer.bytes(&range.keys.start).bytes(range.keys.end.as_deref().unwrap_or_default());
            }
        }
        writer.finish()
    }

    fn decode(bytes: &[u8], format: u32) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let mut manifest = Self {
            store_id: reader.u64()?,
            commit: reader.u64()?,
            applied_index: reader.u64()?,
            effects_hash: reader.u64()?,
            state_us: reader.u64()?,
            made_us: reader.u64()?,
            rows: reader.u64()?,
            image_bytes: reader.u64()?,
            release: reader.text()?.to_owned(),
            missing: Vec::new(),
        };
        if format == FORMAT_WITH_GAPS {
            for _ in 0..reader.u32()? {
                let (from, to) = (reader.text()?.to_owned(), reader.text()?.to_owned());
                let keys = KeyRange::between(reader.bytes()?, reader.bytes()?);
                manifest.missing.push(MissingRange { from, to, keys });
            }
        }
        reader.end().map(|()| manifest)
    }

    /// The size of the whole file in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.header().len() as u64 + self.image_bytes + TRAILER_BYTES
    }

    /// The manifest in the first bytes of a backup, before the rest has arrived; none if they are too few or damaged.
    pub fn peek(mut first: &[u8]) -> Option<Self> {
        Self::read(&mut first).ok()
    }

    /// The start of a backup: its magic bytes, its format, the manifest, and a hash over these.
    pub(super) fn header(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        let format = if self.missing.is_empty() { FORMAT } else { FORMAT_WITH_GAPS };
        writer.raw(&MAGIC).u32(format).bytes(&self.encode());
        let hash = xxh3_64(writer.as_slice());
        writer.u64(hash);
        writer.finish()
    }

    pub(super) fn write(&self, out: &mut dyn Write) -> Result<(), TransferError> {
        Ok(out.write_all(&self.header())?)
    }

    pub(super) fn read(input: &mut dyn Read) -> Result<Self, TransferError> {
        let mut header = [0; 8 + 4 + 4];
        take(input, &mut header)?;
        let mut reader = Reader::new(&header);
        let mut start = || Ok((reader.raw(MAGIC.len())? == MAGIC, reader.u32()?, reader.u32()? as usize));
        let (is_backup, format, length) = start().map_err(|error: DecodeError| damaged(error.what))?;
        if !is_backup {
            return Err(damaged("it does not start like a backup"));
        }
        if ![FORMAT, FORMAT_WITH_GAPS].contains(&format) {
            let message = format!(
                "its format is {format}, this release reads {FORMAT}; restore it with the release that created it, then export there and import here"
            );
            return Err(TransferError::damaged(format!("this is not a readable backup: {message}")));
        }
        if length > MANIFEST_BYTES_MAX {
            return Err(damaged("its manifest is impossibly long"));
        }
        let mut manifest = vec![0; length];
        take(input, &mut manifest)?;
        let mut hash = [0; 8];
        take(input, &mut hash)?;
        if u64::from_le_bytes(hash) != xxh3_64(&[header.as_slice(), &manifest].concat()) {
            return Err(damaged("the hash of its manifest does not match"));
        }
        Self::decode(&manifest, format).map_err(|error| damaged(error.what))
    }
}

fn take(input: &mut dyn Read, into: &mut [u8]) -> Result<(), TransferError> {
    input.read_exact(into).map_err(|error| TransferError::reading("the backup", error))
}

fn damaged(reason: &str) -> TransferError {
    TransferError::damaged(format!("the backup is damaged: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of `docs/formats/backup.md`. A change here is a change of the format.
    #[test]
    fn golden_header() {
        let manifest = Manifest {
            store_id: 1,
            commit: 2,
            applied_index: 3,
            effects_hash: 4,
            state_us: 5,
            made_us: 6,
            rows: 7,
            image_bytes: 258,
            release: "r".into(),
            missing: Vec::new(),
        };
        let hex: String = manifest.header().iter().map(|byte| format!("{byte:02x}")).collect();
        let expected = "53486261636b7570".to_owned()
            + "04000000"
            + "45000000"
            + "010000000000000002000000000000000300000000000000"
            + "040000000000000005000000000000000600000000000000"
            + "07000000000000000201000000000000"
            + "0100000072"
            + "ba2208f4027aa35a";
        assert_eq!(hex, expected);
        assert_eq!(Manifest::read(&mut manifest.header().as_slice()).expect("readable"), manifest);
        assert_eq!(Manifest::peek(&manifest.header()).map(|peeked| peeked.file_bytes()), Some(93 + 258 + 64));
        let missing = MissingRange { from: "a".into(), to: "b".into(), keys: KeyRange::between(*b"x", *b"y") };
        let with_gaps = Manifest { missing: vec![missing], ..manifest.clone() };
        let hex: String = with_gaps.header()[12..].iter().map(|byte| format!("{byte:02x}")).collect();
        assert!(hex.contains("01000000720100000001000000610100000062010000007801000000"), "{hex}");
        assert_eq!(with_gaps.header()[8], 5);
        assert_eq!(Manifest::read(&mut with_gaps.header().as_slice()).expect("readable"), with_gaps);
        for position in 0..manifest.header().len() {
            let mut changed = manifest.header();
            changed[position] ^= 1;
            assert!(Manifest::read(&mut changed.as_slice()).is_err(), "byte {position}");
            let cut = &manifest.header()[..position];
            assert!(Manifest::read(&mut &*cut).is_err(), "cut at {position}");
        }
    }
}
