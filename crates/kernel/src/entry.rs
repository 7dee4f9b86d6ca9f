//! An entry's payload: stamps, and the commands that were proposed together; `docs/formats/entry.md`.

use kv::{Reader, Writer};
use session::{Halt, Stamp};

use crate::LEVEL;

/// The number of this layout.
const FORMAT: u8 = 2;

/// Where an entry is: in its shard, in a term of an owner, and in a history that its hash tells from all others. The kernel only
/// remembers it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntryPlace {
    /// Counts the entries of the shard, from 1.
    pub index: u64,
    /// The term of the owner who appended it.
    pub term: u64,
    /// The history of the shard.
    pub history: u64,
    /// The hash of the entry and of all before it.
    pub hash: u64,
}

impl EntryPlace {
    /// An entry that comes from no log.
    pub fn without_log(index: u64) -> Self {
        Self { index, ..Self::default() }
    }
}

/// The header before an entry's commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryHeader {
    /// The level of behaviour that the proposer spoke.
    pub level: u32,
    /// When it was proposed.
    pub stamp: Stamp,
}

impl EntryHeader {
    /// An entry of this release.
    pub fn new(stamp: Stamp) -> Self {
        Self { level: LEVEL, stamp }
    }

    /// The bytes of an entry with these commands, each an envelope.
    pub fn encode<'command>(&self, commands: impl ExactSizeIterator<Item = &'command [u8]> + Clone) -> Vec<u8> {
        let bytes: usize = commands.clone().map(|command| command.len() + 4).sum();
        let mut writer = Writer::with_capacity(25 + bytes);
        writer.u8(FORMAT).u32(self.level).u64(self.stamp.wall_us).u64(self.stamp.cluster_us);
        writer.u32(u32::try_from(commands.len()).expect("an entry holds fewer commands than that"));
        for command in commands {
            writer.bytes(command);
        }
        writer.finish()
    }

    /// Reads an entry. An entry of a newer release halts the store.
    pub fn decode(payload: &[u8]) -> Result<(Self, Vec<&[u8]>), Halt> {
        let undecodable = |error| Halt::Undecodable { what: "an entry", error };
        let mut reader = Reader::new(payload);
        let format = reader.u8().map_err(undecodable)?;
        if format != FORMAT {
            return Err(Halt::Newer { what: "entry format", found: format.into(), known: FORMAT.into() });
        }
        let level = reader.u32().map_err(undecodable)?;
        if level > LEVEL {
            return Err(Halt::Newer { what: "level", found: level, known: LEVEL });
        }
        let stamp =
            Stamp { wall_us: reader.u64().map_err(undecodable)?, cluster_us: reader.u64().map_err(undecodable)? };
        let count = reader.u32().map_err(undecodable)?;
        let mut commands = Vec::new();
        for _ in 0..count {
            commands.push(reader.bytes().map_err(undecodable)?);
        }
        reader.end().map_err(undecodable)?;
        Ok((Self { level, stamp }, commands))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_read_as_written_and_a_newer_one_halts() {
        let header = EntryHeader::new(Stamp { wall_us: 5, cluster_us: 6 });
        let commands = [b"one".as_slice(), b"".as_slice(), b"three".as_slice()];
        let mut bytes = header.encode(commands.iter().copied());
        assert_eq!(EntryHeader::decode(&bytes).expect("readable"), (header, commands.to_vec()));
        bytes[1] += 1;
        assert!(matches!(EntryHeader::decode(&bytes), Err(Halt::Newer { what: "level", .. })));
        bytes[0] += 1;
        assert!(matches!(EntryHeader::decode(&bytes), Err(Halt::Newer { what: "entry format", .. })));
    }
}
