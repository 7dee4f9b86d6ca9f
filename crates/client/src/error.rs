//! Errors of calls: who failed, whether a write may have happened, and what to do next.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use contract::{Outcome, Rejection};
use hyper::body::Bytes;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value as JsonValue};

use crate::token::{ALLOW, WITHOUT_TLS_VARIABLE};

/// Why a call failed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The server refused the call.
    Refused(Box<Refusal>),
    /// No answer came.
    NoAnswer {
        /// The server's address.
        server: String,
        /// The cause, as far as it is known.
        cause: String,
        /// Whether a write may have happened nevertheless.
        outcome: Outcome,
    },
    /// No answer came in time.
    TimedOut {
        /// The server's address.
        server: String,
        /// How long the client waited.
        limit: Duration,
        /// Whether a write may have happened nevertheless.
        outcome: Outcome,
    },
    /// The answer is not from a Statehouse server, or from a release that this client does not know.
    Unreadable {
        /// What is wrong with it.
        cause: String,
        /// Whether a write may have happened nevertheless.
        outcome: Outcome,
    },
    /// The token would have been sent to another machine without TLS. Nothing was sent.
    TokenWithoutTls {
        /// The server's address.
        server: String,
    },
    /// The call cannot be turned into a request.
    Unsendable {
        /// What is wrong with it.
        cause: String,
    },
}

/// A refusal by the server: its problem document.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Refusal {
    /// The stable code: `SH-4002`. Its page is [`page`](Self::page) of the server.
    pub code: String,
    /// The status of the answer.
    pub status: u16,
    /// What the code means.
    pub title: String,
    /// What happened.
    pub detail: String,
    /// Whether the same call may succeed later.
    pub retryable: bool,
    /// Whether a write may have happened nevertheless.
    pub outcome: Outcome,
    /// Further members: `current_version`, `holder`, `last` and so on. A user's number that no [`JsonValue`] can hold is
    /// omitted here; [`member`](Self::member) reads it.
    pub members: Map<String, JsonValue>,
    /// The document as sent: user JSON in it is byte for byte as stored.
    pub document: Bytes,
}

impl Refusal {
    /// Reads a problem document; none if it is not one.
    pub(crate) fn read(status: u16, document: &Bytes) -> Option<Self> {
        let raw: BTreeMap<String, &RawValue> = serde_json::from_slice(document).ok()?;
        let tree = |(name, json): (String, &RawValue)| Some((name, serde_json::from_str(json.get()).ok()?));
        let mut members: Map<String, JsonValue> = raw.into_iter().filter_map(tree).collect();
        let mut text = |name: &str| match members.remove(name) {
            Some(JsonValue::String(text)) => Some(text),
            _ => None,
        };
        let (code, title, detail) =
            (text("code")?, text("title").unwrap_or_default(), text("detail").unwrap_or_default());
        let outcome = match text("outcome").as_deref() {
            Some("unknown") => Outcome::Unknown,
            _ => Outcome::NotApplied,
        };
        let retryable = members.remove("retryable").and_then(|retryable| retryable.as_bool()).unwrap_or(false);
        let document = document.clone();
        Some(Self { code, status, title, detail, retryable, outcome, members, document })
    }

    /// Reads a member of the document; none if it is absent or of another type. [`wire::values::UserJson`] reads user JSON
    /// byte for byte.
    pub fn member<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        let members: BTreeMap<String, &RawValue> = serde_json::from_slice(&self.document).ok()?;
        serde_json::from_str(members.get(name)?.get()).ok()
    }

    /// The path of the page that explains the code.
    pub fn page(&self) -> String {
        wire::routes::ERRORS_PAGE.at(&[&self.code])
    }
}

impl Error {
    /// The code of a refusal; none for other errors.
    pub fn code(&self) -> Option<&str> {
        match self {
            Error::Refused(refusal) => Some(&refusal.code),
            _ => None,
        }
    }

    /// Whether a write may have happened.
    pub fn outcome(&self) -> Outcome {
        match self {
            Error::Refused(refusal) => refusal.outcome,
            Error::NoAnswer { outcome, .. } | Error::TimedOut { outcome, .. } | Error::Unreadable { outcome, .. } => {
                *outcome
            }
            Error::TokenWithoutTls { .. } | Error::Unsendable { .. } => Outcome::NotApplied,
        }
    }

    /// Whether the same call may succeed later.
    pub fn retryable(&self) -> bool {
        match self {
            Error::Refused(refusal) => refusal.retryable,
            Error::NoAnswer { .. } | Error::TimedOut { .. } => true,
            Error::Unreadable { .. } | Error::TokenWithoutTls { .. } | Error::Unsendable { .. } => false,
        }
    }

    /// The safe next step.
    pub fn next_step(&self) -> String {
        match self {
            Error::Refused(refusal) => format!("read {} on the server", refusal.page()),
            Error::NoAnswer { outcome: Outcome::NotApplied, .. }
            | Error::TimedOut { outcome: Outcome::NotApplied, .. } => {
                "check that the server runs, and try again".to_owned()
            }
            Error::NoAnswer { .. } | Error::TimedOut { .. } | Error::Unreadable { outcome: Outcome::Unknown, .. } => {
                "read the current state before trying again: it may have been done".to_owned()
            }
            Error::Unreadable { .. } => "check that the address is that of a Statehouse server".to_owned(),
            Error::TokenWithoutTls { .. } => {
                format!("use https://, or set {WITHOUT_TLS_VARIABLE}={ALLOW} where nobody else can listen")
            }
            Error::Unsendable { .. } => "fix the call".to_owned(),
        }
    }

    /// Whether nothing with this name exists.
    pub(crate) fn is_not_found(&self) -> bool {
        self.code().is_some_and(|code| code == "SH-1031" || Rejection::is_no_such_thing(code))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unknown = match self.outcome() {
            Outcome::Unknown => "; it may have been done",
            Outcome::NotApplied => "",
        };
        match self {
            Error::Refused(refusal) => {
                let ends_with_code = refusal.detail.ends_with(&format!("[{}]", refusal.code));
                let code = if ends_with_code { String::new() } else { format!(" [{}]", refusal.code) };
                write!(formatter, "{}{code}", refusal.detail)
            }
            Error::NoAnswer { server, cause, .. } => write!(formatter, "no answer from {server}: {cause}{unknown}"),
            Error::TimedOut { server, limit, .. } => {
                write!(formatter, "no answer from {server} within {} ms{unknown}", limit.as_millis())
            }
            Error::Unreadable { cause, .. } => write!(formatter, "the answer cannot be read: {cause}{unknown}"),
            Error::TokenWithoutTls { server } => {
                write!(formatter, "the token was not sent to {server}: without TLS, everybody on the way can read it")
            }
            Error::Unsendable { cause } => write!(formatter, "the call cannot be sent: {cause}"),
        }
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_the_problem_said() {
        let body = br#"{"type":"/v1/errors/SH-4002","code":"SH-4002","title":"the attempt is over","status":409,
            "detail":"attempt 1 is over [SH-4002]","retryable":false,"outcome":"not_applied","attempt":2,"holder":"w"}"#;
        let refusal = Refusal::read(409, &Bytes::from_static(body)).expect("a problem");
        assert_eq!((refusal.code.as_str(), refusal.members["attempt"].as_u64()), ("SH-4002", Some(2)));
        assert_eq!(refusal.page(), "/v1/errors/SH-4002");
        let error = Error::Refused(Box::new(refusal));
        assert_eq!(error.to_string(), "attempt 1 is over [SH-4002]", "the code is there once");
        assert_eq!((error.outcome(), error.retryable()), (Outcome::NotApplied, false));
        assert!(Refusal::read(502, &Bytes::from_static(b"<html>")).is_none());
    }

    #[test]
    fn a_refusal_holds_what_users_stored() {
        let body = br#"{"code":"SH-1019","field":"n","current":1e400,"current_version":null}"#;
        let refusal = Refusal::read(409, &Bytes::from_static(body)).expect("a problem, whatever is stored");
        let current = refusal.member::<wire::values::UserJson>("current").map(|current| current.0.to_json_text());
        assert_eq!(current.as_deref(), Some("1e400"));
        assert_eq!(refusal.member::<String>("field").as_deref(), Some("n"));
        assert_eq!(refusal.member::<Option<u64>>("current_version"), Some(None));
        assert_eq!((refusal.member::<u64>("field"), refusal.member::<u64>("none")), (None, None));
    }
}
