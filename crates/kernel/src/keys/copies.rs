//! Keys of second copies: which rows have one, and where it is.

use kv::{Bytes, Key, KeyRange, KvError};

use super::{GENERATION_BYTES, Keys, Kind, SHARD_ROWS, ShardKind};
use crate::place::Buckets;

/// In front of the key of a row's second copy. No generation has this number, so it sorts before all of them, far from
/// the row itself.
const COPY: [u8; GENERATION_BYTES] = [0; GENERATION_BYTES];

impl Keys {
    /// Whether a row has a second copy. Without the applied row and the catalogue nothing else can be understood, and
    /// without a floor nothing new can be created in a whole bucket, and without its usage nothing in a whole space.
    pub fn has_copy(&self, key: &[u8]) -> bool {
        let Some(rest) = key.strip_prefix(&self.generation.to_be_bytes()) else { return false };
        let Some((bucket, rest)) = rest.split_first_chunk() else { return false };
        if u16::from_be_bytes(*bucket) != SHARD_ROWS {
            return rest.first().is_some_and(|kind| Kind::COPIED.into_iter().any(|copied| copied as u8 == *kind));
        }
        let kind = rest.strip_prefix(&self.buckets.first().to_be_bytes()).and_then(<[u8]>::first);
        kind.is_some_and(|kind| ShardKind::COPIED.into_iter().any(|copied| copied as u8 == *kind))
    }

    /// Where the rows that have a second copy are, in order.
    pub fn ranges_with_copies(&self, buckets: Buckets) -> Vec<KeyRange> {
        let of_bucket =
            |bucket| Kind::COPIED.into_iter().map(move |kind| KeyRange::prefix(&self.bucket_prefix(kind, bucket)));
        let of_shard = ShardKind::COPIED.into_iter().map(|kind| KeyRange::prefix(&self.shard_row(kind)));
        let mut ranges: Vec<_> = self.buckets.of(buckets).flat_map(of_bucket).chain(of_shard).collect();
        ranges.sort();
        ranges
    }

    /// The key of the second copy of a row.
    pub fn copy_of(key: &[u8]) -> Key {
        let mut copy = Key::from(COPY);
        copy.extend_from_slice(key);
        copy
    }

    /// The key of the row that a second copy is of.
    pub fn original_of(copy: &[u8]) -> Option<&[u8]> {
        copy.strip_prefix(&COPY)
    }

    /// The second copies of the rows of a range.
    pub fn copies_in(range: &KeyRange) -> KeyRange {
        let end = match &range.end {
            Some(end) => Some(Self::copy_of(end).to_vec()),
            None => KeyRange::prefix(&COPY).end,
        };
        KeyRange { start: Self::copy_of(&range.start).to_vec(), end }
    }

    /// Reads a row that has a second copy: from the copy if the row itself is damaged. Both always have the same content,
    /// so it makes no difference to anybody when damage is found.
    pub(crate) fn get_either(
        &self,
        key: &[u8],
        get: impl Fn(&[u8]) -> Result<Option<Bytes>, KvError>,
    ) -> Result<Option<Bytes>, KvError> {
        debug_assert!(self.has_copy(key), "only rows with a copy can be read from it");
        match get(key) {
            // In a store without any copies, the absence of this one would say nothing.
            Err(damaged @ KvError::Damaged(_)) => match get(&Self::copy_of(&self.applied()))? {
                Some(_) => get(&Self::copy_of(key)),
                None => Err(damaged),
            },
            found => found,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BucketRange;

    #[test]
    fn the_rows_that_have_a_copy_are_those_of_the_ranges() {
        let keys = Keys::new(1, BucketRange::new(2, 4).expect("a range"));
        let ranges = keys.ranges_with_copies(Buckets::default());
        assert!(ranges.is_sorted_by(|one, next| one.end.as_ref().is_some_and(|end| *end <= next.start)), "apart");
        let of_buckets = (0..8).flat_map(|bucket| {
            Kind::WORDS.map(|(kind, _)| (keys.bucket_prefix(kind, bucket), (2..4).contains(&bucket)))
        });
        let of_shard = ShardKind::WORDS.map(|(kind, _)| kind).into_iter().chain([ShardKind::IndexFill]);
        let of_shard = of_shard.map(|kind| (keys.shard_row(kind), true));
        let mut copied = 0;
        for (mut key, is_own) in of_buckets.chain(of_shard) {
            key.extend_from_slice(b"\0\0\0\x01rest");
            let in_ranges = ranges.iter().any(|range| range.contains(&key));
            assert_eq!(in_ranges, is_own && keys.has_copy(&key), "{key:?}");
            copied += usize::from(in_ranges);
        }
        assert_eq!(copied, ranges.len());
    }
}
