//! Keys of records and of their indexes.
//!
//! Index keys start with the bucket too, so that a range of buckets is a range of keys.

use kv::Key;

use super::things::{OwnedId, push_group_and_name};
use super::{
    GENERATION_BYTES, HeldKey, Keys, Kind, ThingId, push_escaped, push_name, take_bytes, take_group_and_name, take_name,
};

impl Keys {
    /// A record.
    pub fn record(&self, record: &ThingId<'_>) -> HeldKey {
        HeldKey::new(self.thing(Kind::Record, record))
    }

    /// A large field of a record.
    pub fn record_field(&self, record: &ThingId<'_>, field: &str) -> HeldKey {
        let mut key = self.group_prefix(Kind::RecordField, record);
        push_name(&mut key, record.name.as_bytes());
        push_name(&mut key, field.as_bytes());
        HeldKey::new(key)
    }

    /// The counters from which the records of a bucket without rows continue.
    pub fn record_floor(&self, bucket: u16) -> Key {
        self.bucket_prefix(Kind::RecordFloor, bucket)
    }

    /// The bytes as encoded inside a key: a prefix of them is a prefix of the key.
    pub fn escaped(bytes: &[u8]) -> Key {
        let mut key = Key::default();
        push_escaped(&mut key, bytes);
        key
    }

    /// The entries of a declared index of a type in a bucket.
    pub fn index_prefix(&self, bucket: u16, space: u32, branch: u32, record_type: u32, index: u8) -> Key {
        let mut key = self.branch_prefix(Kind::FieldIndex, bucket, space, branch);
        key.extend_from_slice(&record_type.to_be_bytes());
        key.push(index);
        key
    }

    /// An entry of a declared index: a sortable value, then the record.
    pub fn index_entry(&self, record: &ThingId<'_>, record_type: u32, index: u8, value: &[u8]) -> Key {
        let mut key = self.index_prefix(record.bucket, record.space, record.branch, record_type, index);
        push_name(&mut key, value);
        push_group_and_name(&mut key, record);
        key
    }
}

/// Reads the end of [`Keys::index_entry`], after the index's prefix: the sortable value and the record.
pub fn read_index_suffix(suffix: &[u8], space: u32, branch: u32) -> Option<(Vec<u8>, OwnedId)> {
    let (value, rest) = take_bytes(suffix)?;
    let (group, name, rest) = take_group_and_name(rest)?;
    rest.is_empty().then_some((value, OwnedId { space, branch, group, name }))
}

/// Reads the key of a row of counts: the queue, and the type.
pub fn read_counts_key(key: &[u8]) -> Option<(String, u32)> {
    // Generation, the mark of shard rows, first bucket, kind, space, branch.
    let rest = key.get(GENERATION_BYTES + 2 + 2 + 1 + 4 + 4..)?;
    let (queue, rest) = take_name(rest)?;
    let (record_type, rest) = rest.split_first_chunk::<4>()?;
    rest.is_empty().then_some((queue, u32::from_be_bytes(*record_type)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::sortable;

    fn id<'name>(group: Option<&'name str>, name: &'name str) -> ThingId<'name> {
        ThingId { bucket: 5, space: 1, branch: 2, group, name }
    }

    #[test]
    fn integers_sort_as_they_should() {
        let sorted = [i64::MIN, -1, 0, 1, i64::MAX].map(sortable);
        assert!(sorted.is_sorted());
    }

    /// Part of the stored format; `docs/formats/keys.md`.
    #[test]
    fn golden_record_keys() {
        let hex = |key: &[u8]| key.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let keys = Keys::new(1, crate::BucketRange::ALL);
        let record = id(None, "hi");
        assert_eq!(hex(&keys.record(&record)), "00000001000505000000010000000200".to_owned() + "68690000");
        assert_eq!(
            hex(&keys.record_field(&record, "f")),
            "00000001000506000000010000000200".to_owned() + "68690000660000"
        );
    }
}
