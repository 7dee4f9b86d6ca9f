//! What is stored of a session's secret: enough to recognise it, and not enough to show it.

use std::fmt;
use std::hint::black_box;

use kv::{DecodeError, Reader, Writer};

/// Bytes of a digest.
pub const SECRET_DIGEST_BYTES: usize = 32;

/// The SHA-256 digest of a session's secret. It is compared, and never shown.
#[derive(Clone, Copy)]
pub struct SecretDigest([u8; SECRET_DIGEST_BYTES]);

impl SecretDigest {
    /// The digest with these bytes.
    pub fn new(bytes: [u8; SECRET_DIGEST_BYTES]) -> Self {
        Self(bytes)
    }

    pub(crate) fn encode(&self, writer: &mut Writer) {
        writer.raw(&self.0);
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let bytes = reader.raw(SECRET_DIGEST_BYTES)?.first_chunk();
        bytes.copied().map(Self).ok_or(DecodeError { what: "the digest of a secret" })
    }
}

/// Takes the same time, wherever two digests differ.
impl PartialEq for SecretDigest {
    fn eq(&self, other: &Self) -> bool {
        let different = self.0.iter().zip(&other.0).fold(0, |different, (one, other)| different | (one ^ other));
        black_box(different) == 0
    }
}

impl Eq for SecretDigest {}

impl fmt::Debug for SecretDigest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SecretDigest(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_only_equal_to_itself_and_is_not_printed() {
        let digest = SecretDigest::new([0xab; SECRET_DIGEST_BYTES]);
        assert_eq!(digest, SecretDigest::new([0xab; SECRET_DIGEST_BYTES]));
        for bit in 0..SECRET_DIGEST_BYTES * 8 {
            let mut bytes = [0xab; SECRET_DIGEST_BYTES];
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(digest, SecretDigest::new(bytes), "bit {bit}");
        }
        assert_eq!(format!("{digest:?}"), "SecretDigest(hidden)");
    }
}
