//! From a request to its response: finds the route, decodes the request, makes the call, encodes its answer.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Method, header};
use axum::response::{IntoResponse, Response};

use super::entry::{Admitted, Entry};
use super::head::{Head, PathNames};
use super::table::{self, Found};
use crate::Server;
use crate::metrics::{Counted, Operation};
use crate::problem::Problem;

/// The store's history: in every answer, and in requests meant for this history only.
pub(crate) static HISTORY: HeaderName = HeaderName::from_static("statehouse-history");

/// An answer to come.
pub(crate) type Answering = Pin<Box<dyn Future<Output = Response> + Send>>;

/// A request whose route is known.
pub(crate) struct Routed {
    entry: Option<&'static Entry>,
    path: PathNames,
    refused: Option<Problem>,
}

/// A decoded request that has not started.
pub(crate) struct Prepared {
    /// How long it may wait; none if it does not wait.
    pub(crate) wait: Option<Duration>,
    answering: Answering,
}

impl Routed {
    /// Finds the route of a request.
    pub(crate) fn find(parts: &Parts) -> Self {
        match table::find(&parts.method, parts.uri.path()) {
            Found::Entry(entry, parts) => match PathNames::of(&parts) {
                Some(path) => Self { entry: Some(entry), path, refused: None },
                None => {
                    let detail = "the path is not text: a % starts no escape, or its bytes are not UTF-8";
                    Self { entry: Some(entry), path: PathNames::default(), refused: Some(Problem::malformed(detail)) }
                }
            },
            Found::OtherMethod => {
                let refused = Problem::no_such_method(table::methods(parts.uri.path()));
                Self { entry: None, path: PathNames::default(), refused: Some(refused) }
            }
            Found::Nothing => Self { entry: None, path: PathNames::default(), refused: Some(Problem::no_such_route()) },
        }
    }

    /// Whether it is answered under any load, and while the server stops.
    pub(crate) fn is_always_admitted(&self) -> bool {
        self.entry.is_some_and(|entry| entry.admitted == Admitted::Always)
    }

    /// Whether anybody may call it, known or not. So may whoever asks for a route that does not exist.
    pub(crate) fn is_open(&self) -> bool {
        self.entry.is_none_or(|entry| entry.is_open)
    }

    /// Decodes the request. A refused request is answered like any other.
    pub(crate) fn prepare(self, server: &Server, parts: &Parts, bytes: Bytes) -> Prepared {
        let operation = self.entry.map_or(Operation::NONE, table::operation);
        let only_head = parts.method == Method::HEAD;
        let decoded = match (self.entry, self.refused) {
            (Some(entry), None) => {
                Head::read(entry, self.path, parts, &server.history).and_then(|head| entry.decode(server, head, bytes))
            }
            (_, refused) => Err(refused.unwrap_or_else(Problem::no_such_route)),
        };
        let counted = Counted::new(&server.metrics, operation);
        let history = server.history.clone();
        match decoded {
            Ok(decoded) => Prepared {
                wait: decoded.wait,
                answering: Box::pin(async move { counted.finish(finish(decoded.run.await, only_head, history)) }),
            },
            Err(problem) => Prepared {
                wait: None,
                answering: Box::pin(async move { counted.finish(finish(problem.into_response(), only_head, history)) }),
            },
        }
    }
}

impl Prepared {
    /// Makes the call.
    pub(crate) fn begin(self) -> Answering {
        self.answering
    }
}

fn finish(mut response: Response, only_head: bool, history: HeaderValue) -> Response {
    response.headers_mut().insert(&HISTORY, history);
    if only_head {
        if let Some(bytes) = response.body().size_hint().exact() {
            response.headers_mut().insert(header::CONTENT_LENGTH, bytes.into());
        }
        *response.body_mut() = Body::empty();
    }
    response
}

/// All routes, for tests and for other servers.
pub fn router(server: Server) -> Router {
    Router::new().fallback(move |request: Request| answer(server.clone(), request))
}

async fn answer(server: Server, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let bytes = match axum::body::to_bytes(body, usize::MAX).await {
        Ok(bytes) => bytes,
        Err(error) => return Problem::body_broken(&error.to_string()).into_response(),
    };
    Routed::find(&parts).prepare(&server, &parts, bytes).begin().await
}
