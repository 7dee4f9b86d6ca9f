//! Who may act as a session: every route that takes one, with every kind of secret. The routes come from the table of the
//! wire, the headers from the server's own document. Keeps: E7.

mod running;

use std::collections::BTreeSet;

use running::Running;
use serde_json::Value as JsonValue;
use statehouse::Options;
use statehouse::sessions::{Command, DecodeError, KvError, Pushes, UserCall, UserMachine, UserState, Writer};
use statehouse_server::Server;
use testkit::http::{Client, Request, Response};
use wire::routes::{ALL, Method, Route};

const SECRET: &str = "Statehouse-Session-Secret";

/// Answers nothing, to any command.
struct Silent;

struct Anything;

impl Command for Anything {
    type Response = ();

    fn encode(&self, _: &mut Writer) {}

    fn decode(_: &[u8]) -> Result<Self, DecodeError> {
        Ok(Self)
    }

    fn encode_response((): &(), _: &mut Writer) {}

    fn decode_response(_: &[u8]) -> Result<(), DecodeError> {
        Ok(())
    }
}

impl UserMachine for Silent {
    const NUMBER: u16 = 300;
    const VERSION: u16 = 1;
    type Command = Anything;

    fn apply(&self, _: &mut UserState<'_>, _: &UserCall, _: Anything, _: &mut Pushes) -> Result<(), KvError> {
        Ok(())
    }
}

fn started() -> Running {
    Running::start(&Options::default().machine(Silent), |house| Server::new(house).hosting::<Silent>())
}

/// A session and its secret, as an answer has them.
#[derive(Clone)]
struct Opened {
    session: String,
    secret: String,
}

fn open(client: &Client) -> Opened {
    let opened = client.call(Request::post("/v1/sessions").body(r#"{"timeout":"10m"}"#)).expect("a session").json();
    let text = |member: &str| opened[member].as_str().expect("text").to_owned();
    Opened { session: text("session"), secret: text("secret") }
}

/// What a request shows.
enum Shown {
    Own,
    Nothing,
    OfAnother,
    OfNobody,
    Malformed,
}

const ALL_SHOWN: [(Shown, &str); 5] = [
    (Shown::Own, "its own"),
    (Shown::Nothing, "none"),
    (Shown::OfAnother, "that of another session"),
    (Shown::OfNobody, "a wrong one"),
    (Shown::Malformed, "a malformed one"),
];

/// Cut short, in capitals, too long, and no hexadecimal digits.
fn malformed(secret: &str) -> [String; 5] {
    [secret[1..].to_owned(), secret.to_uppercase() + "A", format!("{secret}0"), "x".repeat(32), String::new()]
}

/// The bodies of the routes that take a session; none if it is not in this list. `HISTORY` is that of the store.
fn body_of(route: &Route) -> Option<&'static str> {
    Some(match route.name {
        "cells.put" | "cells.init" => "1",
        "state.command" => r#"{"StateSet":{"branch":"main","cell":"n","value":1}}"#,
        "records.put" => r#"{"fields":{"n":1}}"#,
        "records.patch" => r#"{"incr":{"n":1}}"#,
        "records.step" | "records.extend" | "records.release" | "records.complete" => r#"{"attempt":1}"#,
        "records.fail" => r#"{"attempt":1,"error":"e"}"#,
        "attempts.step" | "attempts.extend" | "attempts.release" | "attempts.complete" => {
            r##"{"token":"jobs.1#1#hHISTORY"}"##
        }
        "attempts.fail" => r##"{"token":"jobs.1#1#hHISTORY","error":"e"}"##,
        // Somebody who is refused does not wait, and keeps nothing alive meanwhile.
        "records.claim" => r#"{"prefix":"jobs.","worker":"w","wait":"100ms"}"#,
        "groups.own" => r#"{"worker":"w","wait":"100ms"}"#,
        "groups.extend" | "groups.release" => r##"{"token":"jobs.1#1#hHISTORY"}"##,
        "letters.retry" | "letters.drop" => r#"{"number":1}"#,
        "transactions.commit" => r#"{"do":[{"op":"cell.set","name":"t","value":1}]}"#,
        "runs.append" => r#"{"eventType":"A","idempotencyKey":"k"}"#,
        "runs.fork" => r#"{"as":"fork","at":1}"#,
        "maps.create" => r#"{"policy":"monotonic"}"#,
        "maps.update" => r#"{"updates":[{"op":"put","key":"k","value":1,"version":1}]}"#,
        "maps.commit" | "keyed.commit" => r#"{"number":1}"#,
        "maps.seal" => r#"{"version":1}"#,
        "maps.put_key" => "1",
        "keyed.acquire" => r#"{"worker":"w","wait":"100ms"}"#,
        "maps.delete" | "maps.delete_key" => "",
        "sessions.acknowledge" => r#"{"upto":0}"#,
        "sessions.request" => "command",
        "cells.delete" | "records.delete" | "runs.close" | "runs.delete" | "sessions.end" | "sessions.keepalive"
        | "sessions.pushes" => "",
        _ => return None,
    })
}

fn in_path(route: &Route) -> bool {
    route.path.contains("{session}")
}

/// Reading what a session is needs no secret.
fn acts_as_a_session(route: &Route) -> bool {
    route.numbered || in_path(route) && route.name != "sessions.get"
}

fn request(running: &Running, route: &Route, session: &str, number: u64, secret: Option<&str>) -> Request {
    let body = body_of(route).unwrap_or_else(|| panic!("{} takes a session: say with which body", route.name));
    let body = body.replace("HISTORY", &format!("{:016x}", running.house.id()));
    let path = route.at(&[if in_path(route) { session } else { "jobs.1" }, "0"]);
    let mut request = match route.method {
        Method::Get => Request::get(path),
        Method::Put => Request::put(path),
        Method::Patch => Request::patch(path),
        Method::Post => Request::post(path),
        Method::Delete => Request::delete(path),
    };
    if !body.is_empty() {
        request = request.body(body);
    }
    if ["maps.put_key", "maps.delete_key"].contains(&route.name) {
        request = request.query("version", 1);
    }
    if ["letters.retry", "letters.drop"].contains(&route.name) {
        request = request.query("group", "jobs.1");
    }
    if route.numbered {
        request = request.header("Statehouse-Session", session);
    }
    if route.numbered || route.name == "sessions.request" {
        request = request.header("Statehouse-Request", number);
    }
    match secret {
        Some(secret) => request.header(SECRET, secret),
        None => request,
    }
}

fn refused(response: &Response) -> (u16, String) {
    let body: JsonValue = serde_json::from_slice(&response.body).unwrap_or_default();
    (response.status, body["code"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn a_route_acts_as_a_session_for_whoever_shows_its_secret_and_for_nobody_else() {
    let running = started();
    let client = running.client();
    let other = open(&client);
    let applied = || running.house.status().expect("a status").applied_index;
    let mut routes = 0;
    for (route, number) in ALL.iter().filter(|route| acts_as_a_session(route)).zip(1..) {
        routes += 1;
        let own = open(&client);
        let sent = |secret: Option<&str>| {
            client.send(request(&running, route, &own.session, number, secret)).expect("an answer")
        };
        let state = || client.call(Request::get(format!("/v1/sessions/{}", own.session))).expect("a session").text();
        let (before, state_before) = (applied(), state());
        for (shown, what) in ALL_SHOWN.iter().rev() {
            let what = format!("{} with {what}", route.name);
            let expected = (403, "SH-5007".to_owned());
            match shown {
                Shown::Nothing => assert_eq!(refused(&sent(None)), expected, "{what}"),
                Shown::OfAnother => assert_eq!(refused(&sent(Some(&other.secret))), expected, "{what}"),
                Shown::OfNobody => assert_eq!(refused(&sent(Some(&"0".repeat(32)))), expected, "{what}"),
                Shown::Malformed => {
                    for malformed in malformed(&own.secret) {
                        let response = sent(Some(&malformed));
                        assert_eq!(refused(&response), (400, "SH-1030".into()), "{what}: {malformed}");
                        let said = response.text();
                        assert!(said.contains(SECRET) && (malformed.len() < 8 || !said.contains(&malformed)), "{said}");
                    }
                }
                Shown::Own => {
                    assert_eq!((applied(), state()), (before, state_before.clone()), "{}: nothing changed", route.name);
                    let (status, code) = refused(&sent(Some(&own.secret)));
                    let of_sessions = ["SH-5004", "SH-5007", "SH-1030", "SH-1032"].contains(&code.as_str());
                    assert!(!of_sessions && status < 500, "{what}: {status} {code}");
                }
            }
        }
        let unknown = client.send(request(&running, route, "s-999999", number, Some(&own.secret))).expect("an answer");
        let gone = if route.name == "sessions.end" { (200, String::new()) } else { (410, "SH-5004".to_owned()) };
        assert_eq!(refused(&unknown), gone, "{} of an unknown session", route.name);
    }
    assert!(routes >= 28, "{routes} routes");
}

#[test]
fn the_document_has_the_header_where_the_routes_take_it() {
    let running = started();
    let document = running.client().call(Request::get("/openapi.json")).expect("a document").json();
    let mut documented = BTreeSet::new();
    for operation in document["paths"]
        .as_object()
        .expect("paths")
        .values()
        .flat_map(|path| path.as_object().expect("operations").values())
    {
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        if parameters.into_iter().any(|parameter| parameter["name"] == SECRET && parameter["in"] == "header") {
            documented.insert(operation["operationId"].as_str().expect("a name").to_owned());
        }
    }
    let taking = ALL.iter().filter(|route| acts_as_a_session(route)).map(|route| route.name.to_owned());
    assert_eq!(documented, taking.collect());
}

#[test]
fn an_operator_ends_a_session_without_its_secret_only_by_force() {
    let running = started();
    let client = running.client();
    let (own, other) = (open(&client), open(&client));
    let end = |secret: Option<&str>, force: Option<&str>| {
        let mut request = Request::delete(format!("/v1/sessions/{}", own.session));
        if let Some(force) = force {
            request = request.query("force", force);
        }
        if let Some(secret) = secret {
            request = request.header(SECRET, secret);
        }
        client.send(request).expect("an answer")
    };
    for (secret, force) in [(None, None), (None, Some("false")), (Some(&other.secret), Some("true"))] {
        let response = end(secret.map(String::as_str), force);
        assert_eq!(refused(&response), (403, "SH-5007".into()), "{force:?}");
    }
    assert_eq!(end(None, Some("true")).json()["ended"], true);
    assert_eq!(end(None, Some("true")).json()["ended"], false);
    assert_eq!(end(None, None).json()["ended"], false, "it is gone, as everybody may see");
}

#[test]
fn no_answer_shows_a_secret_again() {
    let running = started();
    let client = running.client();
    let own = open(&client);
    let record = Request::put("/v1/records/jobs.1").body(r#"{"type":"task","fields":{}}"#);
    client.call(record).expect("a record");
    let claim = ALL.iter().find(|route| route.name == "records.claim").expect("a route");
    let claimed = client.send(request(&running, claim, &own.session, 1, Some(&own.secret))).expect("an answer");
    assert_eq!(claimed.json()["claimed"].as_array().map(Vec::len), Some(1));
    let reads = [
        format!("/v1/sessions/{}", own.session),
        "/v1/sessions".to_owned(),
        "/v1/records/jobs.1".to_owned(),
        "/v1/changes?from=c-0".to_owned(),
        "/v1/export".to_owned(),
        "/status".to_owned(),
        "/metrics".to_owned(),
    ];
    for path in reads {
        let response = client.send(Request::get(&path)).expect("an answer");
        assert_eq!(response.status, 200, "{path}");
        let said = format!("{:?} {}", response.headers, response.text());
        assert!(!said.contains(&own.secret) && !said.contains("secret"), "{path}: {said}");
    }
}
