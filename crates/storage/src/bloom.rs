//! A Bloom filter over the keys of one partition of a table.
//!
//! All probes of a key fall into one line of 64 bytes, so asking costs one cache miss.
//! Keeps: an added key is never denied.

use xxhash_rust::xxh3::xxh3_64;

const BITS_PER_KEY: usize = 10;
const LINE_BYTES: usize = 64;
const LINE_BITS: u64 = 512;
const PROBES: u32 = 6;

/// The hash of a key, computed once and used on several filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyHash(u64);

impl KeyHash {
    pub(crate) fn of(key: &[u8]) -> Self {
        Self(xxh3_64(key))
    }

    /// True for about one key of `count`, and for the same keys in every table.
    pub(crate) fn is_one_of(self, count: u64) -> bool {
        self.0.is_multiple_of(count)
    }

    /// The line of the key among `lines`, by the upper half of the hash.
    fn line(self, lines: usize) -> usize {
        let line = ((self.0 >> 32) * lines as u64) >> 32;
        usize::try_from(line).expect("below the number of lines")
    }

    /// The bits of the key in its line, nine bits of a second hash each.
    fn bits(self) -> impl Iterator<Item = (usize, u8)> {
        let mixed = self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (0..PROBES).map(move |probe| {
            let bit = (mixed >> (9 * probe)) % LINE_BITS;
            (usize::try_from(bit / 8).expect("below 64"), 1 << (bit % 8))
        })
    }
}

/// The bytes of a filter for these keys.
pub(crate) fn build(keys: &[KeyHash]) -> Vec<u8> {
    let lines = (keys.len() * BITS_PER_KEY).div_ceil(LINE_BYTES * 8).max(1);
    let mut bytes = vec![0; lines * LINE_BYTES];
    for key in keys {
        let line = key.line(lines) * LINE_BYTES;
        for (byte, bit) in key.bits() {
            bytes[line + byte] |= bit;
        }
    }
    bytes
}

/// Whether a key may have been added. Bytes that are no filter deny nothing.
pub(crate) fn may_contain(bytes: &[u8], key: KeyHash) -> bool {
    let lines = bytes.len() / LINE_BYTES;
    if lines == 0 {
        return true;
    }
    let line = &bytes[key.line(lines) * LINE_BYTES..][..LINE_BYTES];
    key.bits().all(|(byte, bit)| line[byte] & bit != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_added_key_is_never_denied_and_most_others_are() {
        let hash = |key: u32| KeyHash::of(&key.to_be_bytes());
        let keys: Vec<KeyHash> = (0..20_000).map(hash).collect();
        let filter = build(&keys);
        assert!(keys.iter().all(|key| may_contain(&filter, *key)));
        let wrong = (20_000..40_000).filter(|key| may_contain(&filter, hash(*key))).count();
        assert!(wrong < 400, "{wrong} of 20,000");
        assert!(may_contain(&[], hash(1)));
    }
}
