//! An answer exactly as sent.

use contract::Outcome;
use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::http::{HeaderMap, HeaderName};
use serde::de::DeserializeOwned;

use crate::error::{Error, Refusal};

static REPLAYED: HeaderName = HeaderName::from_static("statehouse-replayed");

/// An answer: its status, its headers and its body.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl Reply {
    /// Whether it is the stored answer of an earlier attempt of the same request.
    pub fn was_replayed(&self) -> bool {
        self.headers.get(&REPLAYED).is_some_and(|replayed| replayed == "true")
    }

    /// Reads the body.
    pub fn read<A: DeserializeOwned>(&self) -> Result<A, Error> {
        let unreadable =
            |error: serde_json::Error| Error::Unreadable { cause: error.to_string(), outcome: Outcome::Unknown };
        serde_json::from_slice(&self.body).map_err(unreadable)
    }

    /// The error of a refusal.
    pub(crate) fn refused(&self, outcome: Outcome) -> Error {
        match Refusal::read(self.status.as_u16(), &self.body) {
            Some(refusal) => Error::Refused(Box::new(refusal)),
            None => {
                let cause = format!("status {} without a problem document; not a Statehouse server", self.status);
                Error::Unreadable { cause, outcome }
            }
        }
    }
}
