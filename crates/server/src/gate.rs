//! The gate: admits a request only if it is addressed to this server and was not sent by a page of another origin.
//!
//! A browser sends requests for any page to any address it can reach, including this machine. Headers that a page
//! cannot forge identify such requests:
//!
//! - `Host` is the name in the URL. A page can point a name of its own here (DNS rebinding), and its browser then
//!   treats it as our origin. The server therefore answers only to names that nobody else can own: IP addresses,
//!   `localhost`, and [`Hosts`] listed by the operator.
//! - `Origin` and `Sec-Fetch-Site` name the page that sent it. Requests of other origins are refused, including reads:
//!   some are expensive, or have effects. Probes and documentation are open to all, because they reveal nothing about
//!   the data. `pages`: origins that the operator has named, for a server that asks for tokens.
//!
//! Keeps: the gate comes before anything else, and every answer carries the headers of `harden`. Never: trusts
//! `Forwarded` or `X-Forwarded-Host`.

mod pages;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, HeaderName, HeaderValue, ORIGIN, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, Uri};
use wire::routes::{
    ALL, ERRORS_LIST, ERRORS_PAGE, Found, Route, SERVER_DOCS, SERVER_LIVE, SERVER_OPENAPI, SERVER_READY,
    SERVER_STARTED, find,
};

use crate::problem::Problem;
use pages::Origins;
pub(crate) use pages::Page;

static SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The maximum length of a host name, in bytes.
const NAME_BYTES_MAX: usize = 253;

/// The default policy: an answer may load nothing. Our own pages set what they need instead.
static NOTHING: HeaderValue =
    HeaderValue::from_static("default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
static NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");
static NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// The names that a server answers to, besides `localhost` and IP addresses, and the origins whose pages may send requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts {
    names: Vec<String>,
    origins: Origins,
}

impl Hosts {
    /// Adds a name; false if it is not a host name. Ports, addresses and patterns are not.
    ///
    /// ```
    /// let mut hosts = statehouse_server::gate::Hosts::default();
    /// assert!(hosts.add("state.internal"));
    /// assert!(!hosts.add("state.internal:7420") && !hosts.add("*.internal"));
    /// ```
    pub fn add(&mut self, name: &str) -> bool {
        let named = matches!(Authority::parse(name), Some(Authority { host: Host::Name(_), port: None }));
        if named {
            self.names.push(name.to_owned());
        }
        named
    }

    /// The names.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Adds an origin whose pages may send requests, with a token; false if it is no origin. Nothing comes of it where no token
    /// is asked for.
    ///
    /// ```
    /// let mut hosts = statehouse_server::gate::Hosts::default();
    /// assert!(hosts.add_origin("https://app.example"));
    /// assert!(!hosts.add_origin("app.example") && !hosts.add_origin("*"));
    /// ```
    pub fn add_origin(&mut self, origin: &str) -> bool {
        self.origins.add(origin)
    }

    /// The origins.
    pub fn origins(&self) -> &[String] {
        self.origins.names()
    }

    /// The page of a named origin that sent a request.
    pub(crate) fn page(&self, headers: &HeaderMap) -> Option<Page> {
        self.origins.page(headers)
    }

    /// Admits a request, or says why not. One that has come over TLS is of `https://`. It may have been sent by a `page` of a named origin.
    pub(crate) fn check(&self, parts: &Parts, is_over_tls: bool, page: Option<&Page>) -> Result<(), Problem> {
        let host = self.host(parts, is_over_tls)?;
        if page.is_some() || is_open(&parts.method, parts.uri.path()) {
            return Ok(());
        }
        self.check_page(&parts.headers, host, is_over_tls)
    }

    /// The host that a request is addressed to.
    fn host<'parts>(&self, parts: &'parts Parts, is_over_tls: bool) -> Result<Authority<'parts>, Problem> {
        let refuse = |reason: String| Problem::other_host(&reason);
        if parts.method == Method::CONNECT || !parts.uri.path().starts_with('/') {
            return Err(refuse(format!("the request's target is {:?}, not a path", parts.uri.to_string())));
        }
        let mut given = parts.headers.get_all(HOST).iter();
        let (Some(value), None) = (given.next(), given.next()) else {
            return Err(refuse("there must be exactly one Host header".to_owned()));
        };
        let shown = String::from_utf8_lossy(value.as_bytes());
        let host = value.to_str().ok().and_then(Authority::parse);
        let host = host.ok_or_else(|| refuse(format!("Host is {shown:?}, which is not a host")))?;
        if !self.is_ours(host.host) {
            return Err(refuse(format!("Host is {shown:?}")));
        }
        if !agrees(&parts.uri, host, is_over_tls) {
            return Err(refuse(format!("Host is {shown:?}, the request's target is {:?}", parts.uri.to_string())));
        }
        Ok(host)
    }

    fn is_ours(&self, host: Host<'_>) -> bool {
        match host {
            Host::Address(_) => true,
            Host::Name(name) => name.eq_ignore_ascii_case("localhost") || self.is_listed(name),
        }
    }

    fn is_listed(&self, name: &str) -> bool {
        self.names.iter().any(|listed| listed.eq_ignore_ascii_case(name))
    }

    /// Refuses a request sent by a page of another origin.
    fn check_page(&self, headers: &HeaderMap, host: Authority<'_>, is_over_tls: bool) -> Result<(), Problem> {
        for site in headers.get_all(&SEC_FETCH_SITE) {
            if !matches!(site.as_bytes(), b"none" | b"same-origin") {
                return Err(Problem::other_origin("Sec-Fetch-Site", &String::from_utf8_lossy(site.as_bytes())));
            }
        }
        for origin in headers.get_all(ORIGIN) {
            if !origin.to_str().is_ok_and(|origin| self.is_same_origin(origin, host, is_over_tls)) {
                return Err(Problem::other_origin("Origin", &String::from_utf8_lossy(origin.as_bytes())));
            }
        }
        Ok(())
    }

    /// Whether an origin belongs to a host. A TLS proxy may be in front of a listed name. What comes over TLS itself was not sent by a
    /// page without: whoever is between a browser and such a page writes it.
    fn is_same_origin(&self, origin: &str, host: Authority<'_>, is_over_tls: bool) -> bool {
        let listed = matches!(host.host, Host::Name(name) if self.is_listed(name));
        let (rest, default_port) = match (origin.strip_prefix("http://"), origin.strip_prefix("https://")) {
            (Some(rest), _) if !is_over_tls => (rest, 80),
            (_, Some(rest)) if listed || is_over_tls => (rest, 443),
            _ => return false,
        };
        Authority::parse(rest).is_some_and(|origin| origin.is_same(host, default_port))
    }
}

/// Routes that pages of other origins may link to: they reveal nothing about the data.
const OPEN: &[Route] =
    &[SERVER_LIVE, SERVER_READY, SERVER_STARTED, SERVER_DOCS, SERVER_OPENAPI, ERRORS_LIST, ERRORS_PAGE];

fn is_open(method: &Method, path: &str) -> bool {
    let is_read = method == Method::GET || method == Method::HEAD;
    is_read && matches!(find("GET", path), Found::Route(place, _) if OPEN.contains(&ALL[place]))
}

/// Whether a target names no host, or the same host as `Host`.
fn agrees(uri: &Uri, host: Authority<'_>, is_over_tls: bool) -> bool {
    let (ours, default_port) = if is_over_tls { ("https", 443) } else { ("http", 80) };
    match (uri.scheme_str(), uri.authority()) {
        (None, None) => true,
        (Some(scheme), Some(target)) if scheme == ours => {
            Authority::parse(target.as_str()).is_some_and(|target| target.is_same(host, default_port))
        }
        _ => false,
    }
}

/// A host and its port, as in `Host` and in an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Authority<'text> {
    host: Host<'text>,
    port: Option<u16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Host<'text> {
    Address(IpAddr),
    Name(&'text str),
}

impl<'text> Authority<'text> {
    /// Reads `name`, `name:port`, `1.2.3.4:port` or `[::1]:port`; none if it is anything else.
    fn parse(text: &'text str) -> Option<Self> {
        let (host, rest) = match text.strip_prefix('[') {
            Some(text) => {
                let (address, rest) = text.split_once(']')?;
                (Host::Address(IpAddr::V6(address.parse::<Ipv6Addr>().ok()?)), rest)
            }
            None => {
                let (name, rest) = text.split_at(text.find(':').unwrap_or(text.len()));
                (Host::parse(name)?, rest)
            }
        };
        let port = match rest.strip_prefix(':') {
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => Some(digits.parse().ok()?),
            None if rest.is_empty() => None,
            _ => return None,
        };
        Some(Self { host, port })
    }

    fn is_same(self, other: Authority<'_>, default_port: u16) -> bool {
        let same_host = match (self.host, other.host) {
            (Host::Name(one), Host::Name(other)) => one.eq_ignore_ascii_case(other),
            (one, other) => one == other,
        };
        same_host && self.port.unwrap_or(default_port) == other.port.unwrap_or(default_port)
    }
}

impl<'text> Host<'text> {
    fn parse(name: &'text str) -> Option<Self> {
        if let Ok(address) = name.parse::<Ipv4Addr>() {
            return Some(Self::Address(IpAddr::V4(address)));
        }
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
        let named = !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.bytes().all(allowed);
        named.then_some(Self::Name(name))
    }
}

/// Adds headers that keep browsers from guessing the type of an answer and from running or framing it, and everybody
/// from storing it.
pub(crate) fn harden(headers: &mut HeaderMap) {
    headers.insert(X_CONTENT_TYPE_OPTIONS, NOSNIFF.clone());
    headers.insert(CACHE_CONTROL, NO_STORE.clone());
    headers.entry(CONTENT_SECURITY_POLICY).or_insert_with(|| NOTHING.clone());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_host(text: &str) -> bool {
        let mut hosts = Hosts::default();
        assert!(hosts.add("state.internal"));
        Authority::parse(text).is_some_and(|authority| hosts.is_ours(authority.host))
    }

    #[test]
    fn addresses_localhost_and_listed_names_are_ours() {
        for ours in ["127.0.0.1", "127.0.0.1:7420", "10.1.2.3:1", "[::1]", "[::1]:7420", "[::FFFF:127.0.0.1]:65535"] {
            assert!(is_host(ours), "{ours}");
        }
        for ours in ["localhost", "LOCALHOST:7420", "localhost:0", "state.internal", "State.Internal:443"] {
            assert!(is_host(ours), "{ours}");
        }
    }

    #[test]
    fn everything_else_is_not() {
        let names =
            ["", "evil.example", "localhost.", "localhost.evil.example", "evil.example:7420", "127.0.0.1.", "h"];
        let numbers = ["127.1", "2130706433", "0x7f.1", "0177.0.0.1", "127.0.0.1.nip.io", "::1", "::1:7420", "[::1"];
        let odd = ["[::1%lo]", "[::1%25lo]", "[127.0.0.1]", "[]", "[::1]x", "[::1]7420", "localhost:", "localhost:x"];
        let more =
            ["localhost:65536", "localhost:+1", "a@localhost", "localhost@evil.example", "local host", "localhost "];
        let rest = [
            "localhost,localhost",
            "localhost/",
            "localhost#",
            "localhost?",
            "http://localhost",
            "loc\u{e4}lhost",
            "*",
        ];
        for other in names.iter().chain(&numbers).chain(&odd).chain(&more).chain(&rest) {
            assert!(!is_host(other), "{other:?}");
        }
    }

    #[test]
    fn an_origin_is_the_same_by_scheme_host_and_port() {
        let mut hosts = Hosts::default();
        assert!(hosts.add("state.internal"));
        let of =
            |origin: &str, host: &str, tls| hosts.is_same_origin(origin, Authority::parse(host).expect("a host"), tls);
        let same = |origin: &str, host: &str| of(origin, host, false);
        assert!(of("https://localhost:7420", "localhost:7420", true) && of("https://10.1.2.3", "10.1.2.3:443", true));
        assert!(!of("http://localhost:7420", "localhost:7420", true) && !of("https://a", "localhost", true));
        assert!(same("http://localhost:7420", "localhost:7420") && same("http://LOCALHOST:7420", "localhost:7420"));
        assert!(same("http://127.0.0.1", "127.0.0.1:80") && same("http://[::1]:7420", "[0:0::1]:7420"));
        assert!(same("https://state.internal", "state.internal") && same("http://state.internal", "state.internal"));
        for origin in ["null", "", "http://", "http://localhost", "http://localhost:7421", "https://localhost:7420"] {
            assert!(!same(origin, "localhost:7420"), "{origin}");
        }
        for origin in
            ["http://127.0.0.1:7420", "http://localhost:7420/", "http://a@localhost:7420", "HTTP://localhost:7420"]
        {
            assert!(!same(origin, "localhost:7420"), "{origin}");
        }
        assert!(!same("https://state.internal:7420", "state.internal") && !same("file://", "localhost"));
    }

    #[test]
    fn only_reads_of_a_few_routes_are_open() {
        for path in ["/livez", "/readyz", "/startupz", "/docs", "/openapi.json", "/v1/errors", "/v1/errors/SH-1001"] {
            assert!(is_open(&Method::GET, path) && is_open(&Method::HEAD, path), "{path}");
            assert!(!is_open(&Method::POST, path) && !is_open(&Method::OPTIONS, path), "{path}");
        }
        for path in
            ["/", "/v1/errorsx", "/v1/errors/a/b", "/docs/", "/metrics", "/status", "/version", "/v1/cells/docs"]
        {
            assert!(!is_open(&Method::GET, path), "{path}");
        }
    }
}
