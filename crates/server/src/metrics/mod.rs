//! `/metrics`: the activity of the server and its store, as OpenMetrics text.
//!
//! - `list`: every metric that is of no contract. `requests`: counts each request, by its entry in the table of routes.
//! - `store`: metrics of the store as a whole; each contract has its own in the `metrics.rs` of its folder. `process`: metrics from
//!   the system. `watchers`: streams of changes. `readings`: what they are taken from.
//! - `transport`: what connections come over. `labels`: limits the values of labels that users choose. `text`: the formats.
//!
//! Keeps: everything but the requests is read at scrape time; no thread gathers anything.

mod labels;
pub mod list;
mod process;
pub(crate) mod readings;
pub mod requests;
mod store;
pub(crate) mod text;
mod transport;
mod watchers;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::http::header;
use axum::response::{IntoResponse, Response};
use statehouse::Opening;
use wire::operations::NoBody;
use wire::query::NoQuery;

pub use crate::problem::ProblemCode;
pub use labels::TYPE_VALUES_MAX;
pub(crate) use requests::{Counted, Operation};

use crate::Server;
use crate::api::call::Call;
use crate::api::refusal::Refusal;
use crate::api::{contract_metrics, write_contract_metrics};
use crate::dates::wall_now;
use labels::TypeLabels;
use list::Metric;
use readings::Readings;
use requests::Requests;
use text::Scrape;
pub(crate) use watchers::Watcher;
use watchers::Watchers;

/// Every metric: those of no contract, then those of each contract.
pub fn all() -> impl Iterator<Item = &'static Metric> {
    list::LIST.iter().chain(contract_metrics())
}

/// The counters of one server.
#[derive(Clone)]
pub(crate) struct Metrics {
    requests: Arc<Requests>,
    types: Arc<TypeLabels>,
    pub(crate) watchers: Arc<Watchers>,
    started: SystemTime,
    /// The memory budget of the process, if it has one.
    pub(crate) memory_budget: Option<u64>,
}

impl Default for Metrics {
    fn default() -> Self {
        let (requests, types, watchers) = (Arc::default(), Arc::default(), Arc::default());
        Self { requests, types, watchers, started: wall_now(), memory_budget: None }
    }
}

impl Metrics {
    /// Counts a request refused before it reached a route.
    pub(crate) fn refused(&self, code: &'static str) {
        self.requests.refused(code);
    }

    /// The time since the server started.
    pub(crate) fn uptime(&self) -> Duration {
        wall_now().duration_since(self.started).unwrap_or_default()
    }
}

pub(crate) async fn metrics(server: Server, call: Call<NoQuery, NoBody>) -> Result<Response, Refusal> {
    let open = call.takes.is_some_and(|takes| takes.contains("application/openmetrics-text"));
    let scraped = tokio::task::spawn_blocking(move || {
        let scrape = gather(&server);
        if open { scrape.open_metrics() } else { scrape.older() }
    });
    let written = scraped.await.map_err(|_| Refusal::Internal("the metrics could not be gathered"))?;
    let written = written.map_err(|_| Refusal::Internal("the metrics could not be written"))?;
    let content_type = if open { text::OPEN_METRICS } else { text::OLDER };
    Ok(([(header::CONTENT_TYPE, content_type)], written).into_response())
}

/// All that there is to say while the directory is being opened.
pub(crate) fn while_starting(opening: &Opening) -> Result<String, fmt::Error> {
    let mut scrape = Scrape::default();
    scrape.whole(&list::READY, &[], 0);
    scrape.real(&list::REPLAY_PROGRESS, &[], f64::from(opening.percent()) / 100.0);
    process::write(&mut scrape);
    scrape.older()
}

fn gather(server: &Server) -> Scrape {
    let mut scrape = Scrape::default();
    scrape.whole(&list::BUILD_INFO, &[env!("CARGO_PKG_VERSION")], 1);
    scrape.whole(&list::READY, &[], crate::health::is_ready(server).into());
    let started = server.metrics.started.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    scrape.real(&list::START_TIME, &[], started.as_secs_f64());
    server.metrics.requests.write(&mut scrape);
    let backups = server.house.backup_times();
    scrape.real(&list::BACKUP_SUCCESS, &[], seconds(backups.taken_us));
    scrape.real(&list::BACKUP_VERIFIED, &[], seconds(backups.verified_us));
    limits(server, &mut scrape);
    transport::write(&server.transport, &mut scrape);
    let (taken, refused) = server.reloading.counts();
    scrape.whole(&list::RELOADS, &["taken"], taken);
    scrape.whole(&list::RELOADS, &["refused"], refused);
    scrape.real(&list::REPLAY_PROGRESS, &[], 1.0);
    let readings = Readings::take(server);
    store::write(&server.metrics, &readings, &mut scrape);
    write_contract_metrics(&readings, &mut scrape);
    type_labels(&server.metrics.types, &mut scrape);
    process::write(&mut scrape);
    scrape
}

/// The use of the limit of types that are shown by name, once all of them were shown.
fn type_labels(types: &TypeLabels, scrape: &mut Scrape) {
    scrape.whole(&list::LABEL_VALUES, &["type"], types.count() as u64);
    scrape.whole(&list::LABEL_VALUES_LIMIT, &["type"], TYPE_VALUES_MAX as u64);
}

/// The use of the server's limits.
fn limits(server: &Server, scrape: &mut Scrape) {
    let load = server.load();
    let gates = [
        ("connections_max", &load.connections),
        ("handshakes_max", &load.handshakes),
        ("requests_max", &load.requests),
        ("waits_max", &load.waits),
        ("streams_max", &load.streams),
    ];
    for (limit, gate) in gates {
        scrape.whole(&list::LIMIT_USED, &[limit], gate.used() as u64);
        scrape.whole(&list::LIMIT_MAX, &[limit], gate.max() as u64);
        scrape.whole(&list::LIMIT_REFUSED, &[limit], gate.refused());
    }
    scrape.whole(&list::MEMORY, &["requests"], load.memory_bytes() as u64);
    if let Some(bytes) = server.metrics.memory_budget {
        scrape.whole(&list::MEMORY_BUDGET, &[], bytes);
    }
}

/// A time, or 0 for never.
fn seconds(at_us: Option<u64>) -> f64 {
    Duration::from_micros(at_us.unwrap_or(0)).as_secs_f64()
}
