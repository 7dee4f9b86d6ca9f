//! The number of a session: where it was created, and by which command there; `docs/formats/sessions.md`.
//!
//! Keeps: no two shards give out the same number, and no shard gives one out twice.

/// Bits of the command's number.
const COMMIT_BITS: u32 = 48;

/// The number of a session. Everything that only carries it has it as a `u64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionNumber(u64);

impl SessionNumber {
    /// The last command of a shard that can create a session.
    pub const COMMIT_MAX: u64 = (1 << COMMIT_BITS) - 1;

    /// The number of the session that this command of the home shard creates; none if the command is beyond
    /// [`COMMIT_MAX`](Self::COMMIT_MAX).
    pub fn new(home: u16, commit: u64) -> Option<Self> {
        (commit <= Self::COMMIT_MAX).then_some(Self(u64::from(home) << COMMIT_BITS | commit))
    }

    /// The shard that created it, by its first bucket.
    pub fn home(self) -> u16 {
        (self.0 >> COMMIT_BITS) as u16
    }

    /// The command that created it, by its number in the home shard.
    pub fn commit(self) -> u64 {
        self.0 & Self::COMMIT_MAX
    }

    /// Both in one.
    pub fn get(self) -> u64 {
        self.0
    }
}

impl From<u64> for SessionNumber {
    fn from(number: u64) -> Self {
        Self(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Part of the stored format; `docs/formats/sessions.md`.
    #[test]
    fn golden_numbers() {
        let numbers = [
            (0, 7, 7),
            (32, 7, 0x0020_0000_0000_0007),
            (0, SessionNumber::COMMIT_MAX, 0x0000_ffff_ffff_ffff),
            (u16::MAX, SessionNumber::COMMIT_MAX, u64::MAX),
        ];
        for (home, commit, expected) in numbers {
            let number = SessionNumber::new(home, commit).expect("a number");
            assert_eq!(number.get(), expected, "{home} {commit}");
            let read = SessionNumber::from(expected);
            assert_eq!((read, read.home(), read.commit()), (number, home, commit));
        }
        assert_eq!(SessionNumber::new(0, SessionNumber::COMMIT_MAX + 1), None);
    }
}
