//! A refusal as `application/problem+json`: the code, its meaning, and whether a retry can help.
//! `limits`: refusals by the limits of the server. `access`: refusals of who sends it.

mod access;
mod limits;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use contract::facts::Class;
use contract::guards::{OWNER_RECORD, THE_GROUP};
use contract::limits::JSON_DEPTH_MAX;
use contract::{Error, FailureKind, Outcome};
use serde::Serialize;
use wire::routes::ERRORS_PAGE;
use wire::{DecodeError, Reason};

use crate::api::refusal::{OwnRefusal, Refusal, RefusalKind};
use crate::errors::title;

/// A refusal.
#[derive(Debug)]
pub struct Problem {
    status: StatusCode,
    code: &'static str,
    detail: String,
    /// Additional members, as JSON text.
    more: Vec<(&'static str, String)>,
    /// Methods that the path accepts, where another one was refused.
    allowed: Vec<&'static str>,
}

impl Problem {
    fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self { status, code, detail: detail.into(), more: Vec::new(), allowed: Vec::new() }
    }

    fn add(&mut self, name: &'static str, value: impl Serialize) {
        let json = serde_json::to_string(&value).expect("a member is JSON");
        match self.more.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = json,
            None => self.more.push((name, json)),
        }
    }

    /// Its code.
    pub(crate) fn code(&self) -> &'static str {
        self.code
    }

    /// The request is malformed.
    pub(crate) fn malformed(detail: impl Into<String>) -> Self {
        let mut problem = Self::new(StatusCode::BAD_REQUEST, "SH-1030", detail);
        problem.add("retryable", false);
        problem.add("outcome", "not_applied");
        problem
    }

    /// A bug in the server.
    pub(crate) fn internal(detail: impl Into<String>) -> Self {
        let mut problem = Self::new(StatusCode::INTERNAL_SERVER_ERROR, "SH-2006", detail);
        problem.add("outcome", "unknown");
        problem.add("retryable", false);
        problem
    }

    /// There is nothing with this name.
    pub(crate) fn not_found(what: &str, name: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "SH-1031", format!("there is no {what} {name:?}"))
    }

    /// What only one contract refuses.
    fn own(refusal: OwnRefusal) -> Self {
        let OwnRefusal { kind, code, detail, retryable, outcome, members } = refusal;
        let status = match kind {
            RefusalKind::NotFound => StatusCode::NOT_FOUND,
            RefusalKind::Gone => StatusCode::GONE,
            RefusalKind::NotOffered => StatusCode::NOT_IMPLEMENTED,
            RefusalKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        };
        let mut problem = Self::new(status, code, detail);
        members.into_iter().for_each(|(name, value)| problem.add(name, value));
        problem.add("retryable", retryable);
        problem.add("outcome", shown(outcome));
        problem
    }

    /// The same, of a call that had done something already.
    fn halfway(mut self, says: &str, member: &'static str) -> Self {
        self.detail += says;
        self.add("outcome", shown(Outcome::Unknown));
        self.add(member, true);
        self
    }

    /// The same, where the request names a group: the store knows the owner of a group as a record, which nobody else needs to know.
    pub(crate) fn of_group(mut self, group: Option<&str>) -> Self {
        let owner = contract::Value::from(OWNER_RECORD).to_json_text();
        let about_owner = |(name, json): &(&str, String)| *name == "record" && *json == owner;
        let Some(group) = group.filter(|_| self.more.iter().any(about_owner)) else { return self };
        self.more.retain(|member| !about_owner(member));
        self.add("group", group);
        self.detail = self.detail.replacen(THE_GROUP, &format!("group {group:?}"), 1);
        self
    }

    /// The same, if `If-Match` or `If-None-Match` failed.
    pub(crate) fn of_header(mut self) -> Self {
        if matches!(self.code, "SH-1003" | "SH-1017") {
            self.status = StatusCode::PRECONDITION_FAILED;
        }
        self
    }
}

/// A store's history as text.
pub(crate) fn history_text(history: u64) -> String {
    format!("{history:016x}")
}

fn shown(outcome: Outcome) -> &'static str {
    if outcome == Outcome::Unknown { "unknown" } else { "not_applied" }
}

/// The status of a rejection.
fn status_of(class: Class) -> StatusCode {
    match class {
        Class::Invalid => StatusCode::BAD_REQUEST,
        Class::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Class::Unprocessable => StatusCode::UNPROCESSABLE_ENTITY,
        Class::Forbidden => StatusCode::FORBIDDEN,
        Class::NotFound => StatusCode::NOT_FOUND,
        Class::Conflict => StatusCode::CONFLICT,
        Class::Gone => StatusCode::GONE,
        Class::Busy => StatusCode::TOO_MANY_REQUESTS,
        Class::NotYet => StatusCode::SERVICE_UNAVAILABLE,
        Class::Damaged => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let status = match &error {
            Error::Rejected(rejection) => status_of(rejection.facts().class),
            Error::Failed(failure) if failure.kind == FailureKind::Busy => StatusCode::TOO_MANY_REQUESTS,
            Error::Failed(failure) if matches!(failure.kind, FailureKind::DiskLow | FailureKind::DiskFull) => {
                StatusCode::INSUFFICIENT_STORAGE
            }
            Error::Failed(failure) if failure.kind == FailureKind::Bug => StatusCode::INTERNAL_SERVER_ERROR,
            Error::Failed(failure) if failure.outcome == Outcome::Unknown => StatusCode::GATEWAY_TIMEOUT,
            Error::Failed(failure) if failure.kind == FailureKind::Corrupt => StatusCode::INTERNAL_SERVER_ERROR,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        let mut problem = Self::new(status, error.code(), error.to_string());
        problem.add("retryable", error.retryable());
        problem.add("outcome", shown(error.outcome()));
        if let Error::Rejected(rejection) = &error {
            problem.more.extend(rejection.members());
        }
        problem
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Store(error) => error.into(),
            Refusal::Unexpected(error) => Problem::from(error).of_header(),
            Refusal::NotFound { what, name } => Problem::not_found(what, &name),
            Refusal::OtherHistory { member, meant, is } => {
                Problem::other_history(member, &history_text(meant), &history_text(is))
            }
            Refusal::Own(refusal) => Problem::own(*refusal),
            Refusal::Halfway { refusal, says, member } => Problem::from(*refusal).halfway(says, member),
            Refusal::Invalid { member: Some(member), detail } => Problem::refused_member(member, detail),
            Refusal::Invalid { member: None, detail } => Problem::malformed(detail),
            Refusal::Internal(detail) => Problem::internal(detail),
            Refusal::NoMemory { max, bytes } => Problem::memory_used_up(max, bytes),
        }
    }
}

/// The code of a problem, attached to its answer for the metrics.
#[derive(Clone, Copy, Debug)]
pub struct ProblemCode(pub &'static str);

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let text = |text: &str| contract::Value::from(text).to_json_text();
        let mut body = format!(
            "{{\"type\":{},\"code\":{},\"status\":{},\"title\":{},\"detail\":{}",
            text(&ERRORS_PAGE.at(&[self.code])),
            text(self.code),
            self.status.as_u16(),
            text(title(self.code).unwrap_or_default()),
            text(&self.detail),
        );
        for (name, json) in &self.more {
            body.push_str(&format!(",\"{name}\":{json}"));
        }
        // Every refusal says whether a retry can help and whether the write may have happened.
        for (name, json) in [("retryable", "false"), ("outcome", "\"not_applied\"")] {
            if !self.more.iter().any(|(known, _)| *known == name) {
                body.push_str(&format!(",\"{name}\":{json}"));
            }
        }
        body.push_str("}\n");
        let mut response = (self.status, [(header::CONTENT_TYPE, "application/problem+json")], body).into_response();
        response.extensions_mut().insert(ProblemCode(self.code));
        if self.status == StatusCode::TOO_MANY_REQUESTS || self.status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, header::HeaderValue::from_static("1"));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Ok(allowed) = self.allowed.join(", ").parse::<HeaderValue>()
            && !self.allowed.is_empty()
        {
            response.headers_mut().insert(header::ALLOW, allowed);
        }
        response
    }
}

/// Refusals of malformed requests.
impl Problem {
    /// There is no such route.
    pub(crate) fn no_such_route() -> Self {
        Self::new(StatusCode::NOT_FOUND, "SH-1032", "there is no such route; GET / lists where to find things")
    }

    /// The path does not accept this method.
    pub(crate) fn no_such_method(allowed: Vec<&'static str>) -> Self {
        let detail = format!("this path does not accept the method; it accepts {}", allowed.join(", "));
        Self { allowed, ..Self::new(StatusCode::METHOD_NOT_ALLOWED, "SH-1032", detail) }
    }

    /// A member, a parameter or a header is unsupported or malformed.
    pub(crate) fn refused_member(member: &str, detail: impl Into<String>) -> Self {
        let mut problem = Self::malformed(detail);
        problem.add("member", member);
        problem
    }

    /// An unknown header of ours.
    pub(crate) fn refused_header(name: &str, nearest: Option<&str>) -> Self {
        let hint = nearest.map_or_else(String::new, |nearest| format!("; did you mean {nearest}?"));
        let mut problem = Self::refused_member(name, format!("the header {name} is unknown{hint}"));
        if let Some(nearest) = nearest {
            problem.add("nearest", nearest);
        }
        problem
    }

    /// A body that cannot be read.
    pub(crate) fn refused_body(error: DecodeError) -> Self {
        match error.reason() {
            Reason::TooDeep => Self::too_deep(JSON_DEPTH_MAX),
            _ => Self::refused_text("body", &error, None),
        }
    }

    /// A parameter that cannot be read.
    pub(crate) fn refused_parameter(error: &DecodeError, suggested: Option<&'static str>) -> Self {
        Self::refused_text("query", error, suggested)
    }

    fn refused_text(of: &str, error: &DecodeError, suggested: Option<&'static str>) -> Self {
        let nearest = match error.reason() {
            Reason::UnknownMember { nearest } => nearest.or(suggested),
            _ => None,
        };
        let hint = suggested.map_or_else(String::new, |suggested| format!("; did you mean {suggested:?}?"));
        let mut problem = Self::malformed(format!("invalid {of}: {error}{hint}"));
        if let Some(member) = error.member() {
            problem.add("member", member);
        }
        if let Some(nearest) = nearest {
            problem.add("nearest", nearest);
        }
        problem
    }

    /// The request is for another history.
    pub(crate) fn other_history(member: &str, meant: &str, is: &str) -> Self {
        let detail = format!(
            "the request is for history {meant:?}, but this store has history {is:?}: it is another store, or was restored \
             or imported since"
        );
        let mut problem = Self::new(StatusCode::PRECONDITION_FAILED, "SH-1034", detail);
        problem.add("member", member);
        problem.add("history", is);
        problem.add("retryable", false);
        problem.add("outcome", "not_applied");
        problem
    }

    /// A body is compressed.
    pub(crate) fn encoded(encoding: &str) -> Self {
        let detail = format!(
            "the server does not decompress bodies, but this one has Content-Encoding: {encoding}; send it uncompressed"
        );
        let mut problem = Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "SH-1044", detail);
        problem.add("outcome", "not_applied");
        problem
    }

    /// The input is not an HTTP request.
    pub(crate) fn no_request(reason: &str) -> Self {
        let detail = format!("malformed HTTP/1.1 request: {reason}");
        Self::new(StatusCode::BAD_REQUEST, "SH-1046", detail)
    }

    /// Plain HTTP was sent to an address that speaks TLS.
    pub(crate) fn plain_http() -> Self {
        let detail = "this address speaks TLS, and the request came without; send it to https:// instead of http://";
        Self::new(StatusCode::BAD_REQUEST, "SH-1046", detail.to_owned())
    }

    /// A body was cut short.
    pub(crate) fn body_broken(reason: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "SH-1046", format!("the body is incomplete: {reason}"))
    }
}

/// Refusals of requests that are not begun.
impl Problem {
    /// The request is not addressed to this server.
    pub(crate) fn other_host(reason: &str) -> Self {
        let detail = format!(
            "{reason}; this server answers to IP addresses, localhost and the names in the setting server.hosts"
        );
        Self::not_begun(StatusCode::MISDIRECTED_REQUEST, "SH-1060", detail)
    }

    /// A page of another origin sent the request, according to `header`.
    pub(crate) fn other_origin(header: &'static str, value: &str) -> Self {
        let detail = format!("{header} is {value:?}; requests from pages of other origins are refused");
        Self::not_begun(StatusCode::FORBIDDEN, "SH-1061", detail)
    }

    /// The server is replaying its journal.
    pub(crate) fn starting(detail: &str) -> Self {
        let detail = format!("the server is starting: {detail}");
        let mut problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, "SH-2022", detail);
        problem.add("retryable", true);
        problem.add("outcome", "not_applied");
        problem
    }

    /// The server is stopping.
    pub(crate) fn stopping() -> Self {
        let mut problem = Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "SH-2016",
            "the server is stopping; this request was not started; retry",
        );
        problem.add("retryable", true);
        problem.add("outcome", "not_applied");
        problem
    }

    fn not_begun(status: StatusCode, code: &'static str, detail: String) -> Self {
        let mut problem = Self::new(status, code, detail);
        problem.add("retryable", false);
        problem.add("outcome", "not_applied");
        problem
    }
}
