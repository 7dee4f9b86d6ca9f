//! Decoders of outside input, for tests that feed them arbitrary bytes.
//!
//! Keeps: each function decodes like a route, and panics if the decoded value does not round-trip.

use std::fmt::Debug;

use axum::body::{Body, Bytes};
use axum::http::{HeaderName, HeaderValue, Request};
use axum::response::IntoResponse;
use serde::Serialize;
use serde::de::DeserializeOwned;
use statehouse::Statehouse;
use tower::ServiceExt;
use wire::values::{DurationText, UserJson};

use crate::http::dispatch::Routed;
use crate::http::head::{Head, PathNames};
use crate::http::table;
use crate::problem::Problem;
use crate::{Server, router};

/// Whether the input was decoded or refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// It was decoded, and round-tripped.
    Decoded,
    /// It was refused with a status below 500.
    Refused,
}

fn refused(problem: Problem) -> Read {
    let status = problem.into_response().status();
    assert!(status.is_client_error(), "what is malformed is the client's: {status}");
    Read::Refused
}

/// A body that is one value: the returned text is the text that was sent.
pub fn value(bytes: &[u8]) -> Read {
    match wire::from_json::<UserJson>(bytes) {
        Ok(value) => {
            let text = serde_json::to_string(&value).expect("JSON");
            let sent = String::from_utf8_lossy(bytes);
            assert_eq!(text, sent.trim_matches([' ', '\t', '\n', '\r']), "a value comes back as it was");
            Read::Decoded
        }
        Err(error) => refused(Problem::refused_body(error)),
    }
}

/// A body of a type of the wire; it is decoded, and nothing is done with it.
pub fn body<T: DeserializeOwned + Serialize + PartialEq + Debug>(bytes: &[u8]) -> Read {
    match wire::from_json::<T>(bytes) {
        Ok(body) => {
            let text = serde_json::to_string(&body).expect("JSON");
            let again = wire::from_json_text::<T>(&text).expect("what was written is read");
            assert_eq!(again, body, "a body comes back as it was");
            Read::Decoded
        }
        Err(error) => refused(Problem::refused_body(error)),
    }
}

/// A duration with its unit.
pub fn duration(bytes: &[u8]) -> Read {
    match DurationText::parse(&String::from_utf8_lossy(bytes)) {
        Ok(duration) => {
            let again = DurationText::parse(&format!("{}ms", duration.0.as_millis())).ok();
            assert_eq!(again, Some(duration), "a time comes back as it was");
            Read::Decoded
        }
        Err(error) => refused(Problem::refused_body(error)),
    }
}

/// Decoders that need a store.
pub struct Decoders {
    server: Server,
}

impl Decoders {
    /// Over a store, which is only read.
    pub fn new(house: Statehouse) -> Self {
        Self { server: Server::new(house) }
    }

    /// The head of a request: its path and query, and one header on each further line. It is read as each route would.
    pub async fn place(&self, bytes: &[u8]) -> Read {
        let Some(request) = request(bytes) else {
            return Read::Refused;
        };
        let (parts, _) = request.into_parts();
        let mut read = Read::Refused;
        for entry in table::entries() {
            match Head::read(entry, PathNames::default(), &parts, &self.server.history) {
                Ok(_) => read = Read::Decoded,
                Err(problem) => drop(refused(problem)),
            }
        }
        read
    }

    /// A complete reading request, through its route to its answer.
    pub async fn route(&self, bytes: &[u8]) -> Read {
        let Some(request) = request(bytes) else {
            return Read::Refused;
        };
        let (parts, _) = request.into_parts();
        let response = Routed::find(&parts).prepare(&self.server, &parts, Bytes::new()).begin().await;
        let status = response.status();
        assert!(!status.is_server_error(), "a request that reads was answered with {status}");
        if status.is_success() { Read::Decoded } else { Read::Refused }
    }

    /// The name of a cell in a path; the answer reveals which name was read.
    pub async fn name(&self, name: &str) -> Read {
        let request = Request::get(wire::routes::CELLS_READ.at(&[name])).body(Body::empty()).expect("a request");
        let response = router(self.server.clone()).oneshot(request).await.unwrap_or_else(|never| match never {});
        let status = response.status().as_u16();
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.expect("a body in memory");
        let problem: serde_json::Value = serde_json::from_slice(&body).expect("an answer is JSON");
        assert!(status == 404 || status == 400 || status == 413, "{status} for a name that nothing has: {problem}");
        if status == 404 && problem["code"] == "SH-1031" {
            let detail = problem["detail"].as_str().unwrap_or_default();
            assert!(detail.contains(&format!("{name:?}")), "{name:?} was read as something else: {detail}");
            return Read::Decoded;
        }
        Read::Refused
    }
}

/// A request from its path and query and lines of headers; none if it is not a request at all.
fn request(bytes: &[u8]) -> Option<Request<Body>> {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    let mut request = Request::builder().uri(lines.next()?).body(Body::empty()).ok()?;
    for line in lines {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let name = HeaderName::from_bytes(&line[..colon]).ok()?;
        request.headers_mut().append(name, HeaderValue::from_bytes(line[colon + 1..].trim_ascii()).ok()?);
    }
    Some(request)
}
