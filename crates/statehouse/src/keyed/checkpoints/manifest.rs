//! What is said of a checkpoint beside its rows: the manifest of each part, and the markers that begin and end it;
//! `docs/formats/checkpoint.md`.
//!
//! Keeps: each has a checksum over all of it.

use contract::keyed::{LogicalTime, Policy};
use kernel::keyed::checkpoint::Base;
use kernel::keyed::restore::{RestoredCounts, RestoredMap};
use kv::{DecodeError, Reader, Writer};
use xxhash_rust::xxh3::xxh3_64;

use super::error::CheckpointError;
use super::rows::Extent;

const PART_MAGIC: [u8; 8] = *b"SHckpart";
const MARK_MAGIC: [u8; 8] = *b"SHckmark";
const FORMAT: u8 = 1;

/// The most bytes that one of them has.
pub(super) const BYTES_MAX: u64 = 4 << 20;

/// The most partitions that are taken together: the mark with all of them is read whole.
pub(super) const JOINT_PARTITIONS_MAX: usize = 65_536;

/// A part of a checkpoint: a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// The partition.
    pub(super) partition: u32,
    /// The object with its rows, in the folder of the checkpoint.
    pub(super) rows: String,
    /// What the checksums of its blocks begin with.
    pub(super) seed: u64,
    pub(super) extent: Extent,
    /// The checkpoint of the same series that it says the changes since; none if it is full.
    pub(super) base: Option<u64>,
    /// How many others are needed to restore it.
    pub(super) depth: u32,
    /// The store that it was taken from.
    pub(super) store: u64,
    /// What the next one needs to know of it.
    pub(super) taken: Base,
    /// When, µs since 1970 in UTC.
    pub(super) made_us: u64,
    pub(super) map: RestoredMap,
    pub(super) counts: RestoredCounts,
}

impl Part {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        let Self { partition, rows, seed, extent, base, depth, store, taken, made_us, map, counts } = self;
        writer.u32(*partition).bytes(rows.as_bytes()).u64(*seed);
        writer.u64(extent.blocks).u64(extent.rows).u64(extent.bytes);
        writer.optional_u64(*base).u32(*depth).u64(*store).u64(taken.commit).u64(taken.begun).u64(*made_us);
        writer.bool(map.policy == Policy::Ordered).u64(map.last_number).bool(map.seal.is_some());
        if let Some(LogicalTime { epoch, round }) = map.seal {
            writer.u64(epoch).u64(round);
        }
        writer.u64(counts.keys).u64(counts.deleted).u64(counts.waiting);
        sealed(PART_MAGIC, writer.as_slice())
    }

    pub(super) fn decode(name: &str, bytes: &[u8]) -> Result<Self, CheckpointError> {
        let content = unsealed(name, PART_MAGIC, bytes)?;
        let read = |mut reader: Reader<'_>| {
            let partition = reader.u32()?;
            let (rows, seed) = (reader.text()?.to_owned(), reader.u64()?);
            let extent = Extent { blocks: reader.u64()?, rows: reader.u64()?, bytes: reader.u64()? };
            let (base, depth, store) = (reader.optional_u64()?, reader.u32()?, reader.u64()?);
            let taken = Base { commit: reader.u64()?, begun: reader.u64()? };
            let made_us = reader.u64()?;
            let policy = if reader.bool()? { Policy::Ordered } else { Policy::Monotonic };
            let (last_number, sealed) = (reader.u64()?, reader.bool()?);
            let seal = if sealed { Some(LogicalTime::new(reader.u64()?, reader.u64()?)) } else { None };
            let map = RestoredMap { policy, last_number, seal };
            let counts = RestoredCounts { keys: reader.u64()?, deleted: reader.u64()?, waiting: reader.u64()? };
            reader.end()?;
            Ok(Self { partition, rows, seed, extent, base, depth, store, taken, made_us, map, counts })
        };
        read(Reader::new(content)).map_err(|error: DecodeError| CheckpointError::damaged(name, error.to_string()))
    }
}

/// How a checkpoint stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Its partitions are writing their parts.
    Begun,
    /// All parts are there.
    Committed,
    /// It was given up.
    GivenUp,
}

/// A partition in a mark: its number, and when the checkpoint is committed what others need to know without its manifest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MarkedPart {
    pub(super) partition: u32,
    /// That of its whole manifest.
    pub(super) checksum: u64,
    /// As in the manifest.
    pub(super) base: Option<u64>,
    pub(super) depth: u32,
    pub(super) store: u64,
    /// The last command that it has.
    pub(super) commit: u64,
    pub(super) keys: u64,
    /// Those of its rows.
    pub(super) bytes: u64,
}

impl MarkedPart {
    /// A partition that takes part.
    pub(super) fn begun(partition: u32) -> Self {
        Self { partition, ..Self::default() }
    }

    /// A part with its manifest.
    pub(super) fn committed(part: &Part, checksum: u64) -> Self {
        let Part { partition, base, depth, store, .. } = *part;
        let (commit, keys, bytes) = (part.taken.commit, part.counts.keys, part.extent.bytes);
        Self { partition, checksum, base, depth, store, commit, keys, bytes }
    }
}

/// What begins or ends a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) standing: Standing,
    /// Its partitions, in order.
    pub(super) parts: Vec<MarkedPart>,
    /// When, µs since 1970 in UTC.
    pub(super) made_us: u64,
}

impl Mark {
    /// Of a partition that takes part.
    pub(super) fn part(&self, partition: u32) -> Option<&MarkedPart> {
        self.parts.binary_search_by_key(&partition, |part| part.partition).ok().map(|place| &self.parts[place])
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.u8(match self.standing {
            Standing::Begun => 1,
            Standing::Committed => 2,
            Standing::GivenUp => 3,
        });
        writer.u64(self.made_us).u32(u32::try_from(self.parts.len()).expect("partitions have numbers of 32 bits"));
        for part in &self.parts {
            let MarkedPart { partition, checksum, base, depth, store, commit, keys, bytes } = *part;
            writer.u32(partition);
            if self.standing == Standing::Committed {
                writer.u64(checksum).u64(base.unwrap_or(0)).u32(depth).u64(store).u64(commit).u64(keys).u64(bytes);
            }
        }
        sealed(MARK_MAGIC, writer.as_slice())
    }

    pub(super) fn decode(name: &str, bytes: &[u8]) -> Result<Self, CheckpointError> {
        let content = unsealed(name, MARK_MAGIC, bytes)?;
        let read = |mut reader: Reader<'_>| {
            let standing = match reader.u8()? {
                1 => Standing::Begun,
                2 => Standing::Committed,
                3 => Standing::GivenUp,
                _ => return Err(DecodeError { what: "an unknown standing" }),
            };
            let made_us = reader.u64()?;
            let parts = (0..reader.u32()?)
                .map(|_| match standing {
                    Standing::Committed => read_part(&mut reader),
                    Standing::Begun | Standing::GivenUp => Ok(MarkedPart::begun(reader.u32()?)),
                })
                .collect::<Result<Vec<_>, DecodeError>>()?;
            if !parts.is_sorted_by(|one, next| one.partition < next.partition) {
                return Err(DecodeError { what: "partitions that are not in order" });
            }
            reader.end().map(|()| Self { standing, parts, made_us })
        };
        read(Reader::new(content)).map_err(|error| CheckpointError::damaged(name, error.to_string()))
    }
}

fn read_part(reader: &mut Reader<'_>) -> Result<MarkedPart, DecodeError> {
    Ok(MarkedPart {
        partition: reader.u32()?,
        checksum: reader.u64()?,
        // The first number is 1.
        base: Some(reader.u64()?).filter(|base| *base > 0),
        depth: reader.u32()?,
        store: reader.u64()?,
        commit: reader.u64()?,
        keys: reader.u64()?,
        bytes: reader.u64()?,
    })
}

/// The checksum by which a mark knows a manifest.
pub(super) fn checksum(manifest: &[u8]) -> u64 {
    xxh3_64(manifest)
}

fn sealed(magic: [u8; 8], content: &[u8]) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.raw(&magic).u8(FORMAT).raw(content);
    let sum = xxh3_64(writer.as_slice());
    writer.u64(sum);
    writer.finish()
}

fn unsealed<'bytes>(name: &str, magic: [u8; 8], bytes: &'bytes [u8]) -> Result<&'bytes [u8], CheckpointError> {
    let damaged = |what: &str| Err(CheckpointError::damaged(name, what));
    let Some((whole, sum)) = bytes.split_last_chunk::<8>() else { return damaged("it was cut short") };
    if xxh3_64(whole) != u64::from_le_bytes(*sum) {
        return damaged("a checksum does not fit");
    }
    match whole.split_first_chunk::<9>() {
        Some((head, content)) if head[..8] == magic && head[8] == FORMAT => Ok(content),
        Some((head, _)) if head[..8] == magic => damaged("it is in a format that this release does not read"),
        _ => damaged("it is something else"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part() -> Part {
        Part {
            partition: 3,
            rows: "r".into(),
            seed: 4,
            extent: Extent { blocks: 5, rows: 6, bytes: 7 },
            base: Some(8),
            depth: 9,
            store: 10,
            taken: Base { commit: 11, begun: 12 },
            made_us: 13,
            map: RestoredMap { policy: Policy::Ordered, last_number: 14, seal: Some(LogicalTime::new(15, 16)) },
            counts: RestoredCounts { keys: 17, deleted: 18, waiting: 19 },
        }
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Part of a stored format; `docs/formats/checkpoint.md`.
    #[test]
    fn golden_manifest() {
        let bytes = part().encode();
        let number = |number: u8| format!("{number:02x}00000000000000");
        let numbers = |from: u8, to: u8| (from..=to).map(number).collect::<String>();
        let front = format!("{}01{}", hex(&PART_MAGIC), "03000000010000007204000000000000");
        let middle = format!("00{}01{}09000000{}", numbers(5, 7), number(8), numbers(10, 13)).split_off(2);
        let end = format!("01{}01{}", number(14), numbers(15, 19));
        let whole = format!("{front}00{middle}{end}");
        assert_eq!(hex(&bytes[..bytes.len() - 8]), whole);
        assert_eq!(Part::decode("m", &bytes).expect("a manifest"), part());
    }

    /// Part of a stored format; `docs/formats/checkpoint.md`.
    #[test]
    fn golden_mark() {
        let part =
            MarkedPart { partition: 1, checksum: 2, base: Some(3), depth: 4, store: 5, commit: 6, keys: 7, bytes: 8 };
        let numbers = |numbers: &[u8]| numbers.iter().map(|n| format!("{n:02x}00000000000000")).collect::<String>();
        let of_part = format!("01000000{}04000000{}", numbers(&[2, 3]), numbers(&[5, 6, 7, 8]));
        let begun = Mark { standing: Standing::Begun, parts: vec![MarkedPart::begun(1)], made_us: 9 };
        let committed = Mark { standing: Standing::Committed, parts: vec![part], made_us: 9 };
        for (mark, standing, parts) in [(begun, "01", "01000000"), (committed, "02", &of_part)] {
            let bytes = mark.encode();
            let whole = format!("{}01{standing}{}01000000{parts}", hex(&MARK_MAGIC), numbers(&[9]));
            assert_eq!(hex(&bytes[..bytes.len() - 8]), whole);
            assert_eq!(Mark::decode("m", &bytes).expect("a mark"), mark);
        }
    }

    #[test]
    fn the_largest_mark_can_be_read() {
        let last = u32::try_from(JOINT_PARTITIONS_MAX).expect("few");
        let parts = (0..last).map(MarkedPart::begun).collect();
        let bytes = Mark { standing: Standing::Committed, parts, made_us: 9 }.encode();
        assert!(bytes.len() as u64 <= BYTES_MAX, "{} bytes", bytes.len());
        assert_eq!(Mark::decode("m", &bytes).expect("a mark").parts.len(), JOINT_PARTITIONS_MAX);
    }

    #[test]
    fn whatever_is_changed_is_found() {
        let bytes = part().encode();
        for cut in 0..bytes.len() {
            assert!(Part::decode("m", &bytes[..cut]).is_err(), "{cut} bytes of it");
        }
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(Part::decode("m", &flipped).is_err(), "bit {bit}");
        }
        assert!(Mark::decode("m", &bytes).is_err(), "a manifest is no mark");
    }
}
