//! The manifest: the file that says which tables the store consists of; `docs/formats/tables.md`.
//!
//! Touches: `manifest`, and `manifest.new` while it is replaced. Keeps: S1 (the tables that a manifest names are durable,
//! with their names, before it gets its own). Never: takes a manifest that it does not understand for an empty store.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;

use kv::{DecodeError, Key, KvError, Reader, Writer};
use xxhash_rust::xxh3::xxh3_64;

use crate::failure::{Damage, Effect, Failure};
use crate::files::Files;
use crate::table_facts::{RowCounts, TableFacts};
use crate::version::Version;

pub(crate) const MANIFEST_FILE: &str = "manifest";
const NEW_FILE: &str = "manifest.new";
/// The last byte is the format.
const MAGIC: [u8; 8] = *b"SHMANIF\x02";
/// A manifest of a million stacks is smaller.
const MANIFEST_BYTES_MAX: u64 = 1 << 30;

/// What a manifest says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// The store's number, part of every checksum in its tables.
    pub(crate) store: u64,
    /// A number above that of every table that was ever named.
    pub(crate) next_table: u64,
    pub(crate) tables: BTreeMap<u64, TableFacts>,
    pub(crate) stacks: Vec<StackEntry>,
}

/// A manifest as its file has it.
pub(crate) struct ManifestFile {
    pub(crate) manifest: Manifest,
    /// What is wrong with one of its two copies.
    pub(crate) damage: Option<Damage>,
}

/// The start of a stack, and its tables, newest first, with their rows in it.
pub(crate) type StackEntry = (Key, Vec<(u64, RowCounts)>);

impl Manifest {
    pub(crate) fn of(version: &Version, store: u64, next_table: u64) -> Self {
        let tables = version.tables().into_iter().map(|(number, table)| (number, table.facts.clone())).collect();
        let stacks = version.stacks.iter().map(|stack| {
            let slices = stack.slices.iter().map(|slice| (slice.table.number(), slice.rows));
            (stack.start.clone(), slices.collect())
        });
        Self { store, next_table, tables, stacks: stacks.collect() }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let count = |length: usize| u32::try_from(length).expect("fewer than 2^32 tables");
        let mut writer = Writer::new();
        writer.raw(&MAGIC).u64(self.store).u64(self.next_table).u32(count(self.tables.len()));
        for facts in self.tables.values() {
            writer.u64(facts.number).u64(facts.file_bytes);
            facts.rows.write(&mut writer);
            writer.bytes(&facts.smallest).bytes(&facts.largest);
        }
        writer.u32(count(self.stacks.len()));
        for (start, slices) in &self.stacks {
            writer.bytes(start).u32(count(slices.len()));
            for (table, rows) in slices {
                writer.u64(*table);
                rows.write(&mut writer);
            }
        }
        writer.u64(xxh3_64(writer.as_slice()));
        writer.finish()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let wrong = |what| DecodeError { what };
        let (checked, checksum) = bytes.split_last_chunk::<8>().ok_or(wrong("a manifest without a checksum"))?;
        if xxh3_64(checked) != u64::from_le_bytes(*checksum) {
            return Err(wrong("a manifest whose checksum does not match"));
        }
        let body = checked.strip_prefix(&MAGIC).ok_or(wrong("a manifest of an unknown format"))?;
        let mut reader = Reader::new(body);
        let (store, next_table) = (reader.u64()?, reader.u64()?);
        let mut tables = BTreeMap::new();
        for _ in 0..reader.u32()? {
            let (number, file_bytes) = (reader.u64()?, reader.u64()?);
            let rows = RowCounts::read(&mut reader)?;
            let (smallest, largest) = (reader.bytes()?.into(), reader.bytes()?.into());
            let facts = TableFacts { number, file_bytes, rows, smallest, largest };
            if number >= next_table || facts.smallest > facts.largest || tables.insert(number, facts).is_some() {
                return Err(wrong("a manifest with an impossible table"));
            }
        }
        let mut stacks = Vec::<StackEntry>::new();
        let mut unnamed: std::collections::BTreeSet<u64> = tables.keys().copied().collect();
        for _ in 0..reader.u32()? {
            let start = Key::from(reader.bytes()?);
            let in_order = stacks.last().map_or(start.is_empty(), |(before, _)| *before < start);
            let mut slices = Vec::new();
            for _ in 0..reader.u32()? {
                let table = reader.u64()?;
                slices.push((table, RowCounts::read(&mut reader)?));
                unnamed.remove(&table);
            }
            if !in_order || !slices.iter().all(|(table, _)| tables.contains_key(table)) {
                return Err(wrong("a manifest with an impossible stack"));
            }
            stacks.push((start, slices));
        }
        reader.end()?;
        if stacks.is_empty() || !unnamed.is_empty() {
            return Err(wrong("a manifest that is not whole"));
        }
        Ok(Self { store, next_table, tables, stacks })
    }

    /// Replaces the manifest. With `new_tables`, the names of files in the directory are made durable first.
    pub(crate) fn install(&self, files: &Arc<Files>, new_tables: bool) -> Result<(), Failure> {
        if files.path(NEW_FILE).exists() {
            // Left by a failure that also kept it from being removed.
            files.remove(NEW_FILE)?;
        }
        files.open_directory()?;
        let mut file = files.create(NEW_FILE)?;
        let encoded = self.encode();
        file.append(&encoded)?;
        file.append(&encoded)?;
        file.sync()?;
        if new_tables {
            files.sync_directory()?;
        }
        files.rename(NEW_FILE, MANIFEST_FILE)?;
        file.keep();
        // If this fails, nobody knows which of the two manifests the disk has.
        files.sync_directory()
    }

    /// Reads the manifest. A missing or damaged one is refused by name.
    pub(crate) fn read(files: &Files) -> Result<ManifestFile, KvError> {
        let place = files.path(MANIFEST_FILE).display().to_string();
        let refused = |reason: String| KvError::Corrupt { place: place.clone(), reason };
        let io = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::NotFound => refused("the store's manifest is missing".into()),
            _ => KvError::Io { action: "read the manifest", reason: format!("{place}: {error}") },
        };
        let mut file = files.open(MANIFEST_FILE).map_err(io)?;
        let length = file.metadata().map_err(io)?.len();
        if length > MANIFEST_BYTES_MAX {
            return Err(refused(format!("a manifest of {length} bytes; the limit is {MANIFEST_BYTES_MAX}")));
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(io)?;
        ManifestFile::decode(&bytes).map_err(|error| refused(error.to_string()))
    }

    /// Whether a name in the directory is a manifest that was never finished.
    pub(crate) fn is_unfinished(name: &str) -> bool {
        name == NEW_FILE
    }
}

impl ManifestFile {
    /// Either copy is enough.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let (first, second) = bytes.split_at(bytes.len() / 2);
        let damaged = |offset: usize| Damage {
            table: 0,
            file: MANIFEST_FILE.into(),
            offset: offset as u64,
            reason: "one copy of the manifest does not verify",
            keys: kv::KeyRange::all(),
            effect: Effect::Healed,
        };
        match (Manifest::decode(first), Manifest::decode(second)) {
            (Ok(manifest), Ok(other)) if manifest == other => Ok(Self { manifest, damage: None }),
            (Ok(_), Ok(_)) => Err(DecodeError { what: "a manifest with two different copies" }),
            (Ok(manifest), Err(_)) => Ok(Self { manifest, damage: Some(damaged(first.len())) }),
            (Err(_), Ok(manifest)) => Ok(Self { manifest, damage: Some(damaged(0)) }),
            (Err(error), Err(_)) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let rows = RowCounts { rows: 5, tombstones: 2, live_bytes: 300, tombstone_bytes: 20 };
        let facts = |number, smallest: &[u8], largest: &[u8]| TableFacts {
            number,
            file_bytes: 1_000 + number,
            rows,
            smallest: smallest.into(),
            largest: largest.into(),
        };
        let tables = [(3, facts(3, b"a", b"z")), (7, facts(7, b"", b"m"))].into();
        let stacks = vec![(Key::default(), vec![(7, rows), (3, rows)]), (b"m".as_slice().into(), vec![(3, rows)])];
        Manifest { store: 9, next_table: 8, tables, stacks }
    }

    #[test]
    fn a_manifest_is_read_as_written_and_every_change_is_found() {
        let bytes = manifest().encode();
        assert_eq!(Manifest::decode(&bytes), Ok(manifest()));
        for place in 0..bytes.len() {
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[place] ^= 1 << bit;
                assert!(Manifest::decode(&changed).is_err(), "byte {place} bit {bit}");
            }
            assert!(Manifest::decode(&bytes[..place]).is_err(), "cut at {place}");
        }
    }

    #[test]
    fn one_whole_copy_is_enough() {
        let one = manifest().encode();
        let bytes = [one.as_slice(), &one].concat();
        let file = ManifestFile::decode(&bytes).expect("whole");
        assert_eq!((file.manifest, file.damage), (manifest(), None));
        for place in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[place] ^= 1 << (place % 8);
            let file = ManifestFile::decode(&changed).expect("the other copy is there");
            assert_eq!(file.manifest, manifest());
            let offset = file.damage.expect("and the damage is named").offset;
            assert_eq!(offset == 0, place < one.len());
            changed[(place + one.len()) % bytes.len()] ^= 1;
            assert!(ManifestFile::decode(&changed).is_err(), "byte {place} of both");
        }
        assert!(ManifestFile::decode(&one).is_err(), "half a file");
    }

    /// A checksum that is right says nothing about who wrote the bytes.
    #[test]
    fn a_manifest_with_a_right_checksum_is_checked_all_the_same() {
        let change = |change: fn(&mut Manifest)| {
            let mut changed = manifest();
            change(&mut changed);
            Manifest::decode(&changed.encode())
        };
        assert!(change(|_| ()).is_ok());
        assert!(change(|manifest| manifest.next_table = 7).is_err());
        assert!(change(|manifest| manifest.stacks.clear()).is_err());
        assert!(change(|manifest| manifest.stacks[0].0.push(0)).is_err());
        assert!(change(|manifest| manifest.stacks[1].0 = Key::default()).is_err());
        assert!(change(|manifest| manifest.stacks[0].1[0].0 = 4).is_err());
        assert!(change(|manifest| drop(manifest.tables.remove(&3))).is_err());
        assert!(change(|manifest| manifest.stacks[0].1[0].1.rows = 0).is_err());
        assert!(change(|manifest| manifest.stacks[0].1[0].1.live_bytes = u64::MAX).is_err());
    }

    #[test]
    fn no_bytes_with_a_right_checksum_make_the_decoder_panic() {
        let mut random = testkit::random::Random::new(5);
        let bytes = manifest().encode();
        for _ in 0..20_000 {
            let mut changed = bytes[..bytes.len() - 8].to_vec();
            for _ in 0..1 + random.index(3) {
                let place = random.index(changed.len());
                changed[place] = random.bytes(1)[0];
            }
            changed.truncate(changed.len() - if random.one_in(3) { random.index(changed.len()) } else { 0 });
            let checksum = xxh3_64(&changed);
            changed.extend_from_slice(&checksum.to_le_bytes());
            let _ = Manifest::decode(&changed);
        }
    }
}
