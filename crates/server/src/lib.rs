//! Statehouse over HTTP: every contract as JSON, on one port, under `/v1`.
//!
//! - [`serve`]: listens until it is told to stop. [`router`]: the routes, for tests and for other servers.
//! - [`problem`]: how a refusal looks: `application/problem+json`, from the one error.
//! - `place`: in which space, branch and group a request is, and in which session. `json`: values as JSON.
//! - [`cells`], [`records`], [`claims`], [`runs`], [`sessions`], [`changes`]: one file for each contract.
//! - [`transactions`]: operations of any contract in one commit. [`catalogue`]: spaces, branches, types, limits.
//! - [`stream`]: what follows, as server-sent events.
//! - [`machines`]: commands to machines that users bring.
//! - [`backup`]: everything as one file. [`export`]: the same as lines. [`streamed`]: answers that are written while they are sent.
//! - [`health`]: whether it lives, is ready, and how it is doing.
//!
//! Keeps: nothing of its own; whatever is answered is what the contracts answer. Writes are awaited and reads of one thing
//! done at once; calls that read much run on threads that may wait.

mod attempts;
pub mod backup;
pub mod catalogue;
pub mod cells;
pub mod changes;
pub mod claims;
pub mod export;
pub mod health;
mod json;
pub mod limits;
pub mod machines;
mod members;
mod place;
pub mod problem;
pub mod records;
pub mod runs;
mod scan;
pub mod sessions;
pub mod stream;
pub mod streamed;
pub mod transactions;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::DefaultBodyLimit;
use contract::Error;
use statehouse::Statehouse;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use problem::Problem;

/// Bytes of one request's body.
pub const BODY_BYTES_MAX: usize = 4 << 20;

/// What every handler sees.
#[derive(Clone)]
pub struct Server {
    house: Statehouse,
    ready: Arc<AtomicBool>,
    /// Said when the server is to stop: streams end then.
    stopping: CancellationToken,
    machines: machines::Machines,
    backups: backup::Backups,
    exports: export::Exports,
}

impl Server {
    /// A server over an open directory.
    pub fn new(house: Statehouse) -> Self {
        Self {
            house,
            ready: Arc::new(AtomicBool::new(true)),
            stopping: CancellationToken::new(),
            machines: machines::Machines::default(),
            backups: backup::Backups::default(),
            exports: export::Exports::default(),
        }
    }

    /// What is known of backups.
    pub fn backups(&self) -> &backup::Backups {
        &self.backups
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
        .merge(transactions::routes())
        .merge(catalogue::routes())
        .merge(backup::routes())
        .merge(export::routes())
        .merge(health::routes())
        .fallback(problem::no_such_route)
        .method_not_allowed_fallback(problem::no_such_method)
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
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
    serve_all(listener, Server::new(house), stop).await
}

/// The same for a server that also hosts machines.
pub async fn serve_all(
    listener: TcpListener,
    server: Server,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), ServeError> {
    let house = server.house.clone();
    let ready = server.ready.clone();
    let stopping = server.stopping.clone();
    let stop = async move {
        stop.await;
        ready.store(false, Ordering::Release);
        stopping.cancel();
    };
    axum::serve(listener, router(server)).with_graceful_shutdown(stop).await?;
    let closed = tokio::task::spawn_blocking(move || house.close()).await;
    if let Ok(Err(error)) = closed {
        tracing::error!(%error, "closing failed; the journal will be replayed at the next opening");
    }
    Ok(())
}
