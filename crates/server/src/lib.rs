//! Statehouse over HTTP: every contract as JSON, on one port, under `/v1`.
//!
//! - [`serve`]: listens until it is told to stop. [`router`]: the routes, for tests and for other servers.
//! - [`problem`]: how a refusal looks: `application/problem+json`, from the one error.
//!   [`errors`]: a page for every code. [`openapi`]: every call, for tools and for people.
//! - `http`: the table of routes, and the way from a request to its call and from an answer to its response.
//! - `api`: what each call does, one file for each contract; it knows nothing of HTTP.
//! - [`stream`]: what follows, as server-sent events.
//! - `root`: where things are. `starting`: what is said while the directory is being opened. `request_id`: a name for every answer.
//! - [`health`]: whether it lives and is ready. `status`: how it is doing, in one screen. [`metrics`]: the same as numbers.
//! - [`backup`]: everything as one file. [`export`]: the same as lines. [`streamed`]: answers that are written while they are sent.
//! - [`gate`]: whom a request may be addressed to, and which pages may send one.
//! - `connections`, `guarded`, `admission`, `page_memory`, `answer`: what a connection and a request pass before and after their handler.
//!   [`serving`]: from the start to the stop. [`limits`]: every bound by name. [`load`]: what is used of them. [`memory`] and
//!   [`descriptors`]: what the process may take.
//!
//! Keeps: nothing of its own; whatever is answered is what the contracts answer.

mod admission;
mod alarm;
mod answer;
mod api;
pub mod backup;
mod connections;
pub mod descriptors;
pub mod errors;
pub mod export;
#[doc(hidden)]
pub mod fuzzing;
pub mod gate;
mod guarded;
pub mod health;
mod http;
mod json_memory;
pub mod limits;
pub mod load;
mod members;
pub mod memory;
pub mod metrics;
pub mod openapi;
mod page_memory;
pub mod problem;
mod request_id;
mod root;
pub mod serving;
#[cfg(test)]
mod sources;
mod starting;
mod status;
pub mod stream;
pub mod streamed;

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use axum::http::HeaderValue;
use contract::Error;
use statehouse::Statehouse;
use tokio_util::sync::CancellationToken;

use api::Refusal;
pub use http::dispatch::router;
use limits::ServerLimits;
use load::Load;
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
    machines: api::machines::Machines,
    backups: backup::Backups,
    limits: Arc<ServerLimits>,
    load: Arc<Load>,
    metrics: metrics::Metrics,
    exports: export::Exports,
    /// The store's history, which every answer says.
    history: HeaderValue,
    hosts: Arc<gate::Hosts>,
}

impl Server {
    /// A server over an open directory.
    pub fn new(house: Statehouse) -> Self {
        let limits = ServerLimits::default();
        let history = HeaderValue::from_str(&format!("{:016x}", house.id())).expect("hexadecimal digits");
        let shared = Shared {
            house,
            ready: Arc::new(AtomicBool::new(true)),
            stopping: CancellationToken::new(),
            machines: api::machines::Machines::default(),
            backups: backup::Backups::default(),
            load: Arc::new(Load::new(&limits)),
            limits: Arc::new(limits),
            metrics: metrics::Metrics::default(),
            exports: export::Exports::default(),
            history,
            hosts: Arc::default(),
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

    /// The same, which also answers to names of its own.
    pub fn answering_to(mut self, hosts: gate::Hosts) -> Self {
        self.hosts = Arc::new(hosts);
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
    ) -> Result<T, Refusal> {
        let house = self.house.clone();
        let done = tokio::task::spawn_blocking(move || work(&house)).await;
        done.map_err(|_| Refusal::Internal("a call of the store did not return"))?.map_err(Refusal::from)
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
