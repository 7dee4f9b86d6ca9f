//! A directory opened by this process, as a transport: requests go to the routes without a socket.

use axum::Router;
use axum::body::Body;
use client::transport::{Answering, BrokenBody, Transport};
use http_body_util::BodyExt;
use hyper::Request;
use hyper::body::Bytes;
use statehouse::Statehouse;
use tower::ServiceExt;

/// The routes over an open directory.
pub(super) struct OpenedDirectory {
    router: Router,
}

impl OpenedDirectory {
    pub(super) fn new(house: Statehouse) -> Self {
        Self { router: server::router(server::Server::new(house)) }
    }
}

impl Transport for OpenedDirectory {
    fn send(&self, request: Request<Bytes>) -> Answering<'_> {
        Box::pin(async move {
            let answered = self.router.clone().oneshot(request.map(Body::from)).await;
            let response = answered.unwrap_or_else(|never| match never {});
            Ok(response.map(|body| body.map_err(|error| BrokenBody(error.to_string())).boxed_unsync()))
        })
    }

    fn named(&self) -> String {
        "a directory on this machine".to_owned()
    }
}
