//! Times of the machine's clock in answers: until when something is held, and whether an answer can say when it was sent. A date
//! before 1970 has no place in HTTP, and what writes the header panics.

use std::time::{Duration, SystemTime};

use contract::time::millis;

/// The machine's clock; only shown, and decides nothing.
#[allow(clippy::disallowed_methods, reason = "headers and metrics show the machine's clock, right or wrong")]
pub(crate) fn wall_now() -> SystemTime {
    SystemTime::now()
}

/// The time when this much is over, ms since 1970.
pub(crate) fn ms_from_now(left: Duration) -> u64 {
    (wall_now() + left).duration_since(SystemTime::UNIX_EPOCH).map_or(0, millis)
}

/// Whether a time can be in the header `Date`.
pub(crate) fn can_be_dated(time: SystemTime) -> bool {
    time >= SystemTime::UNIX_EPOCH
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_before_1970_has_no_date() {
        assert!(can_be_dated(SystemTime::UNIX_EPOCH));
        assert!(!can_be_dated(SystemTime::UNIX_EPOCH - Duration::from_secs(1)));
    }
}
