//! Values in bodies and answers besides numbers and text: user JSON and durations.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use contract::{InvalidJson, Value};
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeStruct, Serializer};
use serde_json::value::RawValue;
use serde_json::{Value as JsonValue, json};

use crate::error::{DecodeError, Reason, pass};
use crate::reader::{RAW_VALUE, from_json_text};
use crate::schema::{Described, Schemas};

pub use crate::opaque::{FeedCursor, PageCursor, SecretText, SessionId};

/// User JSON: it is kept as the text that was sent, and returned as that text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserJson(pub Value);

impl Serialize for UserJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Value::Null => serializer.serialize_unit(),
            Value::Boolean(boolean) => serializer.serialize_bool(*boolean),
            Value::Integer(integer) => serializer.serialize_i64(*integer),
            Value::Text(text) => serializer.serialize_str(text),
            Value::Json(json) => raw_text(json.as_str(), serializer),
            other => raw_text(&other.to_json_text(), serializer),
        }
    }
}

/// Writes JSON text unchanged. `RawValue` does the same, but building one would parse the text again.
fn raw_text<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    let mut raw = serializer.serialize_struct(RAW_VALUE, 1)?;
    raw.serialize_field(RAW_VALUE, text)?;
    raw.end()
}

impl<'de> Deserialize<'de> for UserJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&'de RawValue>::deserialize(deserializer)?.get();
        match raw.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
            // The reader has validated the text.
            Some(plain) if !plain.contains('\\') => Ok(Self(Value::Text(plain.to_owned()))),
            _ => Value::from_json_text(raw).map(Self).map_err(refused_value),
        }
    }
}

/// A value that is nested too deeply is refused like a body that is.
fn refused_value<E: de::Error>(error: InvalidJson) -> E {
    match error {
        InvalidJson::TooDeep { .. } => pass(DecodeError::new(Reason::TooDeep)),
        other => E::custom(other),
    }
}

impl Described for UserJson {
    fn schema(_: &mut Schemas) -> JsonValue {
        json!({ "description": "Any JSON, kept as sent; bytes are {\"$b64\": \"...\"}" })
    }
}

/// The text of a JSON value, as it was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonText(pub String);

impl Serialize for JsonText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        raw_text(&self.0, serializer)
    }
}

impl<'de> Deserialize<'de> for JsonText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(<&'de RawValue>::deserialize(deserializer)?.get().to_owned()))
    }
}

impl Described for JsonText {
    fn schema(_: &mut Schemas) -> JsonValue {
        json!({ "description": "Any JSON" })
    }
}

/// Members with names chosen by callers, in order. A repeated name is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Members<T>(pub Vec<(String, T)>);

impl<T> Default for Members<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Members<T> {
    /// The value of a member.
    pub fn get(&self, name: &str) -> Option<&T> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T> FromIterator<(String, T)> for Members<T> {
    fn from_iter<I: IntoIterator<Item = (String, T)>>(members: I) -> Self {
        Self(members.into_iter().collect())
    }
}

impl<T: Serialize> Serialize for Members<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Members<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reading<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Reading<T> {
            type Value = Members<T>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<T>, A::Error> {
                let mut members: Vec<(String, T)> = Vec::new();
                while let Some(name) = map.next_key::<String>()? {
                    let value = map.next_value()?;
                    members.push((name, value));
                }
                match repeated(&members) {
                    None => Ok(Members(members)),
                    Some(name) => Err(pass(DecodeError::repeated_member(name))),
                }
            }
        }

        deserializer.deserialize_map(Reading(PhantomData))
    }
}

/// A repeated name.
fn repeated<T>(members: &[(String, T)]) -> Option<&str> {
    let mut names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}

impl<T: Described> Described for Members<T> {
    fn schema(schemas: &mut Schemas) -> JsonValue {
        json!({ "type": "object", "additionalProperties": T::schema(schemas) })
    }
}

/// A duration: `500ms`, `30s`, `10m`, `2h` or `7d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurationText(pub Duration);

impl DurationText {
    /// Reads one.
    pub fn parse(text: &str) -> Result<Self, DecodeError> {
        let parsed = contract::time::parse_duration(text).map(Self);
        parsed.ok_or_else(|| DecodeError::wrong_value(not_a_duration(text)))
    }
}

fn not_a_duration(text: &str) -> String {
    format!("{text:?} is not a duration; write 500ms, 30s, 10m, 2h or 7d")
}

impl Serialize for DurationText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Of 90 days a reader would not take the milliseconds: they have too many digits.
        match self.0.subsec_nanos() {
            0 => serializer.collect_str(&format_args!("{}s", self.0.as_secs())),
            _ => serializer.collect_str(&format_args!("{}ms", self.0.as_millis())),
        }
    }
}

/// Reads text; a number has no unit.
struct DurationVisitor;

impl Visitor<'_> for DurationVisitor {
    type Value = DurationText;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a duration: 500ms, 30s, 10m, 2h or 7d")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<DurationText, E> {
        contract::time::parse_duration(text).map(DurationText).ok_or_else(|| E::custom(not_a_duration(text)))
    }
}

impl<'de> Deserialize<'de> for DurationText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DurationVisitor)
    }
}

impl Described for DurationText {
    fn schema(_: &mut Schemas) -> JsonValue {
        json!({ "type": "string", "description": "500ms, 30s, 10m, 2h or 7d", "pattern": "^[0-9]{1,9}(ms|s|m|h|d)$" })
    }
}

/// Bytes: text as it is, other bytes as `{"$b64": "..."}`; a request may also send any other JSON, whose text is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload(pub Vec<u8>);

impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => serializer.collect_map([("$b64", STANDARD.encode(&self.0))]),
        }
    }
}

impl<'de> Deserialize<'de> for Payload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&'de RawValue>::deserialize(deserializer)?.get();
        if raw.starts_with('"') {
            return from_json_text::<String>(raw).map(|text| Self(text.into_bytes())).map_err(de::Error::custom);
        }
        match Value::from_json_text(raw).map_err(de::Error::custom)? {
            Value::Bytes(bytes) => Ok(Self(bytes)),
            _ => Ok(Self(raw.as_bytes().to_vec())),
        }
    }
}

impl Described for Payload {
    fn schema(_: &mut Schemas) -> JsonValue {
        json!({ "description": "Text, or bytes as {\"$b64\": \"...\"}" })
    }
}
