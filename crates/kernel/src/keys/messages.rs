//! Keys of messages: of those that are due, of those that wait to be published or for another shard, and of numbers.

use kv::{Key, KeyRange};

use super::due::{DEAD_LETTER, SEND};
use super::{GENERATION_BYTES, Keys, Kind};

impl Keys {
    /// The key after [`due_prefix`](Self::due_prefix) for a message.
    pub fn due_send_suffix(at_us: u64, number: u64) -> Key {
        let mut key = Key::from(at_us.to_be_bytes());
        key.push(SEND);
        key.extend_from_slice(&number.to_be_bytes());
        key
    }

    /// The key after [`due_prefix`](Self::due_prefix) for the end of a dead letter.
    pub fn due_dead_letter_suffix(at_us: u64, space: u32, branch: u32, number: u64) -> Key {
        let mut key = Key::from(at_us.to_be_bytes());
        key.push(DEAD_LETTER);
        key.extend_from_slice(&space.to_be_bytes());
        key.extend_from_slice(&branch.to_be_bytes());
        key.extend_from_slice(&number.to_be_bytes());
        key
    }

    /// A message that a group of this bucket refused, in a branch.
    pub fn dead_letter(&self, bucket: u16, space: u32, branch: u32, number: u64) -> Key {
        let mut key = self.branch_prefix(Kind::DeadLetter, bucket, space, branch);
        key.extend_from_slice(&number.to_be_bytes());
        key
    }

    /// All messages that groups of a bucket refused.
    pub fn dead_letter_prefix(&self, bucket: u16) -> Key {
        self.bucket_prefix(Kind::DeadLetter, bucket)
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

    /// A message that waits for the shard of its group.
    pub fn outgoing(&self, bucket: u16, number: u64) -> Key {
        let mut key = self.outgoing_prefix(bucket);
        key.extend_from_slice(&number.to_be_bytes());
        key
    }

    /// All messages of a bucket that wait for other shards.
    pub fn outgoing_prefix(&self, bucket: u16) -> Key {
        self.bucket_prefix(Kind::Outgoing, bucket)
    }

    /// The last number of `source`'s messages that a bucket has received.
    pub fn received(&self, bucket: u16, source: u16) -> Key {
        let mut key = self.bucket_prefix(Kind::Received, bucket);
        key.extend_from_slice(&source.to_be_bytes());
        key
    }

    /// The last numbers that a bucket has received, of all buckets.
    pub fn received_of_bucket(&self, bucket: u16) -> KeyRange {
        KeyRange::prefix(&self.bucket_prefix(Kind::Received, bucket))
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

/// The bucket and the number of a message from its key among those that wait for other shards.
pub fn read_outgoing_key(key: &[u8]) -> Option<(u16, u64)> {
    read_numbered_key(Kind::Outgoing, key)
}

/// The bucket and the number of a dead letter from its key.
pub fn read_dead_letter_key(key: &[u8]) -> Option<(u16, u64)> {
    let rest = key.get(GENERATION_BYTES..)?;
    let (bucket, rest) = rest.split_first_chunk::<2>()?;
    let (kind, rest) = rest.split_first()?;
    // The space and the branch.
    let number = rest.get(8..)?.try_into().ok().filter(|_| *kind == Kind::DeadLetter as u8)?;
    Some((u16::from_be_bytes(*bucket), u64::from_be_bytes(number)))
}

/// The bucket that has received messages, and the one that has sent them.
pub fn read_received_key(key: &[u8]) -> Option<(u16, u16)> {
    let rest = key.get(GENERATION_BYTES..)?;
    let (bucket, rest) = rest.split_first_chunk::<2>()?;
    let (kind, source) = rest.split_first()?;
    let source = source.try_into().ok().filter(|_| *kind == Kind::Received as u8)?;
    Some((u16::from_be_bytes(*bucket), u16::from_be_bytes(source)))
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
        let (outgoing, received) = (keys.outgoing(5, 258), keys.received(5, 259));
        assert_eq!(hex(&outgoing), "00000001000518".to_owned() + "0000000000000102");
        assert_eq!(hex(&received), "00000001000517".to_owned() + "0103");
        assert_eq!((read_outgoing_key(&outgoing), read_publish_key(&outgoing)), (Some((5, 258)), None));
        assert_eq!((read_received_key(&received), read_received_key(&outgoing)), (Some((5, 259)), None));
        let letter = keys.dead_letter(5, 1, 2, 258);
        assert_eq!(hex(&letter), "00000001000522".to_owned() + "0000000100000002" + "0000000000000102");
        assert_eq!((read_dead_letter_key(&letter), read_dead_letter_key(&outgoing)), (Some((5, 258)), None));
        assert_eq!(read_dead_letter_key(&letter[..letter.len() - 1]), None);
        assert_eq!(hex(&keys.dead_letters_of_space(3)), "00000001ffff000008".to_owned() + "00000003");
    }
}
