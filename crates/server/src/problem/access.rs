//! Refusals of requests whose sender is not known, or may not do what they need.

use axum::http::StatusCode;
use contract::access::Need;
use contract::time::iso;

use super::Problem;
use crate::access::Stranger;

impl Problem {
    /// The request shows no token.
    pub(crate) fn no_token() -> Self {
        Self::unauthenticated("the request shows no token; send Authorization: Bearer and a token of this server")
    }

    /// The request shows no token, and its connection shows nobody who is known.
    pub(crate) fn stranger(stranger: &Stranger) -> Self {
        match stranger {
            Stranger::Silent => Self::no_token(),
            Stranger::Certificate => Self::unauthenticated(
                "no principal has a URI of this certificate; add it with statehouse principal set NAME --identity URI, or send a token",
            ),
            Stranger::Ambiguous => Self::unauthenticated(
                "more than one URI of this certificate is of a principal; use a certificate with one of them, or send a token",
            ),
            Stranger::ExpiredCertificate { not_after_us } => {
                let at = iso(*not_after_us);
                Self::unauthenticated(format!(
                    "the certificate of this connection has expired at {at}; connect with a newer one"
                ))
            }
            Stranger::User(user) => Self::unauthenticated(format!(
                "user {user} of this machine is no principal; add it with statehouse principal set NAME --identity uid:{user}, or \
                 send a token"
            )),
            Stranger::UnmappedUser => Self::unauthenticated(
                "the system does not tell the server which user of this machine sends this; send a token, or run the server without a user \
                 namespace of its own (PrivateUsers= of its unit)",
            ),
        }
    }

    /// What the request shows is no token.
    pub(crate) fn token_malformed(detail: &str) -> Self {
        Self::unauthenticated(detail)
    }

    /// Nobody has the token: it was revoked, or belongs to another store, or was made up.
    pub(crate) fn token_unknown(id: &str) -> Self {
        let detail = format!("the token {id} is not known here: it was revoked, or another store issued it");
        Self::unauthenticated(detail)
    }

    /// The token is right, and too old.
    pub(crate) fn token_expired(id: &str, at_us: u64) -> Self {
        let detail = format!("the token {id} has expired at {}; ask an administrator for another one", iso(at_us));
        Self::unauthenticated(detail)
    }

    /// The sender is known, and was not granted what the request needs.
    pub(crate) fn not_granted(principal: &str, need: &Need<'_>) -> Self {
        let need = need.to_string();
        let detail = format!("principal {principal:?} was not granted what this request needs: {need}");
        let mut problem = Self::not_begun(StatusCode::FORBIDDEN, "SH-6002", detail);
        problem.add("principal", principal);
        problem.add("need", need);
        problem
    }

    /// The sender sends more than it may.
    pub(crate) fn too_fast(principal: &str, max: u32) -> Self {
        let detail =
            format!("principal {principal:?} may send {max} requests in a second; send this one a little later");
        let mut problem = Self::not_begun(StatusCode::TOO_MANY_REQUESTS, "SH-6007", detail);
        problem.add("principal", principal);
        problem.add("limit", "requests_per_second_max");
        problem.add("max", max);
        problem.add("retryable", true);
        problem
    }

    fn unauthenticated(detail: impl Into<String>) -> Self {
        Self::not_begun(StatusCode::UNAUTHORIZED, "SH-6001", detail.into())
    }
}
