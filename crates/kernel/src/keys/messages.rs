//! Keys of messages: of those that are due, and of those that wait to be published.

use kv::Key;

use super::due::SEND;
use super::{GENERATION_BYTES, Keys, Kind};

impl Keys {
    /// The key after [`due_prefix`](Self::due_prefix) for a message.
    pub fn due_send_suffix(at_us: u64, commit: u64, ordinal: u32) -> Key {
        let mut key = Key::from(at_us.to_be_bytes());
        key.push(SEND);
        key.extend_from_slice(&commit.to_be_bytes());
        key.extend_from_slice(&ordinal.to_be_bytes());
        key
    }

    /// A message that waits to be published.
    pub fn publish(&self, bucket: u16, commit: u64, ordinal: u32) -> Key {
        let mut key = self.bucket_prefix(Kind::Publish, bucket);
        key.extend_from_slice(&commit.to_be_bytes());
        key.extend_from_slice(&ordinal.to_be_bytes());
        key
    }

    /// All messages of a bucket that wait to be published.
    pub fn publish_prefix(&self, bucket: u16) -> Key {
        self.bucket_prefix(Kind::Publish, bucket)
    }
}

/// The number of a message from its key among those that wait to be published.
pub fn read_publish_key(key: &[u8]) -> Option<(u16, u64, u32)> {
    let rest = key.get(GENERATION_BYTES..)?;
    let (bucket, rest) = rest.split_first_chunk::<2>()?;
    let (kind, rest) = rest.split_first()?;
    let (commit, rest) = rest.split_first_chunk::<8>()?;
    let (ordinal, rest) = rest.split_first_chunk::<4>()?;
    (*kind == Kind::Publish as u8 && rest.is_empty()).then_some((
        u16::from_be_bytes(*bucket),
        u64::from_be_bytes(*commit),
        u32::from_be_bytes(*ordinal),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Part of the stored format; `docs/formats/keys.md`.
    #[test]
    fn golden_message_keys() {
        let key = Keys::new(1, crate::BucketRange::ALL).publish(5, 3, 2);
        let hex = key.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(hex, "0000000100050b".to_owned() + "0000000000000003" + "00000002");
        assert_eq!(read_publish_key(&key), Some((5, 3, 2)));
    }
}
