//! Every limit of the server by name. A refusal carries the name, the limit and the requested amount.
//!
//! Keeps: nothing is unbounded. The limits of names, values and transactions are the store's; see `contract::limits`. A contract can
//! have limits of its own, in the `limits.rs` of its folder.

use std::time::Duration;

/// Connections beyond `connections_max` that are told so at a time; further ones are closed without an answer.
pub(crate) const REFUSALS_MAX: usize = 64;

/// How long a connection closed by the server is still read, so that the client can read the answer.
pub(crate) const LINGER_TIME_MAX: Duration = Duration::from_secs(1);
/// How many bytes are read for that.
pub(crate) const LINGER_BYTES_MAX: usize = 16 << 20;

/// The limits that can be set when a server is started.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerLimits {
    /// Concurrent connections.
    pub connections_max: usize,
    /// Concurrent requests.
    pub requests_max: usize,
    /// Concurrent waiting requests: claims, and requests that wait or follow. Not counted among the others.
    pub waits_max: usize,
    /// Concurrent answers of unknown size: event streams, and large files.
    pub streams_max: usize,
    /// Bytes of a request before its body: its line and its headers.
    pub head_bytes_max: usize,
    /// Headers of a request.
    pub headers_max: usize,
    /// Bytes of a request's path and query.
    pub url_bytes_max: usize,
    /// Bytes of a request's body.
    pub body_bytes_max: usize,
    /// Bytes of memory for all requests in progress; a body counts its size when parsed.
    pub request_memory_bytes_max: usize,
    /// Bytes that the system buffers for a slow reader, per connection.
    pub send_buffer_bytes_max: usize,
    /// Concurrent TLS handshakes; more wait for their turn.
    pub handshakes_max: usize,
    /// From the beginning of a connection to the end of its TLS handshake.
    pub handshake_time_max: Duration,
    /// From the first byte of a request to the end of its headers.
    pub head_time_max: Duration,
    /// From the end of the headers to the end of the body.
    pub body_time_max: Duration,
    /// From the end of the body to the answer; a requested wait comes on top.
    pub request_time_max: Duration,
    /// The longest wait that a request may ask for.
    pub wait_time_max: Duration,
    /// How long a connection is kept without a request.
    pub idle_time_max: Duration,
    /// How long a client may stop reading.
    pub write_stall_time_max: Duration,
    /// How long a stopping server waits for requests in progress.
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
            handshakes_max: 256,
            handshake_time_max: Duration::from_secs(5),
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
