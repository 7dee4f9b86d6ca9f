//! A refusal as `application/problem+json`: the code, what it means, and whether trying again can help.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use contract::{Error, FailureKind, Outcome, Rejection};
use serde_json::{Map, Value as JsonValue, json};

use crate::members::members;

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
        body.insert("type".into(), format!("urn:statehouse:{}", self.code).into());
        body.insert("code".into(), self.code.into());
        body.insert("status".into(), self.status.as_u16().into());
        body.insert("title".into(), self.status.canonical_reason().unwrap_or_default().into());
        body.insert("detail".into(), self.detail.into());
        let body = JsonValue::Object(body).to_string();
        let mut response = (self.status, [(header::CONTENT_TYPE, "application/problem+json")], body).into_response();
        if self.status == StatusCode::TOO_MANY_REQUESTS || self.status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, header::HeaderValue::from_static("1"));
        }
        response
    }
}

pub(crate) async fn no_such_route() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "SH-1032", "there is no such route; everything is under /v1")
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

/// A JSON body with a status.
pub(crate) fn body(status: StatusCode, body: JsonValue) -> Response {
    text_body(status, body.to_string())
}

/// A body that is JSON already.
pub(crate) fn text_body(status: StatusCode, json: String) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], json).into_response()
}

/// A JSON body, as it should be.
pub(crate) fn ok(found: JsonValue) -> Answered {
    Ok(body(StatusCode::OK, found))
}

/// Done, and there is nothing to say.
pub(crate) fn done() -> Answered {
    ok(json!({}))
}
