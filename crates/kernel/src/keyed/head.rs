//! The head of a map; `docs/formats/keyed.md` is the specification.

use contract::keyed::{LogicalTime, MapSummary, Policy};
use kv::{DecodeError, Reader, Writer};
use session::Halt;

use super::entry::Entry;
use crate::held::Was;
use crate::keys::Kind;

const FORMAT: u8 = 1;

/// Contents that wait to be removed.
pub(crate) const UNUSED_MAX: usize = 64;

/// What a map holds, as numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// The number in the keys of its rows.
    pub number: u32,
    /// Keys that have a value.
    pub keys: u64,
    /// Deleted keys whose versions are remembered.
    pub deleted: u64,
    /// The number of the last numbered commit.
    pub last_number: u64,
    /// The version up to which the source has finished.
    pub seal: Option<LogicalTime>,
    /// The last command that changed a key whose row is gone.
    pub forgotten: u64,
    /// Updates that wait for the seal.
    pub waiting: u64,
    /// The command that put this content in the place of another, by which every key was changed; 0 if none did.
    pub since: u64,
    /// Keys whose rows go are noted, for checkpoints of what has changed.
    pub noting: Noting,
}

/// What a restore has put aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Building {
    /// How updates are applied when it is there.
    pub policy: Policy,
    /// The command that made the map for the restore; 0 if there was one.
    pub made_by: u64,
    /// What it holds.
    pub content: Content,
}

/// How far the rows of one kind of a content are gone: none is before it, and none comes there again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The kind of the rows.
    pub kind: u8,
    /// The number of the content.
    pub content: u32,
    /// Where the keys of the rest begin, without what all have in common.
    pub from: Vec<u8>,
}

/// Which keys without rows are noted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Noting {
    /// The command that began the oldest checkpoint since which all of them are; 0 if none are.
    pub from: u64,
    /// The command that began the last checkpoint. What is noted carries its number.
    pub to: u64,
    /// How many are noted.
    pub count: u64,
}

impl Content {
    /// The last command that changed a key with a row.
    pub fn changed_at(&self, entry: &Entry<'_>) -> u64 {
        entry.commit.max(self.since)
    }

    /// Whether a version is at or below the seal.
    pub(crate) fn seals(&self, version: LogicalTime) -> bool {
        self.seal.is_some_and(|seal| version <= seal)
    }

    fn encode(&self, writer: &mut Writer) {
        let Self { number, keys, deleted, last_number, seal, forgotten, waiting, since, noting } = self;
        writer.u32(*number).u64(*keys).u64(*deleted).u64(*last_number).u64(*forgotten).u64(*waiting);
        writer.u64(*since).u64(noting.from).u64(noting.to).u64(noting.count).bool(seal.is_some());
        if let Some(LogicalTime { epoch, round }) = seal {
            writer.u64(*epoch).u64(*round);
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            number: reader.u32()?,
            keys: reader.u64()?,
            deleted: reader.u64()?,
            last_number: reader.u64()?,
            forgotten: reader.u64()?,
            waiting: reader.u64()?,
            since: reader.u64()?,
            noting: Noting { from: reader.u64()?, to: reader.u64()?, count: reader.u64()? },
            seal: match reader.bool()? {
                true => Some(LogicalTime::new(reader.u64()?, reader.u64()?)),
                false => None,
            },
        })
    }
}

/// The head of a map.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MapHead {
    /// Whether it was deleted, and waits for its rows to be removed.
    pub deleted: bool,
    /// The last command that changed it.
    pub commit: u64,
    /// The time of that command, wall µs.
    pub updated_us: u64,
    /// How its updates are applied.
    pub policy: Policy,
    /// What it holds.
    pub content: Content,
    /// What a restore has put aside so far.
    pub building: Option<Building>,
    /// The highest number of a content so far.
    pub last_content: u32,
    /// Contents that wait to be removed.
    pub unused: Vec<u32>,
    /// When its sweep is due, if there is something to remove.
    pub sweep_us: Option<u64>,
    /// How far rows are gone that seals and sweeps remove in order, so that they do not pass over them again.
    pub cursors: Vec<Cursor>,
}

impl MapHead {
    /// The head of a map that does not exist yet.
    pub(crate) fn new() -> Self {
        Self { content: Content { number: 1, ..Content::default() }, last_content: 1, ..Self::default() }
    }

    /// Where the rows of a kind begin that may still be there.
    pub(crate) fn cursor(&self, kind: Kind, content: u32) -> &[u8] {
        let found = self.cursors.iter().find(|cursor| (cursor.kind, cursor.content) == (kind as u8, content));
        found.map_or(&[], |cursor| cursor.from.as_slice())
    }

    /// Notes that no row of a kind is before this place any more.
    pub(crate) fn set_cursor(&mut self, kind: Kind, content: u32, from: Vec<u8>) {
        let kind = kind as u8;
        self.cursors.retain(|cursor| (cursor.kind, cursor.content) != (kind, content));
        self.cursors.push(Cursor { kind, content, from });
    }

    /// What a reader sees of it.
    pub fn summary(&self) -> MapSummary {
        let Content { keys, deleted, last_number, seal, waiting, since, .. } = self.content;
        let mut summary = MapSummary::default();
        (summary.policy, summary.waiting) = (self.policy, waiting);
        (summary.keys, summary.deleted, summary.last_number, summary.seal) = (keys, deleted, last_number, seal);
        (summary.commit, summary.updated_at) = (self.commit, self.updated_us);
        summary.restored = Some(since).filter(|since| *since > 0);
        summary
    }

    /// Appends the row.
    pub(crate) fn encode(&self, writer: &mut Writer) {
        let Self { deleted, commit, updated_us, policy, content, building, last_content, unused, .. } = self;
        let Self { sweep_us, cursors, .. } = self;
        writer.u8(FORMAT).bool(*deleted).u64(*commit).u64(*updated_us).bool(*policy == Policy::Ordered);
        content.encode(writer);
        writer.bool(building.is_some());
        if let Some(building) = building {
            building.content.encode(writer.bool(building.policy == Policy::Ordered).u64(building.made_by));
        }
        writer.u32(*last_content).u16(u16::try_from(unused.len()).expect("there are few"));
        for number in unused {
            writer.u32(*number);
        }
        writer.optional_u64(*sweep_us).u16(u16::try_from(cursors.len()).expect("there are few"));
        for Cursor { kind, content, from } in cursors {
            writer.u8(*kind).u32(*content).bytes(from);
        }
        writer.no_members();
    }

    /// Reads the row.
    pub fn decode(row: &[u8]) -> Result<Self, Halt> {
        let read = || {
            let mut reader = Reader::new(row);
            reader.format(FORMAT)?;
            let (deleted, commit, updated_us) = (reader.bool()?, reader.u64()?, reader.u64()?);
            let policy = decode_policy(&mut reader)?;
            let content = Content::decode(&mut reader)?;
            let building = match reader.bool()? {
                true => Some(Building {
                    policy: decode_policy(&mut reader)?,
                    made_by: reader.u64()?,
                    content: Content::decode(&mut reader)?,
                }),
                false => None,
            };
            let last_content = reader.u32()?;
            let unused = (0..reader.u16()?).map(|_| reader.u32()).collect::<Result<_, _>>()?;
            let sweep_us = reader.optional_u64()?;
            let cursor = |reader: &mut Reader<'_>| {
                let (kind, content) = (reader.u8()?, reader.u32()?);
                Ok(Cursor { kind, content, from: reader.bytes()?.to_vec() })
            };
            let cursors = (0..reader.u16()?).map(|_| cursor(&mut reader)).collect::<Result<_, DecodeError>>()?;
            reader.no_members()?;
            reader.end().map(|()| Self {
                deleted,
                commit,
                updated_us,
                policy,
                content,
                building,
                last_content,
                unused,
                sweep_us,
                cursors,
            })
        };
        read().map_err(|error: DecodeError| Halt::Undecodable { what: "the head of a map", error })
    }

    /// What its row counts, when it is replaced.
    pub(crate) fn counted(&self) -> Was {
        let mut writer = Writer::new();
        self.encode(&mut writer);
        Was { bytes: writer.len(), exists: !self.deleted }
    }
}

fn decode_policy(reader: &mut Reader<'_>) -> Result<Policy, DecodeError> {
    Ok(if reader.bool()? { Policy::Ordered } else { Policy::Monotonic })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Part of the stored format; `docs/formats/keyed.md`.
    #[test]
    fn golden_head() {
        let head = MapHead {
            deleted: false,
            commit: 3,
            updated_us: 4,
            policy: Policy::Ordered,
            content: Content {
                number: 2,
                keys: 5,
                deleted: 6,
                last_number: 7,
                seal: Some(LogicalTime::new(1, 8)),
                forgotten: 9,
                waiting: 11,
                since: 12,
                noting: Noting { from: 13, to: 14, count: 15 },
            },
            building: Some(Building {
                policy: Policy::Ordered,
                made_by: 16,
                content: Content { number: 3, keys: 1, ..Content::default() },
            }),
            last_content: 2,
            unused: vec![1],
            sweep_us: Some(10),
            cursors: vec![Cursor { kind: 0x1f, content: 2, from: vec![17, 18] }],
        };
        let mut writer = Writer::new();
        head.encode(&mut writer);
        let number = |low: u8| [low, 0, 0, 0, 0, 0, 0, 0];
        let mut bytes = vec![1, 0];
        [3, 4].map(number).iter().for_each(|number| bytes.extend(number));
        bytes.extend([1, 2, 0, 0, 0]);
        [5, 6, 7, 9, 11, 12, 13, 14, 15].map(number).iter().for_each(|number| bytes.extend(number));
        bytes.push(1);
        [1, 8].map(number).iter().for_each(|number| bytes.extend(number));
        bytes.extend([1, 1]);
        bytes.extend(number(16));
        bytes.extend([3, 0, 0, 0]);
        [1, 0, 0, 0, 0, 0, 0, 0, 0].map(number).iter().for_each(|number| bytes.extend(number));
        bytes.push(0);
        bytes.extend([2, 0, 0, 0, 1, 0, 1, 0, 0, 0, 1]);
        bytes.extend(number(10));
        bytes.extend([1, 0, 0x1f, 2, 0, 0, 0, 2, 0, 0, 0, 17, 18, 0]);
        assert_eq!(writer.as_slice(), bytes);
        assert_eq!(MapHead::decode(&bytes).expect("a head"), head);
        assert_eq!(head.counted(), Was { bytes: bytes.len(), exists: true });
        for cut in 0..bytes.len() {
            assert!(MapHead::decode(&bytes[..cut]).is_err(), "{cut} bytes of it");
        }
    }
}
