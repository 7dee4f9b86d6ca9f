//! Ids of outputs: the same input at the same logical time gives the same id in every replay, on every machine and release.
//!
//! Keeps: different inputs, times or ordinals give different ids. `docs/formats/idempotency.md` is the specification. Never: uses
//! a clock, a random number or the order of a hash map.

use std::fmt;

use contract::LogicalTime;
use sha2::{Digest, Sha256};

/// So that no other hash of the same fields is the same.
const DOMAIN: &[u8] = b"statehouse output 1";

/// The id of an output: 32 bytes, shown as 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OutputId([u8; 32]);

impl OutputId {
    /// The bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for OutputId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

/// The id of the output for an input: its key, and the logical time at which it was processed. If several nodes write to one sink,
/// the key has to tell them apart.
///
/// ```
/// use statehouse::stream::output_id;
/// let first = output_id(b"order-7", 3);
/// assert_eq!(first, output_id(b"order-7", 3)); // a replay: the sink has it, and drops this one
/// assert_ne!(first, output_id(b"order-7", 4));
/// assert!(first.to_string().starts_with("784225c1"));
/// ```
pub fn output_id(input_key: &[u8], time: impl Into<LogicalTime>) -> OutputId {
    nth_output_id(input_key, time, 0)
}

/// The id of one of several outputs for an input, counted from 0. The first one has the id that [`output_id`] gives.
///
/// ```
/// use statehouse::stream::{nth_output_id, output_id};
/// assert_eq!(nth_output_id(b"order-7", 3, 0), output_id(b"order-7", 3));
/// assert_ne!(nth_output_id(b"order-7", 3, 1), output_id(b"order-7", 3));
/// ```
pub fn nth_output_id(input_key: &[u8], time: impl Into<LogicalTime>, ordinal: u64) -> OutputId {
    let LogicalTime { epoch, round } = time.into();
    let mut hash = Sha256::new();
    hash.update(DOMAIN);
    hash.update((input_key.len() as u64).to_be_bytes());
    hash.update(input_key);
    for number in [epoch, round, ordinal] {
        hash.update(number.to_be_bytes());
    }
    OutputId(hash.finalize().into())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// `docs/formats/idempotency.md` has the same ids.
    #[test]
    fn golden_ids() {
        for (key, time, ordinal, id) in [
            ("order-7", LogicalTime::from(3), 0, "784225c1b253a844370c78e6e53fee29e04269064c4aac89257562a43c25d01b"),
            ("order-7", LogicalTime::new(1, 3), 0, "504a74efb9590951d7a9c49e134ef6b079ee20b9f03c47c824b1a51c4532bea5"),
            ("order-7", LogicalTime::from(3), 1, "3754154f48d58b2203bf81e9027a226acf5f6103a7b41e5b4a2ca1eced59dabe"),
            ("", LogicalTime::from(0), 0, "64cfdc514d8e61d423a19ac908d9566c0c65ee618450d408b50c55edda976a67"),
        ] {
            assert_eq!(nth_output_id(key.as_bytes(), time, ordinal).to_string(), id);
        }
    }

    #[test]
    fn no_two_inputs_share_an_id() {
        let mut seen = BTreeSet::new();
        for key in [b"".as_slice(), b"\0", b"\0\0", b"a", b"aa"] {
            for time in [LogicalTime::from(0), LogicalTime::from(1), LogicalTime::new(1, 0), LogicalTime::new(1, 1)] {
                for ordinal in 0..3 {
                    assert!(seen.insert(nth_output_id(key, time, ordinal)), "{key:?} {time} {ordinal}");
                }
            }
        }
    }
}
