//! A server with options of its own for each test, and a client that reads answers as text.

#![allow(dead_code, reason = "each test uses some of it")]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use statehouse::{Options, Statehouse};
use statehouse_server::Server;
use statehouse_server::memory::{Budget, Source};

use crate::running::{Running, request};

/// The server; it stops when this is dropped.
pub struct Served {
    pub address: SocketAddr,
    pub house: Statehouse,
    client: testkit::http::Client,
    _running: Running,
}

pub fn served(options: &Options) -> Served {
    served_by(options, |server| server)
}

/// The same, with more of what a server can have.
pub fn served_by(options: &Options, with: impl FnOnce(Server) -> Server) -> Served {
    let budget = Budget { bytes: 256 << 20, source: Source::Said };
    let running = Running::start_in_memory(options, move |house| with(Server::new(house).with_budget(budget)));
    Served { address: running.address, house: running.house.clone(), client: running.client(), _running: running }
}

/// An answer as text.
pub struct Text {
    pub status: u16,
    /// Its headers, one on a line.
    pub head: String,
    pub body: String,
}

impl Served {
    pub fn send(&self, method: &'static str, path: &str, headers: &[(&str, &str)], body: &str) -> Text {
        let response = self.client.send(request(method, path, headers, body)).expect("an answer");
        let head = response.headers.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
        Text { status: response.status, head, body: response.text() }
    }

    pub fn get(&self, path: &str) -> Text {
        self.send("GET", path, &[], "")
    }

    /// Sends and expects a status.
    pub fn expect(&self, status: u16, method: &'static str, path: &str, body: &str) -> Text {
        let answer = self.send(method, path, &[], body);
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.body);
        answer
    }

    /// Sends what is done.
    pub fn done(&self, method: &'static str, path: &str, body: &str) -> Text {
        let answer = self.send(method, path, &[], body);
        assert!((200..300).contains(&answer.status), "{method} {path}: {}", answer.body);
        answer
    }

    /// Every sample of a scrape.
    pub fn scrape(&self) -> BTreeMap<String, f64> {
        let scraped = self.get("/metrics");
        assert_eq!(scraped.status, 200);
        let samples = scraped.body.lines().filter(|line| !line.starts_with('#'));
        samples
            .map(|line| {
                let (name, value) = line.rsplit_once(' ').expect("a name and a value");
                (name.to_owned(), value.parse().expect("a number"))
            })
            .collect()
    }
}

/// Waits for what happens on its own, as long as it may take on a machine with other work.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..6_000 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("never: {what}");
}
