//! Placement: the slot of a thing by hash, its bucket by slot. Fixed forever.

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
