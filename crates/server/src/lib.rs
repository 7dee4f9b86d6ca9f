//! Statehouse over HTTP: every contract as JSON, on one port, under `/v1`.
//!
//! - [`serve`]: listens until it is told to stop. [`router`]: the routes, for tests and for other servers.
//! - [`problem`]: refusals as `application/problem+json`, all from one error type. [`errors`]: a page for every code.
//!   [`openapi`]: every call, for tools and for people.
//! - `http`: the table of routes, decoding requests, encoding answers.
//! - `api`: what each call does, one file or folder per contract; independent of HTTP.
//! - [`stream`]: server-sent events.
//! - `root`: the page at `/`. `starting`: answers while the directory is being opened. `request_id`: an id for every
//!   answer.
//! - [`health`]: probes. `status`: the state of the server on one screen. [`metrics`]: the same as numbers.
//! - [`backup`]: everything as one file. [`export`]: the same as lines. [`streamed`]: answers written while they are
//!   sent.
//! - [`gate`]: refuses requests for other hosts and from pages of other origins. [`reloading`]: what changes while a server
//!   runs.
//! - `transport`: what connections come over: TCP, TLS, sockets of this machine.
//! - `connections`, `guarded`, `admission`, `page_memory`, `answer`: the layers around a handler. [`serving`]: from
//!   start to stop. [`limits`]: every limit by name. [`load`]: current use of the limits. [`memory`] and
//!   [`descriptors`]: resources of the process.
//!
//! Keeps: no state; every answer comes from the contracts.

mod access;
mod admission;
mod alarm;
mod answer;
mod api;
pub mod backup;
#[cfg(feature = "canary")]
pub mod canary;
mod connections;
mod dates;
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
pub mod memory;
pub mod metrics;
pub mod openapi;
mod page_memory;
pub mod problem;
pub mod reloading;
mod request_id;
mod root;
pub mod serving;
#[cfg(test)]
mod sources;
mod starting;
mod status;
pub mod stream;
pub mod streamed;
mod transport;

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use axum::http::HeaderValue;
use contract::Error;
use statehouse::Statehouse;
use tokio_util::sync::CancellationToken;

use access::{Caller, Denials, Identification, Lasting, LastingRequest, Rates};
pub use api::Checkpoints;
use api::refusal::Refusal;
pub use http::dispatch::router;
use limits::ServerLimits;
use load::Load;
pub use serving::{ServeError, listen, serve, serve_all};
pub use starting::answer_while_starting;
pub use transport::tls::{Tls, TlsError, TlsFiles};
pub use transport::{Exposure, Listeners};

/// The state of every handler. A clone is the same server, and is cheap: every request makes some.
#[derive(Clone)]
pub struct Server {
    shared: Arc<Shared>,
    /// The store, as the sender of a request sends to it.
    house: Statehouse,
    /// Who sends the request that it is handed to.
    caller: Caller,
    /// Cancelled when the server stops, or the request must end: streams end then, and waits.
    stopping: CancellationToken,
    /// Held while the request lasts.
    lasting: Option<Arc<LastingRequest>>,
}

/// State shared by all clones of a server.
#[derive(Clone)]
pub struct Shared {
    ready: Arc<AtomicBool>,
    lasting_requests: Lasting,
    denials: Denials,
    rates: Rates,
    machines: api::machines::Machines,
    backups: backup::Backups,
    checkpoints: api::ServerCheckpoints,
    limits: Arc<ServerLimits>,
    load: Arc<Load>,
    metrics: metrics::Metrics,
    exports: export::Exports,
    /// The store's history, sent in every answer.
    history: HeaderValue,
    /// What can change while it runs.
    reloading: reloading::Reloading,
    /// Whether it asks who sends a request.
    identification: Identification,
    transport: TransportState,
}

/// What is known about the sockets of a server that is served.
#[derive(Clone, Debug, Default)]
struct TransportState {
    /// The certificates in use.
    tls: Option<Arc<Tls>>,
    /// What protection is missing although other machines reach the server, for people.
    insecure: Option<Arc<str>>,
}

impl Server {
    /// A server over an open directory.
    pub fn new(house: Statehouse) -> Self {
        let limits = ServerLimits::default();
        let history = HeaderValue::from_str(&problem::history_text(house.id())).expect("hexadecimal digits");
        let shared = Shared {
            ready: Arc::new(AtomicBool::new(true)),
            lasting_requests: Lasting::default(),
            denials: Denials::default(),
            rates: Rates::default(),
            machines: api::machines::Machines::default(),
            backups: backup::Backups::default(),
            checkpoints: api::ServerCheckpoints::default(),
            load: Arc::new(Load::new(&limits)),
            limits: Arc::new(limits),
            metrics: metrics::Metrics::default(),
            exports: export::Exports::default(),
            history,
            reloading: reloading::Reloading::default(),
            identification: Identification::Off,
            transport: TransportState::default(),
        };
        let (caller, stopping, lasting) = (Caller::Anybody, CancellationToken::new(), None);
        Self { shared: Arc::new(shared), house, caller, stopping, lasting }
    }

    /// The server for a request of somebody.
    pub(crate) fn called_by(&self, caller: Caller) -> Self {
        let house = caller.acting_on(&self.house);
        Self { house, caller, ..self.clone() }
    }

    /// The server for a request that waits or streams.
    pub(crate) fn for_as_long_as_permitted(&self) -> Self {
        match self.lasting_requests.begin(&self.caller, &self.stopping) {
            None => self.clone(),
            Some(lasting) => Self { stopping: lasting.end().clone(), lasting: Some(Arc::new(lasting)), ..self.clone() },
        }
    }

    /// A large answer begins. It goes on while the server stops, as any answer does, but not without its sender's permission. None
    /// if nobody is asked who it is.
    fn begin_download(&self) -> Option<LastingRequest> {
        self.lasting_requests.begin(&self.caller, &CancellationToken::new())
    }

    /// The state of backups.
    pub fn backups(&self) -> &backup::Backups {
        &self.backups
    }

    /// The server with other limits.
    pub fn limited(mut self, limits: ServerLimits) -> Self {
        self.load = Arc::new(Load::new(&limits));
        self.limits = Arc::new(limits);
        self
    }

    /// The server, which also answers to these names.
    pub fn answering_to(self, hosts: gate::Hosts) -> Self {
        self.reloading.set_hosts(hosts);
        self
    }

    /// Changes what can change while it runs.
    pub fn reloading(&self) -> reloading::Reloading {
        self.shared.reloading.clone()
    }

    /// The server, which asks who sends a request, and lets everybody do what was granted and nothing else.
    pub fn asking_for_tokens(mut self) -> Self {
        self.identification = Identification::Required;
        self
    }

    /// Sets the memory budget of the process, so that metrics can compare it with its use.
    pub fn with_budget(mut self, budget: memory::Budget) -> Self {
        self.metrics.memory_budget = Some(budget.bytes);
        self
    }

    /// The current use of its limits.
    pub fn load(&self) -> &Arc<Load> {
        &self.load
    }

    /// Runs a call of the store where it may block.
    async fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Statehouse) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Refusal> {
        let house = self.house.clone();
        let done = tokio::task::spawn_blocking(move || work(&house)).await;
        done.map_err(|_| Refusal::Internal("a call to the store did not return"))?.map_err(Refusal::from)
    }

    /// Ends when a request has waited so long. When the server stops, waiting clients are told to ask again: another server, or this
    /// one when it is back.
    async fn waited(&self, wait: Duration) {
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = self.stopping.cancelled() => {}
        }
    }
}

impl Deref for Server {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.shared
    }
}

/// Only while a server is being built; one that has clones becomes a separate server.
impl DerefMut for Server {
    fn deref_mut(&mut self) -> &mut Shared {
        Arc::make_mut(&mut self.shared)
    }
}
