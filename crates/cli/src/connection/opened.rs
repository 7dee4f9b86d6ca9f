//! A directory opened by this process, as a transport: requests go to the routes without a socket.
//!
//! The place of checkpoints is `STATEHOUSE_CHECKPOINTS`, as for a server; only what is about checkpoints opens it.

use axum::Router;
use axum::body::Body;
use client::transport::{Answering, BrokenBody, Transport, Unanswered};
use http_body_util::BodyExt;
use hyper::Request;
use hyper::body::Bytes;
use server::{Checkpoints, Server};
use statehouse::Statehouse;
use tokio::sync::OnceCell;
use tower::ServiceExt;
use wire::routes::{ALL, Found, KEYED_CHECKPOINT, KEYED_CHECKPOINTS, KEYED_RESTORE, find};

/// The variable with the place of the checkpoints.
const CHECKPOINTS: &str = "STATEHOUSE_CHECKPOINTS";

/// The routes over an open directory.
pub(super) struct OpenedDirectory {
    house: Statehouse,
    router: Router,
    /// The same with the place of the checkpoints, once it was needed.
    with_checkpoints: OnceCell<Router>,
}

impl OpenedDirectory {
    pub(super) fn new(house: Statehouse) -> Self {
        let router = server::router(Server::new(house.clone()));
        Self { house, router, with_checkpoints: OnceCell::new() }
    }

    /// The routes for a request.
    async fn router_for(&self, request: &Request<Bytes>) -> Result<&Router, Unanswered> {
        let route = match find(request.method().as_str(), request.uri().path()) {
            Found::Route(place, _) => ALL[place],
            _ => return Ok(&self.router),
        };
        let target = std::env::var(CHECKPOINTS).ok().filter(|target| !target.is_empty());
        match target.filter(|_| [KEYED_CHECKPOINT, KEYED_CHECKPOINTS, KEYED_RESTORE].contains(&route)) {
            None => Ok(&self.router),
            Some(target) => self.with_checkpoints.get_or_try_init(|| self.open_checkpoints(target)).await,
        }
    }

    async fn open_checkpoints(&self, target: String) -> Result<Router, Unanswered> {
        let unanswered =
            |cause: String| Unanswered { cause: format!("{CHECKPOINTS}: {cause}"), may_have_arrived: false };
        let opened = tokio::task::spawn_blocking(move || Checkpoints::open(&target)).await;
        let opened = opened.map_err(|error| unanswered(error.to_string()))?;
        let place = opened.map_err(|error| unanswered(error.to_string()))?;
        // The process ends with its command, and what was begun would end with it.
        Ok(server::router(Server::new(self.house.clone()).keeping_checkpoints(place).ending_checkpoints()))
    }
}

impl Transport for OpenedDirectory {
    fn send(&self, request: Request<Bytes>) -> Answering<'_> {
        Box::pin(async move {
            let router = self.router_for(&request).await?.clone();
            let answered = router.oneshot(request.map(Body::from)).await;
            let response = answered.unwrap_or_else(|never| match never {});
            Ok(response.map(|body| body.map_err(|error| BrokenBody(error.to_string())).boxed_unsync()))
        })
    }

    fn named(&self) -> String {
        "a directory on this machine".to_owned()
    }
}
