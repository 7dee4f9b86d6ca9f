//! Statehouse over HTTP: every contract as JSON, on one port, under `/v1`.
//!
//! - [`serve`]: listens until it is told to stop. [`router`]: the routes, for tests and for other servers.
//! - [`problem`]: how a refusal looks: `application/problem+json`, from the one error.
//! - `place`: in which space, branch and group a request is, and in which session. `json`: values as JSON.
//! - [`cells`], [`records`], [`claims`], [`runs`], [`sessions`], [`changes`]: one file for each contract.
//! - [`machines`]: commands to machines that users bring.
//! - `connections`, `guarded`, `admission`, `answer`: what a connection and a request pass before and after their handler.
//!   [`limits`]: every bound by name; [`memory`]: what the process may take. [`load`]: what is used of them. [`serving`]: from the start to the stop.
//! - [`health`]: whether it lives, is ready, and how it is doing.
//!
//! Keeps: nothing of its own; whatever is answered is what the contracts answer. Calls of the store run on threads that
//! may wait, never on those that serve connections.

mod admission;
mod answer;
pub mod cells;
pub mod changes;
pub mod claims;
mod connections;
pub mod descriptors;
mod guarded;
pub mod health;
mod json;
pub mod limits;
pub mod load;
pub mod machines;
mod members;
pub mod memory;
mod place;
pub mod problem;
pub mod records;
pub mod runs;
pub mod serving;
pub mod sessions;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use contract::Error;
use statehouse::Statehouse;

use limits::ServerLimits;
use load::Load;
use problem::Problem;
pub use serving::{ServeError, listen, serve, serve_all};

/// What every handler sees.
#[derive(Clone)]
pub struct Server {
    house: Statehouse,
    ready: Arc<AtomicBool>,
    machines: machines::Machines,
    limits: Arc<ServerLimits>,
    load: Arc<Load>,
}

impl Server {
    /// A server over an open directory.
    pub fn new(house: Statehouse) -> Self {
        let limits = ServerLimits::default();
        Self {
            house,
            ready: Arc::new(AtomicBool::new(true)),
            machines: machines::Machines::default(),
            load: Arc::new(Load::new(&limits)),
            limits: Arc::new(limits),
        }
    }

    /// Serves within other limits.
    pub fn within(mut self, limits: ServerLimits) -> Self {
        self.load = Arc::new(Load::new(&limits));
        self.limits = Arc::new(limits);
        self
    }

    /// What is used of its limits.
    pub fn load(&self) -> &Load {
        &self.load
    }

    /// Runs a call of the store where it may wait.
    async fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Statehouse) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Problem> {
        let house = self.house.clone();
        let done = tokio::task::spawn_blocking(move || work(&house)).await;
        done.map_err(|_| Problem::internal("a call of the store did not return"))?.map_err(Problem::from)
    }
}

/// All routes.
pub fn router(server: Server) -> Router {
    Router::new()
        .merge(cells::routes())
        .merge(records::routes())
        .merge(claims::routes())
        .merge(runs::routes())
        .merge(sessions::routes())
        .merge(machines::routes())
        .merge(changes::routes())
        .merge(health::routes())
        .fallback(problem::no_such_route)
        .method_not_allowed_fallback(problem::no_such_method)
        // Bodies come here whole, and within the limits of whoever serves; see `admission`.
        .layer(DefaultBodyLimit::disable())
        .with_state(server)
}
