//! Updates of keys, as encoded in a command; `docs/formats/entry.md`. There can be thousands in one operation, so they are
//! checked once and read in place.

use contract::keyed::{LogicalTime, Merge};
use kv::{DecodeError, Reader, Writer};

use super::entry::{decode_version, encode_version};
use crate::command::act::unlisted;
use crate::value::ValueRef;

/// An update of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update<'bytes> {
    /// Puts a value with a version.
    Put {
        /// The version.
        version: LogicalTime,
        /// The value's kind and payload.
        value: &'bytes [u8],
    },
    /// Deletes what was put, with a version.
    Delete(LogicalTime),
    /// Merges an integer into the one that is there.
    Merge(Merge, i64),
    /// Removes what was merged.
    Remove,
    /// Merges an integer with a version, in an ordered map.
    MergeAt(LogicalTime, Merge, i64),
}

const PUT: u8 = 1;
const DELETE: u8 = 2;
const REMOVE: u8 = 3;
/// The first of those that merge: the place in [`MERGES`] is added.
const MERGE: u8 = 4;
const MERGES: [Merge; 3] = [Merge::Add, Merge::Min, Merge::Max];
/// Likewise, of those that merge with a version.
const MERGE_AT: u8 = 8;

impl<'bytes> Update<'bytes> {
    fn decode(reader: &mut Reader<'bytes>) -> Result<(&'bytes [u8], Self), DecodeError> {
        let code = reader.u8()?;
        let key = sized(reader)?;
        if key.is_empty() {
            return Err(DecodeError { what: "an empty key" });
        }
        let merge_from = |first: u8| MERGES.get(usize::from(code.checked_sub(first)?)).copied();
        let update = match code {
            PUT => Update::Put { version: decode_version(reader)?, value: sized(reader)? },
            DELETE => Update::Delete(decode_version(reader)?),
            REMOVE => Update::Remove,
            _ => match (merge_from(MERGE), merge_from(MERGE_AT)) {
                (Some(merge), _) => Update::Merge(merge, reader.i64()?),
                (None, Some(merge)) => Update::MergeAt(decode_version(reader)?, merge, reader.i64()?),
                (None, None) => return Err(DecodeError { what: "an update of an unknown kind" }),
            },
        };
        Ok((key, update))
    }
}

fn sized<'bytes>(reader: &mut Reader<'bytes>) -> Result<&'bytes [u8], DecodeError> {
    let length = usize::try_from(reader.varint()?).map_err(|_| DecodeError { what: "a length that cannot be" })?;
    reader.raw(length)
}

/// Updates of keys of one map, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Updates<'bytes> {
    bytes: &'bytes [u8],
    count: u32,
    /// Whether one of them makes the map larger.
    grows: bool,
    value_bytes_max: usize,
}

impl<'bytes> Updates<'bytes> {
    /// Reads updates that fill `bytes`, as [`UpdatesWriter`] has written them.
    pub fn read(bytes: &'bytes [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let (mut count, mut grows, mut value_bytes_max) = (0_u32, false, 0);
        while !reader.rest().is_empty() {
            let (_, update) = Update::decode(&mut reader)?;
            count = count.checked_add(1).ok_or(DecodeError { what: "too many updates" })?;
            match update {
                Update::Put { value, .. } => {
                    let (kind, payload) = value.split_first().ok_or(DecodeError { what: "a value without a kind" })?;
                    ValueRef::decode(*kind, payload)?;
                    value_bytes_max = value_bytes_max.max(payload.len());
                    grows = true;
                }
                // The deletion of a key of which nothing is known makes a row, too.
                Update::Merge(..) | Update::MergeAt(..) | Update::Delete(_) => grows = true,
                Update::Remove => {}
            }
        }
        Ok(Self { bytes, count, grows, value_bytes_max })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count as usize
    }

    /// Whether one of them makes the map larger.
    pub(crate) fn grows(&self) -> bool {
        self.grows
    }

    /// The most bytes of one value.
    pub(crate) fn value_bytes_max(&self) -> usize {
        self.value_bytes_max
    }

    /// As they are encoded.
    pub(crate) fn as_bytes(&self) -> &'bytes [u8] {
        self.bytes
    }

    /// Keys with their updates, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&'bytes [u8], Update<'bytes>)> {
        let mut reader = Reader::new(self.bytes);
        std::iter::from_fn(move || {
            let more = !reader.rest().is_empty();
            more.then(|| Update::decode(&mut reader).expect("they were checked when they were read"))
        })
    }
}

/// Puts updates together.
#[derive(Debug, Default)]
pub struct UpdatesWriter {
    writer: Writer,
    count: u32,
    grows: bool,
    value_bytes_max: usize,
}

impl UpdatesWriter {
    /// Without updates.
    pub fn new() -> Self {
        Self::default()
    }

    fn begin(&mut self, code: u8, key: &[u8]) -> &mut Writer {
        self.count = self.count.checked_add(1).expect("bounded far below that");
        self.writer.u8(code).varint(key.len() as u64).raw(key)
    }

    /// Puts a value with a version.
    pub fn put(&mut self, key: &[u8], value: ValueRef<'_>, version: LogicalTime) {
        self.grows = true;
        self.value_bytes_max = self.value_bytes_max.max(value.len());
        let writer = encode_version(self.begin(PUT, key), version).varint(value.len() as u64 + 1);
        value.encode(writer);
    }

    /// Deletes a key with a version. That is remembered, so the map may grow.
    pub fn delete(&mut self, key: &[u8], version: LogicalTime) {
        self.grows = true;
        encode_version(self.begin(DELETE, key), version);
    }

    /// Merges an integer into a key.
    pub fn merge(&mut self, key: &[u8], merge: Merge, operand: i64) {
        self.grows = true;
        self.begin(MERGE + place_of(merge), key).i64(operand);
    }

    /// Merges an integer into a key with a version, in an ordered map.
    pub fn merge_at(&mut self, key: &[u8], merge: Merge, operand: i64, version: LogicalTime) {
        self.grows = true;
        encode_version(self.begin(MERGE_AT + place_of(merge), key), version).i64(operand);
    }

    /// Removes a merged key.
    pub fn remove(&mut self, key: &[u8]) {
        self.begin(REMOVE, key);
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count as usize
    }

    /// They, to be put into a command.
    pub fn updates(&self) -> Updates<'_> {
        let Self { writer, count, grows, value_bytes_max } = self;
        Updates { bytes: writer.as_slice(), count: *count, grows: *grows, value_bytes_max: *value_bytes_max }
    }
}

/// The place of a way to merge in [`MERGES`].
fn place_of(merge: Merge) -> u8 {
    let place = MERGES.iter().position(|known| *known == merge).unwrap_or_else(|| unlisted(MERGE));
    u8::try_from(place).expect("a short list")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Part of a stored format; `docs/formats/entry.md`.
    #[test]
    fn golden_updates() {
        let mut writer = UpdatesWriter::new();
        writer.put(b"a", ValueRef::Text("x"), LogicalTime::new(1, 300));
        writer.delete(b"b", LogicalTime::from(7));
        writer.remove(b"c");
        for merge in MERGES {
            writer.merge(b"d", merge, 1);
        }
        MERGES.iter().for_each(|merge| writer.merge_at(b"e", *merge, 1, LogicalTime::from(7)));
        let one = [1, 0, 0, 0, 0, 0, 0, 0];
        let merged = [4, 5, 6].map(|code| [&[code, 1, b'd'][..], &one].concat()).concat();
        let merged_at = [8, 9, 10].map(|code| [&[code, 1, b'e', 0, 7][..], &one].concat()).concat();
        let fixed = [1, 1, b'a', 1, 0xac, 2, 2, 3, b'x', 2, 1, b'b', 0, 7, 3, 1, b'c'];
        assert_eq!(writer.updates().as_bytes(), [&fixed[..], &merged, &merged_at].concat());
        let updates = Updates::read(writer.updates().as_bytes()).expect("updates");
        assert_eq!(updates, writer.updates());
        assert_eq!((updates.count(), updates.grows(), updates.value_bytes_max()), (9, true, 1));
        let read = updates.iter().collect::<Vec<_>>();
        let put = Update::Put { version: LogicalTime::new(1, 300), value: &[3, b'x'] };
        assert_eq!(read[0], (b"a".as_slice(), put));
        assert_eq!(read[1], (b"b".as_slice(), Update::Delete(LogicalTime::from(7))));
        assert_eq!(read[2], (b"c".as_slice(), Update::Remove));
        assert_eq!(
            read[3..6].iter().map(|(_, update)| *update).collect::<Vec<_>>(),
            MERGES.map(|m| Update::Merge(m, 1))
        );
        let at = |merge| Update::MergeAt(LogicalTime::from(7), merge, 1);
        assert_eq!(read[6..].iter().map(|(_, update)| *update).collect::<Vec<_>>(), MERGES.map(at));
        let without_values = Updates::read(&fixed[9..]).expect("updates");
        assert_eq!((without_values.count(), without_values.grows()), (2, true));
        let only_removes = Updates::read(&fixed[14..]).expect("updates");
        assert_eq!((only_removes.count(), only_removes.grows()), (1, false));
    }

    #[test]
    fn what_is_no_update_is_refused() {
        let wrong: [&[u8]; 8] = [
            &[0, 1, b'a'],
            &[7, 1, b'a', 0, 0, 0, 0, 0, 0, 0, 0],
            &[3, 0],
            &[3, 2, b'a'],
            &[1, 1, b'a', 0, 7, 0],
            &[1, 1, b'a', 0, 7, 2, 9, b'x'],
            &[1, 1, b'a', 0, 7, 2, 3, 0xff],
            &[4, 1, b'a', 1],
        ];
        for bytes in wrong {
            assert!(Updates::read(bytes).is_err(), "{bytes:?}");
        }
    }
}
