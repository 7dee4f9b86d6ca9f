//! Every bound of the server by name. What is beyond one is refused with its name, the bound and what was asked for.
//!
//! Keeps: nothing is unbounded. The bounds of names, values and transactions are the store's; see `contract::limits`.

use std::time::Duration;

/// Connections beyond `connections_max` that are told so at a time; any more are closed without a word.
pub(crate) const REFUSALS_MAX: usize = 64;

/// How long a connection that the server ends is still read, so that the client is not cut off before it has read why.
pub(crate) const LINGER_TIME_MAX: Duration = Duration::from_secs(1);
/// How many bytes of it are read for that.
pub(crate) const LINGER_BYTES_MAX: usize = 16 << 20;

/// The bounds that can be chosen when a server is started.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerLimits {
    /// Connections at a time.
    pub connections_max: usize,
    /// Requests that are worked on at a time.
    pub requests_max: usize,
    /// Requests that wait at a time, or may: claims, and whatever is asked to wait or to follow. They are not among the others.
    pub waits_max: usize,
    /// Answers without a size at a time: streams of events, and large files.
    pub streams_max: usize,
    /// Bytes of a request before its body: its line and its headers.
    pub head_bytes_max: usize,
    /// Headers of a request.
    pub headers_max: usize,
    /// Bytes of a request's path and query.
    pub url_bytes_max: usize,
    /// Bytes of a request's body.
    pub body_bytes_max: usize,
    /// Bytes of memory for all requests that are worked on; a body counts what it takes when it is parsed.
    pub request_memory_bytes_max: usize,
    /// Bytes that the system holds for a reader that is behind, for each connection.
    pub send_buffer_bytes_max: usize,
    /// From the first byte of a request to the end of its headers.
    pub head_time_max: Duration,
    /// From the end of the headers to the end of the body.
    pub body_time_max: Duration,
    /// From the end of the body to the answer; what the request is asked to wait comes on top.
    pub request_time_max: Duration,
    /// How long a request may be asked to wait.
    pub wait_time_max: Duration,
    /// How long a connection is kept without a request.
    pub idle_time_max: Duration,
    /// How long a client may take nothing of what is written to it.
    pub write_stall_time_max: Duration,
    /// How long the server waits for requests that are under way when it is told to stop.
    pub drain_time_max: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            connections_max: 4096,
            requests_max: 1024,
            waits_max: 4096,
            streams_max: 1024,
            head_bytes_max: 16 << 10,
            headers_max: 64,
            url_bytes_max: 8 << 10,
            body_bytes_max: 4 << 20,
            request_memory_bytes_max: 256 << 20,
            send_buffer_bytes_max: 64 << 10,
            head_time_max: Duration::from_secs(10),
            body_time_max: Duration::from_secs(30),
            request_time_max: Duration::from_secs(10),
            wait_time_max: Duration::from_secs(60),
            idle_time_max: Duration::from_secs(60),
            write_stall_time_max: Duration::from_secs(10),
            drain_time_max: Duration::from_secs(30),
        }
    }
}
