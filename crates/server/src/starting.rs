//! A server that listens but is not ready yet: its directory is being opened, and replaying a long journal takes a
//! while.
//!
//! `/startupz` and `/readyz` report the progress, `/livez` succeeds; everything else is refused by name. Keeps: few
//! connections at a time, each for one request, so that requests meanwhile cost next to nothing. Never: touches the
//! store.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, Response, StatusCode};
use axum::response::IntoResponse;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::json;
use statehouse::Opening;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use wire::routes::{SERVER_LIVE, SERVER_READY, SERVER_STARTED};

use crate::dates::{can_be_dated, wall_now};
use crate::gate::{Hosts, harden};
use crate::http::encode::json_body;
use crate::problem::Problem;
use crate::request_id::RequestId;

/// Concurrent connections; more wait.
const CONNECTIONS_MAX: usize = 64;
/// The time limit of a request.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(5);
/// The pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Answers connections until dropped.
pub async fn answer_while_starting(listener: &TcpListener, opening: Arc<Opening>, hosts: &Hosts) -> Infallible {
    let hosts = Arc::new(hosts.clone());
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(permit) = room.clone().acquire_owned().await else {
            return std::future::pending().await;
        };
        match listener.accept().await {
            Ok((stream, _)) => {
                let (opening, hosts) = (opening.clone(), hosts.clone());
                tokio::spawn(async move {
                    let _ = timeout(REQUEST_TIME_MAX, answer_one(stream, &opening, &hosts)).await;
                    drop(permit);
                });
            }
            Err(_) => sleep(ACCEPT_PAUSE).await,
        }
    }
}

async fn answer_one(stream: TcpStream, opening: &Opening, hosts: &Hosts) -> hyper::Result<()> {
    let service = service_fn(|request: Request<Incoming>| {
        let (parts, _) = request.into_parts();
        let mut response = match hosts.check(&parts) {
            Ok(()) => answer(parts.uri.path(), opening),
            Err(problem) => problem.into_response(),
        };
        RequestId::next().put_into(&mut response);
        harden(response.headers_mut());
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
                "replayed_entries": opening.replayed(),
                "entries_to_replay": opening.to_replay(),
            });
            json_body(StatusCode::SERVICE_UNAVAILABLE, &progress)
        }
        _ => Problem::starting(&said).into_response(),
    }
}

fn said(opening: &Opening) -> String {
    match (opening.replayed(), opening.to_replay()) {
        (_, 0) => "the directory is being opened".to_owned(),
        (replayed, all) => format!("replayed {replayed} of {all} entries of the journal"),
    }
}
