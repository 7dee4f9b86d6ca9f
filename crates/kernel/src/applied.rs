//! The progress of a shard: the row that advances with every entry, in the same batch as its effects.
//!
//! Keeps: K1 (entries are applied once, in order) across restarts, and the running hash over all effects.

use kv::{Reader, Writer};
use session::{Halt, Stamp};

use crate::entry::EntryPlace;

const FORMAT: u8 = 2;
/// With an epoch, which only stores have that were restored or imported.
const FORMAT_WITH_EPOCH: u8 = 3;

/// The bits of an attempt below its epoch.
const EPOCH_SHIFT: u32 = 40;

/// The last applied entry and command, their time, and the running hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// The last entry: its number.
    pub index: u64,
    /// Its term; 0 if it came from no log, as in a store that was imported.
    pub term: u64,
    /// The history of the shard that it belongs to; 0 if it came from no log.
    pub history: u64,
    /// Its hash, which covers all entries before it; 0 if it came from no log.
    pub entry_hash: u64,
    /// The number of applied commands, which is the number of the last one.
    pub commit: u64,
    /// The last entry's times.
    pub stamp: Stamp,
    /// A hash over all effects so far, in order.
    pub hash: u64,
    /// How often the store went on in another history; one more if there were entries before epochs were counted.
    pub epoch: u64,
}

impl Applied {
    /// Where the last entry is.
    pub fn place(&self) -> EntryPlace {
        EntryPlace { index: self.index, term: self.term, history: self.history, hash: self.entry_hash }
    }

    /// The number above which attempts start: no earlier history has had a higher one.
    pub fn attempts_above(&self) -> u64 {
        self.epoch << EPOCH_SHIFT
    }

    /// The same before the next entry, which is of this history. Attempts of an earlier one may be known to somebody who goes
    /// on.
    pub(crate) fn in_history(self, history: u64, has_epochs: bool) -> Self {
        let is_other = self.commit > 0 && self.history != history;
        Self { epoch: self.epoch + u64::from(is_other && has_epochs), ..self }
    }

    /// The row's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::with_capacity(73);
        let format = if self.epoch > 0 { FORMAT_WITH_EPOCH } else { FORMAT };
        writer.u8(format).u64(self.index).u64(self.term).u64(self.history).u64(self.entry_hash).u64(self.commit);
        writer.u64(self.stamp.wall_us).u64(self.stamp.cluster_us).u64(self.hash);
        if self.epoch > 0 {
            writer.u64(self.epoch);
        }
        writer.finish()
    }

    /// Reads the row.
    pub fn decode(bytes: &[u8]) -> Result<Self, Halt> {
        let read = || {
            let mut reader = Reader::new(bytes);
            let format = reader.u8()?;
            if ![FORMAT, FORMAT_WITH_EPOCH].contains(&format) {
                return Ok((format, Self::default()));
            }
            let applied = Self {
                index: reader.u64()?,
                term: reader.u64()?,
                history: reader.u64()?,
                entry_hash: reader.u64()?,
                commit: reader.u64()?,
                stamp: Stamp { wall_us: reader.u64()?, cluster_us: reader.u64()? },
                hash: reader.u64()?,
                epoch: if format == FORMAT_WITH_EPOCH { reader.u64()? } else { 0 },
            };
            reader.end().map(|()| (format, applied))
        };
        let (format, applied) = read().map_err(|error| Halt::Undecodable { what: "the applied row", error })?;
        if ![FORMAT, FORMAT_WITH_EPOCH].contains(&format) {
            let known = FORMAT_WITH_EPOCH.into();
            return Err(Halt::Newer { what: "applied row format", found: format.into(), known });
        }
        Ok(applied)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Part of the stored format; `docs/formats/keys.md`.
    #[test]
    fn golden_applied_row() {
        let stamp = Stamp { wall_us: 6, cluster_us: 7 };
        let applied = Applied { index: 1, term: 2, history: 3, entry_hash: 4, commit: 5, stamp, hash: 8, epoch: 0 };
        let bytes = applied.encode();
        let numbers: Vec<u8> = (1..=8_u64).flat_map(u64::to_le_bytes).collect();
        assert_eq!(bytes, [&[2], numbers.as_slice()].concat());
        assert_eq!(Applied::decode(&bytes), Ok(applied));
        assert!(Applied::decode(&bytes[..bytes.len() - 1]).is_err(), "too short");
        let with_epoch = Applied { epoch: 9, ..applied };
        assert_eq!(with_epoch.encode(), [&[3], numbers.as_slice(), &9_u64.to_le_bytes()].concat());
        assert_eq!(Applied::decode(&with_epoch.encode()), Ok(with_epoch));
        assert_eq!((applied.attempts_above(), with_epoch.attempts_above()), (0, 9 << 40));
        let of_before = [&[1], &numbers[..40]].concat();
        assert!(Applied::decode(&of_before).is_err(), "the format before");
    }
}
