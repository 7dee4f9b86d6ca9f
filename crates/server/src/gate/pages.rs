//! Pages of other origins that the operator has named: their preflights are answered, and they may read what their requests are
//! answered.
//!
//! Keeps: only origins that are named in full, one by one. A page shows a token itself, with every request; a browser never adds
//! anything on its own that counts (no cookies, no client certificates), so `Access-Control-Allow-Credentials` is never sent.
//! Never: lets a page in where no token is asked for.

use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, HeaderValue, ORIGIN, VARY,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};

use super::Authority;

/// What a page may send. A path that does not take it refuses it in words that the page can read.
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, PUT, PATCH, POST, DELETE");

/// The request headers that mean something to this server, besides those that every page may send.
const REQUEST_HEADERS: &str = "authorization, content-type, if-match, if-none-match, idempotency-key, prefer, last-event-id, \
     traceparent, statehouse-space, statehouse-session, statehouse-session-secret, statehouse-request, \
     statehouse-lowest-pending, statehouse-history, statehouse-owner, statehouse-force";

/// The headers of answers that a page may read.
const ANSWER_HEADERS: HeaderValue = HeaderValue::from_static(
    "etag, location, allow, retry-after, www-authenticate, statehouse-request-id, statehouse-history, statehouse-replayed, \
     statehouse-commit",
);

/// How long a browser may remember a preflight, in seconds: the longest that a removed origin goes on sending requests, all of
/// which are refused.
const PREFLIGHT_SECONDS: HeaderValue = HeaderValue::from_static("600");

/// Origins, as browsers write them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Origins(Vec<String>);

impl Origins {
    /// Adds an origin: a scheme, a host and perhaps a port. False if it is anything else.
    pub(super) fn add(&mut self, origin: &str) -> bool {
        let origin = origin.to_ascii_lowercase();
        let (scheme, rest, default_port) = match (origin.strip_prefix("https://"), origin.strip_prefix("http://")) {
            (Some(rest), _) => ("https", rest, 443),
            (_, Some(rest)) => ("http", rest, 80),
            _ => return false,
        };
        let Some(authority) = Authority::parse(rest) else { return false };
        // A browser leaves the usual port out.
        let usual = authority.port == Some(default_port);
        let host = if usual { rest.rsplit_once(':').map_or(rest, |(host, _)| host) } else { rest };
        self.0.push(format!("{scheme}://{host}"));
        true
    }

    pub(super) fn names(&self) -> &[String] {
        &self.0
    }

    /// The page that sent a request, if its origin is one of these.
    pub(super) fn page(&self, headers: &HeaderMap) -> Option<Page> {
        let mut given = headers.get_all(ORIGIN).iter();
        let (Some(origin), None) = (given.next(), given.next()) else { return None };
        let named = self.0.iter().any(|named| named.as_bytes() == origin.as_bytes());
        named.then(|| Page(origin.clone()))
    }
}

/// A page of a named origin.
#[derive(Clone, Debug)]
pub(crate) struct Page(HeaderValue);

impl Page {
    /// The answer to a preflight: what the page may send. None if the request is something else.
    pub(crate) fn preflight(&self, parts: &Parts) -> Option<Response> {
        if parts.method != Method::OPTIONS || !parts.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD) {
            return None;
        }
        let mut response = StatusCode::NO_CONTENT.into_response();
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(REQUEST_HEADERS));
        headers.insert(ACCESS_CONTROL_MAX_AGE, PREFLIGHT_SECONDS);
        Some(response)
    }

    /// Lets the page read an answer.
    pub(crate) fn permit(self, headers: &mut HeaderMap) {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, self.0);
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, ANSWER_HEADERS);
        headers.append(VARY, HeaderValue::from_static("Origin"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::head::OURS;

    #[test]
    fn an_origin_is_a_scheme_a_host_and_a_port() {
        let mut origins = Origins::default();
        for good in ["https://app.example", "http://localhost:3000", "HTTPS://App.Example:443", "http://[::1]:80"] {
            assert!(origins.add(good), "{good}");
        }
        assert_eq!(
            origins.names(),
            ["https://app.example", "http://localhost:3000", "https://app.example", "http://[::1]"]
        );
        for bad in
            ["*", "null", "", "app.example", "https://", "https://*.example", "https://a/", "ftp://a", "https://a@b"]
        {
            assert!(!origins.add(bad), "{bad}");
        }
    }

    #[test]
    fn only_the_same_bytes_are_a_named_origin() {
        let mut origins = Origins::default();
        assert!(origins.add("https://app.example"));
        let page = |given: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for origin in given {
                headers.append(ORIGIN, HeaderValue::from_static(origin));
            }
            origins.page(&headers).is_some()
        };
        assert!(page(&["https://app.example"]));
        for other in
            ["http://app.example", "https://app.example:8443", "https://app.example.evil", "https://app", "null"]
        {
            assert!(!page(&[other]), "{other}");
        }
        assert!(!page(&[]) && !page(&["https://app.example", "https://app.example"]));
    }

    #[test]
    fn a_page_may_send_every_header_of_ours() {
        for header in OURS {
            let header = header.to_ascii_lowercase();
            assert!(REQUEST_HEADERS.split(", ").any(|allowed| allowed == header), "{header}");
        }
    }
}
