//! Statehouse over HTTP: every contract as JSON, on one port, under `/v1`.
//!
//! - [`serve`]: listens until it is told to stop. [`router`]: the routes, for tests and for other servers.
//! - [`problem`]: how a refusal looks: `application/problem+json`, from the one error.
//!   [`errors`]: a page for every code. [`openapi`]: every call, for tools and for people.
//! - `place`: in which space, branch and group a request is, and in which session. `json`: values as JSON.
//! - [`cells`], [`records`], [`claims`], [`runs`], [`sessions`], [`changes`]: one file for each contract.
//! - [`transactions`]: operations of any contract in one commit. [`catalogue`]: spaces, branches, types, limits.
//! - [`stream`]: what follows, as server-sent events.
//! - [`machines`]: commands to machines that users bring.
//! - `root`: where things are. `starting`: what is said while the directory is being opened. `request_id`: a name for every answer.
//! - [`health`]: whether it lives and is ready. `status`: how it is doing, in one screen. [`metrics`]: the same as numbers.
//! - [`backup`]: everything as one file. [`export`]: the same as lines. [`streamed`]: answers that are written while they are sent.
//! - `connections`, `guarded`, `admission`, `answer`: what a connection and a request pass before and after their handler.
//!   [`serving`]: from the start to the stop. [`limits`]: every bound by name. [`load`]: what is used of them. [`memory`] and
//!   [`descriptors`]: what the process may take.
//!
//! Keeps: nothing of its own; whatever is answered is what the contracts answer. Writes are awaited and reads of one thing
//! done at once; calls that read much run on threads that may wait.

mod admission;
mod alarm;
mod answer;
mod attempts;
pub mod backup;
pub mod catalogue;
pub mod cells;
pub mod changes;
pub mod claims;
mod connections;
pub mod descriptors;
pub mod errors;
pub mod export;
#[doc(hidden)]
pub mod fuzzing;
mod guarded;
pub mod health;
mod json;
mod json_memory;
pub mod limits;
pub mod load;
pub mod machines;
mod members;
pub mod memory;
pub mod metrics;
pub mod openapi;
mod place;
pub mod problem;
mod record_json;
pub mod records;
mod request_id;
mod root;
pub mod runs;
mod scan;
pub mod serving;
pub mod sessions;
#[cfg(test)]
mod sources;
mod starting;
mod status;
pub mod stream;
pub mod streamed;
pub mod transactions;

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use contract::Error;
use statehouse::Statehouse;
use tokio_util::sync::CancellationToken;

use limits::ServerLimits;
use load::Load;
use problem::Problem;
pub use serving::{ServeError, listen, refuse_other_machines, serve, serve_all};
pub use starting::answer_while_starting;

/// What every handler sees. A clone is the same server, and costs next to nothing: every request makes some.
#[derive(Clone)]
pub struct Server {
    shared: Arc<Shared>,
}

/// What all clones of a server share.
#[derive(Clone)]
pub struct Shared {
    house: Statehouse,
    ready: Arc<AtomicBool>,
    /// Said when the server is to stop: streams end then.
    stopping: CancellationToken,
    machines: machines::Machines,
    backups: backup::Backups,
    limits: Arc<ServerLimits>,
    load: Arc<Load>,
    metrics: metrics::Metrics,
    exports: export::Exports,
}

impl Server {
    /// A server over an open directory.
    pub fn new(house: Statehouse) -> Self {
        let limits = ServerLimits::default();
        let shared = Shared {
            house,
            ready: Arc::new(AtomicBool::new(true)),
            stopping: CancellationToken::new(),
            machines: machines::Machines::default(),
            backups: backup::Backups::default(),
            load: Arc::new(Load::new(&limits)),
            limits: Arc::new(limits),
            metrics: metrics::Metrics::default(),
            exports: export::Exports::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// What is known of backups.
    pub fn backups(&self) -> &backup::Backups {
        &self.backups
    }

    /// The same with other limits.
    pub fn limited(mut self, limits: ServerLimits) -> Self {
        self.load = Arc::new(Load::new(&limits));
        self.limits = Arc::new(limits);
        self
    }

    /// Says what the process may take, so that it can be compared with what it takes.
    pub fn with_budget(mut self, budget: memory::Budget) -> Self {
        self.metrics.memory_budget = Some(budget.bytes);
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

impl Deref for Server {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.shared
    }
}

/// Only while a server is being made; one that has clones becomes another.
impl DerefMut for Server {
    fn deref_mut(&mut self) -> &mut Shared {
        Arc::make_mut(&mut self.shared)
    }
}

/// All routes.
pub fn router(server: Server) -> Router {
    let counting = server.metrics.layer();
    Router::new()
        .merge(cells::routes())
        .merge(records::routes())
        .merge(claims::routes())
        .merge(runs::routes())
        .merge(sessions::routes())
        .merge(machines::routes())
        .merge(changes::routes())
        .merge(transactions::routes())
        .merge(catalogue::routes())
        .merge(backup::routes())
        .merge(export::routes())
        .merge(errors::routes())
        .merge(openapi::routes())
        .merge(root::routes())
        .merge(health::routes())
        .merge(status::routes())
        .merge(metrics::routes())
        .fallback(problem::no_such_route)
        .method_not_allowed_fallback(problem::no_such_method)
        // Bodies come here whole, and within the limits of whoever serves; see `admission`.
        .layer(DefaultBodyLimit::disable())
        .layer(counting)
        .with_state(server)
}
