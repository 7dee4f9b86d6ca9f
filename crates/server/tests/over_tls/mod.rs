//! A server that speaks TLS, and requests to it.

#![allow(dead_code, reason = "each file of tests uses a part of it")]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

use rustls::ClientConfig;
use serde_json::Value as JsonValue;
use statehouse::Options;
use statehouse_server::limits::ServerLimits;
use statehouse_server::{Listeners, Server, Tls, TlsFiles};
use testkit::certificates::{Authority, Pair, connect};

use crate::running::Running;

/// The server, and the authority of its certificate, which also signs for clients.
pub struct OverTls {
    pub running: Running,
    pub authority: Authority,
    pub tls: Arc<Tls>,
    pub pair: Pair,
}

/// The files of a server with this pair.
pub fn files(pair: &Pair, client_ca: Option<&Path>) -> TlsFiles {
    let client_ca = client_ca.map(Path::to_owned);
    TlsFiles { certificate: pair.certificate.clone(), key: pair.key.clone(), client_ca }
}

/// An answer.
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    pub fn read(stream: &mut impl Read) -> Self {
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an answer, and an end that TLS says");
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("an answer: {text:?}"));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        Self { status, head: head.to_lowercase(), body: body.to_owned() }
    }

    pub fn json(&self) -> JsonValue {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("JSON: {}", self.body))
    }

    /// The status, and the code if it is a refusal.
    pub fn said(&self) -> (u16, String) {
        let code = if self.status < 400 { JsonValue::Null } else { self.json()["code"].clone() };
        (self.status, code.as_str().unwrap_or_default().to_owned())
    }
}

/// A request that is the only one of its connection.
pub fn request(method: &str, path: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n{body}"
    )
}

impl OverTls {
    pub fn start(server: impl FnOnce(Server) -> Server) -> Self {
        Self::start_with(false, |pair, _| files(pair, None), server)
    }

    /// One that asks for client certificates.
    pub fn asking(server: impl FnOnce(Server) -> Server) -> Self {
        Self::start_with(false, |pair, authority| files(pair, Some(&authority.file())), server)
    }

    /// One with other limits, and a time that only the test moves.
    pub fn held(limit: impl FnOnce(&mut ServerLimits)) -> Self {
        let mut limits = ServerLimits::default();
        limit(&mut limits);
        Self::start_with(true, |pair, _| files(pair, None), |server| server.limited(limits))
    }

    pub fn start_with(
        is_held: bool,
        files: impl FnOnce(&Pair, &Authority) -> TlsFiles,
        server: impl FnOnce(Server) -> Server,
    ) -> Self {
        let authority = Authority::new("tests");
        let pair = authority.server("server");
        let tls = Arc::new(Tls::open(files(&pair, &authority)).expect("a pair"));
        let spoken = tls.clone();
        let options = Options::default();
        let (served, listening) =
            (|house| server(Server::new(house)), move |listeners: Listeners| listeners.over_tls(spoken));
        let running = match is_held {
            true => Running::start_listening_held(&options, served, listening),
            false => Running::start_listening(&options, served, listening),
        };
        Self { running, authority, tls, pair }
    }

    /// Sends a request over a connection of its own.
    pub fn send(&self, config: ClientConfig, request: &str) -> Answer {
        let mut stream = connect(self.running.address, config);
        stream.write_all(request.as_bytes()).expect("sent");
        Answer::read(&mut stream)
    }

    pub fn get(&self, path: &str) -> Answer {
        self.send(self.authority.trusted(), &request("GET", path, "", ""))
    }

    /// Every sample of a scrape.
    pub fn scrape(&self) -> BTreeMap<String, f64> {
        let scraped = self.get("/metrics").body;
        let samples = scraped.lines().filter(|line| !line.starts_with('#') && line.contains(' '));
        let sample = |line: &str| {
            let (name, value) = line.rsplit_once(' ').expect("a name and a value");
            Some((name.to_owned(), value.parse().ok()?))
        };
        samples.filter_map(sample).collect()
    }

    /// How often handshakes have failed for a cause.
    pub fn failed(&self, cause: &str) -> f64 {
        let name = format!("statehouse_tls_handshakes_failed_total{{cause=\"{cause}\"}}");
        *self.scrape().get(&name).unwrap_or_else(|| panic!("no cause {cause}"))
    }

    /// The problems of `/status`, by name.
    pub fn problems(&self) -> BTreeMap<String, String> {
        let status = self.get("/status").json();
        let text = |problem: &JsonValue, member: &str| problem[member].as_str().expect("text").to_owned();
        let problems = status["problems"].as_array().expect("a list");
        problems.iter().map(|problem| (text(problem, "problem"), text(problem, "text"))).collect()
    }
}

/// Waits for what happens on its own, as long as it may take on a machine with other work.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..3_000 {
        if holds() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("never: {what}");
}
