//! The bytes of a snapshot: a checksum over entries in the order of their keys. `docs/formats/snapshot.md` is the specification.
//!
//! Keeps: the same state gives the same bytes, whichever backend writes them. Never: hands on a part of what it reads; bytes that
//! differ from what was written are refused before anything is looked at.

use std::collections::BTreeMap;

use contract::keyed::LogicalTime;
use contract::keyed::backend::BackendError;
use kv::{DecodeError, Reader, Writer};
use xxhash_rust::xxh3::xxh3_64;

use super::encoding::Encodings;
use super::entry::Entry;

const MAGIC: &[u8; 8] = b"SHstates";
const FORMAT: u32 = 1;

const DELETED: u8 = 0;
const PUT: u8 = 1;

/// The content of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Snapshot {
    /// Whether it has some keys only.
    pub(super) is_part: bool,
    /// How its keys and values are encoded.
    pub(super) encodings: Encodings,
    /// Up to which version the source had finished.
    pub(super) seal: Option<LogicalTime>,
    /// Keys, encoded, with what is known of each.
    pub(super) entries: BTreeMap<Vec<u8>, Entry>,
}

impl Snapshot {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.raw(MAGIC).u32(FORMAT).bool(self.is_part);
        writer.u8(self.encodings.keys as u8).u8(self.encodings.values as u8);
        writer.bool(self.seal.is_some());
        if let Some(seal) = self.seal {
            encode_version(&mut writer, seal);
        }
        writer.u64(self.entries.len() as u64);
        for (key, entry) in &self.entries {
            writer.bytes(key);
            encode_version(&mut writer, entry.version);
            match &entry.value {
                None => writer.u8(DELETED),
                Some(value) => writer.u8(PUT).bytes(value),
            };
        }
        writer.no_members();
        let sum = xxh3_64(writer.as_slice());
        writer.u64(sum);
        writer.finish()
    }

    /// Reads a snapshot for a backend whose keys and values are encoded so.
    pub(super) fn decode(bytes: &[u8], encodings: Encodings) -> Result<Self, BackendError> {
        let damaged = |reason| BackendError::DamagedSnapshot { reason };
        let unsuitable = |reason| BackendError::UnsuitableSnapshot { reason };
        if !bytes.starts_with(MAGIC) {
            return Err(damaged("it does not begin as a snapshot does"));
        }
        let Some((summed, sum)) = bytes.split_last_chunk::<8>() else {
            return Err(damaged("it was cut short"));
        };
        if xxh3_64(summed) != u64::from_le_bytes(*sum) {
            return Err(damaged("its checksum is another one"));
        }
        let mut reader = Reader::new(&summed[MAGIC.len()..]);
        let format = reader.u32().map_err(|error| damaged(error.what))?;
        if format != FORMAT {
            return Err(unsuitable(format!("it has format {format}, and this release reads {FORMAT}")));
        }
        let snapshot = Self::read(reader).map_err(|error| damaged(error.what))?;
        if snapshot.encodings != encodings {
            let (theirs, ours) = (snapshot.encodings, encodings);
            return Err(unsuitable(format!(
                "its keys are {:?} and its values {:?}, those of this backend {:?} and {:?}",
                theirs.keys, theirs.values, ours.keys, ours.values
            )));
        }
        Ok(snapshot)
    }

    fn read(mut reader: Reader<'_>) -> Result<Self, DecodeError> {
        let is_part = reader.bool()?;
        let encodings = Encodings::read(reader.u8()?, reader.u8()?)?;
        let seal = if reader.bool()? { Some(decode_version(&mut reader)?) } else { None };
        let count = reader.u64()?;
        let mut entries = BTreeMap::new();
        for _ in 0..count {
            let key = reader.bytes()?.to_vec();
            let version = decode_version(&mut reader)?;
            let value = match reader.u8()? {
                DELETED => None,
                PUT => Some(reader.bytes()?.to_vec()),
                _ => return Err(DecodeError { what: "an entry of an unknown kind" }),
            };
            if entries.last_key_value().is_some_and(|(last, _)| *last >= key) {
                return Err(DecodeError { what: "keys that are not in order" });
            }
            entries.insert(key, Entry { version, value });
        }
        reader.no_members()?;
        reader.end().map(|()| Self { is_part, encodings, seal, entries })
    }

    /// Reads a snapshot of a whole state.
    pub(super) fn decode_whole(bytes: &[u8], encodings: Encodings) -> Result<Self, BackendError> {
        let snapshot = Self::decode(bytes, encodings)?;
        if snapshot.is_part {
            let reason = "it has some keys only; restore_keys adds them to what is there".to_owned();
            return Err(BackendError::UnsuitableSnapshot { reason });
        }
        Ok(snapshot)
    }
}

fn encode_version(writer: &mut Writer, version: LogicalTime) {
    writer.u64(version.epoch).u64(version.round);
}

fn decode_version(reader: &mut Reader<'_>) -> Result<LogicalTime, DecodeError> {
    Ok(LogicalTime::new(reader.u64()?, reader.u64()?))
}

#[cfg(test)]
mod tests {
    use super::super::encoding::Encoding;
    use super::*;

    const ENCODINGS: Encodings = Encodings { keys: Encoding::Text, values: Encoding::Json };

    fn example() -> Snapshot {
        let apple = Entry { version: 7.into(), value: Some(b"30".to_vec()) };
        let pear = Entry { version: LogicalTime::new(1, 2), value: None };
        let entries = BTreeMap::from([(b"apple".to_vec(), apple), (b"pear".to_vec(), pear)]);
        Snapshot { is_part: false, encodings: ENCODINGS, seal: Some(5.into()), entries }
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// `docs/formats/snapshot.md` has the same bytes.
    #[test]
    fn golden_snapshot() {
        let golden = [
            "5348737461746573",
            "01000000",
            "00",
            "0203",
            "01",
            "00000000000000000500000000000000",
            "0200000000000000",
            "050000006170706c65",
            "00000000000000000700000000000000",
            "01",
            "020000003330",
            "0400000070656172",
            "01000000000000000200000000000000",
            "00",
            "00",
        ];
        let bytes = example().encode();
        let (summed, sum) = bytes.split_at(bytes.len() - 8);
        assert_eq!(hex(summed), golden.concat());
        assert_eq!(hex(sum), "e6214699c9fbbac8");
        assert_eq!(Snapshot::decode(&bytes, ENCODINGS), Ok(example()));
    }

    /// `bytes` with the checksum that they should have.
    fn summed(bytes: &[u8]) -> Vec<u8> {
        [bytes, &xxh3_64(bytes).to_le_bytes()].concat()
    }

    #[test]
    fn sound_bytes_that_are_no_snapshot_of_this_backend_are_refused_by_name() {
        let bytes = example().encode();
        let changed = |at: usize, to: u8| {
            let mut changed = bytes[..bytes.len() - 8].to_vec();
            changed[at] = to;
            Snapshot::decode(&summed(&changed), ENCODINGS).expect_err("it was changed").to_string()
        };
        assert!(changed(8, 2).contains("it has format 2, and this release reads 1"));
        assert!(changed(13, 1).contains("its keys are Bytes and its values Json, those of this backend Text and Json"));
        assert!(changed(13, 9).contains("damaged: an unknown encoding"));
        assert!(changed(32, 3).contains("damaged"), "more entries than there are");
        assert!(changed(32, 1).contains("damaged"), "fewer entries than there are");
        assert!(changed(44, b'z').contains("damaged: keys that are not in order"));
        let part = Snapshot { is_part: true, ..example() }.encode();
        let refused = Snapshot::decode_whole(&part, ENCODINGS).expect_err("a part").to_string();
        assert!(refused.contains("it has some keys only"), "{refused}");
        let huge = [MAGIC.as_slice(), &FORMAT.to_le_bytes(), &[0, 2, 3, 0], &[0xff; 8], &[0]].concat();
        assert!(Snapshot::decode(&summed(&huge), ENCODINGS).is_err(), "a count beyond the bytes allocates nothing");
    }
}
