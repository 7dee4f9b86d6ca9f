//! When a call is retried.
//!
//! Keeps: a write is retried only if it cannot be executed twice: it is numbered in a session, or known not to have been
//! executed. A rejection that depends on the data is never retried: it would be the same.

use std::time::Duration;

use contract::Outcome;

use crate::error::Error;

/// The effect of sending a call twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Safety {
    /// It reads.
    Reads,
    /// Numbered in a session: executed once, however often it arrives.
    Numbered,
    /// It could be executed twice.
    Unprotected,
}

/// Temporary refusals: the store is busy, too many requests, the server stops, the session is full.
const PASSING: &[&str] = &[
    "SH-1009", "SH-1020", "SH-2001", "SH-2008", "SH-2010", "SH-2011", "SH-2012", "SH-2013", "SH-2014", "SH-2016",
    "SH-5001",
];

/// Whether to retry a call after this error.
pub(crate) fn is_worth_it(error: &Error, safety: Safety) -> bool {
    let passing = match error {
        Error::NoAnswer { .. } | Error::TimedOut { .. } => true,
        Error::Refused(refusal) => PASSING.contains(&refusal.code.as_str()),
        Error::Unreadable { .. } | Error::TokenWithoutTls { .. } | Error::Unsendable { .. } => false,
    };
    passing && (safety != Safety::Unprotected || error.outcome() == Outcome::NotApplied)
}

/// How long to wait before the next attempt: longer each time.
pub(crate) fn pause(attempt: u32) -> Duration {
    const FIRST: Duration = Duration::from_millis(20);
    const LONGEST: Duration = Duration::from_secs(1);
    FIRST.saturating_mul(1 << attempt.min(10)).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Refusal;

    fn refused(code: &str, outcome: &str) -> Error {
        let body = format!(r#"{{"code":"{code}","outcome":"{outcome}"}}"#);
        Error::Refused(Box::new(Refusal::read(409, &body.into()).expect("a problem")))
    }

    #[test]
    fn nothing_that_could_be_done_twice_is_sent_again() {
        let silent = |outcome| Error::NoAnswer { server: String::new(), cause: String::new(), outcome };
        let slow = |outcome| Error::TimedOut { server: String::new(), limit: Duration::ZERO, outcome };
        let table = [
            (silent(Outcome::Unknown), [true, true, false]),
            (silent(Outcome::NotApplied), [true, true, true]),
            (slow(Outcome::Unknown), [true, true, false]),
            (slow(Outcome::NotApplied), [true, true, true]),
            (refused("SH-2001", "not_applied"), [true, true, true]),
            (refused("SH-2013", "unknown"), [true, true, false]),
            // Decided by the data.
            (refused("SH-1003", "not_applied"), [false, false, false]),
            (refused("SH-4002", "not_applied"), [false, false, false]),
            (refused("SH-5006", "not_applied"), [false, false, false]),
            (Error::Unsendable { cause: String::new() }, [false, false, false]),
        ];
        for (error, expected) in table {
            let safeties = [Safety::Reads, Safety::Numbered, Safety::Unprotected];
            assert_eq!(safeties.map(|safety| is_worth_it(&error, safety)), expected, "{error}");
        }
        assert!(pause(0) < pause(3) && pause(40) == Duration::from_secs(1));
    }
}
