//! A server that listens but is not ready yet: its directory is being opened, and replaying a long journal takes a
//! while.
//!
//! `/startupz` and `/readyz` report the progress, `/metrics` has it as a number, `/livez` succeeds; everything else is refused by
//! name. Nobody is asked for a token, since nothing of the store can be seen. Keeps: few
//! connections at a time, each for one request, so that requests meanwhile cost next to nothing. Never: touches the
//! store.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, Response, StatusCode, header};
use axum::response::IntoResponse;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::json;
use statehouse::Opening;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use wire::routes::{SERVER_LIVE, SERVER_METRICS, SERVER_READY, SERVER_STARTED};

use crate::connections::end_refused;
use crate::dates::{can_be_dated, wall_now};
use crate::gate::{Hosts, harden};
use crate::http::encode::json_body;
use crate::limits::ServerLimits;
use crate::load::Load;
use crate::metrics;
use crate::problem::Problem;
use crate::request_id::RequestId;
use crate::transport::tls::open;
use crate::transport::{Listeners, Peer, Socket};

/// Concurrent connections; more wait.
const CONNECTIONS_MAX: usize = 64;
/// The time limit of a request.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(5);
/// The pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Answers connections until dropped.
pub async fn answer_while_starting(listeners: &Listeners, opening: Arc<Opening>, hosts: &Hosts) -> Infallible {
    let certificates = async {
        match listeners.tls() {
            Some(tls) => tls.watch().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        never = answer_all(listeners, opening, hosts) => never,
        never = certificates => never,
    }
}

async fn answer_all(listeners: &Listeners, opening: Arc<Opening>, hosts: &Hosts) -> Infallible {
    let (limits, tls) = (Arc::new(ServerLimits::default()), listeners.tls().cloned());
    let load = Arc::new(Load::new(&limits));
    let hosts = Arc::new(hosts.clone());
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(permit) = room.clone().acquire_owned().await else {
            return std::future::pending().await;
        };
        match listeners.accept().await {
            Ok(arrived) => {
                let (opening, hosts, tls) = (opening.clone(), hosts.clone(), tls.clone());
                let (limits, load) = (limits.clone(), load.clone());
                tokio::spawn(async move {
                    let answered = async {
                        match open(arrived, tls.as_ref(), &load, &limits).await {
                            Ok((socket, peer)) => drop(answer_one(socket, &peer, &opening, &hosts).await),
                            Err(refused) => end_refused(refused).await,
                        }
                    };
                    let _ = timeout(REQUEST_TIME_MAX, answered).await;
                    drop(permit);
                });
            }
            Err(_) => sleep(ACCEPT_PAUSE).await,
        }
    }
}

async fn answer_one(stream: Socket, peer: &Peer, opening: &Opening, hosts: &Hosts) -> hyper::Result<()> {
    let service = service_fn(|request: Request<Incoming>| {
        let (parts, _) = request.into_parts();
        let page = hosts.page(&parts.headers);
        let mut response = match hosts.check(&parts, peer.is_over_tls(), page.as_ref()) {
            Ok(()) => page.as_ref().and_then(|page| page.preflight(&parts)),
            Err(problem) => Some(problem.into_response()),
        }
        .unwrap_or_else(|| answer(parts.uri.path(), opening));
        RequestId::next().put_into(&mut response);
        harden(response.headers_mut());
        if let Some(page) = page {
            page.permit(response.headers_mut());
        }
        async move { Ok::<_, Infallible>(response) }
    });
    http1::Builder::new()
        .keep_alive(false)
        .auto_date_header(can_be_dated(wall_now()))
        .header_read_timeout(None)
        .serve_connection(TokioIo::new(stream), service)
        .await
}

fn answer(path: &str, opening: &Opening) -> Response<Body> {
    let said = said(opening);
    match path {
        path if path == SERVER_LIVE.path => json_body(StatusCode::OK, &json!({ "alive": true })),
        path if [SERVER_STARTED.path, SERVER_READY.path].contains(&path) => {
            let what = if path == SERVER_READY.path { "ready" } else { "started" };
            let progress = json!({
                what: false,
                "detail": said,
                "percent": opening.percent(),
                "replayed_entries": opening.replayed(),
                "entries_to_replay": opening.to_replay(),
                "replayed_bytes": opening.replayed_bytes(),
                "bytes_to_replay": opening.bytes_to_replay(),
            });
            json_body(StatusCode::SERVICE_UNAVAILABLE, &progress)
        }
        path if path == SERVER_METRICS.path => match metrics::while_starting(opening) {
            Ok(written) => ([(header::CONTENT_TYPE, metrics::text::OLDER)], written).into_response(),
            Err(_) => Problem::internal("the metrics could not be written").into_response(),
        },
        _ => Problem::starting(&said).into_response(),
    }
}

fn said(opening: &Opening) -> String {
    match (opening.replayed(), opening.to_replay()) {
        (_, 0) => "the directory is being opened".to_owned(),
        (replayed, all) => {
            format!("replayed {} % of the journal: {replayed} of {all} entries", opening.percent())
        }
    }
}
