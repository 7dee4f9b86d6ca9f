//! Refusals by the limits of the server; each names its limit. See [`crate::limits`].

use std::time::Duration;

use axum::http::StatusCode;

use super::Problem;

impl Problem {
    /// A limit is exceeded.
    fn beyond(status: StatusCode, code: &'static str, limit: &'static str, max: u64, detail: String) -> Self {
        let mut problem = Self::new(status, code, detail);
        problem.add("limit", limit);
        problem.add("max", max);
        problem.add("outcome", "not_applied");
        let later = status == StatusCode::TOO_MANY_REQUESTS || status == StatusCode::SERVICE_UNAVAILABLE;
        problem.add("retryable", later);
        problem
    }

    fn got(mut self, got: u64) -> Self {
        self.add("got", got);
        self
    }

    /// The head of a request is too large; hyper does not tell by how much.
    pub(crate) fn head_too_large(max: usize, headers_max: usize) -> Self {
        let detail = format!(
            "the request line and headers exceed head_bytes_max = {max} bytes, or there are more than \
             headers_max = {headers_max} headers; send fewer or shorter headers"
        );
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        Self::beyond(status, "SH-1040", "head_bytes_max", max as u64, detail)
    }

    /// A request has too many headers.
    pub(crate) fn too_many_headers(max: usize, got: usize) -> Self {
        let detail = format!("the request has {got} headers, which exceeds headers_max = {max}; send fewer");
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        Self::beyond(status, "SH-1040", "headers_max", max as u64, detail).got(got as u64)
    }

    /// A request's path and query are too long.
    pub(crate) fn url_too_long(max: usize, got: usize) -> Self {
        let detail = format!("the path and the query have {got} bytes, which exceeds url_bytes_max = {max}");
        Self::beyond(StatusCode::URI_TOO_LONG, "SH-1041", "url_bytes_max", max as u64, detail).got(got as u64)
    }

    /// A body is too large: `got` is its declared size, or what has arrived so far.
    pub(crate) fn body_too_large(max: usize, got: u64) -> Self {
        let detail = format!(
            "the body has {got} bytes or more, which exceeds body_bytes_max = {max}; send it in several requests"
        );
        Self::beyond(StatusCode::PAYLOAD_TOO_LARGE, "SH-1042", "body_bytes_max", max as u64, detail).got(got)
    }

    /// The client took too long to send something.
    pub(crate) fn too_slow(limit: &'static str, max: Duration) -> Self {
        let ms = u64::try_from(max.as_millis()).unwrap_or(u64::MAX);
        let detail = format!("the request did not arrive within {limit} = {ms} ms; send it again without pausing");
        Self::beyond(StatusCode::REQUEST_TIMEOUT, "SH-1043", limit, ms, detail)
    }

    /// The request asks to wait longer than it may.
    pub(crate) fn wait_too_long(max: Duration, got: Duration) -> Self {
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let (max, got) = (ms(max), ms(got));
        let detail =
            format!("waiting {got} ms exceeds wait_time_max = {max} ms; wait for less, and ask again if nothing came");
        Self::beyond(StatusCode::PAYLOAD_TOO_LARGE, "SH-1002", "wait_time_max", max, detail).got(got)
    }

    /// A body is nested too deeply.
    pub(crate) fn too_deep(max: usize) -> Self {
        let detail = format!("arrays and objects are nested deeper than json_depth_max = {max}; flatten the value");
        Self::beyond(StatusCode::BAD_REQUEST, "SH-1045", "json_depth_max", max as u64, detail)
    }

    /// All connections are in use.
    pub(crate) fn too_many_connections(max: usize) -> Self {
        let detail =
            format!("all connections_max = {max} connections are in use; reuse one for many requests, or retry");
        Self::beyond(StatusCode::SERVICE_UNAVAILABLE, "SH-2010", "connections_max", max as u64, detail)
    }

    /// All requests, or all waits, are in use.
    pub(crate) fn too_many_requests(limit: &'static str, max: usize) -> Self {
        let detail = format!("{limit} = {max} are in progress; this request was not started; retry");
        Self::beyond(StatusCode::TOO_MANY_REQUESTS, "SH-2011", limit, max as u64, detail)
    }

    /// All streams are in use.
    pub(crate) fn too_many_streams(max: usize) -> Self {
        let detail = format!("all streams_max = {max} streams are in use; close one, or fetch page by page");
        Self::beyond(StatusCode::TOO_MANY_REQUESTS, "SH-2012", "streams_max", max as u64, detail)
    }

    /// The store did not answer in time. The request may still be executed.
    pub(crate) fn unanswered(max: Duration) -> Self {
        let ms = u64::try_from(max.as_millis()).unwrap_or(u64::MAX);
        let detail =
            format!("no answer within request_time_max = {ms} ms; a write may have been applied, or may still be");
        let mut problem = Self::beyond(StatusCode::GATEWAY_TIMEOUT, "SH-2013", "request_time_max", ms, detail);
        problem.add("outcome", "unknown");
        problem.add("retryable", true);
        problem
    }

    /// The memory for requests is used up, or this request alone needs more than all of it.
    pub(crate) fn memory_used_up(max: usize, got: usize) -> Self {
        let (status, code, advice) = match got > max {
            true => {
                (StatusCode::PAYLOAD_TOO_LARGE, "SH-1047", "send it in several requests, with fewer values in each")
            }
            false => (StatusCode::TOO_MANY_REQUESTS, "SH-2014", "retry"),
        };
        let detail = format!(
            "this request needs up to {got} bytes of memory, and less of request_memory_bytes_max = {max} is free; {advice}"
        );
        Self::beyond(status, code, "request_memory_bytes_max", max as u64, detail).got(got as u64)
    }
}
