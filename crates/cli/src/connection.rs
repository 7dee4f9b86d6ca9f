//! How a command reaches a store: by HTTP, or by a directory that it opens itself.
//!
//! A directory is asked through the very routes that a server has, in this process, so that every command is written once, against the HTTP
//! API. Keeps: a failure names the last cause that is known (refused, no such host, no answer, not HTTP) before anything else, and
//! says so when a write may have happened all the same. Never: sends a write a second time.

mod streaming;

use std::path::Path;
use std::time::Duration;

use axum::body::Body;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1::SendRequest;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{HeaderMap, Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value as JsonValue;
use statehouse::Statehouse;
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tower::ServiceExt;

use crate::exit::{Exit, Failure};

/// How long it may take until a server has accepted the connection.
const CONNECT: Duration = Duration::from_secs(5);
/// Bytes of an answer.
const ANSWER_BYTES_MAX: usize = 256 << 20;

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
        serde_json::from_slice(&self.body).map_err(|error| {
            Failure::new(Exit::Unavailable, format!("the answer ({}) is not JSON: {error}", self.status))
                .next("check that --url names a statehouse server: `statehouse ctx check`")
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
                .next(format!("make one: `statehouse serve --data {}`", directory.display())));
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
        let call = call.query("branch", self.branch.as_ref()).query("group", self.group.as_ref());
        let call = call.header("statehouse-space", self.space.as_ref().map(|space| escaped_header(space)).transpose()?);
        let mut request = Request::builder().method(call.method.clone()).uri(call.target());
        for (name, value) in &call.headers {
            request = request.header(*name, value);
        }
        if call.body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let body = call.body.as_ref().map(|body| Bytes::from(body.to_string())).unwrap_or_default();
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

fn escaped_header(value: &str) -> Result<String, Failure> {
    match value.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
        true => Ok(value.to_owned()),
        false => Err(Failure::usage(format!("the space {value:?} cannot be named in a header"))),
    }
}

/// A server, with one connection that is kept.
pub(crate) struct Remote {
    authority: String,
    timeout: Duration,
    kept: Mutex<Option<SendRequest<Full<Bytes>>>>,
}

impl Remote {
    pub(crate) fn new(url: &str, timeout: Duration) -> Result<Self, Failure> {
        let authority = match url.split_once("://") {
            Some(("http", rest)) => rest,
            Some((scheme, _)) => {
                return Err(Failure::usage(format!("{url}: {scheme} is not spoken yet, only http"))
                    .next("give --url http://HOST:PORT"));
            }
            None => url,
        };
        let authority = authority.trim_end_matches('/');
        if authority.is_empty() || authority.contains(['/', '?', '#', '@', ' ']) {
            return Err(Failure::usage(format!("{url} is no server; write http://HOST:PORT")));
        }
        let bare = authority.rsplit_once(']').map_or(authority, |(_, rest)| rest);
        let authority = if bare.contains(':') { authority.to_owned() } else { format!("{authority}:80") };
        Ok(Self { authority, timeout, kept: Mutex::new(None) })
    }

    fn url(&self) -> String {
        format!("http://{}", self.authority)
    }

    /// Why nothing came back.
    fn unreachable(&self, cause: &str) -> Failure {
        let failure = Failure::new(Exit::Unavailable, format!("cannot reach {}: {cause}", self.url()));
        failure.next("see that a server runs there (`statehouse dev`), or name another with --url")
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, Failure> {
        let connected = tokio::time::timeout(CONNECT, TcpStream::connect(&self.authority)).await;
        let stream = match connected {
            Err(_) => {
                return Err(self.unreachable(&format!("nobody accepted a connection within {} s", CONNECT.as_secs())));
            }
            Ok(Err(error)) => return Err(self.unreachable(&connect_cause(&error))),
            Ok(Ok(stream)) => stream,
        };
        let _ = stream.set_nodelay(true);
        let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| self.unreachable(&exchange_cause(&error)))?;
        tokio::spawn(connection);
        Ok(sender)
    }

    pub(crate) async fn send(&self, mut request: Request<Full<Bytes>>, wait: Duration) -> Result<Reply, Failure> {
        let host = self.authority.parse().map_err(|_| Failure::usage(format!("{} is no host", self.authority)))?;
        request.headers_mut().insert(HOST, host);
        let changes_something = request.method() != Method::GET;
        let mut kept = self.kept.lock().await;
        let mut still_open = kept.take();
        if let Some(sender) = &mut still_open
            && sender.ready().await.is_err()
        {
            still_open = None;
        }
        let mut sender = match still_open {
            Some(sender) => sender,
            None => self.connect().await?,
        };
        let unknown = if changes_something { "; whether it was done is not known" } else { "" };
        let limit = self.timeout + wait;
        let exchanged = tokio::time::timeout(limit, async {
            let response = sender.send_request(request).await.map_err(|error| exchange_cause(&error))?;
            let (parts, body) = response.into_parts();
            let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
            let body = body.map_err(|error| format!("the answer broke off: {error}"))?.to_bytes();
            Ok::<_, String>(Reply { status: parts.status, headers: parts.headers, body })
        });
        match exchanged.await {
            Err(_) => {
                let cause = format!("connected, but no answer within {} ms{unknown}", limit.as_millis());
                Err(self.unreachable(&cause).next("ask again with a longer --timeout, or see `statehouse status`"))
            }
            Ok(Err(cause)) => Err(self.unreachable(&format!("{cause}{unknown}"))),
            Ok(Ok(reply)) => {
                *kept = Some(sender);
                Ok(reply)
            }
        }
    }
}

fn connect_cause(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::ConnectionRefused => "connection refused, nothing listens there".to_owned(),
        std::io::ErrorKind::TimedOut => "the connection timed out".to_owned(),
        std::io::ErrorKind::InvalidInput => "that is no host and port".to_owned(),
        _ if error.to_string().contains("lookup") => "no host has this name".to_owned(),
        _ => error.to_string(),
    }
}

fn exchange_cause(error: &hyper::Error) -> String {
    if error.is_parse() {
        return "connected, but what answers is not HTTP".to_owned();
    }
    if error.is_incomplete_message() || error.is_closed() || error.is_canceled() {
        return "connected, but the connection was closed before an answer came".to_owned();
    }
    error.to_string()
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

    #[test]
    fn a_server_is_a_host_and_a_port() {
        let authority = |url| Remote::new(url, Duration::ZERO).map(|remote| remote.authority).ok();
        assert_eq!(authority("http://localhost:7420/"), Some("localhost:7420".into()));
        assert_eq!(authority("[::1]"), Some("[::1]:80".into()));
        assert_eq!(authority("https://a"), None);
        assert_eq!((authority(""), authority("http://a/b"), authority("http://u@a")), (None, None, None));
    }

    async fn cause_of(url: String) -> String {
        let connection = Connection::remote(&url, Duration::from_millis(300)).expect("a URL");
        let failure = connection.ask(Call::get("/version")).await.expect_err("nobody answers");
        assert_eq!(failure.exit, Exit::Unavailable);
        failure.detail
    }

    #[tokio::test]
    async fn the_cause_of_silence_is_named() {
        use std::io::Write;
        use std::net::TcpListener;

        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let silent = format!("http://{}", listener.local_addr().expect("an address"));
        assert!(cause_of(silent).await.contains("connected, but no answer within 300 ms"));
        drop(listener);

        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let speaker = std::thread::spawn(move || {
            let (mut mail, _) = listener.accept().expect("a caller");
            mail.write_all(b"220 mail.example.org ESMTP\r\n").expect("written");
            let (closing, _) = listener.accept().expect("a caller");
            drop(closing);
        });
        assert!(cause_of(format!("http://{address}")).await.contains("not HTTP"));
        let closed = cause_of(format!("http://{address}")).await;
        assert!(closed.contains("closed before an answer") || closed.contains("reset"), "{closed}");
        speaker.join().expect("spoken");
        assert!(cause_of(format!("http://{address}")).await.contains("connection refused"));
        assert!(cause_of("http://no-such-host.invalid:1".into()).await.contains("no host has this name"));
    }
}
