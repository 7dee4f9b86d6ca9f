//! Rows of what a map holds, on their way into a map that is being restored; also what checkpoints are made of.
//! `docs/formats/keyed.md` is the specification.

use contract::keyed::{InputPosition, LogicalTime, Merge};
use kv::{DecodeError, Reader, Writer};
use session::CommandDigest;

use super::commit::{check_answer, encode_answer};
use super::entry::{
    Entry, KeyState, Waiting, decode_position, decode_value, decode_version, encode_position, encode_version,
};
use super::ordered::WaitingUpdate;
use crate::value::ValueRef;

/// A row of what a map holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentRow<'bytes> {
    /// A key, with its entry.
    Key(&'bytes [u8], &'bytes [u8]),
    /// A key that has no row any more. Only in checkpoints of what has changed.
    Gone(&'bytes [u8]),
    /// An input, with its position.
    Position(&'bytes str, &'bytes [u8]),
    /// An update that waits for the seal, by its version and its key.
    Waiting(LogicalTime, &'bytes [u8], &'bytes [u8]),
    /// The answer to the last numbered commit.
    Answer(&'bytes [u8]),
}

const KEY: u8 = 1;
const GONE: u8 = 2;
const POSITION: u8 = 3;
const WAITING: u8 = 4;
const ANSWER: u8 = 5;

impl<'bytes> ContentRow<'bytes> {
    /// Appends it.
    pub fn encode(&self, writer: &mut Writer) {
        match *self {
            ContentRow::Key(key, row) => sized(sized(writer.u8(KEY), key), row),
            ContentRow::Gone(key) => sized(writer.u8(GONE), key),
            ContentRow::Position(input, row) => sized(sized(writer.u8(POSITION), input.as_bytes()), row),
            ContentRow::Waiting(version, key, row) => {
                sized(sized(encode_version(writer.u8(WAITING), version), key), row)
            }
            ContentRow::Answer(row) => sized(writer.u8(ANSWER), row),
        };
    }

    fn decode(reader: &mut Reader<'bytes>) -> Result<Self, DecodeError> {
        Ok(match reader.u8()? {
            KEY => ContentRow::Key(read_key(reader)?, read_sized(reader)?),
            GONE => ContentRow::Gone(read_key(reader)?),
            POSITION => {
                let input = std::str::from_utf8(read_sized(reader)?);
                let input = input.map_err(|_| DecodeError { what: "the name of an input that is not text" })?;
                ContentRow::Position(input, read_sized(reader)?)
            }
            WAITING => {
                let version = decode_version(reader)?;
                ContentRow::Waiting(version, read_key(reader)?, read_sized(reader)?)
            }
            ANSWER => ContentRow::Answer(read_sized(reader)?),
            _ => return Err(DecodeError { what: "a row of a map of an unknown kind" }),
        })
    }

    /// Checks what is in the row itself.
    fn check(&self) -> Result<(), DecodeError> {
        let checked = match self {
            ContentRow::Key(_, row) => Entry::decode(row).and_then(|entry| match entry.state {
                KeyState::Put { value, .. } => decode_value(value).map(drop),
                _ => Ok(()),
            }),
            ContentRow::Position(_, row) => decode_position(row).map(drop),
            ContentRow::Waiting(_, _, row) => WaitingUpdate::decode(row).and_then(|update| match update {
                WaitingUpdate::Put(value) => decode_value(value).map(drop),
                _ => Ok(()),
            }),
            ContentRow::Answer(row) => check_answer(row),
            ContentRow::Gone(_) => Ok(()),
        };
        checked.map_err(|_| DecodeError { what: "a row of a map that cannot be read" })
    }
}

fn sized<'writer>(writer: &'writer mut Writer, bytes: &[u8]) -> &'writer mut Writer {
    writer.varint(bytes.len() as u64).raw(bytes)
}

fn read_sized<'bytes>(reader: &mut Reader<'bytes>) -> Result<&'bytes [u8], DecodeError> {
    let length = usize::try_from(reader.varint()?).map_err(|_| DecodeError { what: "a length that cannot be" })?;
    reader.raw(length)
}

fn read_key<'bytes>(reader: &mut Reader<'bytes>) -> Result<&'bytes [u8], DecodeError> {
    let key = read_sized(reader)?;
    match contract::names::check_key(key) {
        Ok(()) => Ok(key),
        Err(_) => Err(DecodeError { what: "a key that is empty or too long" }),
    }
}

/// Rows of what a map holds, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentRows<'bytes> {
    bytes: &'bytes [u8],
}

impl<'bytes> ContentRows<'bytes> {
    /// Reads rows that fill `bytes`, and checks each.
    pub fn read(bytes: &'bytes [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        while !reader.rest().is_empty() {
            ContentRow::decode(&mut reader)?.check()?;
        }
        Ok(Self { bytes })
    }

    /// The rows, in order.
    pub fn iter(&self) -> impl Iterator<Item = ContentRow<'bytes>> {
        let mut reader = Reader::new(self.bytes);
        std::iter::from_fn(move || {
            let more = !reader.rest().is_empty();
            more.then(|| ContentRow::decode(&mut reader).expect("they were checked when they were read"))
        })
    }

    /// As they are encoded.
    pub(crate) fn as_bytes(&self) -> &'bytes [u8] {
        self.bytes
    }

    /// The most bytes of one value, as updates count them: without its kind, and without what is stored beside it.
    pub(crate) fn value_bytes_max(&self) -> usize {
        let payload = |value: &[u8]| value.len().saturating_sub(1);
        let bytes = self.iter().map(|row| match row {
            ContentRow::Key(_, row) => match Entry::decode(row).map(|entry| entry.state) {
                Ok(KeyState::Put { value, .. }) => payload(value),
                _ => 0,
            },
            ContentRow::Waiting(_, _, row) => match WaitingUpdate::decode(row) {
                Ok(WaitingUpdate::Put(value)) => payload(value),
                _ => 0,
            },
            ContentRow::Gone(_) | ContentRow::Position(..) | ContentRow::Answer(_) => 0,
        });
        bytes.max().unwrap_or(0)
    }
}

/// Puts rows together for what a map is to hold.
#[derive(Debug, Default)]
pub struct ContentWriter {
    writer: Writer,
    row: Writer,
}

impl ContentWriter {
    /// Without rows.
    pub fn new() -> Self {
        Self::default()
    }

    fn key(&mut self, key: &[u8], state: KeyState<'_>) {
        self.row.clear();
        Entry { commit: 0, waiting: Waiting::default(), state }.encode(&mut self.row);
        ContentRow::Key(key, self.row.as_slice()).encode(&mut self.writer);
    }

    /// A key with a value that was put.
    pub fn put(&mut self, key: &[u8], value: ValueRef<'_>, version: LogicalTime) {
        let mut encoded = Writer::new();
        value.encode(&mut encoded);
        self.key(key, KeyState::Put { version, value: encoded.as_slice() });
    }

    /// A key with an integer that others are merged into.
    pub fn merged(&mut self, key: &[u8], value: i64) {
        self.key(key, KeyState::Merged(value));
    }

    /// A deleted key.
    pub fn deleted(&mut self, key: &[u8], version: LogicalTime) {
        self.key(key, KeyState::Deleted(version));
    }

    /// An input.
    pub fn position(&mut self, input: &str, position: u64, updated_us: u64) {
        self.row.clear();
        encode_position(&mut self.row, &InputPosition::new(position, 0, updated_us));
        ContentRow::Position(input, self.row.as_slice()).encode(&mut self.writer);
    }

    fn waiting(&mut self, key: &[u8], version: LogicalTime, update: &WaitingUpdate<'_>) {
        self.row.clear();
        update.encode(&mut self.row);
        ContentRow::Waiting(version, key, self.row.as_slice()).encode(&mut self.writer);
    }

    /// A value that waits to be put.
    pub fn waiting_put(&mut self, key: &[u8], value: ValueRef<'_>, version: LogicalTime) {
        let mut encoded = Writer::new();
        value.encode(&mut encoded);
        self.waiting(key, version, &WaitingUpdate::Put(encoded.as_slice()));
    }

    /// An integer that waits to be merged.
    pub fn waiting_merge(&mut self, key: &[u8], merge: Merge, operand: i64, version: LogicalTime) {
        self.waiting(key, version, &WaitingUpdate::Merge(merge, operand));
    }

    /// A deletion that waits.
    pub fn waiting_delete(&mut self, key: &[u8], version: LogicalTime) {
        self.waiting(key, version, &WaitingUpdate::Delete);
    }

    /// The answer to the last numbered commit.
    pub fn answer(&mut self, digest: &CommandDigest, answer: &[u8]) {
        self.row.clear();
        encode_answer(&mut self.row, digest, answer);
        ContentRow::Answer(self.row.as_slice()).encode(&mut self.writer);
    }

    /// The bytes so far.
    pub fn as_slice(&self) -> &[u8] {
        self.writer.as_slice()
    }

    /// Forgets the rows so far.
    pub fn clear(&mut self) {
        self.writer.clear();
    }

    /// The rows, to be put into a command.
    pub fn rows(&self) -> ContentRows<'_> {
        ContentRows { bytes: self.writer.as_slice() }
    }
}

#[cfg(test)]
mod tests {
    use contract::KeyedRejection;

    use super::*;

    /// Part of a stored format; `docs/formats/keyed.md`.
    #[test]
    fn golden_rows() {
        let entry = [0x13, 5, 0, 7];
        let position = [&[1][..], &[0; 24]].concat();
        let done = crate::Answer::Done { commit: 7, outcomes: Vec::new() }.encode();
        let answer = [&[1][..], &[0; 16], &done].concat();
        let rows = [
            ContentRow::Key(b"k", &entry),
            ContentRow::Gone(b"g"),
            ContentRow::Position("in", &position),
            ContentRow::Waiting(LogicalTime::new(1, 300), b"w", &[1, 2]),
            ContentRow::Answer(&answer),
        ];
        let mut writer = Writer::new();
        rows.iter().for_each(|row| row.encode(&mut writer));
        let fixed = [1, 1, b'k', 4, 0x13, 5, 0, 7, 2, 1, b'g', 3, 2, b'i', b'n', 25];
        let waiting = [4, 1, 0xac, 2, 1, b'w', 2, 1, 2, 5, u8::try_from(answer.len()).expect("few")];
        assert_eq!(writer.as_slice(), [&fixed[..], &position, &waiting, &answer].concat());
        let read = ContentRows::read(writer.as_slice()).expect("rows");
        assert_eq!(read.iter().collect::<Vec<_>>(), rows);
    }

    #[test]
    fn what_is_no_row_is_refused() {
        let no_answer = [&[5, 18, 1][..], &[0; 16], b"x"].concat();
        let rejection = KeyedRejection::NoSuchMap { map: "m".into() };
        let mut writer = ContentWriter::new();
        writer.answer(&[0; 16], &crate::Answer::Rejected(rejection.into()).encode());
        let wrong: [&[u8]; 10] = [
            &no_answer,
            writer.as_slice(),
            &[0, 1, b'k'],
            &[6, 1, b'k'],
            &[1, 0, 4, 0x13, 5, 0, 7],
            &[1, 1, b'k', 3, 0x13, 5, 0],
            &[1, 1, b'k', 5, 0x11, 5, 0, 7, 99],
            &[3, 1, 0xff, 0],
            &[4, 0, 0, 1, b'w', 1, 1],
            &[5, 2, 1, 0],
        ];
        for bytes in wrong {
            assert!(ContentRows::read(bytes).is_err(), "{bytes:?}");
        }
    }
}
