//! A server of its own for each test, and a small client over a real socket: one request, one connection, one answer.

#![allow(dead_code, reason = "each file of tests uses a part of it")]

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::Value as JsonValue;
use statehouse::{Options, Statehouse};
use statehouse_server::Server;

use crate::running::{Running, exchange};

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
    let running = Running::start(&Options::default(), Server::new);
    let client = Client { address: running.address };
    Served { client, house: running.house.clone(), _running: running }
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
pub struct Client {
    pub address: SocketAddr,
}

impl Client {
    /// Sends a request with headers and a body, as text, and reads the answer.
    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let (status, head, body) = exchange(self.address, method, path, headers, body);
        let lines = head.lines().skip(1).filter_map(|line| line.split_once(": "));
        let headers = lines.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect();
        let body = if body.is_empty() { JsonValue::Null } else { serde_json::from_str(&body).expect("JSON") };
        Answer { status, headers, body }
    }

    /// Opens a stream of events and reads them one by one: id, kind and data.
    pub fn events(
        &self,
        path: &str,
        headers: &[(&str, &str)],
    ) -> impl Iterator<Item = (String, String, JsonValue)> + use<> {
        let mut stream = TcpStream::connect(self.address).expect("a connection");
        stream.set_read_timeout(Some(std::time::Duration::from_secs(30))).expect("a timeout");
        let mut request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n");
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        stream.write_all((request + "\r\n").as_bytes()).expect("sent");
        let mut lines = BufReader::new(stream).lines().map(|line| line.expect("a line"));
        let status = lines.next().expect("a status");
        assert!(status.starts_with("HTTP/1.1 200"), "{status}");
        std::iter::from_fn(move || {
            let (mut id, mut kind) = (String::new(), String::new());
            // Sizes of chunks and empty lines lie in between.
            for line in lines.by_ref() {
                // The last chunk: the connection stays, the stream is over.
                if line == "0" {
                    return None;
                }
                match line.split_once(": ") {
                    Some(("id", value)) => id = value.to_owned(),
                    Some(("event", value)) => kind = value.to_owned(),
                    Some(("data", value)) => return Some((id, kind, serde_json::from_str(value).expect("JSON"))),
                    _ => {}
                }
            }
            None
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
