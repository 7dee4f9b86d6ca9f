//! The rows of a record, as bytes; `docs/formats/records.md` is the specification.
//!
//! A record is one packed row: its numbers, then its fields in name order. A large value has a separate row, so that
//! moving a job does not rewrite its parameters.

use kv::{DecodeError, Reader, Writer};
use session::Halt;

use crate::held::Was;
use crate::value::ValueRef;

const FORMAT: u8 = 1;

/// Larger values have a separate row.
pub const INLINE_BYTES_MAX: usize = 1024;

/// In place of a state's number: the record has no type.
pub const NO_STATE: u8 = 0xff;

/// The numbers that the store maintains for a record. Times are µs; 0 means none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// Counts the writes.
    pub version: u64,
    /// The number of the command that wrote it last.
    pub commit: u64,
    /// When it was created, wall time.
    pub created_us: u64,
    /// When it was last written, wall time.
    pub updated_us: u64,
    /// The number of its type; 0 if it has none.
    pub record_type: u32,
    /// The number of its state in its type.
    pub state: u8,
    /// Whether it was deleted or has expired, and is kept for its counters only.
    pub deleted: bool,
    /// Whether it is in a ready state, but not to be claimed before `ready_us`.
    pub waiting: bool,
    /// Whether only a claim by name takes it: it is in no queue.
    pub by_name: bool,
    /// The number of claims.
    pub attempt: u64,
    /// The number of failed attempts.
    pub failures: u32,
    /// When it will expire, wall time; of a deleted one, when its row may go.
    pub expires_us: u64,
    /// The time of its entry in the due index by wall time: at or before `expires_us`.
    pub expires_entry_us: u64,
    /// Until when it is held, cluster time.
    pub lease_us: u64,
    /// The time of its entry in the due index by cluster time: at or before `lease_us`.
    pub lease_entry_us: u64,
    /// Since when, or from when on, it can be claimed, wall time.
    pub ready_us: u64,
    /// The session that holds it; 0 if it is not held, or held without a session.
    pub holder_session: u64,
    /// The session with which it ends; 0 if it does not end with one.
    pub life_session: u64,
}

impl Numbers {
    /// The numbers before the first write of a record that continues from these counters.
    pub fn fresh(version: u64, attempt: u64) -> Self {
        Self {
            version,
            commit: 0,
            created_us: 0,
            updated_us: 0,
            record_type: 0,
            state: NO_STATE,
            deleted: true,
            waiting: false,
            by_name: false,
            attempt,
            failures: 0,
            expires_us: 0,
            expires_entry_us: 0,
            lease_us: 0,
            lease_entry_us: 0,
            ready_us: 0,
            holder_session: 0,
            life_session: 0,
        }
    }

    /// Whether it exists at a wall time.
    pub fn exists_at(&self, wall_us: u64) -> bool {
        !self.deleted && !self.expired_at(wall_us)
    }

    /// Whether its pause after a failure is not over.
    pub(crate) fn pauses_at(&self, wall_us: u64) -> bool {
        self.waiting && self.ready_us > wall_us
    }

    /// Whether it has expired at a wall time, without the expiry being committed.
    pub fn expired_at(&self, wall_us: u64) -> bool {
        !self.deleted && self.expires_us != 0 && self.expires_us <= wall_us
    }

    /// Whether a worker holds it.
    pub fn is_held(&self) -> bool {
        self.lease_us != 0
    }
}

/// The content of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<'bytes> {
    /// The value.
    Inline(ValueRef<'bytes>),
    /// A value of this size in a separate row.
    Apart {
        /// Its size in bytes.
        bytes: u32,
    },
}

impl Content<'_> {
    /// The size of its value in bytes.
    pub fn len(&self) -> usize {
        match self {
            Content::Inline(value) => value.len(),
            Content::Apart { bytes } => *bytes as usize,
        }
    }

    /// Its row, if its value has one, as it counts to its space.
    pub(crate) fn counted(&self) -> Option<Was> {
        // The kind of the value is in front of it.
        matches!(self, Content::Apart { .. }).then(|| Was::part(self.len() + 1))
    }

    /// Whether its value has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// One field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldRow<'bytes> {
    /// Its name.
    pub name: &'bytes str,
    /// The record's version that wrote it last.
    pub version: u64,
    /// Its content.
    pub content: Content<'bytes>,
}

/// A record, borrowed from its row and from the command that changes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row<'bytes> {
    /// The numbers maintained by the store.
    pub numbers: Numbers,
    /// The worker that holds it, or held it when it finished.
    pub worker: Option<&'bytes str>,
    /// The fields, in name order.
    pub fields: Vec<FieldRow<'bytes>>,
    /// The length of the row that it was read from; 0 if there is none, or if it is yet to be written.
    pub row_bytes: usize,
}

const DELETED: u8 = 1;
const WAITING: u8 = 2;
/// The session that holds it follows the numbers.
const HELD_IN_SESSION: u8 = 4;
/// The session with which it ends follows the numbers.
const ENDS_WITH_SESSION: u8 = 8;
/// It is in no queue.
const BY_NAME: u8 = 16;

impl<'bytes> Row<'bytes> {
    /// A record that does not exist, whose counters continue from these.
    pub fn fresh(version: u64, attempt: u64) -> Self {
        Self { numbers: Numbers::fresh(version, attempt), worker: None, fields: Vec::new(), row_bytes: 0 }
    }

    /// Appends the row's bytes.
    pub fn encode(&self, writer: &mut Writer) {
        let numbers = &self.numbers;
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        let flags = flag(numbers.deleted, DELETED)
            | flag(numbers.waiting, WAITING)
            | flag(numbers.holder_session != 0, HELD_IN_SESSION)
            | flag(numbers.life_session != 0, ENDS_WITH_SESSION)
            | flag(numbers.by_name, BY_NAME);
        writer.u8(FORMAT).u8(flags).u8(numbers.state).u32(numbers.record_type).u32(numbers.failures);
        writer.u64(numbers.version).u64(numbers.commit).u64(numbers.created_us).u64(numbers.updated_us);
        writer.u64(numbers.attempt).u64(numbers.expires_us).u64(numbers.expires_entry_us);
        writer.u64(numbers.lease_us).u64(numbers.lease_entry_us).u64(numbers.ready_us);
        for session in [numbers.holder_session, numbers.life_session] {
            if session != 0 {
                writer.u64(session);
            }
        }
        writer.bytes(self.worker.unwrap_or_default().as_bytes());
        for field in &self.fields {
            writer.bytes(field.name.as_bytes()).u64(field.version);
            match field.content {
                Content::Inline(value) => {
                    writer.u8(0).u32(u32::try_from(value.len() + 1).expect("values are bounded"));
                    value.encode(writer);
                }
                Content::Apart { bytes } => {
                    writer.u8(1).u32(bytes);
                }
            }
        }
    }

    /// Reads the row.
    pub fn decode(bytes: &'bytes [u8]) -> Result<Self, Halt> {
        Self::read(bytes).map_err(|error| Halt::Undecodable { what: "a row of a record", error })
    }

    fn read(bytes: &'bytes [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let numbers = read_numbers(&mut reader)?;
        let worker = Some(reader.text()?).filter(|worker| !worker.is_empty());
        let mut fields = Vec::with_capacity(8);
        while !reader.rest().is_empty() {
            let (name, version) = (reader.text()?, reader.u64()?);
            let content = if reader.bool()? {
                Content::Apart { bytes: reader.u32()? }
            } else {
                Content::Inline(read_value(reader.bytes()?)?)
            };
            fields.push(FieldRow { name, version, content });
        }
        Ok(Self { numbers, worker, fields, row_bytes: bytes.len() })
    }

    /// The row that it was read from, as it counts to its space; none if there is none.
    pub(crate) fn counted(&self) -> Option<Was> {
        (self.row_bytes > 0).then_some(Was { bytes: self.row_bytes, exists: !self.numbers.deleted })
    }

    /// A field by name.
    pub fn field(&self, name: &str) -> Option<&FieldRow<'bytes>> {
        let place = self.fields.binary_search_by(|field| field.name.cmp(name)).ok()?;
        Some(&self.fields[place])
    }

    /// Writes a field, or removes it.
    pub fn set(&mut self, name: &'bytes str, value: Option<ValueRef<'bytes>>, version: u64) {
        let place = self.fields.binary_search_by(|field| field.name.cmp(name));
        match (place, value) {
            (Ok(place), Some(value)) => {
                self.fields[place] = FieldRow { name, version, content: Content::Inline(value) };
            }
            (Ok(place), None) => {
                self.fields.remove(place);
            }
            (Err(place), Some(value)) => {
                self.fields.insert(place, FieldRow { name, version, content: Content::Inline(value) });
            }
            (Err(_), None) => {}
        }
    }
}

/// Reads the numbers alone, which is all a sweep needs.
pub fn decode_numbers(bytes: &[u8]) -> Result<Numbers, Halt> {
    read_numbers(&mut Reader::new(bytes)).map_err(|error| Halt::Undecodable { what: "a row of a record", error })
}

fn read_numbers(reader: &mut Reader<'_>) -> Result<Numbers, DecodeError> {
    reader.format(FORMAT)?;
    let flags = reader.u8()?;
    let (state, record_type, failures) = (reader.u8()?, reader.u32()?, reader.u32()?);
    if flags & !(DELETED | WAITING | HELD_IN_SESSION | ENDS_WITH_SESSION | BY_NAME) != 0 {
        return Err(DecodeError { what: "an unknown flag" });
    }
    let mut numbers = Numbers {
        version: reader.u64()?,
        commit: reader.u64()?,
        created_us: reader.u64()?,
        updated_us: reader.u64()?,
        record_type,
        state,
        deleted: flags & DELETED != 0,
        waiting: flags & WAITING != 0,
        by_name: flags & BY_NAME != 0,
        attempt: reader.u64()?,
        failures,
        expires_us: reader.u64()?,
        expires_entry_us: reader.u64()?,
        lease_us: reader.u64()?,
        lease_entry_us: reader.u64()?,
        ready_us: reader.u64()?,
        holder_session: 0,
        life_session: 0,
    };
    if flags & HELD_IN_SESSION != 0 {
        numbers.holder_session = reader.u64()?;
    }
    if flags & ENDS_WITH_SESSION != 0 {
        numbers.life_session = reader.u64()?;
    }
    Ok(numbers)
}

/// Reads a kind and a payload.
pub fn read_value(bytes: &[u8]) -> Result<ValueRef<'_>, DecodeError> {
    let (kind, payload) = bytes.split_first().ok_or(DecodeError { what: "a value without a kind" })?;
    ValueRef::decode(*kind, payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row<'static> {
        let mut row = Row::fresh(3, 2);
        row.numbers =
            Numbers { deleted: false, waiting: true, state: 1, record_type: 7, lease_us: 9, commit: 5, ..row.numbers };
        row.worker = Some("w");
        row.set("b", Some(ValueRef::Integer(1)), 3);
        row.set("a", Some(ValueRef::Text("x")), 3);
        row
    }

    /// The bytes of `docs/formats/records.md`. A change here is a change of the format.
    #[test]
    fn golden_row() {
        let mut writer = Writer::new();
        row().encode(&mut writer);
        let hex = writer.as_slice().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let zero = "0000000000000000";
        let numbers = ["0300000000000000", "0500000000000000", zero, zero, "0200000000000000", zero, zero]
            .into_iter()
            .chain(["0900000000000000", zero, zero])
            .collect::<String>();
        let fields = "0100000061".to_owned()
            + "0300000000000000"
            + "00"
            + "020000000378"
            + "0100000062"
            + "0300000000000000"
            + "00"
            + "09000000020100000000000000";
        assert_eq!(hex, "0102010700000000000000".to_owned() + &numbers + "0100000077" + &fields);
        assert_eq!(Row::decode(writer.as_slice()), Ok(Row { row_bytes: writer.as_slice().len(), ..row() }));
        assert_eq!(decode_numbers(writer.as_slice()), Ok(row().numbers));
    }

    #[test]
    fn golden_sessions_of_a_row() {
        for (holder_session, life_session, flags, sessions) in [
            (7, 0, "06", "0700000000000000"),
            (0, 9, "0a", "0900000000000000"),
            (7, 9, "0e", "07000000000000000900000000000000"),
        ] {
            let mut row = row();
            row.numbers = Numbers { holder_session, life_session, ..row.numbers };
            let mut writer = Writer::new();
            row.encode(&mut writer);
            let hex = writer.as_slice().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
            assert_eq!(hex[2..4], *flags);
            // Behind the format, flags, state, type, failures and ten numbers.
            let start = 2 * (1 + 1 + 1 + 4 + 4 + 10 * 8);
            assert_eq!(hex[start..start + sessions.len()], *sessions);
            row.row_bytes = writer.as_slice().len();
            assert_eq!(Row::decode(writer.as_slice()), Ok(row));
        }
    }

    #[test]
    fn fields_stay_in_name_order() {
        let mut row = row();
        row.set("aa", Some(ValueRef::Null), 4);
        assert_eq!(row.fields.iter().map(|field| field.name).collect::<Vec<_>>(), ["a", "aa", "b"]);
        row.set("a", None, 5);
        row.set("z", None, 5);
        assert_eq!(row.fields.iter().map(|field| field.name).collect::<Vec<_>>(), ["aa", "b"]);
        assert_eq!(row.field("aa").map(|field| field.version), Some(4));
    }
}
