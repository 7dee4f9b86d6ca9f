//! A server, reached by HTTP over one connection that is kept.
//!
//! Keeps: a failure names the last cause that is known before anything else, and says when a write may have happened all the same. Never:
//! sends a write a second time.

use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::SendRequest;
use hyper::header::HOST;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use statehouse::shell::Suggested;
use tokio::net::TcpStream;
use tokio::sync::Mutex;

use crate::connection::Reply;
use crate::exit::{Exit, Failure};

/// How long it may take until a server has accepted the connection.
const CONNECT: Duration = Duration::from_secs(5);
/// Bytes of an answer.
const ANSWER_BYTES_MAX: usize = 256 << 20;

/// A server, with one connection that is kept.
pub(crate) struct Remote {
    pub(crate) authority: String,
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

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.authority)
    }

    /// Why nothing came back.
    pub(crate) fn unreachable(&self, cause: &str) -> Failure {
        let failure = Failure::new(Exit::Unavailable, format!("cannot reach {}: {cause}", self.url()));
        failure.run("name another with --url, or start one here", Suggested::new(["statehouse", "dev"]))
    }

    /// A connection of its own.
    pub(crate) async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, Failure> {
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

    /// Sends a request over a connection of its own, and gives the head of the answer; its body is still to come.
    pub(crate) async fn begin(&self, mut request: Request<Full<Bytes>>) -> Result<Response<Incoming>, Failure> {
        self.address(&mut request)?;
        let answered = self.connect().await?.send_request(request).await;
        answered.map_err(|error| self.unreachable(&exchange_cause(&error)))
    }

    fn address(&self, request: &mut Request<Full<Bytes>>) -> Result<(), Failure> {
        let host = self.authority.parse().map_err(|_| Failure::usage(format!("{} is no host", self.authority)))?;
        request.headers_mut().insert(HOST, host);
        Ok(())
    }

    pub(crate) async fn send(&self, mut request: Request<Full<Bytes>>, wait: Duration) -> Result<Reply, Failure> {
        self.address(&mut request)?;
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
                Err(self.unreachable(&cause).run(
                    "ask again with a longer --timeout, or see how it is doing",
                    Suggested::new(["statehouse", "status"]),
                ))
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

/// Why no answer came over a connection.
fn exchange_cause(error: &hyper::Error) -> String {
    // One that speaks before it is asked is heard of as a connection that ended, with this behind it.
    let spoke_first = |error: &dyn std::error::Error| error.to_string().contains("unexpected message");
    if error.is_parse() || std::error::Error::source(error).is_some_and(spoke_first) || spoke_first(error) {
        return "connected, but what answers is not HTTP".to_owned();
    }
    if error.is_incomplete_message() || error.is_closed() || error.is_canceled() {
        return "connected, but the connection was closed before an answer came".to_owned();
    }
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::{Call, Connection};

    #[test]
    fn a_server_is_a_host_and_a_port() {
        let authority = |url| Remote::new(url, Duration::ZERO).map(|remote| remote.authority).ok();
        assert_eq!(authority("http://localhost:7420/"), Some("localhost:7420".into()));
        assert_eq!(authority("[::1]"), Some("[::1]:80".into()));
        assert_eq!(authority("https://a"), None);
        assert_eq!((authority(""), authority("http://a/b"), authority("http://u@a")), (None, None, None));
    }

    async fn cause_of(url: String) -> String {
        let connection = Connection::remote(&url, Duration::from_millis(900)).expect("a URL");
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
        assert!(cause_of(silent).await.contains("connected, but no answer within 900 ms"));
        drop(listener);

        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let speaker = std::thread::spawn(move || {
            let (mut mail, _) = listener.accept().expect("a caller");
            mail.write_all(b"220 mail.example.org ESMTP\r\n").expect("written");
            let (closing, _) = listener.accept().expect("a caller");
            drop(closing);
        });
        let mail = cause_of(format!("http://{address}")).await;
        assert!(mail.contains("not HTTP"), "{mail}");
        let closed = cause_of(format!("http://{address}")).await;
        assert!(closed.contains("closed before an answer") || closed.contains("reset"), "{closed}");
        speaker.join().expect("spoken");
        assert!(cause_of(format!("http://{address}")).await.contains("connection refused"));
        // Longer than a part of a name may be, so that no name server is asked, which may take its time.
        let nobody = cause_of(format!("http://{}.invalid:1", "x".repeat(64))).await;
        assert!(nobody.contains("no host has this name"), "{nobody}");
    }
}
