//! A server of its own for each test, and a client whose answers are JSON.

#![allow(dead_code, reason = "each file of tests uses a part of it")]

use std::time::Duration;

use serde_json::Value as JsonValue;
use statehouse::{Options, Statehouse};
use statehouse_server::Server;

use crate::running::{Running, request};

/// A server; it stops when this is dropped.
pub struct Served {
    client: Client,
    pub house: Statehouse,
    _running: Running,
}

impl std::ops::Deref for Served {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

pub fn served() -> Served {
    served_with(&Options::default())
}

pub fn served_with(options: &Options) -> Served {
    let running = Running::start(options, Server::new);
    Served { client: Client(running.client()), house: running.house.clone(), _running: running }
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: JsonValue,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// A client of a server.
#[derive(Clone)]
pub struct Client(testkit::http::Client);

impl Client {
    pub fn of(client: testkit::http::Client) -> Self {
        Self(client)
    }

    /// Sends a request with headers and a body, as text, and reads the answer.
    pub fn send(&self, method: &'static str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let response = self.0.send(request(method, path, headers, body)).expect("an answer");
        let body = if response.body.is_empty() { JsonValue::Null } else { response.json() };
        Answer { status: response.status, headers: response.headers, body }
    }

    /// Opens a stream of events and reads them one by one: id, kind and data.
    pub fn events(
        &self,
        path: &str,
        headers: &[(&str, &str)],
    ) -> impl Iterator<Item = (String, String, JsonValue)> + use<> {
        let request = request("GET", path, headers, "").header("accept", "text/event-stream");
        let mut events = self.0.follow(request).expect("an answer");
        assert_eq!(events.head().status, 200, "{}", events.head().text());
        events.set_wait(Duration::from_secs(30));
        std::iter::from_fn(move || {
            let event = events.next().expect("an event, or the end in good order")?;
            Some((event.id, event.kind, serde_json::from_str(&event.data).expect("JSON")))
        })
    }

    pub fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], "")
    }

    pub fn put(&self, path: &str, body: &str) -> Answer {
        self.send("PUT", path, &[], body)
    }

    pub fn post(&self, path: &str, body: &str) -> Answer {
        self.send("POST", path, &[], body)
    }
}
