//! From the start of a server to its stop.
//!
//! Keeps: stopping refuses new requests by name, answers those in progress, and closes the directory. Log lines report
//! changes of state; a request has one only if it was slow.

use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use statehouse::Statehouse;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout_at};

use crate::admission::Admission;
use crate::connections::Connections;
use crate::load::Load;
use crate::transport::{Exposure, Listeners};
use crate::{Server, TransportState};

/// How often to check whether the disk is low, and whether anything was refused for lack of capacity.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// An overload is over after this many checks without a refusal.
const QUIET_LOOKS: u32 = 5;

/// Why an address cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Other machines could connect, and are not kept from what they must not do.
    #[error(
        "{address} is not a loopback address, and other machines would reach it without {missing}; listen on 127.0.0.1 or [::1], or set \
         tls_certificate, tls_key and tokens of [server]"
    )]
    NotLoopback {
        /// The address.
        address: SocketAddr,
        /// What protection is missing.
        missing: &'static str,
    },
    /// Something else than a socket is where a socket should be.
    #[error("{} is no socket, and is not replaced; give another path with --socket, or remove it", .0.display())]
    NoSocket(PathBuf),
    /// Another program listens on a socket.
    #[error("another program listens on {}; stop it, or give another path with --socket", .0.display())]
    SocketInUse(PathBuf),
    /// The system refused a socket.
    #[error("{}: {error}; give a path with --socket, of at most 100 bytes, in a folder that the server may write to", path.display())]
    Socket {
        /// The path of the socket.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// Another program listens there.
    #[error("another program listens on {0}; stop it, or choose another address with --listen")]
    InUse(SocketAddr),
    /// The system refused.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The store had stopped, or could not be closed.
    #[error("closing failed; every answered write is in the journal, and the next start replays it: {0}")]
    Closing(contract::Error),
}

/// Listens on a loopback address, without TLS.
pub async fn listen(address: SocketAddr) -> Result<Listeners, ServeError> {
    let exposure = Exposure { has_tls: false, asks_for_tokens: false, is_insecure_allowed: false };
    Listeners::bind(address, exposure).await
}

/// Serves until `stop`, then accepts no more requests, answers those in progress, and closes the directory.
pub async fn serve(
    listeners: impl Into<Listeners>,
    house: Statehouse,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), ServeError> {
    serve_all(listeners, Server::new(house), stop).await
}

/// The same for a server that hosts machines, or has other limits.
pub async fn serve_all(
    listeners: impl Into<Listeners>,
    mut server: Server,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), ServeError> {
    let listeners = listeners.into();
    server.transport = TransportState { tls: listeners.tls().cloned(), insecure: listeners.insecure().map(Into::into) };
    let (house, ready) = (server.house.clone(), server.ready.clone());
    let (limits, load, lasting) = (server.limits.clone(), server.load.clone(), server.lasting_requests.clone());
    // Connections inherit it.
    listeners.set_send_buffer_size(limits.send_buffer_bytes_max)?;
    let stopping = server.stopping.clone();
    let admission = Admission::new(server);
    let tls = listeners.tls().cloned();
    let connections =
        Connections::new(limits.clone(), load.clone(), Arc::new(admission), stopping.clone(), tls.clone());
    let certificates = async {
        match &tls {
            Some(tls) => match tls.watch().await {},
            None => std::future::pending().await,
        }
    };
    let socket = listeners.socket().map(|socket| socket.display().to_string());
    tracing::info!(address = %listeners.local_addr()?, socket, "ready");
    tokio::select! {
        () = connections.accept(&listeners, stop) => {}
        () = certificates => {}
        () = look(&house, &load) => {}
        () = lasting.watch(&house) => {}
    }

    ready.store(false, Ordering::Release);
    stopping.cancel();
    tracing::info!(connections = load.connections.used(), requests = load.requests.used(), "draining");
    let tracker = connections.tracker.clone();
    tracker.close();
    let deadline = Instant::now() + limits.drain_time_max;
    let ended = async {
        let unanswered = timeout_at(deadline, tracker.wait()).await.is_err();
        let closed = tokio::task::spawn_blocking(move || house.close()).await;
        (closed, unanswered)
    };
    // Requests that arrive meanwhile are told that the server is stopping.
    let (closed, unanswered) = tokio::select! {
        ended = ended => ended,
        () = connections.accept(&listeners, std::future::pending()) => return Ok(()),
    };
    if unanswered {
        tracing::warn!(connections = tracker.len(), "some requests were not answered within drain_time_max");
    }
    match closed {
        Ok(Ok(())) => {
            tracing::info!("stopped");
            Ok(())
        }
        Ok(Err(error)) => {
            tracing::error!(%error, "closing failed; the next start replays the journal");
            Err(ServeError::Closing(error))
        }
        Err(panicked) => Err(ServeError::Io(std::io::Error::other(panicked))),
    }
}

/// Logs when disk space becomes low or sufficient, and when an overload starts and ends.
async fn look(house: &Statehouse, load: &Load) {
    let mut ticks = interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut disk_was_low = false;
    let (mut refused_before, mut refused_at_begin, mut quiet_looks) = (load.refused(), None, 0);
    loop {
        ticks.tick().await;
        if let Some(space) = house.disk()
            && space.is_low() != disk_was_low
        {
            disk_was_low = space.is_low();
            let (free_bytes, reserve_bytes) = (space.free_bytes, space.reserve_bytes);
            match disk_was_low {
                true => tracing::warn!(free_bytes, reserve_bytes, "disk low: refusing writes, accepting deletes"),
                false => tracing::info!(free_bytes, reserve_bytes, "disk clear: accepting writes"),
            }
        }
        let refused = load.refused();
        quiet_looks = if refused == refused_before { quiet_looks + 1 } else { 0 };
        match refused_at_begin {
            None if refused > refused_before => {
                refused_at_begin = Some(refused_before);
                let (connections, requests) = (load.connections.used(), load.requests.used());
                tracing::warn!(connections, requests, streams = load.streams.used(), "overload begins");
            }
            Some(at_begin) if quiet_looks >= QUIET_LOOKS => {
                tracing::info!(refused = refused - at_begin, "overload ended");
                refused_at_begin = None;
            }
            _ => {}
        }
        refused_before = refused;
    }
}
