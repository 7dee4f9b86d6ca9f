//! A refusal as `application/problem+json`: the code, what it means, and whether trying again can help.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use contract::{Error, FailureKind, Outcome, Rejection};
use serde::Serialize;
use serde_json::{Map, Value as JsonValue, json};

use crate::errors::title;
use crate::members::members;
use crate::metrics::ProblemCode;

/// A refusal.
#[derive(Debug)]
pub struct Problem {
    status: StatusCode,
    code: &'static str,
    detail: String,
    more: Map<String, JsonValue>,
}

impl Problem {
    fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self { status, code, detail: detail.into(), more: Map::new() }
    }

    /// Its code.
    pub(crate) fn code(&self) -> &'static str {
        self.code
    }

    /// The request is not well formed.
    pub(crate) fn malformed(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "SH-1030", detail)
    }

    /// A defect of the server.
    pub(crate) fn internal(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "SH-2006", detail)
    }

    /// There is nothing with this name.
    pub(crate) fn not_found(what: &str, name: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "SH-1031", format!("there is no {what} {name:?}"))
    }

    /// What a cell was then is not kept.
    pub(crate) fn history_gone(cell: &str, oldest: u64) -> Self {
        let detail = format!("what the cell {cell:?} was then is not kept; the oldest version that is, is {oldest}");
        let mut problem = Self::new(StatusCode::GONE, "SH-1033", detail);
        problem.more.insert("oldest".into(), oldest.into());
        problem
    }

    /// The same, where `If-Match` or `If-None-Match` said what is not the case.
    pub(crate) fn of_header(mut self) -> Self {
        if matches!(self.code, "SH-1003" | "SH-1017") {
            self.status = StatusCode::PRECONDITION_FAILED;
        }
        self
    }
}

/// The status of a rejection.
fn status_of(rejection: &Rejection) -> StatusCode {
    match rejection {
        Rejection::InvalidName { .. }
        | Rejection::WrongKind { .. }
        | Rejection::InvalidDeclaration { .. }
        | Rejection::InvalidEvent { .. }
        | Rejection::UnreadableCommand { .. }
        | Rejection::MainBranch => StatusCode::BAD_REQUEST,
        Rejection::LimitExceeded { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        Rejection::TwoGroups { .. } | Rejection::KeyReused { .. } => StatusCode::UNPROCESSABLE_ENTITY,
        Rejection::NoSuchSpace { .. }
        | Rejection::NoSuchBranch { .. }
        | Rejection::NoSuchRecord { .. }
        | Rejection::NoSuchType { .. }
        | Rejection::NoSuchRun { .. } => StatusCode::NOT_FOUND,
        Rejection::SessionExpired
        | Rejection::Evicted { .. }
        | Rejection::RunArchived { .. }
        | Rejection::TransactionLost { .. } => StatusCode::GONE,
        Rejection::SessionBusy { .. } => StatusCode::TOO_MANY_REQUESTS,
        Rejection::CatalogueBehind { .. } => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::CONFLICT,
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let status = match &error {
            Error::Rejected(rejection) => status_of(rejection),
            Error::Failed(failure) if failure.kind == FailureKind::Busy => StatusCode::TOO_MANY_REQUESTS,
            Error::Failed(failure) if matches!(failure.kind, FailureKind::DiskLow | FailureKind::DiskFull) => {
                StatusCode::INSUFFICIENT_STORAGE
            }
            Error::Failed(failure) if failure.outcome == Outcome::Unknown => StatusCode::GATEWAY_TIMEOUT,
            Error::Failed(failure) if failure.kind == FailureKind::Corrupt => StatusCode::INTERNAL_SERVER_ERROR,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        let mut problem = Self::new(status, error.code(), error.to_string());
        problem.more.insert("retryable".into(), error.retryable().into());
        let outcome = if error.outcome() == Outcome::Unknown { "unknown" } else { "not_applied" };
        problem.more.insert("outcome".into(), outcome.into());
        if let Error::Rejected(rejection) = &error
            && let JsonValue::Object(mut members) = members(rejection)
        {
            problem.more.append(&mut members);
        }
        problem
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut body = self.more;
        body.insert("type".into(), format!("/v1/errors/{}", self.code).into());
        body.insert("code".into(), self.code.into());
        body.insert("status".into(), self.status.as_u16().into());
        body.insert("title".into(), title(self.code).unwrap_or_default().into());
        body.insert("detail".into(), self.detail.into());
        let body = JsonValue::Object(body).to_string() + "\n";
        let mut response = (self.status, [(header::CONTENT_TYPE, "application/problem+json")], body).into_response();
        response.extensions_mut().insert(ProblemCode(self.code));
        if self.status == StatusCode::TOO_MANY_REQUESTS || self.status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, header::HeaderValue::from_static("1"));
        }
        response
    }
}

pub(crate) async fn no_such_route() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "SH-1032", "there is no such route; GET / says where things are")
}

/// A path that ends before the name: what is said of any other name that is not allowed.
pub(crate) async fn no_name(check: fn(&str) -> Result<(), Rejection>) -> Problem {
    match check("") {
        Err(rejection) => Error::from(rejection).into(),
        Ok(()) => no_such_route().await,
    }
}

pub(crate) async fn no_such_method() -> Problem {
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "SH-1032", "this route does not know the method")
}

/// What a call answers.
pub(crate) type Answered = Result<Response, Problem>;

/// What most bodies fit in.
const BODY_BYTES: usize = 1 << 10;

/// A JSON body with a status.
pub(crate) fn body(status: StatusCode, body: impl Serialize) -> Response {
    let mut text = Vec::with_capacity(BODY_BYTES);
    serde_json::to_writer(&mut text, &body).expect("what is answered is JSON");
    text_body(status, text)
}

/// A body that is JSON already. It ends its line, so that a terminal's next prompt is not behind it.
pub(crate) fn text_body(status: StatusCode, json: impl Into<Vec<u8>>) -> Response {
    let mut json = json.into();
    json.push(b'\n');
    (status, [(header::CONTENT_TYPE, "application/json")], json).into_response()
}

/// A JSON body, as it should be.
pub(crate) fn ok(found: impl Serialize) -> Answered {
    Ok(body(StatusCode::OK, found))
}

/// Done, and there is nothing to say.
pub(crate) fn done() -> Answered {
    ok(json!({}))
}

/// Refusals by the limits of the server; see [`crate::limits`].
impl Problem {
    /// Something is beyond a limit.
    fn beyond(status: StatusCode, code: &'static str, limit: &'static str, max: u64, detail: String) -> Self {
        let mut problem = Self::new(status, code, detail);
        problem.more.insert("limit".into(), limit.into());
        problem.more.insert("max".into(), max.into());
        problem.more.insert("outcome".into(), "not_applied".into());
        let later = status == StatusCode::TOO_MANY_REQUESTS || status == StatusCode::SERVICE_UNAVAILABLE;
        problem.more.insert("retryable".into(), later.into());
        problem
    }

    fn got(mut self, got: u64) -> Self {
        self.more.insert("got".into(), got.into());
        self
    }

    /// The head of a request has too many bytes; hyper does not say how many.
    pub(crate) fn head_too_large(max: usize, headers_max: usize) -> Self {
        let detail = format!(
            "the request's line and headers have more than head_bytes_max = {max} bytes, or there are more than \
             headers_max = {headers_max} headers; send less before the body"
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

    /// A body is too large: `got` is what was declared, or what has come so far.
    pub(crate) fn body_too_large(max: usize, got: u64) -> Self {
        let detail =
            format!("the body has {got} bytes or more, which exceeds body_bytes_max = {max}; send it in parts");
        Self::beyond(StatusCode::PAYLOAD_TOO_LARGE, "SH-1042", "body_bytes_max", max as u64, detail).got(got)
    }

    /// The client took too long to send something.
    pub(crate) fn too_slow(limit: &'static str, max: std::time::Duration) -> Self {
        let ms = u64::try_from(max.as_millis()).unwrap_or(u64::MAX);
        let detail = format!("the request did not arrive within {limit} = {ms} ms; send it again in one go");
        Self::beyond(StatusCode::REQUEST_TIMEOUT, "SH-1043", limit, ms, detail)
    }

    /// A body is compressed.
    pub(crate) fn encoded(encoding: &str) -> Self {
        let detail =
            format!("bodies are not decompressed, and this one says Content-Encoding: {encoding}; send it plain");
        let mut problem = Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "SH-1044", detail);
        problem.more.insert("outcome".into(), "not_applied".into());
        problem
    }

    /// A body's lists and objects lie too deep in each other.
    pub(crate) fn too_deep(max: usize) -> Self {
        let detail = format!("lists and objects lie deeper in each other than json_depth_max = {max}; make it flatter");
        Self::beyond(StatusCode::BAD_REQUEST, "SH-1045", "json_depth_max", max as u64, detail)
    }

    /// What came is no request.
    pub(crate) fn no_request(reason: &str) -> Self {
        let detail = format!("what was sent is no HTTP/1.1 request: {reason}");
        Self::new(StatusCode::BAD_REQUEST, "SH-1046", detail)
    }

    /// A body ended before its end.
    pub(crate) fn body_broken(reason: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "SH-1046", format!("the body could not be read to its end: {reason}"))
    }

    /// There are as many connections as there may be.
    pub(crate) fn too_many_connections(max: usize) -> Self {
        let detail = format!("there are connections_max = {max} connections; use one for many requests, or try again");
        Self::beyond(StatusCode::SERVICE_UNAVAILABLE, "SH-2010", "connections_max", max as u64, detail)
    }

    /// As many requests are worked on, or wait, as there may be.
    pub(crate) fn too_many_requests(limit: &'static str, max: usize) -> Self {
        let detail = format!("{limit} = {max} are under way; it was not begun; try again");
        Self::beyond(StatusCode::TOO_MANY_REQUESTS, "SH-2011", limit, max as u64, detail)
    }

    /// There are as many streams as there may be.
    pub(crate) fn too_many_streams(max: usize) -> Self {
        let detail = format!("there are streams_max = {max} streams; end one, or ask page by page");
        Self::beyond(StatusCode::TOO_MANY_REQUESTS, "SH-2012", "streams_max", max as u64, detail)
    }

    /// The store did not answer in time. What was asked for may still be done.
    pub(crate) fn unanswered(max: std::time::Duration) -> Self {
        let ms = u64::try_from(max.as_millis()).unwrap_or(u64::MAX);
        let detail =
            format!("there was no answer within request_time_max = {ms} ms; a write may have been done or be done yet");
        let mut problem = Self::beyond(StatusCode::GATEWAY_TIMEOUT, "SH-2013", "request_time_max", ms, detail);
        problem.more.insert("outcome".into(), "unknown".into());
        problem.more.insert("retryable".into(), true.into());
        problem
    }

    /// The memory for requests is used up, or one alone takes more than all of it.
    pub(crate) fn memory_used_up(max: usize, got: usize) -> Self {
        let (status, code, advice) = match got > max {
            true => (StatusCode::PAYLOAD_TOO_LARGE, "SH-1047", "send it in parts, with fewer values in each"),
            false => (StatusCode::TOO_MANY_REQUESTS, "SH-2014", "try again"),
        };
        let detail = format!(
            "this takes up to {got} bytes of memory, and of request_memory_bytes_max = {max} less is free; {advice}"
        );
        Self::beyond(status, code, "request_memory_bytes_max", max as u64, detail).got(got as u64)
    }

    /// The server replays its journal.
    pub(crate) fn starting(detail: &str) -> Self {
        let mut problem =
            Self::new(StatusCode::SERVICE_UNAVAILABLE, "SH-2022", format!("the server is starting: {detail}"));
        problem.more.insert("retryable".into(), true.into());
        problem.more.insert("outcome".into(), "not_applied".into());
        problem
    }

    /// The server is told to stop.
    pub(crate) fn stopping() -> Self {
        let mut problem = Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "SH-2016",
            "the server is stopping; it was not begun; try again",
        );
        problem.more.insert("retryable".into(), true.into());
        problem.more.insert("outcome".into(), "not_applied".into());
        problem
    }
}
