//! Whether an answer can say when it was sent. A date before 1970 has no place in HTTP, and what writes the header panics.

use std::time::SystemTime;

/// The machine's clock; only shown, and decides nothing.
#[allow(clippy::disallowed_methods, reason = "headers and metrics show the machine's clock, right or wrong")]
pub(crate) fn wall_now() -> SystemTime {
    SystemTime::now()
}

/// Whether a time can be in the header `Date`.
pub(crate) fn can_be_dated(time: SystemTime) -> bool {
    time >= SystemTime::UNIX_EPOCH
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_answer_before_1970_has_no_date() {
        assert!(can_be_dated(SystemTime::UNIX_EPOCH));
        assert!(!can_be_dated(SystemTime::UNIX_EPOCH - Duration::from_secs(1)));
    }
}
