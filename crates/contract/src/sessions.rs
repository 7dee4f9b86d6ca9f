//! The contract of sessions: requests executed once, stored answers, and pushes.
//!
//! - A request is (session, number, command). However often it arrives, and in whatever order, it is executed at most
//!   once, and always answered with the same bytes. Once its client no longer waits for it, according to
//!   `lowest_pending`, it is answered [`Evicted`](crate::SessionRejection::Evicted); if its session is unknown,
//!   [`SessionExpired`](crate::SessionRejection::Expired). Neither is ever executed.
//! - Whoever creates a session gets its secret, and shows it with each of these calls. A call with another one is
//!   refused as [`WrongSecret`](crate::SessionRejection::WrongSecret) and changes nothing.
//! - Pushes are numbered from 1 in their session, kept until they are acknowledged or the session ends, and resent
//!   until then. A client recognises a repeated push by its number.
//! - A machine's behaviour depends on its commands alone; images contain all of its state, including stored answers and
//!   pushes.

mod rejection;
mod secret;

pub use rejection::SessionRejection;
pub use secret::{SessionCredentials, SessionSecret};

use std::time::Duration;

use crate::error::Error;

/// An unacknowledged push.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushedRequest {
    /// The session.
    pub session: u64,
    /// Its number in the session.
    pub number: u64,
    /// When it was last sent, initially when it was created: µs since 1970 in UTC.
    pub last_sent_at: u64,
    /// Its content.
    pub payload: Vec<u8>,
}

/// A machine behind sessions.
pub trait SessionStore {
    /// Creates a session that lives for `timeout` after its client's last activity, and returns its number
    /// and its secret.
    fn create(&self, timeout: Duration, capabilities: &[(String, Vec<u8>)]) -> Result<SessionCredentials, Error>;

    /// Sends a request and returns the machine's answer. `lowest_pending` is the session's lowest request whose answer
    /// the client still waits for.
    fn request(
        &self,
        session: &SessionCredentials,
        request: u64,
        lowest_pending: u64,
        command: &[u8],
    ) -> Result<Vec<u8>, Error>;

    /// Acknowledges pushes up to this one. Returns how many were discarded.
    fn acknowledge(&self, session: &SessionCredentials, upto: u64) -> Result<u64, Error>;

    /// Ends a session. Returns whether it existed.
    fn expire(&self, session: &SessionCredentials) -> Result<bool, Error>;

    /// Takes the pushes last sent before a time, in µs since 1970, and marks them as sent now.
    fn requests_for_retry(&self, sent_before: u64, limit: u32) -> Result<Vec<PushedRequest>, Error>;

    /// Whether any push is unacknowledged. A hint.
    fn has_pending(&self) -> Result<bool, Error>;

    /// Whether any push may have been last sent before a time. A hint.
    fn has_overdue(&self, sent_before: u64) -> Result<bool, Error>;
}
