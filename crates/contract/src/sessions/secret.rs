//! What a client shows beside the number of its session.
//!
//! Keeps: a secret appears in no log and no error. Its text is asked for by name.

use std::fmt;

use crate::constant_time::is_same;

/// Bytes of a secret.
const BYTES: usize = 16;

/// What a client shows beside the number of its session, to act as it. Everybody may see the number.
#[derive(Clone)]
pub struct SessionSecret([u8; BYTES]);

impl SessionSecret {
    /// The secret with these bytes.
    pub fn from_bytes(bytes: [u8; BYTES]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8; BYTES] {
        &self.0
    }

    /// Reads [`to_text`](Self::to_text), and no other spelling.
    pub fn parse(text: &str) -> Option<Self> {
        let digit = |digit: u8| match digit {
            b'0'..=b'9' => Some(digit - b'0'),
            b'a'..=b'f' => Some(digit - b'a' + 10),
            _ => None,
        };
        let text: &[u8; 2 * BYTES] = text.as_bytes().try_into().ok()?;
        let mut bytes = [0; BYTES];
        for (byte, digits) in bytes.iter_mut().zip(text.chunks_exact(2)) {
            *byte = digit(digits[0])? << 4 | digit(digits[1])?;
        }
        Some(Self(bytes))
    }

    /// The secret as text, to send it or to store it: 32 hexadecimal digits in lower case.
    pub fn to_text(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl fmt::Debug for SessionSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SessionSecret(hidden)")
    }
}

/// Takes the same time, wherever two secrets differ.
impl PartialEq for SessionSecret {
    fn eq(&self, other: &Self) -> bool {
        is_same(&self.0, &other.0)
    }
}

impl Eq for SessionSecret {}

/// A session with its secret: what a client keeps to act as the session, also after it has restarted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionCredentials {
    /// Its number.
    pub session: u64,
    /// Its secret.
    pub secret: SessionSecret,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_has_one_text() {
        let bytes = [0, 1, 0x7f, 0x80, 0xff, 0x0a, 0xa0, 7, 8, 9, 10, 11, 12, 13, 14, 15];
        let secret = SessionSecret::from_bytes(bytes);
        let text = secret.to_text();
        assert_eq!(text, "00017f80ff0aa0070809".to_owned() + "0a0b0c0d0e0f");
        assert_eq!(SessionSecret::parse(&text).expect("its text").as_bytes(), &bytes);
        let others = [&text.to_uppercase(), &text[1..], &format!("{text}0"), &format!(" {}", &text[1..]), ""];
        for other in others {
            assert_eq!(SessionSecret::parse(other), None, "{other:?}");
        }
        assert_eq!(SessionSecret::parse(&text.replace('7', "g")), None);
        assert_eq!(SessionSecret::parse(&"é".repeat(16)), None);
    }

    #[test]
    fn a_secret_is_only_equal_to_itself() {
        let secret = SessionSecret::from_bytes([7; BYTES]);
        assert_eq!(secret, secret.clone());
        for bit in 0..BYTES * 8 {
            let mut bytes = [7; BYTES];
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(secret, SessionSecret::from_bytes(bytes), "bit {bit}");
        }
    }

    #[test]
    fn a_secret_is_hidden_where_values_are_printed() {
        let secret = SessionSecret::from_bytes([0xab; BYTES]);
        let printed = format!("{:?} {:#?}", secret, SessionCredentials { session: 7, secret: secret.clone() });
        let spellings = [secret.to_text()[..4].to_owned(), 0xab.to_string(), "AB".to_owned()];
        assert!(spellings.iter().all(|spelling| !printed.contains(spelling)), "{printed}");
        assert!(printed.contains("hidden") && printed.contains('7'), "{printed}");
    }
}
