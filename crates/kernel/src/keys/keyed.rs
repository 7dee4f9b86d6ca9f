//! Keys of keyed state. What a map holds is its *content*, which has a number: a restored map gets the next one,
//! so what was there before stays apart until it is removed.

use contract::keyed::LogicalTime;
use kv::{Key, KeyRange};

use super::{HeldKey, Keys, Kind, ThingId, push_name};

/// The rows that a map has for each of its contents.
pub const CONTENT_ROWS: [Kind; 6] =
    [Kind::KeyedEntry, Kind::KeyedPosition, Kind::KeyedDeleted, Kind::KeyedGone, Kind::KeyedAnswer, Kind::KeyedWaiting];

impl Keys {
    /// The head of a map.
    pub fn map(&self, map: &ThingId<'_>) -> HeldKey {
        HeldKey::new(self.thing(Kind::KeyedMap, map))
    }

    fn content_prefix(&self, kind: Kind, map: &ThingId<'_>, content: u32) -> Key {
        let mut key = self.group_prefix(kind, map);
        push_name(&mut key, map.name.as_bytes());
        key.extend_from_slice(&content.to_be_bytes());
        key
    }

    /// All rows of one kind of a map's content.
    pub fn map_rows(&self, kind: Kind, map: &ThingId<'_>, content: u32) -> KeyRange {
        KeyRange::prefix(&self.content_prefix(kind, map, content))
    }

    /// What the keys of all entries of a map begin with; the key itself follows.
    pub fn entry_prefix(&self, map: &ThingId<'_>, content: u32) -> Key {
        self.content_prefix(Kind::KeyedEntry, map, content)
    }

    /// The entry of a key. `prefix` is that of its map's entries.
    pub fn entry_at(prefix: &Key, key: &[u8]) -> HeldKey {
        let mut whole = prefix.clone();
        whole.extend_from_slice(key);
        HeldKey::new(whole)
    }

    /// The position of an input.
    pub fn input_position(&self, map: &ThingId<'_>, content: u32, input: &str) -> HeldKey {
        let mut key = self.content_prefix(Kind::KeyedPosition, map, content);
        key.extend_from_slice(input.as_bytes());
        HeldKey::new(key)
    }

    /// A deleted key, by the version of its deletion.
    pub fn deleted_key(&self, map: &ThingId<'_>, content: u32, version: LogicalTime, key: &[u8]) -> Key {
        let mut row = self.content_prefix(Kind::KeyedDeleted, map, content);
        push_version(&mut row, version);
        row.extend_from_slice(key);
        row
    }

    /// An update that waits, by its version and its key.
    pub fn waiting_update(&self, map: &ThingId<'_>, content: u32, version: LogicalTime, key: &[u8]) -> HeldKey {
        let mut row = self.content_prefix(Kind::KeyedWaiting, map, content);
        push_version(&mut row, version);
        row.extend_from_slice(key);
        HeldKey::new(row)
    }

    /// The rows of one kind of a map's content whose versions are at or below a seal.
    pub fn sealed_rows(&self, kind: Kind, map: &ThingId<'_>, content: u32, seal: LogicalTime) -> KeyRange {
        let start = self.content_prefix(kind, map, content);
        let mut last = start.clone();
        push_version(&mut last, seal);
        KeyRange { start: start.to_vec(), end: KeyRange::prefix(&last).end }
    }

    /// What the keys of all rows begin with that note removed keys under a number; the key itself follows.
    pub fn gone_prefix(&self, map: &ThingId<'_>, content: u32, noted: u64) -> Key {
        let mut prefix = self.content_prefix(Kind::KeyedGone, map, content);
        prefix.extend_from_slice(&noted.to_be_bytes());
        prefix
    }

    /// A removed key that is noted under a number.
    pub fn gone_key(&self, map: &ThingId<'_>, content: u32, noted: u64, key: &[u8]) -> Key {
        let mut row = self.gone_prefix(map, content, noted);
        row.extend_from_slice(key);
        row
    }

    /// The answer to the last numbered commit.
    pub fn keyed_answer(&self, map: &ThingId<'_>, content: u32) -> Key {
        self.content_prefix(Kind::KeyedAnswer, map, content)
    }
}

fn push_version(key: &mut Key, version: LogicalTime) {
    key.extend_from_slice(&version.epoch.to_be_bytes());
    key.extend_from_slice(&version.round.to_be_bytes());
}

/// Reads what follows the prefix of deleted keys, and of waiting updates: the version, and the key.
pub fn read_version_and_key(suffix: &[u8]) -> Option<(LogicalTime, &[u8])> {
    let (epoch, rest) = suffix.split_first_chunk()?;
    let (round, key) = rest.split_first_chunk()?;
    Some((LogicalTime::new(u64::from_be_bytes(*epoch), u64::from_be_bytes(*round)), key))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Part of the stored format; `docs/formats/keyed.md`.
    #[test]
    fn golden_keys_of_keyed_state() {
        let keys = Keys::new(1, crate::BucketRange::ALL);
        let hex = |key: &[u8]| key.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let map = ThingId { bucket: 5, space: 1, branch: 2, group: Some("g"), name: "m" };
        let front = |kind: &str| format!("000000010005{kind}0000000100000002{}{}", "01670000", "6d0000");
        let content = "00000003";
        assert_eq!(hex(&keys.map(&map)), front("19"));
        assert_eq!(hex(&Keys::entry_at(&keys.entry_prefix(&map, 3), &[0, 0xff])), front("1a") + content + "00ff");
        assert_eq!(hex(&keys.input_position(&map, 3, "in")), front("1b") + content + "696e");
        let version = LogicalTime::new(1, 258);
        let deleted = keys.deleted_key(&map, 3, version, b"k");
        let version_bytes = "00000000000000010000000000000102";
        assert_eq!(hex(&deleted), front("1c") + content + version_bytes + "6b");
        let prefix = keys.map_rows(Kind::KeyedDeleted, &map, 3).start.len();
        assert_eq!(read_version_and_key(&deleted[prefix..]), Some((version, b"k".as_slice())));
        assert_eq!(read_version_and_key(&deleted[prefix..][..15]), None);
        assert_eq!(hex(&keys.waiting_update(&map, 3, version, b"k")), front("1f") + content + version_bytes + "6b");
        let sealed = keys.sealed_rows(Kind::KeyedWaiting, &map, 3, version);
        assert_eq!(hex(&sealed.start), front("1f") + content);
        assert_eq!(sealed.end.map(|end| hex(&end)), Some(front("1f") + content + "00000000000000010000000000000103"));
        assert_eq!(hex(&keys.gone_key(&map, 3, 258, b"k")), front("1d") + content + "0000000000000102" + "6b");
        assert_eq!(hex(&keys.keyed_answer(&map, 3)), front("1e") + content);
    }
}
