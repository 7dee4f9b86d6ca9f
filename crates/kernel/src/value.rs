//! Values as bytes: a kind and a payload; `docs/formats/cells.md` is the specification.

use contract::{Json, Value};
use kv::{DecodeError, Reader, Writer};
use session::Digester;

const NULL: u8 = 0;
const BOOLEAN: u8 = 1;
const INTEGER: u8 = 2;
const TEXT: u8 = 3;
const JSON: u8 = 4;
const BYTES: u8 = 5;
/// In place of a kind: this version is a deletion.
pub(crate) const DELETION: u8 = 0xff;

/// A value that borrows its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueRef<'bytes> {
    /// Nothing, as a value.
    Null,
    /// True or false.
    Boolean(bool),
    /// A signed integer.
    Integer(i64),
    /// Unicode text.
    Text(&'bytes str),
    /// JSON text.
    Json(&'bytes str),
    /// Any bytes.
    Bytes(&'bytes [u8]),
}

impl<'bytes> ValueRef<'bytes> {
    /// Appends kind and payload; the payload reaches to the end of what the caller frames.
    pub fn encode(&self, writer: &mut Writer) {
        match self {
            ValueRef::Null => writer.u8(NULL),
            ValueRef::Boolean(boolean) => writer.u8(BOOLEAN).bool(*boolean),
            ValueRef::Integer(integer) => writer.u8(INTEGER).i64(*integer),
            ValueRef::Text(text) => writer.u8(TEXT).raw(text.as_bytes()),
            ValueRef::Json(text) => writer.u8(JSON).raw(text.as_bytes()),
            ValueRef::Bytes(bytes) => writer.u8(BYTES).raw(bytes),
        };
    }

    /// Reads a payload of the given kind that fills `payload`.
    pub fn decode(kind: u8, payload: &'bytes [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(payload);
        let text = || std::str::from_utf8(payload).map_err(|_| DecodeError { what: "text that is not UTF-8" });
        let value = match kind {
            NULL => ValueRef::Null,
            BOOLEAN => ValueRef::Boolean(reader.bool()?),
            INTEGER => ValueRef::Integer(reader.i64()?),
            TEXT => return Ok(ValueRef::Text(text()?)),
            JSON => return Ok(ValueRef::Json(text()?)),
            BYTES => return Ok(ValueRef::Bytes(payload)),
            _ => {
                return Err(DecodeError { what: "a value of an unknown kind" });
            }
        };
        reader.end()?;
        Ok(value)
    }

    /// Appends its length with the kind, then kind and payload.
    pub fn encode_framed(&self, writer: &mut Writer) {
        writer.u32(u32::try_from(self.len() + 1).expect("values are bounded far below that"));
        self.encode(writer);
    }

    /// Reads what [`encode_framed`](Self::encode_framed) wrote.
    pub fn decode_framed(reader: &mut Reader<'bytes>) -> Result<Self, DecodeError> {
        let (kind, payload) = reader.bytes()?.split_first().ok_or(DecodeError { what: "a value without a kind" })?;
        Self::decode(*kind, payload)
    }

    /// Appends a value that may be missing.
    pub fn encode_optional(value: Option<ValueRef<'_>>, writer: &mut Writer) {
        match value {
            None => {
                writer.u8(0);
            }
            Some(value) => value.encode_framed(writer.u8(1)),
        }
    }

    /// Reads what [`encode_optional`](Self::encode_optional) wrote.
    pub fn decode_optional(reader: &mut Reader<'bytes>) -> Result<Option<Self>, DecodeError> {
        Ok(if reader.bool()? { Some(Self::decode_framed(reader)?) } else { None })
    }

    /// Adds it to a digest: a value counts as its stored bytes, JSON as the text that was sent.
    pub(crate) fn digest(&self, member: &str, digester: &mut Digester) {
        let mut writer = Writer::new();
        self.encode(&mut writer);
        digester.member(member, writer.as_slice());
    }

    /// Bytes of the payload.
    pub fn len(&self) -> usize {
        match self {
            ValueRef::Null => 0,
            ValueRef::Boolean(_) => 1,
            ValueRef::Integer(_) => 8,
            ValueRef::Text(text) | ValueRef::Json(text) => text.len(),
            ValueRef::Bytes(bytes) => bytes.len(),
        }
    }

    /// Whether the payload is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value with owned bytes.
    pub fn to_value(self) -> Value {
        match self {
            ValueRef::Null => Value::Null,
            ValueRef::Boolean(boolean) => Value::Boolean(boolean),
            ValueRef::Integer(integer) => Value::Integer(integer),
            ValueRef::Text(text) => Value::Text(text.to_owned()),
            ValueRef::Json(text) => Value::Json(Json::from_checked(text.to_owned())),
            ValueRef::Bytes(bytes) => Value::Bytes(bytes.to_vec()),
        }
    }
}

impl<'value> From<&'value Value> for ValueRef<'value> {
    fn from(value: &'value Value) -> Self {
        match value {
            Value::Null => ValueRef::Null,
            Value::Boolean(boolean) => ValueRef::Boolean(*boolean),
            Value::Integer(integer) => ValueRef::Integer(*integer),
            Value::Text(text) => ValueRef::Text(text),
            Value::Json(json) => ValueRef::Json(json.as_str()),
            Value::Bytes(bytes) => ValueRef::Bytes(bytes),
            _ => unreachable!("every kind of value is listed above"),
        }
    }
}
