//! How a request travels to a server and its answer back: over TCP, with or without TLS, or another transport.

use std::error::Error as _;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::header::HOST;
use hyper::http::uri::{Authority, Scheme};
use hyper::{Request, Response, Uri};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use crate::tls::{self, TlsFiles};

/// The body of an answer, as it arrives.
pub type AnswerBody = http_body_util::combinators::UnsyncBoxBody<Bytes, BrokenBody>;
/// An answer to come.
pub type Answering<'transport> =
    Pin<Box<dyn Future<Output = Result<Response<AnswerBody>, Unanswered>> + Send + 'transport>>;

/// How long a server may take to accept a connection.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
/// How long to keep an idle connection; shorter than a server keeps it.
const IDLE_TIME_MAX: Duration = Duration::from_secs(30);
/// Idle connections to keep.
const IDLE_CONNECTIONS_MAX: usize = 32;

/// Why the body of an answer broke off.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BrokenBody(pub String);

/// Why no answer came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unanswered {
    /// What happened.
    pub cause: String,
    /// Whether the request may have reached the server.
    pub may_have_arrived: bool,
}

/// A transport to a server.
///
/// # Duties
/// - A request has a path and a query, and no authority: the transport knows where the server is.
/// - The head of the answer is returned once it is there, its body as it arrives.
/// - `may_have_arrived` is false only if the server cannot have seen the request.
pub trait Transport: Send + Sync + 'static {
    /// Sends a request.
    fn send(&self, request: Request<Bytes>) -> Answering<'_>;

    /// The server's address, for people.
    fn named(&self) -> String;

    /// Whether nobody but the server can read what is sent. Over a transport that does not say so, no token is sent, unless
    /// [`ClientOptions::token_without_tls`](crate::ClientOptions::token_without_tls) permits it.
    fn is_private(&self) -> bool {
        false
    }
}

/// A server reached over TCP, with or without TLS, and with persistent connections.
pub struct HttpTransport {
    scheme: Scheme,
    authority: Authority,
    client: legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    /// Whom it trusts, for people.
    authorities: String,
}

impl HttpTransport {
    /// The server at `http://HOST:PORT`, or at `https://HOST:PORT` if the system trusts the authority of its certificate.
    pub fn new(url: &str) -> Result<Self, String> {
        Self::with_tls(url, &TlsFiles::default())
    }

    /// The server at `http://HOST:PORT` or `https://HOST:PORT`, with files for the latter. They are read only if the URL needs them.
    pub fn with_tls(url: &str, files: &TlsFiles) -> Result<Self, String> {
        let (scheme, authority) = server_of(url)?;
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(CONNECT_TIME_MAX));
        let tls = if scheme == Scheme::HTTPS { files.config()? } else { tls::none()? };
        let client = legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIME_MAX)
            .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
            .build(HttpsConnector::from((connector, tls)));
        Ok(Self { scheme, authority, client, authorities: files.authorities() })
    }

    /// Where the server is: `HOST:PORT`.
    pub fn authority(&self) -> &str {
        self.authority.as_str()
    }

    fn unanswered(&self, error: &legacy::Error) -> Unanswered {
        match tls_error(error) {
            Some(tls) => {
                let (cause, may_have_arrived) = tls::cause(tls, &self.authorities);
                Unanswered { cause, may_have_arrived: may_have_arrived && !error.is_connect() }
            }
            None => Unanswered { cause: cause_of(error), may_have_arrived: !error.is_connect() },
        }
    }

    fn addressed(&self, request: Request<Bytes>) -> Result<Request<Full<Bytes>>, Unanswered> {
        let (mut parts, body) = request.into_parts();
        let mut uri = std::mem::take(&mut parts.uri).into_parts();
        uri.scheme = Some(self.scheme.clone());
        uri.authority = Some(self.authority.clone());
        let unsendable = |cause: String| Unanswered { cause, may_have_arrived: false };
        parts.uri = Uri::from_parts(uri).map_err(|error| unsendable(error.to_string()))?;
        let host =
            self.authority.as_str().parse().map_err(|_| unsendable("the host is not a valid header".to_owned()))?;
        // A request that names its own host keeps it, but is sent to this address.
        parts.headers.entry(HOST).or_insert(host);
        Ok(Request::from_parts(parts, Full::new(body)))
    }
}

impl Transport for HttpTransport {
    fn send(&self, request: Request<Bytes>) -> Answering<'_> {
        Box::pin(async move {
            let answered = self.client.request(self.addressed(request)?).await;
            match answered {
                Ok(response) => {
                    Ok(response.map(|body| body.map_err(|error| BrokenBody(error.to_string())).boxed_unsync()))
                }
                Err(error) => Err(self.unanswered(&error)),
            }
        })
    }

    fn named(&self) -> String {
        format!("{}://{}", self.scheme, self.authority)
    }

    /// Over TLS, or if the server is on this machine.
    fn is_private(&self) -> bool {
        self.scheme == Scheme::HTTPS || is_on_this_machine(self.authority.host())
    }
}

/// Whether a host is this machine, whatever a name server says.
fn is_on_this_machine(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    match address {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => host.eq_ignore_ascii_case("localhost"),
    }
}

/// `http://HOST:PORT`, with or without the scheme, or `https://HOST:PORT`; the default ports are 80 and 443.
fn server_of(url: &str) -> Result<(Scheme, Authority), String> {
    let (scheme, default_port, rest) = match url.split_once("://") {
        Some(("http", rest)) => (Scheme::HTTP, 80, rest),
        Some(("https", rest)) => (Scheme::HTTPS, 443, rest),
        Some((scheme, _)) => return Err(format!("{url}: {scheme} is not supported, only http and https")),
        None => (Scheme::HTTP, 80, url),
    };
    let rest = rest.trim_end_matches('/');
    let wrong = || format!("{url} is not a server address; write http://HOST:PORT or https://HOST:PORT");
    if rest.is_empty() || rest.contains(['/', '?', '#', '@', ' ']) {
        return Err(wrong());
    }
    let bare = rest.rsplit_once(']').map_or(rest, |(_, port)| port);
    let authority = if bare.contains(':') { rest.to_owned() } else { format!("{rest}:{default_port}") };
    authority.parse().map(|authority| (scheme, authority)).map_err(|_| wrong())
}

/// What TLS says, if it is what failed. It is inside of errors of input and output, which hide it from whoever asks for their source.
fn tls_error(error: &legacy::Error) -> Option<&rustls::Error> {
    let causes = std::iter::successors(error.source(), |cause| (*cause).source());
    let mut io = causes.filter_map(|cause| cause.downcast_ref::<std::io::Error>());
    io.find_map(|error| {
        let mut inner = error.get_ref();
        while let Some(found) = inner {
            if let Some(tls) = found.downcast_ref::<rustls::Error>() {
                return Some(tls);
            }
            inner = found.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        }
        None
    })
}

/// The root cause, in words that say where to look.
fn cause_of(error: &legacy::Error) -> String {
    let causes = || std::iter::successors(error.source(), |cause| (*cause).source());
    let io_kind = causes().filter_map(|cause| cause.downcast_ref::<std::io::Error>()).last().map(std::io::Error::kind);
    let last = causes().last().map_or_else(|| error.to_string(), ToString::to_string);
    if error.is_connect() {
        return match io_kind {
            Some(std::io::ErrorKind::ConnectionRefused) => "connection refused; nothing listens there".to_owned(),
            Some(std::io::ErrorKind::TimedOut) => {
                format!("no connection accepted within {} s", CONNECT_TIME_MAX.as_secs())
            }
            _ if causes().any(|cause| cause.to_string().contains("lookup")) => "no such host".to_owned(),
            _ => last,
        };
    }
    let http = || causes().filter_map(|cause| cause.downcast_ref::<hyper::Error>());
    // A server that speaks first is reported as a closed connection, with this as its cause.
    let spoke_first = causes().any(|cause| cause.to_string().contains("unexpected message"));
    if spoke_first || http().any(hyper::Error::is_parse) {
        return "connected, but the server does not speak HTTP".to_owned();
    }
    if http().any(|error| error.is_incomplete_message() || error.is_closed() || error.is_canceled()) {
        return "connected, but the connection closed before an answer came".to_owned();
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_a_host_and_a_port() {
        let authority = |url| server_of(url).map(|(_, authority)| authority.to_string()).ok();
        assert_eq!(authority("http://localhost:7420/"), Some("localhost:7420".into()));
        assert_eq!(authority("[::1]"), Some("[::1]:80".into()));
        assert_eq!((authority("https://a"), authority("ftp://a")), (Some("a:443".into()), None));
        assert!(server_of("https://a").is_ok_and(|(scheme, _)| scheme == Scheme::HTTPS));
        assert_eq!((authority(""), authority("http://a/b"), authority("http://u@a")), (None, None, None));
    }

    #[test]
    fn nobody_listens_over_tls_or_on_this_machine() {
        let is_private = |url: &str| HttpTransport::with_tls(url, &TlsFiles::default()).expect("a URL").is_private();
        for here in ["localhost:7420", "http://LocalHost", "127.0.0.1", "http://127.8.0.1:1", "[::1]:1"] {
            assert!(is_private(here), "{here}");
        }
        assert!(is_private("[::ffff:127.0.0.1]:1"), "the same address");
        for beyond in
            ["http://10.0.0.1", "state.internal:7420", "http://localhost.example", "[::]:1", "[2001:db8::1]:1"]
        {
            assert!(!is_private(beyond), "{beyond}");
        }
        assert!(is_on_this_machine("localhost") && !is_on_this_machine("127.0.0.1.example"));
    }

    async fn unanswered(url: String) -> Unanswered {
        let transport = HttpTransport::new(&url).expect("a URL");
        let request = Request::get("/version").body(Bytes::new()).expect("a request");
        transport.send(request).await.map(drop).expect_err("nobody answers")
    }

    #[tokio::test]
    async fn the_cause_of_silence_is_named() {
        use std::io::Write;
        use std::net::TcpListener;

        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let speaker = std::thread::spawn(move || {
            let (mut mail, _) = listener.accept().expect("a caller");
            mail.write_all(b"220 mail.example.org ESMTP\r\n").expect("written");
            let (closing, _) = listener.accept().expect("a caller");
            drop(closing);
        });
        let mail = unanswered(format!("http://{address}")).await;
        assert!(mail.cause.contains("does not speak HTTP"), "{mail:?}");
        let closed = unanswered(format!("http://{address}")).await;
        assert!(closed.cause.contains("closed before an answer") || closed.cause.contains("reset"), "{closed:?}");
        assert!(closed.may_have_arrived);
        speaker.join().expect("spoken");
        let refused = unanswered(format!("http://{address}")).await;
        assert_eq!(
            (refused.cause.contains("connection refused"), refused.may_have_arrived),
            (true, false),
            "{refused:?}"
        );
        // Longer than a label may be, so that no name server is queried, which could be slow.
        let nobody = unanswered(format!("http://{}.invalid:1", "x".repeat(64))).await;
        assert_eq!((nobody.cause.as_str(), nobody.may_have_arrived), ("no such host", false));
    }
}
