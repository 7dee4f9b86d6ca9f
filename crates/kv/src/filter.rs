//! A Bloom filter that one writer adds to while readers ask.
//!
//! Keeps: a key added before its batch was published is never denied to a reader of that batch: the bits are set before
//! the batch is published, and publishing orders them.

use std::sync::atomic::{AtomicU64, Ordering};

use xxhash_rust::xxh3::xxh3_64;

/// Bits per expected key. With two probes, about one in a hundred absent keys is searched for.
const BITS_PER_KEY: usize = 16;

/// The maximum size of a filter in keys, whatever is expected: 2 MiB.
const KEYS_MAX: usize = 1 << 20;

/// The hash of a key, computed once and used on several filters.
#[derive(Clone, Copy)]
pub(crate) struct KeyHash(u64);

impl KeyHash {
    pub(crate) fn of(key: &[u8]) -> Self {
        Self(xxh3_64(key))
    }
}

pub(crate) struct Filter {
    words: Vec<AtomicU64>,
}

impl Filter {
    /// A filter for about this many keys; with more it still never denies one that was added.
    pub(crate) fn new(keys: usize) -> Self {
        let words = (keys.min(KEYS_MAX) * BITS_PER_KEY / 64).max(64).next_power_of_two();
        Self { words: (0..words).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Both probes use one word: one cache miss, and a filter that is only a little weaker.
    fn place(&self, hash: KeyHash) -> (usize, u64) {
        let mask = self.words.len() as u64 - 1;
        let word = usize::try_from(hash.0 & mask).expect("below the number of words");
        let bits = (1 << (hash.0 >> 58)) | (1 << ((hash.0 >> 52) & 63));
        (word, bits)
    }

    pub(crate) fn add(&self, key: &[u8]) {
        let (word, bits) = self.place(KeyHash::of(key));
        self.words[word].fetch_or(bits, Ordering::Relaxed);
    }

    pub(crate) fn may_contain(&self, hash: &KeyHash) -> bool {
        let (word, bits) = self.place(*hash);
        self.words[word].load(Ordering::Relaxed) & bits == bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_added_key_is_never_denied_and_most_others_are() {
        let filter = Filter::new(10_000);
        for key in 0..10_000_u32 {
            filter.add(&key.to_be_bytes());
        }
        assert!((0..10_000_u32).all(|key| filter.may_contain(&KeyHash::of(&key.to_be_bytes()))));
        let wrong = (10_000..20_000_u32).filter(|key| filter.may_contain(&KeyHash::of(&key.to_be_bytes()))).count();
        assert!(wrong < 500, "{wrong} of 10,000");
    }
}
