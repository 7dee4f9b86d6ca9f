//! Keys of messages: of those that are due, of those that wait to be published, and of a bucket's numbers.

use kv::Key;

use super::due::SEND;
use super::{GENERATION_BYTES, Keys, Kind};

impl Keys {
    /// The key after [`due_prefix`](Self::due_prefix) for a message.
    pub fn due_send_suffix(at_us: u64, number: u64) -> Key {
        let mut key = Key::from(at_us.to_be_bytes());
        key.push(SEND);
        key.extend_from_slice(&number.to_be_bytes());
        key
    }

    /// A message that waits to be published.
    pub fn publish(&self, bucket: u16, number: u64) -> Key {
        let mut key = self.publish_prefix(bucket);
        key.extend_from_slice(&number.to_be_bytes());
        key
    }

    /// All messages of a bucket that wait to be published.
    pub fn publish_prefix(&self, bucket: u16) -> Key {
        self.bucket_prefix(Kind::Publish, bucket)
    }

    /// The last number that a bucket has given to a message.
    pub fn message_numbers(&self, bucket: u16) -> Key {
        self.bucket_prefix(Kind::MessageNumbers, bucket)
    }
}

/// The bucket and the number of a message from its key among those that wait to be published.
pub fn read_publish_key(key: &[u8]) -> Option<(u16, u64)> {
    read_numbered_key(Kind::Publish, key)
}

fn read_numbered_key(kind: Kind, key: &[u8]) -> Option<(u16, u64)> {
    let rest = key.get(GENERATION_BYTES..)?;
    let (bucket, rest) = rest.split_first_chunk::<2>()?;
    let (found, rest) = rest.split_first()?;
    let (number, rest) = rest.split_first_chunk::<8>()?;
    let is_whole = *found == kind as u8 && rest.is_empty();
    is_whole.then_some((u16::from_be_bytes(*bucket), u64::from_be_bytes(*number)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Part of the stored format; `docs/formats/keys.md`.
    #[test]
    fn golden_message_keys() {
        let keys = Keys::new(1, crate::BucketRange::ALL);
        let hex = |key: &[u8]| key.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let key = keys.publish(5, 258);
        assert_eq!(hex(&key), "0000000100050b".to_owned() + "0000000000000102");
        assert_eq!(read_publish_key(&key), Some((5, 258)));
        assert_eq!(read_publish_key(&key[..key.len() - 1]), None);
        assert_eq!(hex(&keys.message_numbers(5)), "00000001000516");
        assert!(keys.has_copy(&keys.message_numbers(5)) && !keys.has_copy(&key));
    }
}
