//! Scans JSON text: whitespace, strings, numbers, and whole values.
//!
//! Keeps: RFC 8259 and nothing else; a limit on nested arrays and objects; half a surrogate pair in a `\u` escape is
//! refused.

use std::borrow::Cow;

use contract::limits::JSON_DEPTH_MAX;

use crate::error::{DecodeError, Reason};

/// How deep a body may be nested. The levels around a user value come on top of the value's own: a transaction may send
/// others, eight deep.
const BODY_DEPTH_MAX: usize = JSON_DEPTH_MAX + 32;

/// A text and a position in it.
pub(crate) struct Reader<'de> {
    text: &'de str,
    at: usize,
    pub(crate) depth: usize,
    /// A member of the outermost object to skip.
    pub(crate) tag: Option<&'static str>,
}

impl<'de> Reader<'de> {
    pub(crate) fn new(text: &'de str, tag: Option<&'static str>) -> Self {
        Self { text, at: 0, depth: 0, tag }
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// The next byte that is not whitespace.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.byte() {
            self.at += 1;
        }
        self.byte()
    }

    pub(crate) fn malformed(&self, reason: &str) -> DecodeError {
        match self.text.is_empty() {
            true => DecodeError::not_json("it is empty"),
            false => DecodeError::not_json(format!("{reason}, at byte {}", self.at)),
        }
    }

    pub(crate) fn enter(&mut self) -> Result<(), DecodeError> {
        self.at += 1;
        self.depth += 1;
        if self.depth > BODY_DEPTH_MAX { Err(DecodeError::new(Reason::TooDeep)) } else { Ok(()) }
    }

    fn leave(&mut self) {
        self.at += 1;
        self.depth -= 1;
    }

    pub(crate) fn word(&mut self, word: &str) -> Result<(), DecodeError> {
        match self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            true => {
                self.at += word.len();
                Ok(())
            }
            false => Err(self.malformed("no value starts like this; text needs double quotes")),
        }
    }

    /// The text of a number.
    pub(crate) fn number(&mut self) -> Result<&'de str, DecodeError> {
        let began = self.at;
        if self.byte() == Some(b'-') {
            self.at += 1;
        }
        match self.byte() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits(),
            _ if self.at == began => return Err(self.malformed("no value starts like this; text needs double quotes")),
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

    /// Skips a string; returns whether it has escapes.
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
                Some(0..0x20) => return Err(self.malformed("a string contains a control character")),
                Some(_) => self.at += 1,
                None => return Err(self.malformed("a string does not end")),
            }
        }
    }

    /// The character of an escape.
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
            _ => return Err(self.malformed("an escape is unknown")),
        };
        self.at += 2;
        Ok(plain)
    }

    /// Four hexadecimal digits after `\u`.
    fn unit(&mut self) -> Result<u32, DecodeError> {
        let digits = self.text.as_bytes().get(self.at + 2..self.at + 6);
        let digits = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let unit = digits.and_then(|digits| u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        let unit = unit.ok_or_else(|| self.malformed("\\u has no four digits"))?;
        self.at += 6;
        Ok(unit)
    }

    pub(crate) fn string(&mut self) -> Result<Cow<'de, str>, DecodeError> {
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

    /// Skips a value and returns its text.
    pub(crate) fn skip(&mut self) -> Result<&'de str, DecodeError> {
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

    /// Whether a list or an object has another item; skips the comma, or the end.
    pub(crate) fn more(&mut self, end: u8, first: &mut bool) -> Result<bool, DecodeError> {
        match self.peek() {
            Some(byte) if byte == end => {
                self.leave();
                Ok(false)
            }
            Some(b',') if !*first => {
                self.at += 1;
                match self.peek() {
                    Some(byte) if byte != end => Ok(true),
                    _ => Err(self.malformed("nothing follows a comma")),
                }
            }
            Some(_) if *first => {
                *first = false;
                Ok(true)
            }
            _ => Err(self.malformed("a list or an object does not end")),
        }
    }

    pub(crate) fn key_quote(&mut self) -> Result<(), DecodeError> {
        if self.peek() == Some(b'"') { Ok(()) } else { Err(self.malformed("a member has no name")) }
    }

    pub(crate) fn colon(&mut self) -> Result<(), DecodeError> {
        match self.peek() {
            Some(b':') => {
                self.at += 1;
                Ok(())
            }
            _ => Err(self.malformed("a member has no value")),
        }
    }
}
