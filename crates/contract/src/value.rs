//! The content of a cell, a field or an event: bytes with a kind; and the conversion between values and JSON text.
//!
//! Keeps: text in, the same text out. For every JSON text `t` without surrounding whitespace that
//! [`Value::from_json_text`] accepts, `Value::from_json_text(t)?.to_json_text() == t`. Only content with a single
//! spelling gets its own kind: the literals, integers of 64 bits, text with no more escapes than it needs, and bytes.
//! Everything else is [`Value::Json`], which keeps its text: `1.0`, `-0`, `1e400`, numbers of any length, `"\u0041"`,
//! `{"a": 1, "a": 2}`.
//!
//! Never: passes user JSON through a tree of values, which would round numbers and lose the order of members.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::IgnoredAny;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::limits::JSON_DEPTH_MAX;

/// The JSON around the base64 of bytes.
const BYTES: (&str, &str) = ("{\"$b64\":\"", "\"}");

/// A value with its kind. Integers and bytes keep every bit; only JSON is treated as JSON.
///
/// ```
/// use statehouse_contract::Value;
/// assert_eq!(Value::from("red"), Value::Text("red".into()));
/// assert_eq!(Value::from(-7), Value::Integer(-7));
/// assert!(Value::json("{\"a\": [1, 2]}").is_ok());
/// assert!(Value::json("{\"a\": ").is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Value {
    /// Null, as a value: the cell exists.
    Null,
    /// True or false.
    Boolean(bool),
    /// A signed integer of 64 bits.
    Integer(i64),
    /// Unicode text.
    Text(String),
    /// JSON text, validated and kept as sent.
    Json(Json),
    /// Any bytes.
    Bytes(Vec<u8>),
}

/// Text that is well-formed JSON, kept as sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Json(String);

impl Json {
    /// Validates `text`.
    ///
    /// ```
    /// use statehouse_contract::{InvalidJson, Json};
    /// assert_eq!(Json::new("[1.0, 1e400]").map(Json::into_string), Ok("[1.0, 1e400]".to_owned()));
    /// assert!(matches!(Json::new("[1,]"), Err(InvalidJson::Malformed { .. })));
    /// assert_eq!(Json::new("[\"\\ud800\"]"), Err(InvalidJson::LoneSurrogate { at: 2 }));
    /// ```
    pub fn new(text: impl Into<String>) -> Result<Self, InvalidJson> {
        let text = text.into();
        check(&text)?;
        Ok(Self(text))
    }

    /// Text that was validated before it was stored.
    pub fn from_checked(text: String) -> Self {
        Self(text)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text.
    pub fn into_string(self) -> String {
        self.0
    }
}

impl Serialize for Json {
    /// Writes the text unchanged. Only serde_json's text serializers can do this.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        raw(&self.0)?.serialize(serializer)
    }
}

/// Why text cannot be stored as JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidJson {
    /// It is not JSON.
    #[error("not JSON: {reason}")]
    Malformed {
        /// What is wrong, and where.
        reason: String,
    },
    /// A `\u` escape is one half of a surrogate pair without the other. It encodes no character: one reader refuses it,
    /// the next replaces it.
    #[error("lone surrogate: the escape at byte {at} is half of a pair, which encodes no character")]
    LoneSurrogate {
        /// Where the escape starts, in bytes from 0.
        at: usize,
    },
    /// Arrays and objects are nested too deeply.
    #[error("arrays and objects are nested deeper than json_depth_max = {max}")]
    TooDeep {
        /// [`JSON_DEPTH_MAX`].
        max: usize,
    },
    /// The text in `{"$b64":"..."}` is not canonical base64.
    #[error("$b64 is not canonical base64: {reason}")]
    Base64 {
        /// What is wrong, and where.
        reason: String,
    },
}

/// Refuses text that is not JSON, is nested too deeply, or escapes half a surrogate pair.
pub(crate) fn check(text: &str) -> Result<(), InvalidJson> {
    // Neither this parse nor raw values check the escapes in strings or count levels.
    serde_json::from_str::<IgnoredAny>(text).map_err(|error| InvalidJson::Malformed { reason: error.to_string() })?;
    let bytes = text.as_bytes();
    let (mut depth, mut at, mut in_string) = (0, 0, false);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => in_string = !in_string,
            b'\\' => {
                at += escape(bytes, at)?;
                continue;
            }
            b'[' | b'{' if !in_string => {
                depth += 1;
                if depth > JSON_DEPTH_MAX {
                    return Err(InvalidJson::TooDeep { max: JSON_DEPTH_MAX });
                }
            }
            b']' | b'}' if !in_string => depth -= 1,
            _ => {}
        }
        at += 1;
    }
    Ok(())
}

/// The length of the escape at `at`; both halves of a surrogate pair count as one.
fn escape(bytes: &[u8], at: usize) -> Result<usize, InvalidJson> {
    let unit = |at: usize| match bytes.get(at..at + 6) {
        Some([b'\\', b'u', hex @ ..]) => {
            std::str::from_utf8(hex).ok().and_then(|hex| u16::from_str_radix(hex, 16).ok())
        }
        _ => None,
    };
    match unit(at) {
        None => Ok(2),
        Some(0xd800..=0xdbff) if matches!(unit(at + 6), Some(0xdc00..=0xdfff)) => Ok(12),
        Some(0xd800..=0xdfff) => Err(InvalidJson::LoneSurrogate { at }),
        Some(_) => Ok(6),
    }
}

fn raw<E: serde::ser::Error>(text: &str) -> Result<&RawValue, E> {
    serde_json::from_str(text).map_err(|_| E::custom("stored JSON that is not JSON"))
}

/// Whether `text` is the canonical spelling of its integer.
fn integer(text: &str) -> Option<i64> {
    let integer: i64 = text.parse().ok()?;
    // The parser reads `-0`, `+1` and `01` as integers, but their canonical spelling differs.
    (integer.to_string() == text).then_some(integer)
}

/// JSON text on one line, for streams and files with one document per line. A line break in JSON can only be between
/// tokens; it becomes a space.
///
/// ```
/// use statehouse_contract::value::in_one_line;
/// assert_eq!(in_one_line("{\r\n\"a\\n\": 1}"), "{  \"a\\n\": 1}");
/// ```
pub fn in_one_line(json: &str) -> Cow<'_, str> {
    match json.contains(['\n', '\r']) {
        true => Cow::Owned(json.replace(['\n', '\r'], " ")),
        false => Cow::Borrowed(json),
    }
}

/// Appends `text` to `out` as JSON, with no more escapes than it needs.
pub fn write_text_json(text: &str, out: &mut String) {
    out.push('"');
    let mut written = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escaped = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            0x08 => "\\b",
            0x0c => "\\f",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0..0x20 => "",
            _ => continue,
        };
        out.push_str(&text[written..at]);
        match escaped {
            "" => out.push_str(&format!("\\u{byte:04x}")),
            escaped => out.push_str(escaped),
        }
        written = at + 1;
    }
    out.push_str(&text[written..]);
    out.push('"');
}

impl Value {
    /// A JSON value, if `text` is JSON.
    pub fn json(text: impl Into<String>) -> Result<Self, InvalidJson> {
        Json::new(text).map(Self::Json)
    }

    /// The value of a JSON text. Surrounding whitespace is not part of it; see [the module](self) for what is
    /// preserved.
    ///
    /// ```
    /// use statehouse_contract::{InvalidJson, Value};
    /// assert_eq!(Value::from_json_text("-7")?, Value::Integer(-7));
    /// assert_eq!(Value::from_json_text("\"red\"")?, Value::from("red"));
    /// assert_eq!(Value::from_json_text("{\"$b64\":\"AP8=\"}")?, Value::Bytes(vec![0, 255]));
    /// assert_eq!(Value::from_json_text("1.0")?, Value::json("1.0")?);
    /// assert!(matches!(Value::from_json_text("{\"$b64\":\"AP9=\"}"), Err(InvalidJson::Base64 { .. })));
    /// # Ok::<(), InvalidJson>(())
    /// ```
    pub fn from_json_text(text: &str) -> Result<Self, InvalidJson> {
        let text = text.trim_matches([' ', '\t', '\n', '\r']);
        match text {
            "null" => return Ok(Value::Null),
            "true" => return Ok(Value::Boolean(true)),
            "false" => return Ok(Value::Boolean(false)),
            _ => {}
        }
        if let Some(integer) = integer(text) {
            return Ok(Value::Integer(integer));
        }
        check(text)?;
        if text.starts_with('"')
            && let Ok(decoded) = serde_json::from_str::<Cow<str>>(text)
            && is_spelled(&decoded, text)
        {
            return Ok(Value::Text(decoded.into_owned()));
        }
        let between = text.strip_prefix(BYTES.0).and_then(|rest| rest.strip_suffix(BYTES.1));
        if let Some(base64) = between.filter(|base64| !base64.contains(['"', '\\'])) {
            let refused = |error: base64::DecodeError| InvalidJson::Base64 { reason: error.to_string() };
            return STANDARD.decode(base64).map(Value::Bytes).map_err(refused);
        }
        Ok(Value::Json(Json(text.to_owned())))
    }

    /// The value as JSON text: bytes are `{"$b64":"..."}`, JSON is as sent.
    ///
    /// ```
    /// use statehouse_contract::Value;
    /// assert_eq!(Value::from("red").to_json_text(), "\"red\"");
    /// assert_eq!(Value::Bytes(vec![0, 255]).to_json_text(), "{\"$b64\":\"AP8=\"}");
    /// ```
    pub fn to_json_text(&self) -> String {
        let mut text = String::new();
        self.write_json_text(&mut text);
        text
    }

    /// Appends the value to `out` as JSON text.
    pub fn write_json_text(&self, out: &mut String) {
        match self {
            Value::Null => out.push_str("null"),
            Value::Boolean(true) => out.push_str("true"),
            Value::Boolean(false) => out.push_str("false"),
            Value::Integer(integer) => out.push_str(&integer.to_string()),
            Value::Text(text) => write_text_json(text, out),
            Value::Json(json) => out.push_str(&json.0),
            Value::Bytes(bytes) => {
                out.push_str(BYTES.0);
                STANDARD.encode_string(bytes, out);
                out.push_str(BYTES.1);
            }
        }
    }

    /// The size of the value in bytes.
    pub fn len(&self) -> usize {
        match self {
            Value::Null => 0,
            Value::Boolean(_) => 1,
            Value::Integer(_) => 8,
            Value::Text(text) => text.len(),
            Value::Json(json) => json.0.len(),
            Value::Bytes(bytes) => bytes.len(),
        }
    }

    /// Whether the value is zero bytes long.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The text of a text value.
    pub fn as_text(&self) -> Option<&str> {
        if let Value::Text(text) = self { Some(text) } else { None }
    }

    /// The number of an integer value.
    pub fn as_integer(&self) -> Option<i64> {
        if let Value::Integer(integer) = self { Some(*integer) } else { None }
    }
}

/// Whether `text` is our own spelling of `decoded`.
fn is_spelled(decoded: &str, text: &str) -> bool {
    if !text.contains('\\') {
        return true;
    }
    let mut spelled = String::with_capacity(text.len());
    write_text_json(decoded, &mut spelled);
    spelled == text
}

impl Serialize for Value {
    /// The value as JSON, without an intermediate tree. Only serde_json's text serializers write JSON unchanged.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Null => serializer.serialize_unit(),
            Value::Boolean(boolean) => serializer.serialize_bool(*boolean),
            Value::Integer(integer) => serializer.serialize_i64(*integer),
            Value::Text(text) => serializer.serialize_str(text),
            Value::Json(json) => json.serialize(serializer),
            Value::Bytes(bytes) => serializer.collect_map([("$b64", STANDARD.encode(bytes))]),
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::Text(text)
    }
}

impl From<i64> for Value {
    fn from(integer: i64) -> Self {
        Value::Integer(integer)
    }
}

impl From<i32> for Value {
    fn from(integer: i32) -> Self {
        Value::Integer(integer.into())
    }
}

impl From<bool> for Value {
    fn from(boolean: bool) -> Self {
        Value::Boolean(boolean)
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        Value::Bytes(bytes)
    }
}

impl From<&[u8]> for Value {
    fn from(bytes: &[u8]) -> Self {
        Value::Bytes(bytes.to_vec())
    }
}

impl From<Json> for Value {
    fn from(json: Json) -> Self {
        Value::Json(json)
    }
}

#[cfg(test)]
mod tests;
