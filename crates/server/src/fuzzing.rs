//! What reads bytes from outside, for tests that feed it anything.
//!
//! Keeps: each function here decodes as a handler does, and panics if what it decoded does not come back as it was.

use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::http::{HeaderName, HeaderValue, Request};
use axum::response::IntoResponse;
use statehouse::Statehouse;
use tower::ServiceExt;

use crate::json::{fields, parse_duration, parse_object, value_of};
use crate::place::{Place, expected, idempotency_key, if_match};
use crate::problem::Problem;
use crate::transactions::commit_of;
use crate::{Server, router};

/// Whether something was decoded or refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// It was, and came back as it was.
    Decoded,
    /// It was refused with a status below 500.
    Refused,
}

fn refused(problem: Problem) -> Read {
    let status = problem.into_response().status();
    assert!(status.is_client_error(), "what is malformed is the client's: {status}");
    Read::Refused
}

/// A body that is one value.
pub fn value(bytes: &[u8]) -> Read {
    match value_of(bytes) {
        Ok(value) => {
            // Text against text: two values that were decoded from what was lost already would be equal.
            let given = std::str::from_utf8(bytes).unwrap_or_default().trim_matches([' ', '\t', '\n', '\r']);
            assert_eq!(value.to_json_text(), given, "a value comes back as it was written");
            Read::Decoded
        }
        Err(problem) => refused(problem),
    }
}

/// A body that is an object of fields.
pub fn object(bytes: &[u8]) -> Read {
    let read = || {
        let object = parse_object(bytes)?;
        let first = fields(&object)?;
        for ((name, json), (_, value)) in object.iter().zip(&first) {
            assert_eq!(value.to_json_text(), json, "the field {name:?} comes back as it was written");
        }
        Ok(())
    };
    read().map_or_else(refused, |()| Read::Decoded)
}

/// A time with its unit.
pub fn duration(bytes: &[u8]) -> Read {
    match parse_duration(&String::from_utf8_lossy(bytes)) {
        Ok(duration) => {
            let again = parse_duration(&format!("{}ms", duration.as_millis())).ok();
            assert_eq!(again, Some(duration), "a time comes back as it was");
            Read::Decoded
        }
        Err(problem) => refused(problem),
    }
}

/// What needs a store to be decoded.
pub struct Decoders {
    server: Server,
}

impl Decoders {
    /// Over a store, which nothing is written to.
    pub fn new(house: Statehouse) -> Self {
        Self { server: Server::new(house) }
    }

    /// Where a request is: its path and query, and its headers, one in each further line.
    pub async fn place(&self, bytes: &[u8]) -> Read {
        let Some(request) = request(bytes) else {
            return Read::Refused;
        };
        let (mut parts, _) = request.into_parts();
        let place = match Place::from_request_parts(&mut parts, &self.server).await {
            Ok(place) => place,
            Err(problem) => return refused(problem),
        };
        place.inside(&self.server.house);
        let _ = (place.wants_stream(), place.last_event().map_err(refused), place.limit(10).map_err(refused));
        let _ = (place.wait("follow").map_err(refused), place.duration("stalled").map_err(refused));
        let _ = (if_match(&parts.headers).map_err(refused), expected(&parts.headers).map_err(refused));
        let _ = idempotency_key(&parts.headers).map_err(refused);
        Read::Decoded
    }

    /// A transaction, up to its commit, which is not made.
    pub fn transaction(&self, bytes: &[u8]) -> Read {
        let space = self.server.house.space("default");
        let read = || commit_of(&space, "group", &parse_object(bytes)?, 0).map(drop);
        read().map_or_else(refused, |()| Read::Decoded)
    }

    /// A whole request that reads, through its route to its answer.
    pub async fn route(&self, bytes: &[u8]) -> Read {
        let Some(request) = request(bytes) else {
            return Read::Refused;
        };
        let response = router(self.server.clone()).oneshot(request).await.unwrap_or_else(|never| match never {});
        let status = response.status();
        assert!(!status.is_server_error(), "a request that reads was answered with {status}");
        if status.is_success() { Read::Decoded } else { Read::Refused }
    }

    /// The name of a cell as a path has it; the answer says which name was read.
    pub async fn name(&self, name: &str) -> Read {
        let encoded: String = name.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let request = Request::get(format!("/v1/cells/{encoded}")).body(Body::empty()).expect("a request");
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

/// A request from its path and query and lines of headers; none if it is no request at all.
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
