//! The progress of opening a directory, for callers that wait for a long replay.

use std::sync::atomic::{AtomicU64, Ordering};

/// The progress of opening a directory. Pass it to [`Options::opening`](crate::options::Options::opening), and read it from
/// another thread.
#[derive(Debug, Default)]
pub struct Opening {
    replayed: AtomicU64,
    to_replay: AtomicU64,
    replayed_bytes: AtomicU64,
    bytes_to_replay: AtomicU64,
}

impl Opening {
    /// The number of replayed entries of the journal.
    pub fn replayed(&self) -> u64 {
        self.replayed.load(Ordering::Relaxed)
    }

    /// The number of entries to replay; 0 until it is known, or if there is nothing to replay.
    pub fn to_replay(&self) -> u64 {
        self.to_replay.load(Ordering::Relaxed)
    }

    /// The bytes of the replayed entries.
    pub fn replayed_bytes(&self) -> u64 {
        self.replayed_bytes.load(Ordering::Relaxed).min(self.bytes_to_replay())
    }

    /// About how many bytes the entries to replay have; 0 until it is known, if there is nothing to replay, or if the journal
    /// cannot tell.
    pub fn bytes_to_replay(&self) -> u64 {
        self.bytes_to_replay.load(Ordering::Relaxed)
    }

    /// The part of the replay that is done: 0 until it has begun, and 100 only when every entry is applied. It is a part of the
    /// bytes, since entries differ in size, or of the entries if the journal does not know its bytes.
    pub fn percent(&self) -> u8 {
        let (replayed, to_replay) = (self.replayed(), self.to_replay());
        if to_replay == 0 {
            return 0;
        }
        if replayed >= to_replay {
            return 100;
        }
        let (done, all) = match self.bytes_to_replay() {
            0 => (replayed, to_replay),
            bytes => (self.replayed_bytes(), bytes),
        };
        let percent = u128::from(done) * 100 / u128::from(all);
        u8::try_from(percent).map_or(99, |percent| percent.min(99))
    }

    pub(crate) fn begin(&self, entries: u64, bytes: Option<u64>) {
        self.bytes_to_replay.store(bytes.unwrap_or(0), Ordering::Relaxed);
        self.to_replay.store(entries, Ordering::Relaxed);
    }

    /// So many bytes are behind, at least.
    pub(crate) fn at_least(&self, bytes: u64) {
        self.replayed_bytes.fetch_max(bytes, Ordering::Relaxed);
    }

    pub(crate) fn at(&self, replayed: u64, bytes: u64) {
        self.replayed_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.replayed.store(replayed, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_is_of_the_bytes_and_whole_only_at_the_end() {
        let opening = Opening::default();
        assert_eq!(opening.percent(), 0, "nothing is known yet");
        opening.begin(4, Some(1000));
        opening.at(1, 700);
        assert_eq!((opening.percent(), opening.replayed_bytes()), (70, 700), "one large entry of four");
        opening.at_least(600);
        assert_eq!(opening.percent(), 70, "it never goes back");
        opening.at_least(800);
        assert_eq!(opening.percent(), 80);
        opening.at(3, 500);
        assert_eq!(
            (opening.percent(), opening.replayed_bytes()),
            (99, 1000),
            "an entry is left, whatever the bytes say"
        );
        opening.at(4, 1);
        assert_eq!(opening.percent(), 100);
    }

    #[test]
    fn a_journal_that_cannot_tell_its_bytes_counts_entries() {
        let opening = Opening::default();
        opening.begin(3, None);
        opening.at(1, 10);
        assert_eq!((opening.percent(), opening.bytes_to_replay()), (33, 0));
    }
}
