//! An answer that is taken as it comes, for what is too large to be held.
//!
//! Keeps: an answer that breaks off, or brings nothing for [`STALLED_MAX`], is a failure and never an end.

use std::time::Duration;

use axum::body::Body;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::{Request, Response};
use statehouse::shell::Suggested;
use tower::ServiceExt;

use super::{Call, Connection, To, escaped_header};
use crate::exit::{Exit, Failure};

/// How long a server may bring nothing. It reads everything once before the first byte of a backup.
const STALLED_MAX: Duration = Duration::from_secs(1_800);

/// An answer whose head has come.
pub(crate) struct Streaming {
    body: Body,
}

impl Streaming {
    /// The next bytes; none at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        loop {
            let frame = tokio::time::timeout(STALLED_MAX, self.body.frame()).await;
            let frame = frame.map_err(|_| stalled())?;
            match frame.transpose() {
                Err(error) => return Err(broken(&error.to_string())),
                Ok(None) => return Ok(None),
                Ok(Some(frame)) => match frame.into_data() {
                    Ok(bytes) => return Ok(Some(bytes)),
                    Err(_) => continue, // Trailers, which nobody sends.
                },
            }
        }
    }

    async fn whole(mut self) -> Result<Vec<u8>, Failure> {
        let mut whole = Vec::new();
        while let Some(bytes) = self.next().await? {
            whole.extend_from_slice(&bytes);
        }
        Ok(whole)
    }
}

impl Connection {
    /// Sends a request, and gives the answer as it comes; a refusal is a failure.
    pub(crate) async fn stream(&self, call: Call) -> Result<Streaming, Failure> {
        let call = call.header("statehouse-space", self.space.as_ref().map(|space| escaped_header(space)).transpose()?);
        let mut request = Request::builder().method(call.method.clone()).uri(call.target());
        for (name, value) in &call.headers {
            request = request.header(*name, value);
        }
        let request = request.body(Full::new(Bytes::new())).map_err(|error| Failure::usage(error.to_string()))?;
        let response: Response<Body> = match &self.to {
            To::Remote(remote) => {
                let answered = tokio::time::timeout(STALLED_MAX, remote.begin(request)).await;
                answered.map_err(|_| stalled())??.map(Body::new)
            }
            To::Directory { router, .. } => {
                let answered = router.as_ref().clone().oneshot(request.map(Body::new)).await;
                answered.unwrap_or_else(|never| match never {})
            }
        };
        let (head, body) = response.into_parts();
        let streaming = Streaming { body };
        if head.status.is_success() {
            return Ok(streaming);
        }
        let problem = serde_json::from_slice(&streaming.whole().await?).unwrap_or_default();
        Err(Failure::refused(head.status, problem))
    }
}

fn stalled() -> Failure {
    let message = format!("the server brought nothing for {} s", STALLED_MAX.as_secs());
    Failure::new(Exit::Unavailable, message).run("see how it is doing", Suggested::new(["statehouse", "status"]))
}

fn broken(cause: &str) -> Failure {
    let message = format!("the answer broke off before its end: {cause}");
    Failure::new(Exit::Unavailable, message).next("nothing was kept; ask again")
}
