//! Queries: decodes `?prefix=jobs.&limit=10` into the types of this crate, and parts of paths.
//!
//! Keeps: a `%` that starts no escape, and bytes that are not UTF-8, are refused: two texts never decode to one.

use std::borrow::Cow;

use serde::de::value::{MapDeserializer, StrDeserializer};
use serde::de::{self, DeserializeOwned, Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

use crate::error::DecodeError;

/// A parameter: its name and its value.
pub type Parameter<'query> = (Cow<'query, str>, Cow<'query, str>);

/// The parameters of a query, in their order.
pub fn parameters(query: &str) -> Result<Vec<Parameter<'_>>, DecodeError> {
    let parts = query.split('&').filter(|part| !part.is_empty());
    parts
        .map(|part| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let name = decode_form(name).ok_or_else(|| not_text(name))?;
            let value = decode_form(value).ok_or_else(|| not_text(value).in_member(&name))?;
            Ok((name, value))
        })
        .collect()
}

fn not_text(part: &str) -> DecodeError {
    DecodeError::wrong_value(format!("{part:?} is not text: a % starts no escape, or its bytes are not UTF-8"))
}

fn decode_form(part: &str) -> Option<Cow<'_, str>> {
    match part.contains('+') {
        false => decode(part),
        true => decode(&part.replace('+', " ")).map(|text| Cow::Owned(text.into_owned())),
    }
}

/// Decodes the percent escapes of a part of a path or a query; none if an escape is broken or not UTF-8.
///
/// ```
/// use statehouse_wire::query::decode;
/// assert_eq!(decode("a%2fb").as_deref(), Some("a/b"));
/// assert_eq!((decode("%ff"), decode("%2")), (None, None));
/// ```
pub fn decode(part: &str) -> Option<Cow<'_, str>> {
    match decode_bytes(part)? {
        Cow::Borrowed(_) => Some(Cow::Borrowed(part)),
        Cow::Owned(bytes) => String::from_utf8(bytes).ok().map(Cow::Owned),
    }
}

/// Decodes the percent escapes of a part of a path into bytes, which need not be text; none if an escape is broken.
pub fn decode_bytes(part: &str) -> Option<Cow<'_, [u8]>> {
    if !part.contains('%') {
        return Some(Cow::Borrowed(part.as_bytes()));
    }
    let bytes = part.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] != b'%' {
            decoded.push(bytes[at]);
            at += 1;
            continue;
        }
        let digits = bytes.get(at + 1..at + 3).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
        decoded.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        at += 3;
    }
    Some(Cow::Owned(decoded))
}

/// Encodes text for a path or a query.
///
/// ```
/// assert_eq!(statehouse_wire::query::encode("a/b c"), "a%2Fb%20c");
/// ```
pub fn encode(text: &str) -> String {
    encode_bytes(text.as_bytes())
}

/// Encodes bytes, which need not be text, for a path.
pub fn encode_bytes(bytes: &[u8]) -> String {
    let mut encoded = String::with_capacity(bytes.len());
    for byte in bytes.iter().copied() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(byte.into()),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// Reads parameters into a type. Each occurs once, and all are known.
///
/// ```
/// use statehouse_wire::query::{from_parameters, parameters};
/// use statehouse_wire::cells::ListCells;
/// let list: ListCells = from_parameters(&parameters("prefix=a%2F&limit=10")?)?;
/// assert_eq!((list.prefix.as_deref(), list.limit), (Some("a/"), Some(10)));
/// let refused = from_parameters::<ListCells>(&parameters("limt=1")?).expect_err("misspelt");
/// assert_eq!(refused.to_string(), r#""limt" is unknown; did you mean "limit"?"#);
/// # Ok::<(), statehouse_wire::DecodeError>(())
/// ```
pub fn from_parameters<T: DeserializeOwned>(parameters: &[Parameter<'_>]) -> Result<T, DecodeError> {
    let pairs = parameters.iter().map(|(name, value)| (&**name, Text { name, value }));
    T::deserialize(MapDeserializer::new(pairs))
}

/// The value of a parameter.
struct Text<'query> {
    name: &'query str,
    value: &'query str,
}

impl<'de> IntoDeserializer<'de, DecodeError> for Text<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl Text<'_> {
    fn wrong(&self, wanted: &str) -> DecodeError {
        DecodeError::wrong_value(format!("{:?} is not {wanted}", self.value)).in_member(self.name)
    }
}

impl<'de> Deserializer<'de> for Text<'_> {
    type Error = DecodeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_str(self.value).map_err(|error: DecodeError| error.in_member(self.name))
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.value {
            "" | "true" => visitor.visit_bool(true),
            "false" => visitor.visit_bool(false),
            _ => Err(self.wrong("true or false")),
        }
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.value.parse() {
            Ok(number) => visitor.visit_u64(number),
            Err(_) => Err(self.wrong("a whole number")),
        }
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.value.parse() {
            Ok(number) => visitor.visit_u32(number),
            Err(_) => Err(self.wrong("a whole number below 4294967296")),
        }
    }

    fn deserialize_u16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.value.parse() {
            Ok(number) => visitor.visit_u16(number),
            Err(_) => Err(self.wrong("a whole number below 65536")),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        let word: StrDeserializer<'_, DecodeError> = self.value.into_deserializer();
        visitor.visit_enum(word).map_err(|error: DecodeError| error.in_member(self.name))
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u128 f32 f64 char str string
        bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

/// A query without parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct NoQuery;

impl<'de> de::Deserialize<'de> for NoQuery {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reading;

        impl<'de> Visitor<'de> for Reading {
            type Value = NoQuery;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("no parameters")
            }

            fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<NoQuery, A::Error> {
                match map.next_key::<String>()? {
                    None => Ok(NoQuery),
                    Some(name) => Err(de::Error::unknown_field(&name, &[])),
                }
            }
        }

        deserializer.deserialize_map(Reading)
    }
}

impl crate::schema::Described for NoQuery {
    fn schema(_: &mut crate::schema::Schemas) -> serde_json::Value {
        serde_json::json!({ "type": "object", "additionalProperties": false })
    }
}
