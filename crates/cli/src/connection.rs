//! How a command reaches a store: by HTTP, or by a directory that it opens itself.
//!
//! A directory is asked through the very routes that a server has, in this process, so that every command is written once, against the HTTP
//! API. Never: makes a directory that is not there.

mod streaming;

use std::path::Path;
use std::time::Duration;

use axum::body::Body;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::header::CONTENT_TYPE;
use hyper::{HeaderMap, Method, Request, StatusCode};
use serde_json::Value as JsonValue;
use statehouse::Statehouse;
use statehouse::shell::Suggested;
use tower::ServiceExt;
use wire::routes::{ALL, Found, Scope, find};

use crate::exit::{Exit, Failure};
use crate::raw_json;
use crate::remote::Remote;

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    method: Method,
    path: String,
    query: Vec<(&'static str, String)>,
    headers: Vec<(&'static str, String)>,
    body: Option<JsonValue>,
    /// How long the answer may take on top of the usual.
    wait: Duration,
}

impl Call {
    pub(crate) fn new(method: Method, path: impl Into<String>) -> Self {
        let path = path.into();
        Self { method, path, query: Vec::new(), headers: Vec::new(), body: None, wait: Duration::ZERO }
    }

    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    pub(crate) fn post(path: impl Into<String>, body: JsonValue) -> Self {
        Self::new(Method::POST, path).body(body)
    }

    /// A parameter; none is left out.
    pub(crate) fn query(mut self, name: &'static str, value: Option<impl ToString>) -> Self {
        self.query.extend(value.map(|value| (name, value.to_string())));
        self
    }

    /// A header; none is left out.
    pub(crate) fn header(mut self, name: &'static str, value: Option<impl ToString>) -> Self {
        self.headers.extend(value.map(|value| (name, value.to_string())));
        self
    }

    pub(crate) fn body(mut self, body: JsonValue) -> Self {
        self.body = Some(body);
        self
    }

    pub(crate) fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    fn target(&self) -> String {
        let mut target = self.path.clone();
        for (place, (name, value)) in self.query.iter().enumerate() {
            target.push(if place == 0 { '?' } else { '&' });
            target.push_str(name);
            target.push('=');
            target.push_str(&escaped(value, false));
        }
        target
    }
}

/// A path of the API: a fixed part, and a name that is the rest.
pub(crate) fn path(fixed: &str, name: &str) -> String {
    format!("{fixed}/{}", escaped(name, true))
}

/// Everything but what stands for itself in a URL is escaped.
pub(crate) fn escaped(text: &str, slashes_stay: bool) -> String {
    let mut url = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => url.push(byte as char),
            b'/' if slashes_stay => url.push('/'),
            _ => url.push_str(&format!("%{byte:02X}")),
        }
    }
    url
}

/// An answer.
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Reply {
    /// The body as JSON.
    pub(crate) fn json(&self) -> Result<JsonValue, Failure> {
        if self.body.is_empty() {
            return Ok(JsonValue::Null);
        }
        raw_json::parse(&String::from_utf8_lossy(&self.body)).map_err(|error| {
            Failure::new(Exit::Unavailable, format!("the answer ({}) is not JSON: {error}", self.status))
                .run("check that --url names a statehouse server", Suggested::new(["statehouse", "status"]))
        })
    }
}

enum To {
    Remote(Remote),
    Directory { house: Statehouse, router: Box<axum::Router> },
}

/// See the module.
pub(crate) struct Connection {
    to: To,
    space: Option<String>,
    branch: Option<String>,
    group: Option<String>,
}

impl Connection {
    pub(crate) fn remote(url: &str, timeout: Duration) -> Result<Self, Failure> {
        Ok(Self::over(To::Remote(Remote::new(url, timeout)?)))
    }

    /// Opens a directory that exists; a command never makes one.
    pub(crate) fn directory(directory: &Path) -> Result<Self, Failure> {
        if !directory.is_dir() {
            return Err(Failure::new(Exit::NotFound, format!("there is no directory {}", directory.display()))
                .run("make one, and serve it", serve_command(directory)));
        }
        let house = Statehouse::open(directory)?;
        let router = Box::new(server::router(server::Server::new(house.clone())));
        Ok(Self::over(To::Directory { house, router }))
    }

    fn over(to: To) -> Self {
        Self { to, space: None, branch: None, group: None }
    }

    pub(crate) fn in_place(mut self, space: Option<String>, branch: Option<String>, group: Option<String>) -> Self {
        (self.space, self.branch, self.group) = (space, branch, group);
        self
    }

    /// The group that was asked for.
    pub(crate) fn group(&self) -> Option<&str> {
        self.group.as_deref()
    }

    pub(crate) fn is_remote(&self) -> bool {
        matches!(self.to, To::Remote(_))
    }

    /// What it talks to, for people.
    pub(crate) fn named(&self) -> String {
        match &self.to {
            To::Remote(remote) => remote.url(),
            To::Directory { .. } => "a directory of this machine".to_owned(),
        }
    }

    /// Sends a request; a refusal is a failure.
    pub(crate) async fn ask(&self, call: Call) -> Result<JsonValue, Failure> {
        let reply = self.exchange(call).await?;
        let status = reply.status;
        match status.is_success() {
            true => reply.json(),
            false => Err(Failure::refused(status, reply.json()?)),
        }
    }

    /// Sends a request, and gives what is there; nothing that is found is none.
    pub(crate) async fn find(&self, call: Call) -> Result<Option<JsonValue>, Failure> {
        match self.ask(call).await {
            Ok(found) => Ok(Some(found)),
            Err(failure) if failure.exit == Exit::NotFound => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Sends a request, and gives whatever is answered.
    pub(crate) async fn exchange(&self, call: Call) -> Result<Reply, Failure> {
        // A route refuses a place that means nothing to it.
        let scope = match find(call.method.as_str(), &call.path) {
            Found::Route(place, _) => ALL[place].scope,
            _ => Scope::Store,
        };
        let (branch, group) = (self.branch.as_ref(), self.group.as_ref());
        let call = call.query("branch", branch.filter(|_| scope >= Scope::Branch));
        let call = call.query("group", group.filter(|_| scope >= Scope::Group));
        let space = self.space.as_ref().filter(|_| scope >= Scope::Space);
        let call = call.header("statehouse-space", space.map(|space| escaped_header(space)).transpose()?);
        let mut request = Request::builder().method(call.method.clone()).uri(call.target());
        for (name, value) in &call.headers {
            request = request.header(*name, value);
        }
        if call.body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let body = call.body.as_ref().map(|body| Bytes::from(raw_json::text(body))).unwrap_or_default();
        let request = request.body(Full::new(body)).map_err(|error| Failure::usage(error.to_string()))?;
        match &self.to {
            To::Remote(remote) => remote.send(request, call.wait).await,
            To::Directory { router, .. } => {
                let answered = router.as_ref().clone().oneshot(request.map(Body::new)).await;
                let response = answered.unwrap_or_else(|never| match never {});
                let (parts, body) = response.into_parts();
                let body = body.collect().await.map_err(|error| Failure::other(error.to_string()))?.to_bytes();
                Ok(Reply { status: parts.status, headers: parts.headers, body })
            }
        }
    }

    /// Closes a directory that was opened.
    pub(crate) async fn close(self) -> Result<(), Failure> {
        let To::Directory { house, router } = self.to else {
            return Ok(());
        };
        drop(router);
        let closed = tokio::task::spawn_blocking(move || house.close()).await;
        closed.map_err(|error| Failure::other(error.to_string()))?.map_err(Failure::from)
    }
}

/// What serves a directory.
pub(crate) fn serve_command(directory: &Path) -> Suggested {
    Suggested::new(["statehouse", "serve"]).flag("--data", directory.to_string_lossy())
}

fn escaped_header(value: &str) -> Result<String, Failure> {
    match value.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
        true => Ok(value.to_owned()),
        false => Err(Failure::usage(format!("the space {value:?} cannot be named in a header"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_but_for_slashes() {
        assert_eq!(path("/v1/cells", "a/b c%é?"), "/v1/cells/a/b%20c%25%C3%A9%3F");
        let call = Call::get("/v1/cells").query("prefix", Some("a/b&c")).query("after", None::<u64>);
        assert_eq!(call.target(), "/v1/cells?prefix=a%2Fb%26c");
    }
}
