//! Every parameter and every header that could change what a request means.

use testkit::http::{Client, Request};

use super::{Operation, Tally};

/// Headers that a request may carry, with valid values.
const HEADERS: &[(&str, &str)] = &[
    ("Idempotency-Key", "k"),
    ("If-Match", "\"7\""),
    ("If-None-Match", "*"),
    ("Prefer", "wait=0"),
    ("Last-Event-ID", "1"),
    ("Statehouse-Space", "none"),
];
/// Headers that no route honours.
const NEVER: &[(&str, &str, &str)] = &[
    ("If-Modified-Since", "Sun, 15 Nov 2026 10:00:00 GMT", "if-modified-since"),
    ("If-Unmodified-Since", "Sun, 15 Nov 2026 10:00:00 GMT", "if-unmodified-since"),
    ("If-Range", "\"7\"", "if-range"),
    ("Statehouse-Sesion", "s-1", "statehouse-sesion"),
    ("Statehouse-Group", "g", "statehouse-group"),
    ("Statehouse-Replayed", "true", "statehouse-replayed"),
];

pub(super) fn run(client: &Client, operation: &Operation, tally: &mut Tally) {
    parameters(client, operation, tally);
    headers(client, operation, tally);
    session(client, operation, tally);
}

fn parameters(client: &Client, operation: &Operation, tally: &mut Tally) {
    let mut refused = |request: Request, member: &str| tally.refused("parameter", client, request, member);
    for unknown in ["unexpected", "iff"] {
        refused(operation.request().query(unknown, 1), unknown);
    }
    let known = operation.parameters("query");
    for parameter in &known {
        let name = parameter["name"].as_str().expect("a name");
        for misspelt in [format!("{name}x"), name.to_uppercase(), name[..name.len() - 1].to_owned()] {
            refused(operation.request().query(&misspelt, 1), &misspelt);
        }
        let kind = parameter["schema"]["type"].as_str().unwrap_or_default();
        let good = match (kind, parameter["schema"]["pattern"].as_str().unwrap_or_default()) {
            ("boolean", _) => "false".to_owned(),
            ("integer", _) => "1".to_owned(),
            (_, pattern) if pattern.contains("(ms|s|m|h|d)") => "1s".to_owned(),
            (_, pattern) if pattern.contains("true|false") => "0s".to_owned(),
            (_, pattern) if pattern.starts_with("^s-") => "s-1".to_owned(),
            (_, pattern) if pattern.starts_with("^c-") => "c-0".to_owned(),
            (_, pattern) if pattern.starts_with("^[A-Za-z") => "YQ".to_owned(),
            _ => match parameter["schema"]["enum"].get(0).and_then(|word| word.as_str()) {
                Some(word) => word.to_owned(),
                None if name == "where" => "[]".to_owned(),
                None => "1".to_owned(),
            },
        };
        refused(operation.request().query(name, &good).query(name, &good), name);
        let bytes = Request::new(operation.method, format!("{}?{name}=%ff", operation.path));
        refused(bytes, name);
        let broken = Request::new(operation.method, format!("{}?{name}=%2", operation.path));
        refused(broken, name);
        if kind == "integer" {
            for wrong in ["one", "-1", "1.5", ""] {
                refused(operation.request().query(name, wrong), name);
            }
        }
        if kind == "boolean" {
            refused(operation.request().query(name, "perhaps"), name);
        }
    }
    for scope in ["space", "branch", "group"] {
        if !operation.honours("query", scope) {
            refused(operation.request().query(scope, "g"), scope);
        }
    }
    if operation.honours("query", "space") {
        let twice = operation.request().query("space", "default").header("Statehouse-Space", "default");
        refused(twice, "Statehouse-Space");
    }
}

fn headers(client: &Client, operation: &Operation, tally: &mut Tally) {
    for (name, value) in HEADERS {
        let honoured =
            operation.honours("header", name) || (*name == "Statehouse-Space" && operation.honours("query", "space"));
        if !honoured {
            tally.refused("header", client, operation.request().header(name, value), name);
            continue;
        }
        let twice = operation.request().header(name, value).header(name, value);
        tally.refused("header-twice", client, twice, name);
        let wrong = match *name {
            "If-Match" => &["*", "\"1\", \"2\"", "W/\"1\"", "\"+1\"", "one"][..],
            "If-None-Match" => &["\"1\"", "one"],
            "Prefer" => &["respond-async", "wait=10, respond-async", "wait=-1", "wait"],
            _ => &[],
        };
        for wrong in wrong {
            tally.refused("header", client, operation.request().header(name, wrong), name);
        }
    }
    for (name, value, member) in NEVER {
        tally.refused("header", client, operation.request().header(name, value), member);
    }
    if operation.honours("header", "If-Match") && operation.honours("header", "If-None-Match") {
        let both = operation.request().header("If-Match", "\"1\"").header("If-None-Match", "*");
        tally.refused("header", client, both, "If-None-Match");
    }
    let other = operation.request().header("Statehouse-History", "another");
    let answer = client.send(&other).expect("an answer");
    let held = answer.status == 412 && answer.json()["code"] == "SH-1034";
    tally.case("history", held, || format!("{}: {} {}", operation.name, answer.status, answer.text()));
    tally.case("history", answer.header("statehouse-history").is_some(), || format!("{} says none", operation.name));
}

/// A session's headers: honoured, or refused by name; and none without the other.
fn session(client: &Client, operation: &Operation, tally: &mut Tally) {
    let mut refused = |request: Request, member: &str| tally.refused("session", client, request, member);
    let shows = operation.honours("header", "Statehouse-Session-Secret");
    let shown = |secret: &str| operation.request().header("Statehouse-Session-Secret", secret);
    let well_formed = "000102030405060708090a0b0c0d0e0f";
    for wrong in [&well_formed[1..], "", "x", "000102030405060708090A0B0C0D0E0F", "000102030405060708090a0b0c0d0e0f0"] {
        let request = if operation.honours("header", "Statehouse-Session") {
            shown(wrong).header("Statehouse-Session", "s-999").header("Statehouse-Request", 1)
        } else {
            shown(wrong)
        };
        refused(request, "Statehouse-Session-Secret");
    }
    let needs_session = operation.honours("header", "Statehouse-Session");
    if !shows || needs_session {
        refused(shown(well_formed), "Statehouse-Session-Secret");
    }
    let honoured = operation.honours("header", "Statehouse-Session");
    let numbered = operation.honours("header", "Statehouse-Request");
    let in_session = operation.request().header("Statehouse-Session", "s-999").header("Statehouse-Request", 1);
    if !honoured {
        refused(in_session.clone(), "Statehouse-Session");
    }
    if !numbered {
        refused(operation.request().header("Statehouse-Request", 1), "Statehouse-Request");
        refused(operation.request().header("Statehouse-Lowest-Pending", 1), "Statehouse-Lowest-Pending");
        return;
    }
    if honoured {
        refused(operation.request().header("Statehouse-Request", 1), "Statehouse-Request");
        refused(operation.request().header("Statehouse-Lowest-Pending", 1), "Statehouse-Lowest-Pending");
        refused(operation.request().header("Statehouse-Session", "s-999"), "Statehouse-Request");
        for wrong in ["999", "s-", "s-01", "s--1", "x"] {
            let request = operation.request().header("Statehouse-Session", wrong).header("Statehouse-Request", 1);
            refused(request, "Statehouse-Session");
        }
    }
    for wrong in ["one", "-1", "+1", ""] {
        let request = operation.request().header("Statehouse-Request", wrong);
        let request = if honoured { request.header("Statehouse-Session", "s-999") } else { request };
        refused(request, "Statehouse-Request");
    }
}
