//! What requests need, by the table of routes: each is sent by somebody who may do nothing, and is granted what is missing.

use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::http::Request;
use axum::http::header::AUTHORIZATION;
use axum::http::request::{Builder, Parts};
use axum::response::IntoResponse;
use contract::access::{Grant, Identity, Principal};
use serde_json::Value as JsonValue;
use statehouse::Statehouse;
use wire::values::SessionId;

use super::*;
use crate::Server;
use crate::http::head::{Head, PathNames};
use crate::http::table::{Found, find};
use crate::problem::Problem;
use crate::transport::{ClientCertificate, Peer, UNMAPPED_USER};

/// A server with one principal.
struct Asked {
    server: Server,
    token: String,
    _directory: tempfile::TempDir,
}

const SOMEBODY: &str = "somebody";

impl Asked {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let house = Statehouse::open(directory.path().join("house")).expect("a store");
        let principals = house.principals();
        principals.set(&Principal::new(SOMEBODY)).expect("a principal");
        let token = principals.issue_token(SOMEBODY, Duration::from_secs(3_600)).expect("a token");
        Self { server: Server::new(house), token: token.to_text(), _directory: directory }
    }

    /// What the table of routes says to a request, without its call.
    fn answer(&self, parts: &Parts, body: &str) -> Result<(), Problem> {
        let caller = Caller::of(Identification::Required, &parts.headers, &Peer::Tcp, &self.server.house)?;
        let Found::Entry(entry, path) = find(&parts.method, parts.uri.path()) else {
            panic!("{} is no route", parts.uri);
        };
        let path = PathNames::of(&path).expect("text");
        let head = Head::read(entry, path, parts, &self.server.history)?;
        let server = self.server.called_by(caller);
        entry.decode(&server, head, Bytes::copy_from_slice(body.as_bytes())).map(drop)
    }

    /// Everything that a request needs: grants what is missing, until nothing is.
    async fn needs(&self, request: Builder, body: &str) -> Vec<String> {
        let mut somebody = Principal::new(SOMEBODY);
        let request = request.header(AUTHORIZATION, format!("Bearer {}", self.token));
        let parts = request.body(Body::empty()).expect("a request").into_parts().0;
        let mut needs = Vec::new();
        loop {
            self.server.house.principals().set(&somebody).expect("a principal");
            let Err(problem) = self.answer(&parts, body) else {
                return needs;
            };
            let need = refused(problem).await["need"].as_str().expect("a need").to_owned();
            somebody = somebody.granted(grant_of(&need));
            assert!(!needs.contains(&need), "{need} was granted");
            needs.push(need);
        }
    }
}

async fn refused(problem: Problem) -> JsonValue {
    let body = to_bytes(problem.into_response().into_body(), usize::MAX).await.expect("a body");
    serde_json::from_slice(&body).expect("JSON")
}

/// The verb of a need, for everything in its area and its space.
fn grant_of(need: &str) -> Grant {
    let mut words = need.split(' ');
    let (verb, area) = (words.next().expect("a verb"), words.next().expect("an area"));
    let space = need.rsplit_once(" of space ").map_or("*", |(_, space)| space.trim_matches('"'));
    Grant::parse(&format!("{verb}@{space}/{area}")).expect(need)
}

fn request(line: &str) -> Builder {
    let (method, uri) = line.split_once(' ').expect("a method and a path");
    Request::builder().method(method).uri(uri)
}

/// Requests, and what each needs in the space `default`.
const IN_SPACE: &[(&str, &str, &[&str])] = &[
    ("GET /v1/cells?prefix=a", "", &[r#"list cells that begin with "a""#, r#"read cells that begin with "a""#]),
    ("GET /v1/cells?group=g", "", &[r#"list cells in group "g""#, r#"read cells in group "g""#]),
    ("HEAD /v1/cells/a?group=g", "", &[r#"read cells "a" in group "g""#]),
    ("PUT /v1/cells/a", "1", &[r#"write cells "a""#]),
    ("POST /v1/state/command", r#"{"StateGet":{"branch":"main","cell":"n"}}"#, &[r#"read cells "n" in group "state""#]),
    (
        "POST /v1/state/command",
        r#"{"StateCas":{"branch":"main","cell":"n","expected_counter":1,"value":2}}"#,
        &[r#"cas cells "n" in group "state""#],
    ),
    (
        "POST /v1/state/command",
        r#"{"StateSet":{"branch":"main","cell":"n","value":2}}"#,
        &[r#"write cells "n" in group "state""#],
    ),
    ("PATCH /v1/records/r", r#"{"set":{"a":1}}"#, &[r#"write records "r""#]),
    ("PATCH /v1/records/r", r#"{"incr":{"a":1}}"#, &[r#"write records "r""#, r#"read records "r""#]),
    ("PATCH /v1/records/r", r#"{"set":{"a":1},"expect":{"a":0}}"#, &[r#"cas records "r""#, r#"read records "r""#]),
    ("GET /v1/counts?prefix=jobs.", "", &[r#"list records that begin with "jobs.""#]),
    ("POST /v1/claims", r#"{"name":"r"}"#, &[r#"claim records "r""#]),
    ("POST /v1/claims", r#"{"prefix":"jobs."}"#, &[r#"claim records that begin with "jobs.""#]),
    ("POST /v1/attempts/fail", r#"{"token":"g#r#1#h00000000000000ab"}"#, &[r#"claim records "r" in group "g""#]),
    ("POST /v1/groups/g/own", "", &[r#"claim records "_statehouse.owner" in group "g""#]),
    ("GET /v1/groups/g/owner", "", &[r#"read records "_statehouse.owner" in group "g""#]),
    ("GET /v1/letters", "", &["list messages", "read messages"]),
    ("POST /v1/letters/drop?group=g", r#"{"number":1}"#, &[r#"operate messages "g" in group "g""#]),
    ("POST /v1/letters/drop", r#"{"number":1}"#, &["operate messages"]),
    ("GET /v1/runs/r/events", "", &[r#"read runs "r""#]),
    ("GET /v1/runs/r/events?follow=1s", "", &[r#"read runs "r""#, r#"watch runs "r""#]),
    ("GET /v1/runs/r/events?follow=true", "", &[r#"read runs "r""#, r#"watch runs "r""#]),
    ("GET /v1/runs/r/events?follow=false", "", &[r#"read runs "r""#]),
    ("POST /v1/runs/r/events", "{}", &[r#"append runs "r""#, r#"read runs "r""#]),
    ("POST /v1/runs/r/events?strict=true", "{}", &[r#"append runs "r""#]),
    ("POST /v1/runs/r/fork", r#"{"at":1,"as":"s"}"#, &[r#"read runs "r""#, r#"write runs "s" in group "r""#]),
    (
        "POST /v1/runs/r/fork?group=g",
        r#"{"at":1,"as":"s"}"#,
        &[r#"read runs "r" in group "g""#, r#"write runs "s" in group "g""#],
    ),
    ("PUT /v1/maps/m/keys/a%2Fb?version=1", "1", &[r#"write keyed "m""#]),
    ("GET /v1/keyed?prefix=w", "", &[r#"list keyed that begin with "w""#]),
    ("GET /v1/keyed/words", "", &[r#"list keyed that begin with "words/""#]),
    ("GET /v1/keyed/words/7/keys/a", "", &[r#"read keyed "words" in group "words/7""#]),
    ("POST /v1/keyed/words/7/acquire", "", &[r#"claim keyed "words" in group "words/7""#]),
    ("POST /v1/keyed/words/7/checkpoints", "", &[r#"snapshot keyed "words" in group "words/7""#]),
    (
        "POST /v1/keyed/words/7/commits",
        r#"{"number":1,"if":[{"cell":"c","exists":true}],"do":[{"op":"record.delete","name":"r"}]}"#,
        &[
            r#"write keyed "words" in group "words/7""#,
            r#"read cells "c" in group "words/7""#,
            r#"write records "r" in group "words/7""#,
        ],
    ),
    ("POST /v1/sessions", "", &["session sessions"]),
    ("POST /v1/sessions/1/requests", "", &["session sessions", r#"write sessions "default" in group "default""#]),
    (
        "GET /v1/changes?prefix=a",
        "",
        &[
            r#"watch cells that begin with "a""#,
            r#"watch records that begin with "a""#,
            r#"watch runs that begin with "a""#,
            r#"watch keyed that begin with "a""#,
            r#"watch messages that begin with "a""#,
        ],
    ),
    ("GET /v1/branches", "", &["read catalogue"]),
    ("DELETE /v1/branches/b", "", &["operate catalogue"]),
    ("PUT /v1/guards/a.", "{}", &[r#"operate catalogue that begin with "a.""#]),
];

/// Requests, and what each needs anywhere.
const ANYWHERE: &[(&str, &str, &[&str])] = &[
    ("GET /v1/cells/a?space=s", "", &[r#"read cells "a" of space "s""#]),
    ("PUT /v1/spaces/s/retention", "{}", &[r#"operate catalogue of space "s""#]),
    ("GET /v1/spaces/s/usage", "", &[r#"read catalogue of space "s""#]),
    ("PUT /v1/spaces/s", "", &["administer store of every space"]),
    ("GET /v1/export?space=s", "", &[r#"snapshot store of space "s""#]),
    ("GET /v1/export", "", &["snapshot store of every space"]),
    ("GET /v1/sessions", "", &["operate sessions of every space"]),
    ("GET /v1/sessions/1", "", &[]),
    ("DELETE /v1/sessions/1", "", &[]),
    ("DELETE /v1/sessions/1?force=true", "", &["operate sessions of every space"]),
    ("POST /v1/pushes/retry", r#"{"sent_before_us":1}"#, &["operate sessions of every space"]),
    ("GET /v1/limits", "", &["read store of every space"]),
    ("GET /status", "", &["read store of every space"]),
    ("GET /version", "", &[]),
    ("GET /readyz", "", &[]),
    ("GET /readyz?verbose", "", &["read store of every space"]),
    ("GET /v1/errors", "", &[]),
];

#[tokio::test]
async fn a_request_needs_what_it_names() {
    let asked = Asked::new();
    for (line, body, needs) in IN_SPACE {
        let needs: Vec<_> = needs.iter().map(|need| format!(r#"{need} of space "default""#)).collect();
        assert_eq!(asked.needs(request(line), body).await, needs, "{line} {body}");
    }
    for (line, body, needs) in ANYWHERE {
        assert_eq!(asked.needs(request(line), body).await, *needs, "{line} {body}");
    }
}

#[tokio::test]
async fn a_header_may_change_what_a_request_needs() {
    let asked = Asked::new();
    let put = || request("PUT /v1/cells/a");
    for (request, needs) in [
        (put().header("If-Match", "\"1\""), &[r#"cas cells "a" of space "default""#][..]),
        (put().header("If-None-Match", "*"), &[r#"cas cells "a" of space "default""#]),
        (put().header("Statehouse-Space", "s"), &[r#"write cells "a" of space "s""#]),
        (
            put().header("Statehouse-Force", "true"),
            &[r#"write cells "a" of space "default""#, r#"force cells "a" of space "default""#],
        ),
        (
            put().header("Statehouse-Session", SessionId(1).to_string()).header("Statehouse-Request", "1"),
            &[r#"write cells "a" of space "default""#, r#"session sessions of space "default""#],
        ),
        (
            request("GET /v1/runs/r/events").header("Accept", "text/event-stream"),
            &[r#"read runs "r" of space "default""#, r#"watch runs "r" of space "default""#],
        ),
        (
            request("GET /v1/runs/r/events").header("Prefer", "wait=1"),
            &[r#"read runs "r" of space "default""#, r#"watch runs "r" of space "default""#],
        ),
        (
            request("POST /v1/keyed/words/7/restore").header("Statehouse-Force", "true"),
            &[
                r#"restore keyed "words" in group "words/7" of space "default""#,
                r#"force keyed "words" in group "words/7" of space "default""#,
            ],
        ),
    ] {
        let shown = format!("{request:?}");
        let body = if request.method_ref().is_some_and(|method| method == "PUT") { "1" } else { "" };
        assert_eq!(asked.needs(request, body).await, needs, "{shown}");
    }
}

#[tokio::test]
async fn whoever_is_not_known_is_let_through_where_all_are() {
    let asked = Asked::new();
    for (line, let_through) in [
        ("GET /livez", true),
        ("GET /livez?verbose", false),
        ("GET /v1/errors/SH-1001", true),
        ("GET /version", false),
        ("GET /v1/sessions/1", false),
        ("GET /v1/cells/a", false),
    ] {
        let parts = request(line).body(()).expect("a request").into_parts().0;
        match asked.answer(&parts, "") {
            Ok(()) => assert!(let_through, "{line}"),
            Err(problem) => {
                assert_eq!((let_through, &refused(problem).await["code"]), (false, &"SH-6001".into()), "{line}")
            }
        }
    }
}

fn caller(asked: &Asked, peer: &Peer) -> Caller {
    let caller = Caller::of(Identification::Required, &axum::http::HeaderMap::new(), peer, &asked.server.house);
    caller.map_err(|_| "refused").expect("nothing was shown that is malformed")
}

#[test]
fn a_certificate_shows_exactly_one_principal_until_it_expires() {
    use std::time::SystemTime;

    let asked = Asked::new();
    let uri = |name: &str| Identity::parse(&format!("spiffe://example.org/{name}")).expect("a URI");
    let principals = asked.server.house.principals();
    principals.set(&Principal::new("one").known_as(uri("one")).known_as(uri("same"))).expect("set");
    principals.set(&Principal::new("two").known_as(uri("two")).known_as(Identity::User(7))).expect("set");
    let now = SystemTime::UNIX_EPOCH + Duration::from_micros(principals.now_us());
    let shown = |names: &[&str], not_after: SystemTime| {
        let uris = names.iter().map(|name| uri(name)).collect();
        caller(&asked, &Peer::Tls(Some(ClientCertificate { uris, not_after })))
    };
    let later = now + Duration::from_secs(60);
    assert!(shown(&["one"], later).is("one") && shown(&["none", "two"], later).is("two"));
    let stranger = |caller: Caller| match caller {
        Caller::Unknown(stranger) => stranger,
        known => panic!("{known:?}"),
    };
    assert_eq!(stranger(shown(&[], later)), Stranger::Certificate);
    assert_eq!(stranger(shown(&["none"], later)), Stranger::Certificate);
    assert_eq!(stranger(shown(&["one", "two"], later)), Stranger::Ambiguous);
    assert_eq!(stranger(shown(&["one", "same"], later)), Stranger::Ambiguous, "two URIs, whosever they are");
    assert!(matches!(stranger(shown(&["one"], now - Duration::from_secs(1))), Stranger::ExpiredCertificate { .. }));
    assert_eq!(stranger(caller(&asked, &Peer::Tls(None))), Stranger::Silent);
    assert_eq!(stranger(caller(&asked, &Peer::Tcp)), Stranger::Silent);
    assert!(caller(&asked, &Peer::User(7)).is("two"));
    assert_eq!(stranger(caller(&asked, &Peer::User(8))), Stranger::User(8));
    let nobody = Principal::new("nobody").known_as(Identity::User(UNMAPPED_USER));
    asked.server.house.principals().set(&nobody).expect("a principal");
    assert_eq!(stranger(caller(&asked, &Peer::User(UNMAPPED_USER))), Stranger::UnmappedUser, "it is everybody's");
}

#[tokio::test]
async fn a_wait_ends_when_the_certificate_of_its_sender_expires() {
    use std::time::SystemTime;

    let asked = Asked::new();
    let uri = Identity::parse("spiffe://example.org/one").expect("a URI");
    let principals = asked.server.house.principals();
    principals.set(&Principal::new("one").known_as(uri.clone())).expect("set");
    let not_after = SystemTime::UNIX_EPOCH + Duration::from_micros(principals.now_us()) + Duration::from_millis(400);
    let known = caller(&asked, &Peer::Tls(Some(ClientCertificate { uris: vec![uri], not_after })));
    let lasting = asked.server.called_by(known).for_as_long_as_permitted();
    tokio::select! {
        () = lasting.stopping.cancelled() => {}
        () = asked.server.lasting_requests.watch(&asked.server.house) => {}
    }
    assert!(
        Duration::from_micros(principals.now_us()) > not_after.duration_since(SystemTime::UNIX_EPOCH).expect("now")
    );
}
