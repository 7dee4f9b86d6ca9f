//! Requests and responses of any kind.

use std::collections::BTreeMap;

use hyper::body::Bytes;
use hyper::http;

use serde_json::Value as JsonValue;
use serde_json::value::RawValue;

/// A request.
#[derive(Clone, Debug)]
pub struct Request {
    /// The method.
    pub method: &'static str,
    /// The path with its query, percent-encoded; see [`encode`].
    pub path: String,
    /// Headers other than `host` and `content-length`.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Request {
    /// A request without headers and body.
    pub fn new(method: &'static str, path: impl Into<String>) -> Self {
        Self { method, path: path.into(), headers: Vec::new(), body: Vec::new() }
    }

    /// `GET`.
    pub fn get(path: impl Into<String>) -> Self {
        Self::new("GET", path)
    }

    /// `PUT`.
    pub fn put(path: impl Into<String>) -> Self {
        Self::new("PUT", path)
    }

    /// `POST`.
    pub fn post(path: impl Into<String>) -> Self {
        Self::new("POST", path)
    }

    /// `PATCH`.
    pub fn patch(path: impl Into<String>) -> Self {
        Self::new("PATCH", path)
    }

    /// `DELETE`.
    pub fn delete(path: impl Into<String>) -> Self {
        Self::new("DELETE", path)
    }

    /// The same with a header.
    pub fn header(mut self, name: &str, value: impl ToString) -> Self {
        self.headers.push((name.to_owned(), value.to_string()));
        self
    }

    /// The same with a body.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// The same with a parameter in the query.
    pub fn query(mut self, name: &str, value: impl ToString) -> Self {
        let joint = if self.path.contains('?') { '&' } else { '?' };
        self.path += &format!("{joint}{name}={}", encode(&value.to_string(), ""));
        self
    }

    /// The request in the transport's form. A request that is not valid HTTP is an error: sending it takes a socket.
    pub fn to_http(&self) -> Result<http::Request<Bytes>, http::Error> {
        let mut request = http::Request::builder().method(self.method).uri(&self.path);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        request.body(self.body.clone().into())
    }

    /// The bytes of HTTP/1.1, for measurements of a server without the cost of a client.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut text = format!("{} {} HTTP/1.1\r\nhost: localhost\r\n", self.method, self.path);
        for (name, value) in &self.headers {
            text += &format!("{name}: {value}\r\n");
        }
        text += &format!("content-length: {}\r\n\r\n", self.body.len());
        let mut bytes = text.into_bytes();
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

/// A name as part of a path: everything but letters, digits, `-._~` and `/` is percent-encoded.
pub fn path_of(name: &str) -> String {
    encode(name, "/")
}

/// Percent-encodes everything but unreserved characters and those in `also`.
pub fn encode(text: &str, also: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        let character = char::from(byte);
        if character.is_ascii_alphanumeric() || "-._~".contains(character) || also.contains(character) {
            encoded.push(character);
        } else {
            encoded += &format!("%{byte:02X}");
        }
    }
    encoded
}

/// A response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// Headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Response {
    /// A header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Whether the status means success.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    ///
    /// # Panics
    /// If it is not JSON.
    pub fn json(&self) -> JsonValue {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {:?}", self.text()))
    }

    /// The members of a JSON object, each as its original text.
    ///
    /// # Panics
    /// If it is not a JSON object.
    pub fn members(&self) -> BTreeMap<String, Box<RawValue>> {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {:?}", self.text()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_written_whole() {
        let request = Request::put(format!("/v1/cells/{}", path_of("a/ü b"))).query("space", "x&y");
        let bytes = request.header("if-match", "\"7\"").body("1").to_bytes();
        let text = String::from_utf8(bytes).expect("text");
        assert_eq!(
            text,
            "PUT /v1/cells/a/%C3%BC%20b?space=x%26y HTTP/1.1\r\nhost: localhost\r\nif-match: \"7\"\r\n\
             content-length: 1\r\n\r\n1"
        );
    }
}
