//! A small client over a real socket: one request, one connection, one answer.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::Value as JsonValue;

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
        let mut stream = TcpStream::connect(self.address).expect("a connection");
        let mut request = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n");
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        request += &format!("content-length: {}\r\n\r\n{body}", body.len());
        stream.write_all(request.as_bytes()).expect("sent");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("an answer");
        let text = String::from_utf8(answer).expect("text");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|status| status.parse().ok());
        let headers =
            lines.filter_map(|line| line.split_once(": ")).map(|(name, value)| (name.to_lowercase(), value.to_owned()));
        let headers = headers.collect();
        let body = if body.is_empty() { JsonValue::Null } else { serde_json::from_str(body).expect("JSON") };
        Answer { status: status.expect("a status"), headers, body }
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
