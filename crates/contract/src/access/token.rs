//! The text that proves who sends a request: `sht_<id>_<secret>_<checksum>`.
//!
//! A double click takes all of it, since it has no other separator than `_`. The id is public, the secret has 256 bits, and the
//! checksum tells a token that was cut or mistyped from one that is not known. Keeps: a store has the digest only, and the text is
//! printed by [`Token::to_text`] alone.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::constant_time::is_same;

/// In front of every token.
pub const TOKEN_PREFIX: &str = "sht";

/// Characters of an id.
pub const TOKEN_ID_LENGTH: usize = 10;
const SECRET_LENGTH: usize = 43;
const CHECKSUM_LENGTH: usize = 6;

/// Random bytes of a secret.
pub const TOKEN_SECRET_BYTES: usize = 32;

const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// A token that is well formed. Whether anybody issued it, a store knows.
///
/// ```
/// use statehouse_contract::access::Token;
/// let token = Token::of(7, [1; 32]);
/// let text = token.to_text();
/// assert!(text.starts_with("sht_0000000007_") && text.len() == 65);
/// assert_eq!(Token::parse(&text).unwrap().digest(), token.digest());
/// assert!(Token::parse(&text.replace('7', "8")).is_none(), "its checksum is wrong");
/// assert!(!format!("{token:?}").contains(&text[15..58]));
/// ```
#[derive(Clone)]
pub struct Token {
    text: String,
}

/// What a store keeps of a token's secret.
#[derive(Clone, Copy)]
pub struct TokenDigest([u8; 32]);

impl Token {
    /// The token of some random numbers.
    pub fn of(id: u64, secret: [u8; TOKEN_SECRET_BYTES]) -> Self {
        let id = digits(&id.to_be_bytes(), TOKEN_ID_LENGTH);
        let body = format!("{TOKEN_PREFIX}_{id}_{}", digits(&secret, SECRET_LENGTH));
        let checksum = checksum(&body);
        Self { text: format!("{body}_{checksum}") }
    }

    /// Reads a text; none if it is no token, or was cut or mistyped.
    pub fn parse(text: &str) -> Option<Self> {
        let (body, written) = text.rsplit_once('_')?;
        let mut parts = body.split('_');
        let (prefix, id, secret) = (parts.next()?, parts.next()?, parts.next()?);
        let is_of = |part: &str, length| part.len() == length && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let formed = prefix == TOKEN_PREFIX && is_of(id, TOKEN_ID_LENGTH) && is_of(secret, SECRET_LENGTH);
        (formed && parts.next().is_none() && checksum(body) == written).then(|| Self { text: text.to_owned() })
    }

    /// Its public part.
    pub fn id(&self) -> &str {
        let start = TOKEN_PREFIX.len() + 1;
        &self.text[start..start + TOKEN_ID_LENGTH]
    }

    /// What a store keeps of it.
    pub fn digest(&self) -> TokenDigest {
        TokenDigest(Sha256::digest(&self.text).into())
    }

    /// The token, to send it or to store it.
    pub fn to_text(&self) -> String {
        self.text.clone()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Token({}, hidden)", self.id())
    }
}

impl TokenDigest {
    /// The digest with these bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for TokenDigest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("TokenDigest(hidden)")
    }
}

/// Takes the same time, wherever two digests differ.
impl PartialEq for TokenDigest {
    fn eq(&self, other: &Self) -> bool {
        is_same(&self.0, &other.0)
    }
}

impl Eq for TokenDigest {}

/// Whether a text is the id of a token.
pub fn is_token_id(text: &str) -> bool {
    text.len() == TOKEN_ID_LENGTH && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn checksum(body: &str) -> String {
    digits(&crc32fast::hash(body.as_bytes()).to_be_bytes(), CHECKSUM_LENGTH)
}

/// A number as so many digits; what does not fit into them is left out.
fn digits(number: &[u8], length: usize) -> String {
    let mut number = number.to_vec();
    let mut digits = vec![b'0'; length];
    for digit in digits.iter_mut().rev() {
        let mut rest = 0;
        for byte in &mut number {
            let value = rest << 8 | usize::from(*byte);
            *byte = u8::try_from(value / DIGITS.len()).expect("the rest is smaller than the divisor");
            rest = value % DIGITS.len();
        }
        *digit = DIGITS[rest];
    }
    digits.into_iter().map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_one_text() {
        let token = Token::of(u64::MAX, [0xff; TOKEN_SECRET_BYTES]);
        let text = token.to_text();
        assert_eq!(text.len(), 65);
        assert!(is_token_id(token.id()) && !is_token_id("abc") && !is_token_id("abcdefghi_"));
        assert_eq!(Token::parse(&text).expect("its text").to_text(), text);
        for place in 0..text.len() {
            let mut other = text.clone().into_bytes();
            other[place] = if other[place] == b'x' { b'y' } else { b'x' };
            let other = String::from_utf8(other).expect("text");
            assert!(Token::parse(&other).is_none(), "{place}");
            assert!(Token::parse(&text[..place]).is_none(), "cut at {place}");
        }
        for other in
            [format!("{text} "), format!(" {text}"), format!("{text}_x"), text.replace("sht", "shu"), "é".repeat(33)]
        {
            assert!(Token::parse(&other).is_none(), "{other:?}");
        }
    }

    #[test]
    fn a_number_is_written_in_full() {
        assert_eq!(digits(&[0], 3), "000");
        assert_eq!(digits(&[61], 3), "00z");
        assert_eq!(digits(&[62], 3), "010");
        assert_eq!(digits(&[1, 0], 3), "048", "256 is 4 times 62 and 8");
        // The largest secret takes all of its digits, so no two secrets have the same text.
        let largest = digits(&[0xff; TOKEN_SECRET_BYTES], SECRET_LENGTH);
        assert_ne!(&largest[..1], "0");
        assert_eq!(digits(&[0xff; TOKEN_SECRET_BYTES], SECRET_LENGTH + 1), format!("0{largest}"));
    }

    #[test]
    fn digests_differ_wherever_texts_do() {
        let one = Token::of(1, [1; TOKEN_SECRET_BYTES]);
        assert_eq!(one.digest(), Token::parse(&one.to_text()).expect("its text").digest());
        assert_ne!(one.digest(), Token::of(2, [1; TOKEN_SECRET_BYTES]).digest());
        assert_ne!(one.digest(), Token::of(1, [2; TOKEN_SECRET_BYTES]).digest());
        assert!(!format!("{:?}", one.digest()).contains(char::is_numeric));
    }
}
