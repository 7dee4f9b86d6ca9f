//! The encoding of integers and byte strings in stored values: little-endian, lengths first.
//!
//! Never: used for keys, whose order matters. A [`Reader`] checks every length against the remaining bytes before it
//! allocates, so damaged or hostile bytes only cause a [`DecodeError`].

/// Appends fixed-layout values to a byte vector.
#[derive(Debug, Default)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// An empty writer.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty writer with room for `capacity` bytes.
    pub fn with_capacity(capacity: usize) -> Self {
        Self { bytes: Vec::with_capacity(capacity) }
    }

    /// Appends one byte.
    pub fn u8(&mut self, value: u8) -> &mut Self {
        self.bytes.push(value);
        self
    }

    /// Ends what a later release may add members to: there are none. Each would be a tag (1) and a byte string, and a
    /// release that does not know a tag refuses it.
    pub fn no_members(&mut self) -> &mut Self {
        self.members(&[])
    }

    /// Ends what a later release may add members to with those that this one has, at most 255.
    pub fn members(&mut self, members: &[(u8, &[u8])]) -> &mut Self {
        self.u8(u8::try_from(members.len()).expect("few members"));
        for (tag, content) in members {
            self.u8(*tag).bytes(content);
        }
        self
    }

    /// Appends a truth value as 0 or 1.
    pub fn bool(&mut self, value: bool) -> &mut Self {
        self.u8(u8::from(value))
    }

    /// Appends two bytes.
    pub fn u16(&mut self, value: u16) -> &mut Self {
        self.raw(&value.to_le_bytes())
    }

    /// Appends four bytes.
    pub fn u32(&mut self, value: u32) -> &mut Self {
        self.raw(&value.to_le_bytes())
    }

    /// Appends eight bytes.
    pub fn u64(&mut self, value: u64) -> &mut Self {
        self.raw(&value.to_le_bytes())
    }

    /// Appends eight bytes, two's complement.
    pub fn i64(&mut self, value: i64) -> &mut Self {
        self.raw(&value.to_le_bytes())
    }

    /// Appends a number of variable length: seven bits per byte, lowest first, with the top bit set in all bytes but
    /// the last.
    pub fn varint(&mut self, mut value: u64) -> &mut Self {
        while value >= 0x80 {
            self.u8((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.u8((value & 0x7f) as u8)
    }

    /// Appends a presence byte and, if there is one, the value.
    pub fn optional_u64(&mut self, value: Option<u64>) -> &mut Self {
        match value {
            None => self.u8(0),
            Some(value) => self.u8(1).u64(value),
        }
    }

    /// Appends a presence byte and, if there is one, the text as [`bytes`](Self::bytes) does.
    pub fn optional_text(&mut self, value: Option<&str>) -> &mut Self {
        match value {
            None => self.u8(0),
            Some(value) => self.u8(1).bytes(value.as_bytes()),
        }
    }

    /// Appends a length of four bytes and the bytes.
    ///
    /// # Panics
    /// If the bytes are longer than 4 GiB; every caller has a smaller limit by name.
    pub fn bytes(&mut self, value: &[u8]) -> &mut Self {
        self.u32(u32::try_from(value.len()).expect("a stored byte string is below 4 GiB"));
        self.raw(value)
    }

    /// Appends bytes as they are.
    pub fn raw(&mut self, value: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(value);
        self
    }

    /// The number of bytes written so far.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether nothing was written yet.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Forgets all but the first `length` bytes.
    pub fn truncate(&mut self, length: usize) {
        self.bytes.truncate(length);
    }

    /// Drops the content, and keeps the capacity.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// The bytes written so far.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes.
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

/// Takes fixed-layout values from a byte slice.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'bytes> {
    rest: &'bytes [u8],
}

impl<'bytes> Reader<'bytes> {
    /// Reads `bytes` from their start.
    pub fn new(bytes: &'bytes [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Takes the end written by [`Writer::no_members`]; refuses members, which this release does not know.
    pub fn no_members(&mut self) -> Result<(), DecodeError> {
        if self.u8()? == 0 { Ok(()) } else { Err(DecodeError::NEWER_MEMBER) }
    }

    /// Takes the members written by [`Writer::members`]: their tags, and what they contain.
    pub fn members(&mut self) -> Result<Vec<(u8, &'bytes [u8])>, DecodeError> {
        (0..self.u8()?).map(|_| Ok((self.u8()?, self.bytes()?))).collect()
    }

    /// Takes the byte that names the format of what follows; any other than `known` is an error.
    pub fn format(&mut self, known: u8) -> Result<(), DecodeError> {
        if self.u8()? == known { Ok(()) } else { Err(DecodeError { what: "bytes of an unknown format" }) }
    }

    /// Takes the next `length` bytes as they are.
    pub fn raw(&mut self, length: usize) -> Result<&'bytes [u8], DecodeError> {
        let Some((head, rest)) = self.rest.split_at_checked(length) else {
            return Err(DecodeError { what: "fewer bytes than a length asks for" });
        };
        self.rest = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let Some((head, rest)) = self.rest.split_first_chunk::<N>() else {
            return Err(DecodeError { what: "the bytes end inside a number" });
        };
        self.rest = rest;
        Ok(*head)
    }

    /// Takes one byte.
    pub fn u8(&mut self) -> Result<u8, DecodeError> {
        Ok(self.array::<1>()?[0])
    }

    /// Takes a truth value.
    pub fn bool(&mut self) -> Result<bool, DecodeError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(DecodeError { what: "a truth value that is neither 0 nor 1" }),
        }
    }

    /// Takes two bytes.
    pub fn u16(&mut self) -> Result<u16, DecodeError> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    /// Takes four bytes.
    pub fn u32(&mut self) -> Result<u32, DecodeError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// Takes eight bytes.
    pub fn u64(&mut self) -> Result<u64, DecodeError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// Takes eight bytes, two's complement.
    pub fn i64(&mut self) -> Result<i64, DecodeError> {
        Ok(i64::from_le_bytes(self.array()?))
    }

    /// Takes a number of variable length.
    pub fn varint(&mut self) -> Result<u64, DecodeError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(DecodeError { what: "a number of more than 64 bits" })
    }

    /// Takes a presence byte and, if it is 1, a value.
    pub fn optional_u64(&mut self) -> Result<Option<u64>, DecodeError> {
        Ok(if self.bool()? { Some(self.u64()?) } else { None })
    }

    /// Takes a presence byte and, if it says so, text.
    pub fn optional_text(&mut self) -> Result<Option<&'bytes str>, DecodeError> {
        Ok(if self.bool()? { Some(self.text()?) } else { None })
    }

    /// Takes a length of four bytes and that many bytes.
    pub fn bytes(&mut self) -> Result<&'bytes [u8], DecodeError> {
        let length = self.u32()?;
        self.raw(length as usize)
    }

    /// Takes a byte string that must be UTF-8.
    pub fn text(&mut self) -> Result<&'bytes str, DecodeError> {
        std::str::from_utf8(self.bytes()?).map_err(|_| DecodeError { what: "text that is not UTF-8" })
    }

    /// The remaining bytes.
    pub fn rest(&self) -> &'bytes [u8] {
        self.rest
    }

    /// Fails if anything is left.
    pub fn end(self) -> Result<(), DecodeError> {
        if self.rest.is_empty() { Ok(()) } else { Err(DecodeError { what: "bytes after the end" }) }
    }
}

/// Malformed bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot decode: {what}")]
pub struct DecodeError {
    /// What was found.
    pub what: &'static str,
}

impl DecodeError {
    /// A member that this release does not know.
    pub const NEWER_MEMBER: Self = Self { what: "a member that a newer release has added" };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut writer = Writer::new();
        writer.u8(1).bool(true).u16(2).u32(3).u64(4).i64(-5).optional_u64(None);
        writer.optional_u64(Some(6)).bytes(b"seven").bytes("acht".as_bytes());
        let bytes = writer.finish();
        let mut reader = Reader::new(&bytes);
        assert_eq!((reader.u8(), reader.bool()), (Ok(1), Ok(true)));
        assert_eq!((reader.u16(), reader.u32(), reader.u64()), (Ok(2), Ok(3), Ok(4)));
        assert_eq!(reader.i64(), Ok(-5));
        assert_eq!((reader.optional_u64(), reader.optional_u64()), (Ok(None), Ok(Some(6))));
        assert_eq!(reader.bytes(), Ok(b"seven".as_slice()));
        assert_eq!(reader.text(), Ok("acht"));
        assert_eq!(reader.end(), Ok(()));
    }

    #[test]
    fn a_number_takes_the_bytes_it_needs_and_never_more_than_64_bits() {
        for (value, length) in [(0, 1), (127, 1), (128, 2), (300, 2), (u64::from(u32::MAX), 5), (u64::MAX, 10)] {
            let mut writer = Writer::new();
            writer.varint(value);
            assert_eq!(writer.len(), length, "{value}");
            let mut reader = Reader::new(writer.as_slice());
            assert_eq!((reader.varint(), reader.rest().len()), (Ok(value), 0));
            assert!(Reader::new(&writer.as_slice()[..length - 1]).varint().is_err());
        }
        assert!(Reader::new(&[0xff; 11]).varint().is_err());
        assert!(Reader::new(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02]).varint().is_err());
    }

    #[test]
    fn a_length_beyond_the_end_is_an_error() {
        let mut writer = Writer::new();
        writer.u32(u32::MAX).raw(b"short");
        assert!(Reader::new(writer.as_slice()).bytes().is_err());
        assert!(Reader::new(&[1]).end().is_err());
        assert!(Reader::new(&[2]).bool().is_err());
    }
}
