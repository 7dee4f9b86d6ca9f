//! A directory opened by this process, as a transport: requests go to the routes without a socket.
//!
//! Keeps: what a contract has beside the directory is opened for the first request that needs it.

use axum::Router;
use axum::body::Body;
use client::transport::{Answering, BrokenBody, Transport, Unanswered};
use http_body_util::BodyExt;
use hyper::Request;
use hyper::body::Bytes;
use server::Server;
use statehouse::Statehouse;
use tokio::sync::OnceCell;
use tower::ServiceExt;
use wire::routes::{ALL, Found, find};

use crate::equipment::{NEEDED, OpenEquipment};

/// The routes over an open directory.
pub(super) struct OpenedDirectory {
    house: Statehouse,
    router: Router,
    /// The same with what each contract has beside the directory, once it was needed.
    equipped: Vec<OnceCell<Router>>,
}

impl OpenedDirectory {
    pub(super) fn new(house: Statehouse) -> Self {
        let router = server::router(Server::new(house.clone()));
        Self { house, router, equipped: NEEDED.iter().map(|_| OnceCell::new()).collect() }
    }

    /// The routes for a request.
    async fn router_for(&self, request: &Request<Bytes>) -> Result<&Router, Unanswered> {
        let route = match find(request.method().as_str(), request.uri().path()) {
            Found::Route(place, _) => ALL[place],
            _ => return Ok(&self.router),
        };
        for (needed_for, equipped) in NEEDED.iter().zip(&self.equipped) {
            if let Some(open) = needed_for(route) {
                return equipped.get_or_try_init(|| self.equip(open)).await;
            }
        }
        Ok(&self.router)
    }

    async fn equip(&self, open: OpenEquipment) -> Result<Router, Unanswered> {
        let unanswered = |cause: String| Unanswered { cause, may_have_arrived: false };
        let opened = tokio::task::spawn_blocking(open).await.map_err(|error| unanswered(error.to_string()))?;
        let equip = opened.map_err(|error| unanswered(error.to_string()))?;
        Ok(server::router(equip(Server::new(self.house.clone()))))
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
