//! Keys of maps: bytes, which are text in most programs.
//!
//! Keeps: a key is read and written in one form for each place: text as text, and other bytes as `{"$b64": "…"}`.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;
use serde_json::{Value as JsonValue, json};

use crate::error::{DecodeError, pass};
use crate::reader::from_json_text;
use crate::schema::{Described, Schemas};

/// The member of bytes that are not text.
const OCTETS: &str = "$b64";

/// A key in a body or an answer: text, or `{"$b64": "…"}`.
///
/// ```
/// use statehouse_wire::from_json_text;
/// use statehouse_wire::keyed::key::MapKey;
/// let key: MapKey = from_json_text(r#"{"$b64":"/wE="}"#)?;
/// assert_eq!(key.0, [0xff, 1]);
/// assert_eq!(from_json_text::<MapKey>(r#""word""#)?.0, b"word");
/// # Ok::<(), statehouse_wire::DecodeError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MapKey(pub Vec<u8>);

impl<K: Into<Vec<u8>>> From<K> for MapKey {
    fn from(key: K) -> Self {
        Self(key.into())
    }
}

impl Serialize for MapKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => {
                let mut object = serializer.serialize_map(Some(1))?;
                object.serialize_entry(OCTETS, &STANDARD.encode(&self.0))?;
                object.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for MapKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        key_of(<&'de RawValue>::deserialize(deserializer)?.get()).map_err(pass)
    }
}

/// Bytes that are not text.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct OctetsObject {
    #[serde(rename = "$b64")]
    octets: String,
}

fn key_of(raw: &str) -> Result<MapKey, DecodeError> {
    match raw.as_bytes().first() {
        Some(b'"') => from_json_text::<String>(raw).map(|text| MapKey(text.into_bytes())),
        Some(b'{') => {
            let octets = from_json_text::<OctetsObject>(raw)?.octets;
            let refused = || DecodeError::wrong_value(format!("{octets:?} is not base64")).in_member(OCTETS);
            STANDARD.decode(octets.as_bytes()).map(MapKey).map_err(|_| refused())
        }
        _ => Err(DecodeError::wrong_value("a key is text, or bytes as {\"$b64\": \"...\"}")),
    }
}

impl Described for MapKey {
    fn schema(_: &mut Schemas) -> JsonValue {
        json!({
            "description": "Text, or bytes as {\"$b64\": \"...\"}",
            "anyOf": [
                { "type": "string" },
                {
                    "type": "object",
                    "required": [OCTETS],
                    "properties": { OCTETS: { "type": "string", "pattern": "^[A-Za-z0-9+/]*={0,2}$" } },
                    "additionalProperties": false,
                },
            ],
        })
    }
}

/// A key, or a part of one, in a query: text; or bytes in the form that they have in a body, which other text never begins like.
///
/// ```
/// use statehouse_wire::keyed::ScanKeys;
/// use statehouse_wire::query::{from_parameters, parameters};
/// let scan: ScanKeys = from_parameters(&parameters("prefix=a%2F&from=%7B%22$b64%22:%22/wE=%22%7D")?)?;
/// assert_eq!(scan.prefix.map(|prefix| prefix.0), Some(b"a/".to_vec()));
/// assert_eq!(scan.from.map(|from| from.0), Some(vec![0xff, 1]));
/// # Ok::<(), statehouse_wire::DecodeError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyText(pub Vec<u8>);

/// What a parameter of bytes that are not text begins with.
const OCTETS_BEGIN: &str = "{\"$b64\"";

impl Serialize for KeyText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) if !text.starts_with(OCTETS_BEGIN) => serializer.serialize_str(text),
            _ => serializer.collect_str(&format_args!("{OCTETS_BEGIN}:\"{}\"}}", STANDARD.encode(&self.0))),
        }
    }
}

impl<'de> Deserialize<'de> for KeyText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reading;

        impl Visitor<'_> for Reading {
            type Value = KeyText;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("text, or bytes as {\"$b64\": \"...\"}")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<KeyText, E> {
                match text.starts_with(OCTETS_BEGIN) {
                    false => Ok(KeyText(text.as_bytes().to_vec())),
                    true => key_of(text).map(|key| KeyText(key.0)).map_err(E::custom),
                }
            }
        }

        deserializer.deserialize_str(Reading)
    }
}

impl Described for KeyText {
    fn schema(_: &mut Schemas) -> JsonValue {
        json!({ "type": "string", "description": "Text, or bytes as {\"$b64\": \"...\"}" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_as_it_is_written() {
        for key in [&b"word"[..], b"", b"a/b\"\n", &[0xff, 0], &[0], "h\u{e9}".as_bytes(), b"{\"$b64\":\"YQ==\"}"] {
            let key = MapKey(key.to_vec());
            let written = serde_json::to_string(&key).expect("JSON");
            assert_eq!(from_json_text::<MapKey>(&written), Ok(key.clone()), "{written}");
            let text = KeyText(key.0.clone());
            let written = serde_json::to_value(&text).expect("JSON");
            let parameter = format!("prefix={}", crate::query::encode(written.as_str().expect("text")));
            let parameters = crate::query::parameters(&parameter).expect("parameters");
            let read: crate::keyed::ScanKeys = crate::query::from_parameters(&parameters).expect("a scan");
            assert_eq!(read.prefix, Some(text), "{parameter}");
        }
        assert_eq!(serde_json::to_string(&MapKey(vec![0xff, 1])).expect("JSON"), r#"{"$b64":"/wE="}"#);
    }

    #[test]
    fn what_is_no_key_is_refused_by_name() {
        let refused = |raw: &str| from_json_text::<MapKey>(raw).expect_err(raw).to_string();
        assert_eq!(refused(r#"{"$b64":"a"}"#), r#""$b64": "a" is not base64"#);
        assert_eq!(refused(r#"{"$b46":"YQ=="}"#), r#""$b46" is unknown; did you mean "$b64"?"#);
        assert_eq!(refused(r#"{"$b64":"YQ==","more":1}"#), r#""more" is unknown"#);
        for raw in ["1", "null", "[]", "true", "1.5", "{}"] {
            assert!(from_json_text::<MapKey>(raw).is_err(), "{raw}");
        }
    }
}
