//! An id for every request, sent in `Statehouse-Request-Id` and logged for slow requests.
//!
//! Keeps: ids are unique within a process, and processes differ by a random number drawn at startup.

use std::fmt;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::{HeaderName, HeaderValue, Response};

/// The header of an answer.
pub(crate) const HEADER: HeaderName = HeaderName::from_static("statehouse-request-id");

/// The id of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestId(u64);

impl RequestId {
    pub(crate) fn next() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(1);
        Self(COUNT.fetch_add(1, Ordering::Relaxed))
    }

    /// Adds it to an answer.
    pub(crate) fn put_into<B>(self, response: &mut Response<B>) {
        if let Ok(value) = HeaderValue::from_str(&self.to_string()) {
            response.headers_mut().insert(HEADER, value);
        }
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        static PROCESS: LazyLock<u32> = LazyLock::new(|| {
            use std::hash::{BuildHasher, RandomState};
            u32::try_from(RandomState::new().hash_one(std::process::id()) >> 32).unwrap_or(0)
        });
        write!(formatter, "{:08x}-{}", *PROCESS, self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_has_another_name() {
        let (first, second) = (RequestId::next().to_string(), RequestId::next().to_string());
        assert_ne!(first, second);
        assert_eq!(first.split_once('-').map(|(process, _)| process.len()), Some(8), "{first}");
        let mut response = Response::new(());
        RequestId::next().put_into(&mut response);
        assert!(response.headers().contains_key("statehouse-request-id"));
    }
}
