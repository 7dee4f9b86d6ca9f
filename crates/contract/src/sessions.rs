//! The contract of sessions: requests that are executed once, answers that are kept, and pushes.
//!
//! - A request is (session, number, command). However often it arrives, and in whatever order, it is executed at most
//!   once, and answered with the same bytes each time. When its client has said by `lowest_pending` that it does not wait
//!   for it any more, it is answered [`Evicted`](crate::Rejection::Evicted); when its session is not known,
//!   [`SessionExpired`](crate::Rejection::SessionExpired). Neither is ever executed.
//! - A push is numbered from 1 in its session, kept until it is acknowledged or its session ends, and sent again until
//!   then. A client that sees a number again has seen that push.
//! - What a machine does is decided by its commands alone; images hold all of it, stored answers and pushes included.

use std::time::Duration;

use crate::error::Error;

/// A push that its session has not acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushedRequest {
    /// The session.
    pub session: u64,
    /// Its number in the session.
    pub number: u64,
    /// When it was last sent, at first when it was made: µs since 1970 in UTC.
    pub last_sent_at: u64,
    /// What was pushed.
    pub payload: Vec<u8>,
}

/// A machine behind sessions. See the module.
pub trait SessionStore {
    /// Creates a session that lives for `timeout` without a sign of its client, and gives its number.
    fn create(&self, timeout: Duration, capabilities: &[(String, Vec<u8>)]) -> Result<u64, Error>;

    /// Sends a request and gives the machine's answer. `lowest_pending` is the lowest request of the session whose
    /// answer is still waited for.
    fn request(&self, session: u64, request: u64, lowest_pending: u64, command: &[u8]) -> Result<Vec<u8>, Error>;

    /// The client has dealt with its pushes up to this one. Gives how many were forgotten.
    fn acknowledge(&self, session: u64, upto: u64) -> Result<u64, Error>;

    /// Ends a session. Gives whether there was one.
    fn expire(&self, session: u64) -> Result<bool, Error>;

    /// Takes the pushes that were last sent before a time, in µs since 1970, and notes that they are sent now.
    fn requests_for_retry(&self, sent_before: u64, limit: u32) -> Result<Vec<PushedRequest>, Error>;

    /// Whether any push waits for its acknowledgement. A hint.
    fn has_pending(&self) -> Result<bool, Error>;

    /// Whether any push may have been sent last before a time. A hint.
    fn has_overdue(&self, sent_before: u64) -> Result<bool, Error>;
}
