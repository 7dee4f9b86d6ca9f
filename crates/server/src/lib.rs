//! Statehouse over HTTP: every contract as JSON, on one port, under `/v1`.
//!
//! - [`serve`]: listens until it is told to stop. [`router`]: the routes, for tests and for other servers.
//! - [`problem`]: how a refusal looks: `application/problem+json`, from the one error.
//! - `place`: in which space, branch and group a request is, and in which session. `json`: values as JSON.
//! - [`cells`], [`records`], [`claims`], [`runs`], [`sessions`], [`changes`]: one file for each contract.
//! - `connections`, `guarded`, `admission`, `answer`: what a connection and a request pass before and after their handler.
//!   [`limits`]: every bound by name. [`load`]: what is used of them.
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
mod guarded;
pub mod health;
mod json;
pub mod limits;
pub mod load;
mod place;
pub mod problem;
pub mod records;
pub mod runs;
pub mod sessions;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use contract::Error;
use statehouse::Statehouse;
use tokio::net::TcpListener;

use tokio_util::sync::CancellationToken;

use admission::Admission;
use connections::{Connections, drained};
use limits::ServerLimits;
use load::Load;
use problem::Problem;

/// How long requests that wait for something have to be answered when the directory was closed under them.
const WAITS_END_TIME_MAX: Duration = Duration::from_secs(1);

/// What every handler sees.
#[derive(Clone)]
pub struct Server {
    house: Statehouse,
    ready: Arc<AtomicBool>,
}

impl Server {
    /// A server over an open directory.
    pub fn new(house: Statehouse) -> Self {
        Self { house, ready: Arc::new(AtomicBool::new(true)) }
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
        .merge(changes::routes())
        .merge(health::routes())
        .fallback(problem::no_such_route)
        .method_not_allowed_fallback(problem::no_such_method)
        // Bodies come here whole, and within the limits of whoever serves; see `admission`.
        .layer(DefaultBodyLimit::disable())
        .with_state(server)
}

/// Why an address cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// There is no authentication yet, so only this machine may connect.
    #[error("{0} is not a loopback address; without tokens and TLS only 127.0.0.1 and [::1] are served")]
    NotLoopback(SocketAddr),
    /// The system refused.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// Listens on a loopback address.
pub async fn listen(address: SocketAddr) -> Result<TcpListener, ServeError> {
    if !address.ip().is_loopback() {
        return Err(ServeError::NotLoopback(address));
    }
    Ok(TcpListener::bind(address).await?)
}

/// Serves until `stop`, then takes no more requests, answers those that are under way, and closes the directory.
pub async fn serve(
    listener: TcpListener,
    house: Statehouse,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), ServeError> {
    serve_within(listener, house, ServerLimits::default(), stop).await
}

/// [`serve`] within other limits.
pub async fn serve_within(
    listener: TcpListener,
    house: Statehouse,
    limits: ServerLimits,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), ServeError> {
    // Connections inherit it.
    socket2::SockRef::from(&listener).set_send_buffer_size(limits.send_buffer_bytes_max)?;
    let limits = Arc::new(limits);
    let load = Arc::new(Load::new(&limits));
    let server = Server::new(house.clone());
    let ready = server.ready.clone();
    let stopping = CancellationToken::new();
    let admission = Admission::new(router(server), limits.clone(), load.clone(), stopping.clone());
    let connections = Connections::new(limits.clone(), load.clone(), Arc::new(admission), stopping.clone());
    tracing::info!(address = %listener.local_addr()?, "ready");
    connections.accept(&listener, stop).await;

    ready.store(false, Ordering::Release);
    stopping.cancel();
    tracing::info!(connections = load.connections.used(), requests = load.requests.used(), "draining");
    let tracker = connections.tracker.clone();
    tracker.close();
    let deadline = tokio::time::Instant::now() + limits.drain_time_max;
    // Who asks meanwhile is told that the server stops.
    let ended = async {
        drained(&tracker, &load, deadline).await;
        // This also ends the waits of requests that wait for something.
        let closed = tokio::task::spawn_blocking(move || house.close()).await;
        let answered = tokio::time::timeout(WAITS_END_TIME_MAX, tracker.wait()).await;
        (closed, answered.is_err())
    };
    let (closed, unanswered) = tokio::select! {
        ended = ended => ended,
        () = connections.accept(&listener, std::future::pending()) => return Ok(()),
    };
    if unanswered {
        tracing::warn!(connections = tracker.len(), "not all were answered within drain_time_max");
    }
    if let Ok(Err(error)) = closed {
        tracing::error!(%error, "closing failed; the journal will be replayed at the next opening");
    }
    tracing::info!("stopped");
    Ok(())
}
