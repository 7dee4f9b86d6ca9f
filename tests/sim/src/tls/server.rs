//! A real server that speaks TLS and asks for tokens, and what it says of itself: metrics, problems and its log.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use client::tls::TlsFiles;
use serde_json::Value as JsonValue;
use testkit::certificates::{Authority, Pair};
use testkit::http::{Client, Request};
use testkit::server_process::{Launch, ServerProcess, binary};

use crate::directories::fast_directory;

/// The longest wait for what must happen, on a machine with other work.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often it is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The metric of handshakes that have failed, by their cause.
const FAILED: &str = "statehouse_tls_handshakes_failed_total{cause=\"";

/// The server, and a client that may do everything.
pub(super) struct TlsServer {
    pub(super) process: ServerProcess,
    pub(super) client: Client,
    /// The token of the first administrator.
    pub(super) token: String,
    _directory: tempfile::TempDir,
}

impl TlsServer {
    /// One with this pair, which asks clients for certificates of the authority; `settings` are of its environment.
    pub(super) fn start(authority: &Authority, pair: &Pair, client_ca: &Path, settings: &[(&str, &str)]) -> Self {
        let directory = fast_directory().expect("a directory");
        let data = directory.path().join("house");
        let launch = Launch::serve(binary(), &data).arguments(["--tokens", "required", "--tls-certificate"]);
        let launch = launch.argument(&pair.certificate).argument("--tls-key").argument(&pair.key);
        let launch = launch.argument("--tls-client-ca").argument(client_ca);
        let launch = settings.iter().fold(launch, |launch, (name, value)| launch.environment(name, value));
        let process = launch.start().expect("a server");
        let token = std::fs::read_to_string(data.join("root.token")).expect("the token of the first administrator");
        let client = Client::over_tls(process.address(), TlsFiles::default().ca_file(authority.file()));
        Self { process, client, token: token.trim().to_owned(), _directory: directory }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.process.address()
    }

    pub(super) fn call(&self, request: Request) -> String {
        let request = request.header("authorization", format!("Bearer {}", self.token));
        self.client.call(request).expect("an answer").text()
    }

    /// Every sample of a scrape.
    pub(super) fn metrics(&self) -> BTreeMap<String, f64> {
        let scraped = self.call(Request::get("/metrics"));
        let samples = scraped.lines().filter(|line| !line.starts_with('#'));
        samples
            .filter_map(|line| {
                line.rsplit_once(' ').map(|(name, value)| (name.to_owned(), value.parse().expect("a number")))
            })
            .collect()
    }

    /// How many handshakes have failed, by cause; every cause is there.
    pub(super) fn failed_handshakes(&self) -> BTreeMap<String, f64> {
        let of_cause =
            |(name, count): (String, f64)| Some((name.strip_prefix(FAILED)?.strip_suffix("\"}")?.to_owned(), count));
        self.metrics().into_iter().filter_map(of_cause).collect()
    }

    /// The problems of `/status`: their names and texts.
    pub(super) fn problems(&self) -> BTreeMap<String, String> {
        let status: JsonValue = serde_json::from_str(&self.call(Request::get("/status"))).expect("JSON");
        let text = |problem: &JsonValue, member: &str| problem[member].as_str().expect("text").to_owned();
        let problems = status["problems"].as_array().expect("a list").iter();
        problems.map(|problem| (text(problem, "problem"), text(problem, "text"))).collect()
    }

    /// The lines of its log from a byte on.
    pub(super) fn log_after(&self, bytes: usize) -> Vec<JsonValue> {
        let said = self.process.stderr();
        said[bytes..].lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }
}

/// Waits for something. None if it does not happen.
pub(super) fn eventually<T>(mut happens: impl FnMut() -> Option<T>) -> Option<T> {
    let began = Instant::now();
    loop {
        match happens() {
            None if began.elapsed() < PATIENCE => std::thread::sleep(LOOK_EVERY),
            happened => return happened,
        }
    }
}
