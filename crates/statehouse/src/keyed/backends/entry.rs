//! What is known of a key, and what becomes of an update of it: the rules of a map, for stores that have none.
//!
//! Keeps: D1 (only a newer version changes a key) and D3 (nothing at or below the seal is applied). Never: stores anything.

use contract::keyed::backend::BackendError;
use contract::keyed::{LogicalTime, UpdateOutcome, shown_key};

/// What is known of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The version of its value, or of its deletion.
    pub(super) version: LogicalTime,
    /// Its value, encoded; none if it was deleted.
    pub(super) value: Option<Vec<u8>>,
}

impl Entry {
    /// Whether nothing depends on it any more: it is a deletion that the seal has passed.
    pub(super) fn is_forgotten(&self, seal: Option<LogicalTime>) -> bool {
        self.value.is_none() && Some(self.version) <= seal
    }
}

/// What becomes of an update that would make the entry of a key `after`.
pub(super) fn judge(known: Option<&Entry>, seal: Option<LogicalTime>, after: &Entry) -> UpdateOutcome {
    let is_sealed = Some(after.version) <= seal;
    let stale = |current: LogicalTime| UpdateOutcome::Stale { current: Some(current).max(seal).unwrap_or(current) };
    match known.filter(|known| !known.is_forgotten(seal)) {
        Some(known) if after.version == known.version && after.value == known.value => UpdateOutcome::Duplicate,
        Some(known) if after.version == known.version => UpdateOutcome::VersionConflict,
        Some(known) if after.version < known.version => stale(known.version),
        _ if is_sealed => stale(after.version),
        _ => UpdateOutcome::Applied,
    }
}

/// The version up to which updates of a key change nothing.
pub(super) fn passed(known: Option<LogicalTime>, seal: Option<LogicalTime>) -> Option<LogicalTime> {
    known.max(seal)
}

/// Whether an entry that comes from another state replaces what is known of its key.
pub(super) fn takes_over(
    key: &[u8],
    known: Option<&Entry>,
    seal: Option<LogicalTime>,
    moved: &Entry,
) -> Result<bool, BackendError> {
    if moved.is_forgotten(seal) {
        return Ok(false);
    }
    match judge(known.filter(|known| !known.is_forgotten(seal)), None, moved) {
        UpdateOutcome::VersionConflict => {
            Err(BackendError::VersionConflict { key: shown_key(key), version: moved.version })
        }
        outcome => Ok(outcome == UpdateOutcome::Applied),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(version: u64, value: &str) -> Entry {
        Entry { version: version.into(), value: Some(value.as_bytes().to_vec()) }
    }

    fn deleted(version: u64) -> Entry {
        Entry { version: version.into(), value: None }
    }

    #[test]
    fn only_a_newer_version_is_applied() {
        let stale = |current: u64| UpdateOutcome::Stale { current: current.into() };
        for (known, seal, after, outcome) in [
            (None, None, put(0, "a"), UpdateOutcome::Applied),
            (Some(put(7, "a")), None, put(8, "a"), UpdateOutcome::Applied),
            (Some(put(7, "a")), None, put(7, "a"), UpdateOutcome::Duplicate),
            (Some(put(7, "a")), None, put(7, "b"), UpdateOutcome::VersionConflict),
            (Some(put(7, "a")), None, deleted(7), UpdateOutcome::VersionConflict),
            (Some(put(7, "a")), None, put(6, "b"), stale(7)),
            (Some(deleted(7)), None, put(6, "b"), stale(7)),
            (Some(deleted(7)), None, deleted(7), UpdateOutcome::Duplicate),
            (Some(put(7, "a")), Some(9), put(6, "b"), stale(9)),
            (Some(put(7, "a")), Some(9), put(7, "a"), UpdateOutcome::Duplicate),
            (Some(put(7, "a")), Some(9), put(9, "b"), stale(9)),
            (Some(deleted(7)), Some(7), put(7, "b"), stale(7)),
            (None, Some(7), put(8, "b"), UpdateOutcome::Applied),
            (None, Some(7), put(3, "b"), stale(7)),
        ] {
            let seal = seal.map(LogicalTime::from);
            assert_eq!(judge(known.as_ref(), seal, &after), outcome, "{known:?}, {seal:?}, {after:?}");
        }
    }

    #[test]
    fn what_moves_in_is_taken_if_it_is_newer_even_below_the_seal() {
        let seal = Some(LogicalTime::from(5));
        for (known, moved, taken) in [
            (None, put(3, "a"), Some(true)),
            (None, deleted(3), Some(false)),
            (Some(deleted(4)), put(3, "a"), Some(true)),
            (Some(put(4, "b")), put(3, "a"), Some(false)),
            (Some(put(3, "b")), put(4, "a"), Some(true)),
            (Some(put(3, "a")), put(3, "a"), Some(false)),
            (Some(put(3, "b")), put(3, "a"), None),
            (Some(deleted(6)), put(3, "a"), Some(false)),
            (Some(put(3, "b")), deleted(6), Some(true)),
        ] {
            assert_eq!(takes_over(b"k", known.as_ref(), seal, &moved).ok(), taken, "{known:?}, {moved:?}");
        }
    }
}
