//! Reads JSON into the types of this crate: [`from_json`].
//!
//! A custom reader, because a refusal must name its member, while an error of `serde_json` is plain text. It reads RFC
//! 8259 and nothing else, and borrows every string without escapes.
//!
//! Keeps: user values are passed on as the text that was sent. `scanner` decides what is JSON.

use std::borrow::Cow;

use serde::de::value::{BorrowedStrDeserializer, StrDeserializer};
use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

use crate::error::DecodeError;
use crate::scanner::Reader;

/// The name by which `serde_json` asks for the text of a value.
pub(crate) const RAW_VALUE: &str = "$serde_json::private::RawValue";

/// Reads one JSON value; nothing may follow it.
///
/// ```
/// use statehouse_wire::from_json;
/// use statehouse_wire::records::claims::Claim;
/// let claim: Claim = from_json(br#"{"prefix": "jobs."}"#)?;
/// assert_eq!(claim.prefix.as_deref(), Some("jobs."));
/// let refused = from_json::<Claim>(br#"{"prefx": "jobs."}"#).expect_err("misspelt");
/// assert_eq!(refused.to_string(), r#""prefx" is unknown; did you mean "prefix"?"#);
/// # Ok::<(), statehouse_wire::DecodeError>(())
/// ```
pub fn from_json<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> Result<T, DecodeError> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| DecodeError::not_json(format!("byte {} is not UTF-8", error.valid_up_to())))?;
    from_json_text(text)
}

/// [`from_json`] for text.
pub fn from_json_text<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, DecodeError> {
    whole(Reader::new(text, None))
}

/// [`from_json_text`] for an object whose member `tag` was already read and is skipped.
pub(crate) fn from_tagged_json<'de, T: Deserialize<'de>>(text: &'de str, tag: &'static str) -> Result<T, DecodeError> {
    whole(Reader::new(text, Some(tag)))
}

fn whole<'de, T: Deserialize<'de>>(mut reader: Reader<'de>) -> Result<T, DecodeError> {
    let value = T::deserialize(&mut reader)?;
    match reader.peek() {
        None => Ok(value),
        Some(_) => Err(reader.malformed("there is text after its end")),
    }
}

/// Reads an answer that has one of several forms, as the first of them that fits. `untagged` of serde reads a tree first, and
/// a tree holds no text of users' own.
macro_rules! read_as_first_of {
    ($answer:ident: $($variant:ident($form:ty)),+) => {
        impl<'de> serde::Deserialize<'de> for $answer {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let raw = <&'de serde_json::value::RawValue>::deserialize(deserializer)?.get();
                $(if let Ok(form) = $crate::reader::from_json_text::<$form>(raw) {
                    return Ok(Self::$variant(form));
                })+
                Err(serde::de::Error::custom(concat!("it has no form of ", stringify!($answer))))
            }
        }
    };
}

pub(crate) use read_as_first_of;

impl<'de> Deserializer<'de> for &mut Reader<'de> {
    type Error = DecodeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.peek() {
            Some(b'"') => match self.string()? {
                Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
                Cow::Owned(text) => visitor.visit_string(text),
            },
            Some(b'{') => {
                self.enter()?;
                visitor.visit_map(Items {
                    reader: self,
                    end: b'}',
                    first: true,
                    ended: false,
                    place: 0,
                    member: Cow::Borrowed(""),
                })
            }
            Some(b'[') => {
                self.enter()?;
                visitor.visit_seq(Items {
                    reader: self,
                    end: b']',
                    first: true,
                    ended: false,
                    place: 0,
                    member: Cow::Borrowed(""),
                })
            }
            Some(b't') => self.word("true").and_then(|()| visitor.visit_bool(true)),
            Some(b'f') => self.word("false").and_then(|()| visitor.visit_bool(false)),
            Some(b'n') => self.word("null").and_then(|()| visitor.visit_unit()),
            Some(_) => {
                let text = self.number()?;
                match (text.parse::<u64>(), text.parse::<i64>()) {
                    (Ok(number), _) => visitor.visit_u64(number),
                    // `-0` is a number, but not the spelling of any integer.
                    (_, Ok(number)) if number != 0 => visitor.visit_i64(number),
                    _ => visitor.visit_f64(text.parse().unwrap_or(f64::NAN)),
                }
            }
            None => Err(self.malformed("it ends before a value")),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.peek() {
            Some(b'n') => self.word("null").and_then(|()| visitor.visit_none()),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        match name == RAW_VALUE {
            true => visitor.visit_map(RawText { text: Some(self.skip()?) }),
            false => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        match self.peek() {
            Some(b'"') => {
                let text = self.string()?;
                visitor.visit_enum(IntoDeserializer::<DecodeError>::into_deserializer(&*text))
            }
            Some(b'{') => {
                self.enter()?;
                let items = Items {
                    reader: &mut *self,
                    end: b'}',
                    first: true,
                    ended: false,
                    place: 0,
                    member: Cow::Borrowed(""),
                };
                let value = visitor.visit_enum(de::value::MapAccessDeserializer::new(items))?;
                match self.more(b'}', &mut false)? {
                    false => Ok(value),
                    true => Err(DecodeError::wrong_value("it must be an object with one member")),
                }
            }
            _ => Err(DecodeError::wrong_value("it must be text, or an object with one member")),
        }
    }

    /// An object only: serde readers also accept a list of the members in order.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _members: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        match self.peek() {
            Some(b'[') => Err(DecodeError::wrong_value("it is a list, but must be an object")),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        self.skip()?;
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string
        bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier
    }
}

/// The content of a list or an object.
struct Items<'reader, 'de> {
    reader: &'reader mut Reader<'de>,
    end: u8,
    first: bool,
    ended: bool,
    /// The index of the next item; for an object, how often its tag occurred.
    place: usize,
    /// The name of the member whose value is next.
    member: Cow<'de, str>,
}

impl Items<'_, '_> {
    /// Whether there is another; after the end there is none, however often it is called.
    fn more(&mut self) -> Result<bool, DecodeError> {
        self.ended = self.ended || !self.reader.more(self.end, &mut self.first)?;
        Ok(!self.ended)
    }
}

impl<'de> de::SeqAccess<'de> for Items<'_, 'de> {
    type Error = DecodeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, DecodeError> {
        if !self.more()? {
            return Ok(None);
        }
        let place = self.place;
        self.place += 1;
        seed.deserialize(&mut *self.reader).map(Some).map_err(|error| error.in_item(place))
    }
}

impl<'de> de::MapAccess<'de> for Items<'_, 'de> {
    type Error = DecodeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, DecodeError> {
        loop {
            if !self.more()? {
                return Ok(None);
            }
            self.reader.key_quote()?;
            self.member = self.reader.string()?;
            match self.reader.tag {
                Some(tag) if self.reader.depth == 1 && self.member == tag => {
                    self.place += 1;
                    if self.place > 1 {
                        return Err(DecodeError::repeated_member(tag));
                    }
                    self.reader.colon()?;
                    self.reader.skip()?;
                }
                _ => break,
            }
        }
        match &self.member {
            Cow::Borrowed(member) => seed.deserialize(BorrowedStrDeserializer::new(member)).map(Some),
            Cow::Owned(member) => seed.deserialize(StrDeserializer::new(member)).map(Some),
        }
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, DecodeError> {
        self.reader.colon()?;
        seed.deserialize(&mut *self.reader).map_err(|error| error.in_member(&self.member))
    }
}

/// The text of a value, passed on like `serde_json` does.
struct RawText<'de> {
    text: Option<&'de str>,
}

impl<'de> de::MapAccess<'de> for RawText<'de> {
    type Error = DecodeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, DecodeError> {
        self.text.is_some().then(|| seed.deserialize(BorrowedStrDeserializer::new(RAW_VALUE))).transpose()
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, DecodeError> {
        seed.deserialize(BorrowedStrDeserializer::new(self.text.take().unwrap_or("null")))
    }
}

#[cfg(test)]
mod tests;
