//! Placement: the slot of a thing by hash, its bucket by slot. Fixed forever.

use std::fmt;
use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64;

/// Slots of the whole hash space.
pub const SLOTS: u16 = 16_384;

/// Most buckets that a directory can have.
pub const BUCKETS_MAX: u16 = 4_096;

/// The number of hash bits dropped to get a slot: 64 - 14.
const SLOT_SHIFT: u32 = 50;

/// The slot of a group: the top 14 bits of a hash over the lengths and bytes of the space's and the group's names. The
/// branch is not part of it, so the branches of a thing stay together.
pub fn slot(space: &[u8], group: &[u8]) -> u16 {
    let mut bytes = Vec::with_capacity(8 + space.len() + group.len());
    for part in [space, group] {
        let length = u32::try_from(part.len()).expect("names are below 1 KiB");
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(part);
    }
    u16::try_from(xxh3_64(&bytes) >> SLOT_SHIFT).expect("14 bits fit")
}

/// The number of buckets in a directory: a power of two, at most [`BUCKETS_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buckets(u16);

impl Buckets {
    /// `count` buckets, if there can be that many.
    pub fn new(count: u16) -> Option<Self> {
        (count.is_power_of_two() && count <= BUCKETS_MAX).then_some(Self(count))
    }

    /// The number.
    pub fn count(self) -> u16 {
        self.0
    }

    /// The bucket of a slot: buckets are contiguous ranges of slots.
    pub fn of_slot(self, slot: u16) -> u16 {
        slot / (SLOTS / self.0)
    }

    /// The bucket of a group.
    pub fn of_group(self, space: &[u8], group: &[u8]) -> u16 {
        self.of_slot(slot(space, group))
    }
}

/// Buckets that follow each other: those of one shard. It may reach beyond the buckets that exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketRange {
    first: u16,
    /// The one after the last.
    end: u16,
}

impl BucketRange {
    /// All buckets, however many there are: those of a shard that is alone.
    pub const ALL: BucketRange = BucketRange { first: 0, end: BUCKETS_MAX };

    /// The buckets from `first` to before `end`; none if that is no bucket.
    pub fn new(first: u16, end: u16) -> Option<Self> {
        (first < end && end <= BUCKETS_MAX).then_some(Self { first, end })
    }

    /// The first one.
    pub fn first(self) -> u16 {
        self.first
    }

    /// Whether it contains the bucket.
    pub fn contains(self, bucket: u16) -> bool {
        (self.first..self.end).contains(&bucket)
    }

    /// Those of them that exist.
    pub fn of(self, buckets: Buckets) -> Range<u16> {
        self.first..self.end.min(buckets.count()).max(self.first)
    }
}

impl fmt::Display for BucketRange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} to {}", self.first, self.end - 1)
    }
}

impl Default for Buckets {
    fn default() -> Self {
        Self(64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// These numbers are part of the stored format: a change would lose every stored thing.
    #[test]
    fn golden_slots() {
        let slots =
            [(b"default".as_slice(), b"order-7".as_slice()), (b"default", b""), (b"", b"order-7"), (b"a", b"b")]
                .map(|(space, group)| slot(space, group));
        assert_eq!(slots, [6544, 5314, 14150, 5784]);
    }

    #[test]
    fn a_range_ends_where_the_buckets_do() {
        let (few, many) = (Buckets::new(4).expect("allowed"), Buckets::default());
        assert_eq!((BucketRange::ALL.of(few), BucketRange::ALL.of(many)), (0..4, 0..64));
        let upper = BucketRange::new(32, BUCKETS_MAX).expect("a range");
        assert_eq!((upper.of(few).count(), upper.of(many)), (0, 32..64));
        assert_eq!([31, 32, 4_095, 4_096].map(|bucket| upper.contains(bucket)), [false, true, true, false]);
        assert_eq!((BucketRange::new(1, 1), BucketRange::new(0, BUCKETS_MAX + 1)), (None, None));
        assert_eq!(BucketRange::new(32, 64).expect("a range").to_string(), "32 to 63");
    }

    #[test]
    fn parts_are_not_joined() {
        assert_ne!(slot(b"ab", b"c"), slot(b"a", b"bc"));
    }

    #[test]
    fn buckets_are_contiguous_ranges_of_slots() {
        let buckets = Buckets::default();
        assert_eq!([0, 255, 256, 16_383].map(|slot| buckets.of_slot(slot)), [0, 0, 1, 63]);
        assert_eq!(Buckets::new(3), None);
        assert_eq!(Buckets::new(8_192), None);
        assert_eq!(Buckets::new(0), None);
        assert_eq!(Buckets::new(4_096).expect("allowed").of_slot(16_383), 4_095);
    }
}
