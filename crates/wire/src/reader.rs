//! Reads JSON into the types of this crate: [`from_json`].
//!
//! It is a reader of its own, because a refusal must name its member: an error of `serde_json` is a text. It reads what
//! RFC 8259 has and nothing else, and borrows every text without escapes.
//!
//! Keeps: at most [`JSON_DEPTH_MAX`] lists and objects lie in each other. A `\u` escape that is half of a surrogate pair is
//! refused. Values that callers own are handed over as the text that was sent.

use std::borrow::Cow;

use contract::limits::JSON_DEPTH_MAX;
use serde::de::value::{BorrowedStrDeserializer, StrDeserializer};
use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

use crate::error::{DecodeError, Reason};

/// How `serde_json` asks for the text of a value.
pub(crate) const RAW_VALUE: &str = "$serde_json::private::RawValue";

/// Reads a value of JSON; nothing may stand behind it.
///
/// ```
/// use statehouse_wire::from_json;
/// use statehouse_wire::claims::Claim;
/// let claim: Claim = from_json(br#"{"prefix": "jobs."}"#)?;
/// assert_eq!(claim.prefix.as_deref(), Some("jobs."));
/// let refused = from_json::<Claim>(br#"{"prefx": "jobs."}"#).expect_err("misspelt");
/// assert_eq!(refused.to_string(), r#""prefx" is not known here; did you mean "prefix"?"#);
/// # Ok::<(), statehouse_wire::DecodeError>(())
/// ```
pub fn from_json<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> Result<T, DecodeError> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| DecodeError::not_json(format!("byte {} is not UTF-8", error.valid_up_to())))?;
    from_json_text(text)
}

/// [`from_json`], of text.
pub fn from_json_text<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, DecodeError> {
    Reader { text, at: 0, depth: 0, tag: None }.whole()
}

/// [`from_json_text`], of an object whose member `tag` was read before and is left out.
pub(crate) fn from_tagged_json<'de, T: Deserialize<'de>>(text: &'de str, tag: &'static str) -> Result<T, DecodeError> {
    Reader { text, at: 0, depth: 0, tag: Some(tag) }.whole()
}

struct Reader<'de> {
    text: &'de str,
    at: usize,
    depth: usize,
    /// A member of the outermost object that is left out.
    tag: Option<&'static str>,
}

impl<'de> Reader<'de> {
    fn whole<T: Deserialize<'de>>(mut self) -> Result<T, DecodeError> {
        let value = T::deserialize(&mut self)?;
        match self.peek() {
            None => Ok(value),
            Some(_) => Err(self.malformed("something stands behind its end")),
        }
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// The next byte that is no whitespace.
    fn peek(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.byte() {
            self.at += 1;
        }
        self.byte()
    }

    fn malformed(&self, reason: &str) -> DecodeError {
        match self.text.is_empty() {
            true => DecodeError::not_json("it is empty"),
            false => DecodeError::not_json(format!("{reason}, at byte {}", self.at)),
        }
    }

    fn enter(&mut self) -> Result<(), DecodeError> {
        self.at += 1;
        self.depth += 1;
        if self.depth > JSON_DEPTH_MAX { Err(DecodeError::new(Reason::TooDeep)) } else { Ok(()) }
    }

    fn leave(&mut self) {
        self.at += 1;
        self.depth -= 1;
    }

    fn word(&mut self, word: &str) -> Result<(), DecodeError> {
        match self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            true => {
                self.at += word.len();
                Ok(())
            }
            false => Err(self.malformed("no value begins like this")),
        }
    }

    /// The text of a number.
    fn number(&mut self) -> Result<&'de str, DecodeError> {
        let began = self.at;
        if self.byte() == Some(b'-') {
            self.at += 1;
        }
        match self.byte() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits(),
            _ => return Err(self.malformed("a number has no digits")),
        }
        if self.byte() == Some(b'.') {
            self.at += 1;
            self.some_digits()?;
        }
        if let Some(b'e' | b'E') = self.byte() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.byte() {
                self.at += 1;
            }
            self.some_digits()?;
        }
        Ok(&self.text[began..self.at])
    }

    fn digits(&mut self) {
        while let Some(b'0'..=b'9') = self.byte() {
            self.at += 1;
        }
    }

    fn some_digits(&mut self) -> Result<(), DecodeError> {
        let before = self.at;
        self.digits();
        if self.at == before { Err(self.malformed("a number has no digits")) } else { Ok(()) }
    }

    /// Moves over a string; whether there are escapes in it.
    fn skip_string(&mut self) -> Result<bool, DecodeError> {
        self.at += 1;
        let mut escaped = false;
        loop {
            match self.byte() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(escaped);
                }
                Some(b'\\') => {
                    escaped = true;
                    self.escape()?;
                }
                Some(0..0x20) => return Err(self.malformed("a control character stands in a string")),
                Some(_) => self.at += 1,
                None => return Err(self.malformed("a string does not end")),
            }
        }
    }

    /// The character that an escape stands for.
    fn escape(&mut self) -> Result<char, DecodeError> {
        let kind = self.text.as_bytes().get(self.at + 1).copied();
        let plain = match kind {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let lone = || DecodeError::wrong_value("lone surrogate: a \\u escape is half of a pair");
                let first = self.unit()?;
                let code = match first {
                    0xd800..=0xdbff => {
                        if !self.text.as_bytes()[self.at..].starts_with(b"\\u") {
                            return Err(lone());
                        }
                        let second = self.unit()?;
                        if !(0xdc00..=0xdfff).contains(&second) {
                            return Err(lone());
                        }
                        0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)
                    }
                    other => other,
                };
                return char::from_u32(code).ok_or_else(lone);
            }
            _ => return Err(self.malformed("an escape is not known")),
        };
        self.at += 2;
        Ok(plain)
    }

    /// Four hexadecimal digits behind `\u`.
    fn unit(&mut self) -> Result<u32, DecodeError> {
        let digits = self.text.as_bytes().get(self.at + 2..self.at + 6);
        let digits = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let unit = digits.and_then(|digits| u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        let unit = unit.ok_or_else(|| self.malformed("\\u has no four digits"))?;
        self.at += 6;
        Ok(unit)
    }

    fn string(&mut self) -> Result<Cow<'de, str>, DecodeError> {
        let began = self.at;
        if !self.skip_string()? {
            return Ok(Cow::Borrowed(&self.text[began + 1..self.at - 1]));
        }
        let end = self.at;
        let mut text = String::with_capacity(end - began);
        self.at = began + 1;
        while self.at < end - 1 {
            if self.byte() == Some(b'\\') {
                text.push(self.escape()?);
            } else {
                let rest = &self.text[self.at..end - 1];
                let plain = rest.find('\\').unwrap_or(rest.len());
                text.push_str(&rest[..plain]);
                self.at += plain;
            }
        }
        self.at = end;
        Ok(Cow::Owned(text))
    }

    /// Moves over a value, whose text it gives.
    fn skip(&mut self) -> Result<&'de str, DecodeError> {
        let first = self.peek();
        let began = self.at;
        match first {
            Some(b'"') => drop(self.skip_string()?),
            Some(b'{') => {
                self.enter()?;
                let mut first = true;
                while self.more(b'}', &mut first)? {
                    self.key_quote()?;
                    self.skip_string()?;
                    self.colon()?;
                    self.skip()?;
                }
            }
            Some(b'[') => {
                self.enter()?;
                let mut first = true;
                while self.more(b']', &mut first)? {
                    self.skip()?;
                }
            }
            Some(b't') => self.word("true")?,
            Some(b'f') => self.word("false")?,
            Some(b'n') => self.word("null")?,
            Some(_) => drop(self.number()?),
            None => return Err(self.malformed("it ends before a value")),
        }
        Ok(&self.text[began..self.at])
    }

    /// Whether a list or an object has one more; moves over the comma, or over the end.
    fn more(&mut self, end: u8, first: &mut bool) -> Result<bool, DecodeError> {
        match self.peek() {
            Some(byte) if byte == end => {
                self.leave();
                Ok(false)
            }
            Some(b',') if !*first => {
                self.at += 1;
                match self.peek() {
                    Some(byte) if byte != end => Ok(true),
                    _ => Err(self.malformed("nothing stands behind a comma")),
                }
            }
            Some(_) if *first => {
                *first = false;
                Ok(true)
            }
            _ => Err(self.malformed("a list or an object does not end")),
        }
    }

    fn key_quote(&mut self) -> Result<(), DecodeError> {
        if self.peek() == Some(b'"') { Ok(()) } else { Err(self.malformed("a member has no name")) }
    }

    fn colon(&mut self) -> Result<(), DecodeError> {
        match self.peek() {
            Some(b':') => {
                self.at += 1;
                Ok(())
            }
            _ => Err(self.malformed("a member has no value")),
        }
    }
}

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
                visitor.visit_map(Items { reader: self, end: b'}', first: true, place: 0, member: Cow::Borrowed("") })
            }
            Some(b'[') => {
                self.enter()?;
                visitor.visit_seq(Items { reader: self, end: b']', first: true, place: 0, member: Cow::Borrowed("") })
            }
            Some(b't') => self.word("true").and_then(|()| visitor.visit_bool(true)),
            Some(b'f') => self.word("false").and_then(|()| visitor.visit_bool(false)),
            Some(b'n') => self.word("null").and_then(|()| visitor.visit_unit()),
            Some(_) => {
                let text = self.number()?;
                match (text.parse::<u64>(), text.parse::<i64>()) {
                    (Ok(number), _) => visitor.visit_u64(number),
                    // `-0` is a number, and no integer that would be written so.
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
                let items = Items { reader: &mut *self, end: b'}', first: true, place: 0, member: Cow::Borrowed("") };
                let value = visitor.visit_enum(de::value::MapAccessDeserializer::new(items))?;
                match self.more(b'}', &mut false)? {
                    false => Ok(value),
                    true => Err(DecodeError::wrong_value("it must be an object with one member")),
                }
            }
            _ => Err(DecodeError::wrong_value("it must be text, or an object with one member")),
        }
    }

    /// An object, and no list of its members in their order, which readers of serde take too.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _members: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        match self.peek() {
            Some(b'[') => Err(DecodeError::wrong_value("it is a list, and must be an object")),
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

/// What stands in a list or an object.
struct Items<'reader, 'de> {
    reader: &'reader mut Reader<'de>,
    end: u8,
    first: bool,
    /// Of the item that comes next; of an object, how often its tag was there.
    place: usize,
    /// The name of the member whose value comes next.
    member: Cow<'de, str>,
}

impl<'de> de::SeqAccess<'de> for Items<'_, 'de> {
    type Error = DecodeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, DecodeError> {
        if !self.reader.more(self.end, &mut self.first)? {
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
            if !self.reader.more(self.end, &mut self.first)? {
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

/// The text of a value, handed over as `serde_json` does.
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
mod tests {
    use super::*;
    use crate::claims::Claim;
    use crate::records::PutRecord;
    use crate::transactions::Transaction;

    fn refused<'de, T: Deserialize<'de>>(text: &'de str) -> String {
        from_json_text::<T>(text).map(drop).expect_err("refused").to_string()
    }

    #[test]
    fn members_are_known_once_and_of_their_type() {
        for (text, says) in [
            (r#"{"prefx":"jobs."}"#, r#""prefx" is not known here; did you mean "prefix"?"#),
            (r#"{"prefix":"a.","prefix":"b."}"#, r#""prefix" is there twice"#),
            (r#"{"prefix":1}"#, r#""prefix": it is integer `1`, and must be a string"#),
            (r#"{"n":"1"}"#, r#""n": it is string "1", and must be u32"#),
            (r#"{"n":-1}"#, r#""n": it is integer `-1`, and must be u32"#),
            (r#"{"n":1.0}"#, r#""n": it is floating point `1.0`, and must be u32"#),
            (
                r#"{"lease":true}"#,
                r#""lease": it is boolean `true`, and must be a duration: 500ms, 30s, 10m, 2h or 7d"#,
            ),
            (r#"["jobs."]"#, "it is a list, and must be an object"),
            (r#"{"prefix":"jobs."} x"#, "not JSON: something stands behind its end, at byte 19"),
            (r#"{"prefix":"jobs.",}"#, "not JSON: nothing stands behind a comma, at byte 18"),
            ("", "not JSON: it is empty"),
        ] {
            assert_eq!(refused::<Claim>(text), says, "{text}");
        }
    }

    #[test]
    fn a_refusal_names_the_path() {
        let text =
            r#"{"do":[{"op":"cell.delete","name":"a"},{"name":"r","op":"record.put","fields":{"a":1,"b":"\ud800"}}]}"#;
        assert!(refused::<Transaction>(text).contains("lone surrogate"));
        for (text, member) in [
            (r#"{"do":[{"op":"cell.delete","nam":"a"}]}"#, "do[0].nam"),
            (r#"{"do":[{"op":"cell.delete"}]}"#, "do[0].name"),
            (r#"{"do":[{"op":"cell.delet","name":"a"}]}"#, "do[0].op"),
            (r#"{"do":[{"op":"cell.delete","name":"a","op":"cell.delete"}]}"#, "do[0].op"),
            (r#"{"do":[{"op":"record.put","name":"a","fields":{"x":1,"x":2}}]}"#, "do[0].fields.x"),
            (r#"{"do":[],"iff":[]}"#, "iff"),
            (r#"{"do":[],"if":[{"cell":"a","version":"1"}]}"#, "if[0].version"),
            (r#"{"do":[],"if":[{"record":"a","field":"f"}]}"#, "if[0].is"),
            (r#"{"do":[],"if":[{"record":"a","is":1,"version":1}]}"#, "if[0].field"),
            (r#"{"do":[{"op":"send","group":"g","do":[{"op":"cell.delete","name":1}]}]}"#, "do[0].do[0].name"),
        ] {
            let error = from_json_text::<Transaction>(text).expect_err("refused");
            assert_eq!(error.member().as_deref(), Some(member), "{text}: {error}");
        }
    }

    #[test]
    fn what_callers_own_is_the_text_that_was_sent() {
        for value in
            ["1.0", "-0", "1e400", "12345678901234567890123456789", r#""\u0041""#, r#"{"b":1, "a":[ 2 ],"b":3}"#]
        {
            let text = format!(r#"{{"fields":{{"f":{value}}}}}"#);
            let put: PutRecord = from_json_text(&text).expect("read");
            let written = serde_json::to_string(&put).expect("JSON");
            assert!(written.contains(&format!(r#""f":{value}"#)), "{value}: {written}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        let nested = |depth: usize| format!(r#"{{"fields":{{"f":{}1{}}}}}"#, "[".repeat(depth), "]".repeat(depth));
        assert!(from_json_text::<PutRecord>(&nested(JSON_DEPTH_MAX - 2)).is_ok());
        let error = from_json_text::<PutRecord>(&nested(JSON_DEPTH_MAX - 1)).expect_err("too deep");
        assert_eq!(error.reason(), &Reason::TooDeep);
    }

    #[test]
    fn whatever_is_json_for_serde_is_json_here() {
        let texts = [
            "0",
            "-1",
            "01",
            "1.",
            ".5",
            "1e5",
            "1e",
            "1E+9",
            "-",
            "nul",
            "true",
            "\"a\"",
            "\"a",
            "\"é\"",
            "\"\\x\"",
            "[1,2]",
            "[1,2,]",
            "[",
            "{}",
            "{\"a\":1}",
            "{\"a\"}",
            "{a:1}",
            " 1 ",
            "\"😀\"",
            "\"\\ud83d\\ude00\"",
            "\"\n\"",
        ];
        for text in texts {
            let ours = from_json_text::<de::IgnoredAny>(text).is_ok();
            let theirs = serde_json::from_str::<de::IgnoredAny>(text).is_ok();
            assert_eq!(ours, theirs, "{text}");
        }
    }
}
