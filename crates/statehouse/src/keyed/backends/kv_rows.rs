//! The rows of a state backend in a store of bytes. `docs/formats/snapshot.md` is the specification.
//!
//! Keeps: entries are in the order of their keys, and deletions in the order of their versions, which are sixteen bytes, big-endian,
//! wherever they are. Never: reads or writes a store.

use contract::keyed::LogicalTime;
use kv::{Batch, Bytes, DecodeError, Key, KeyRange, Reader, Writer};

use super::encoding::Encodings;
use super::entry::Entry;

const HEAD: u8 = 0;
const ENTRIES: u8 = 1;
const DELETIONS: u8 = 2;

const FORMAT: u8 = 1;
const DELETED: u8 = 0;
const PUT: u8 = 1;

/// The bytes of a version.
const VERSION_BYTES: usize = 16;
/// The bytes of the number of a content.
const CONTENT_BYTES: usize = 8;

/// The state as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) encodings: Encodings,
    /// The number of what it holds.
    pub(super) content: u64,
    /// The version up to which the source has finished.
    pub(super) seal: Option<LogicalTime>,
}

impl Head {
    pub(super) fn new(encodings: Encodings) -> Self {
        Self { encodings, content: 1, seal: None }
    }

    pub(super) fn encode(&self) -> Bytes {
        let mut writer = Writer::new();
        writer.u8(FORMAT).u8(self.encodings.keys as u8).u8(self.encodings.values as u8).u64(self.content);
        writer.bool(self.seal.is_some());
        if let Some(seal) = self.seal {
            writer.raw(&version_bytes(seal));
        }
        writer.no_members();
        writer.finish().into()
    }

    pub(super) fn decode(row: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(row);
        reader.format(FORMAT)?;
        let encodings = Encodings::read(reader.u8()?, reader.u8()?)?;
        let content = reader.u64()?;
        let seal = if reader.bool()? { Some(read_version(reader.raw(VERSION_BYTES)?)) } else { None };
        reader.no_members()?;
        reader.end().map(|()| Self { encodings, content, seal })
    }
}

/// The keys of the rows below a prefix.
pub(super) struct KvRows {
    prefix: Vec<u8>,
}

impl KvRows {
    pub(super) fn below(prefix: &[u8]) -> Self {
        Self { prefix: prefix.to_vec() }
    }

    fn key(&self, parts: &[&[u8]]) -> Key {
        let mut key = Key::from(self.prefix.as_slice());
        parts.iter().for_each(|part| key.extend_from_slice(part));
        key
    }

    pub(super) fn head(&self) -> Key {
        self.key(&[&[HEAD]])
    }

    pub(super) fn entry(&self, content: u64, key: &[u8]) -> Key {
        self.key(&[&[ENTRIES], &content.to_be_bytes(), key])
    }

    /// The key in the key of an entry's row.
    pub(super) fn entry_key<'row>(&self, row: &'row [u8]) -> &'row [u8] {
        &row[self.prefix.len() + 1 + CONTENT_BYTES..]
    }

    fn deletion(&self, content: u64, version: LogicalTime, key: &[u8]) -> Key {
        self.key(&[&[DELETIONS], &content.to_be_bytes(), &version_bytes(version), key])
    }

    /// The key in the key of a deletion's row.
    pub(super) fn deleted_key<'row>(&self, row: &'row [u8]) -> &'row [u8] {
        &row[self.prefix.len() + 1 + CONTENT_BYTES + VERSION_BYTES..]
    }

    /// The entries of a content.
    pub(super) fn entries(&self, content: u64) -> KeyRange {
        KeyRange::prefix(&self.entry(content, b""))
    }

    /// The deletions of a content up to a version.
    pub(super) fn deletions_up_to(&self, content: u64, version: LogicalTime) -> KeyRange {
        let all = self.key(&[&[DELETIONS], &content.to_be_bytes()]);
        let end = KeyRange::prefix(&self.deletion(content, version, b"")).end;
        KeyRange { start: all.to_vec(), end }
    }

    /// Everything but the head and this content.
    pub(super) fn other_contents(&self, content: u64) -> Vec<KeyRange> {
        let of_kind = |kind: u8| {
            let this = KeyRange::prefix(&self.key(&[&[kind], &content.to_be_bytes()]));
            let all = KeyRange::prefix(&self.key(&[&[kind]]));
            [KeyRange::between(all.start, this.start), KeyRange { start: this.end.unwrap_or_default(), end: all.end }]
        };
        [ENTRIES, DELETIONS].into_iter().flat_map(of_kind).collect()
    }

    /// Adds to a batch that the entry of a key becomes `after`.
    pub(super) fn replace(
        &self,
        batch: Batch,
        content: u64,
        key: &[u8],
        known: Option<&Entry>,
        after: &Entry,
    ) -> Batch {
        let batch = match known {
            Some(Entry { version, value: None }) => batch.delete(self.deletion(content, *version, key)),
            _ => batch,
        };
        let batch = match after.value {
            None => batch.put(self.deletion(content, after.version, key), Bytes::default()),
            Some(_) => batch,
        };
        batch.put(self.entry(content, key), Self::encode_entry(after))
    }

    fn encode_entry(entry: &Entry) -> Bytes {
        let mut writer = Writer::new();
        writer.raw(&version_bytes(entry.version));
        match &entry.value {
            None => writer.u8(DELETED),
            Some(value) => writer.u8(PUT).raw(value),
        };
        writer.finish().into()
    }

    pub(super) fn decode_entry(row: &[u8]) -> Result<Entry, DecodeError> {
        let mut reader = Reader::new(row);
        let version = read_version(reader.raw(VERSION_BYTES)?);
        let value = match reader.u8()? {
            DELETED => {
                reader.end()?;
                None
            }
            PUT => Some(reader.rest().to_vec()),
            _ => return Err(DecodeError { what: "an entry of an unknown kind" }),
        };
        Ok(Entry { version, value })
    }
}

/// A version as bytes in the order of versions.
fn version_bytes(version: LogicalTime) -> [u8; VERSION_BYTES] {
    ((u128::from(version.epoch) << 64) | u128::from(version.round)).to_be_bytes()
}

fn read_version(bytes: &[u8]) -> LogicalTime {
    let (epoch, round) = bytes.split_at(VERSION_BYTES / 2);
    let number = |bytes: &[u8]| bytes.iter().fold(0, |number, byte| (number << 8) | u64::from(*byte));
    LogicalTime::new(number(epoch), number(round))
}

#[cfg(test)]
mod tests {
    use super::super::encoding::Encoding;
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// `docs/formats/snapshot.md` has the same bytes.
    #[test]
    fn golden_rows() {
        let rows = KvRows::below(b"p/");
        let encodings = Encodings { keys: Encoding::Text, values: Encoding::Json };
        let head = Head { encodings, content: 2, seal: Some(LogicalTime::new(1, 5)) };
        assert_eq!(hex(&rows.head()), "702f00");
        assert_eq!(
            hex(&head.encode()),
            "010203020000000000000001".to_owned() + "00000000000000010000000000000005" + "00"
        );
        assert_eq!(Head::decode(&head.encode()), Ok(head));
        assert_eq!(hex(&rows.entry(2, b"k")), "702f0100000000000000026b");
        let put = Entry { version: LogicalTime::new(1, 7), value: Some(b"30".to_vec()) };
        let put_bytes = KvRows::encode_entry(&put);
        assert_eq!(hex(&put_bytes), "00000000000000010000000000000007".to_owned() + "01" + "3330");
        let deleted = Entry { version: 8.into(), value: None };
        let deleted_bytes = KvRows::encode_entry(&deleted);
        assert_eq!(hex(&deleted_bytes), "00000000000000000000000000000008".to_owned() + "00");
        let deletion = rows.deletion(2, 8.into(), b"k");
        assert_eq!(hex(&deletion), "702f020000000000000002".to_owned() + "00000000000000000000000000000008" + "6b");
        assert_eq!((KvRows::decode_entry(&put_bytes), KvRows::decode_entry(&deleted_bytes)), (Ok(put), Ok(deleted)));
        assert_eq!(
            (rows.entry_key(&rows.entry(2, b"k")), rows.deleted_key(&deletion)),
            (b"k".as_slice(), b"k".as_slice())
        );
    }

    #[test]
    fn ranges_have_what_they_say_and_nothing_else() {
        let rows = KvRows::below(b"p");
        let up_to = rows.deletions_up_to(2, LogicalTime::new(0, u64::MAX));
        for (version, key, is_in) in [
            (LogicalTime::from(0), b"\0".as_slice(), true),
            (LogicalTime::from(u64::MAX), b"\xff\xff", true),
            (LogicalTime::new(1, 0), b"", false),
        ] {
            assert_eq!(up_to.contains(&rows.deletion(2, version, key)), is_in, "{version}");
            assert!(
                !up_to.contains(&rows.deletion(1, version, key)) && !up_to.contains(&rows.deletion(3, version, key))
            );
        }
        let others = rows.other_contents(2);
        let removed = |key: &Key| others.iter().any(|range| range.contains(key));
        for content in [0, 1, 2, 3, u64::MAX] {
            assert_eq!(removed(&rows.entry(content, b"k")), content != 2);
            assert_eq!(removed(&rows.deletion(content, 7.into(), b"k")), content != 2);
        }
        assert!(
            !removed(&rows.head()) && !removed(&Key::from(b"o".as_slice())) && !removed(&Key::from(b"q".as_slice()))
        );
    }
}
