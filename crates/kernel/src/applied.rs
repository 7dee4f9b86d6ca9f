//! The progress of a shard: the row that advances with every entry, in the same batch as its effects.
//!
//! Keeps: K1 (entries are applied once, in order) across restarts, and the running hash over all effects.

use kv::{Reader, Writer};
use session::{Halt, Stamp};

const FORMAT: u8 = 1;

/// The last applied entry and command, their time, and the running hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// The last entry.
    pub index: u64,
    /// The number of applied commands, which is the number of the last one.
    pub commit: u64,
    /// The last entry's times.
    pub stamp: Stamp,
    /// A hash over all effects so far, in order.
    pub hash: u64,
}

impl Applied {
    /// The row's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::with_capacity(41);
        writer.u8(FORMAT).u64(self.index).u64(self.commit);
        writer.u64(self.stamp.wall_us).u64(self.stamp.cluster_us).u64(self.hash);
        writer.finish()
    }

    /// Reads the row.
    pub fn decode(bytes: &[u8]) -> Result<Self, Halt> {
        let read = || {
            let mut reader = Reader::new(bytes);
            let format = reader.u8()?;
            let applied = Self {
                index: reader.u64()?,
                commit: reader.u64()?,
                stamp: Stamp { wall_us: reader.u64()?, cluster_us: reader.u64()? },
                hash: reader.u64()?,
            };
            reader.end().map(|()| (format, applied))
        };
        let (format, applied) = read().map_err(|error| Halt::Undecodable { what: "the applied row", error })?;
        if format != FORMAT {
            return Err(Halt::Newer { what: "applied row format", found: format.into(), known: FORMAT.into() });
        }
        Ok(applied)
    }
}
