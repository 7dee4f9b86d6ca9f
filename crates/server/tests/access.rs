//! Who may do what, through a real socket: tokens, grants, sessions of principals, and what is recorded of it.

mod running;
mod served;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use running::Running;
use serde_json::{Value as JsonValue, json};
use served::eventually;
use statehouse::Options;
use statehouse::access::audit::AuditHead;
use statehouse::access::{Grant, Principal};
use statehouse_server::Server;
use testkit::http::{Request, Response};

const HOUR: Duration = Duration::from_secs(3_600);

struct Guarded {
    running: Running,
    root: String,
}

impl Guarded {
    fn start() -> Self {
        let running = Running::start(&Options::default(), |house| Server::new(house).asking_for_tokens());
        let root = token_of(&running, "root", &["admin@*"]);
        Self { running, root }
    }

    fn token(&self, principal: &str, grants: &[&str]) -> String {
        token_of(&self.running, principal, grants)
    }

    fn send(&self, token: &str, method: &'static str, path: &str, body: &JsonValue) -> Response {
        let request = Request::new(method, path).header("authorization", format!("Bearer {token}"));
        let request = if body.is_null() { request } else { request.body(body.to_string()) };
        self.running.client().send(request).expect("an answer")
    }

    fn said(&self, token: &str, method: &'static str, path: &str, body: &JsonValue) -> (u16, String) {
        said(&self.send(token, method, path, body))
    }
}

fn token_of(running: &Running, principal: &str, grants: &[&str]) -> String {
    let principals = running.house.principals();
    let grants = grants.iter().map(|grant| Grant::parse(grant).expect("a grant"));
    principals.set(&grants.fold(Principal::new(principal), Principal::granted)).expect("set");
    principals.issue_token(principal, HOUR).expect("a token").to_text()
}

/// The status of an answer, and the code if it is a refusal.
fn said(answer: &Response) -> (u16, String) {
    let code = || answer.json()["code"].as_str().unwrap_or_default().to_owned();
    (answer.status, if answer.status < 400 { String::new() } else { code() })
}

fn refused(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

#[test]
fn nobody_is_let_in_without_a_token_that_is_good() {
    let server = Guarded::start();
    let client = server.running.client();
    let unknown = |authorization: Option<&str>| {
        let request = Request::new("PUT", "/v1/cells/a").body("1");
        let request = authorization.iter().fold(request, |request, value| request.header("authorization", value));
        let answer = client.send(request).expect("an answer");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"), "{authorization:?}");
        said(&answer)
    };
    let revoked = server.token("revoked", &["admin@*"]);
    server.running.house.principals().revoke_token(&revoked[4..14]).expect("revoked");
    let bearer = |token: &str| format!("Bearer {token}");
    let garbage = bearer(&format!("sht_{}", "x".repeat(60)));
    let other = bearer(&statehouse::draw_token().expect("a token").to_text());
    for shown in
        [None, Some(""), Some("Bearer"), Some("Basic cm9vdA=="), Some(&garbage), Some(&other), Some(&bearer(&revoked))]
    {
        assert_eq!(unknown(shown.map(|text| text as &str)), refused(401, "SH-6001"), "{shown:?}");
    }
    assert_eq!(server.said(&server.root, "PUT", "/v1/cells/a", &json!(1)).0, 201);
    for open in ["/livez", "/readyz", "/startupz"] {
        assert_eq!(client.send(Request::get(open)).expect("an answer").status, 200, "{open}");
        let verbose = client.send(Request::get(format!("{open}?verbose=true"))).expect("an answer");
        assert_eq!(verbose.status, 401, "{open} with each check");
    }
}

#[test]
fn a_grant_permits_its_verbs_in_its_space_under_its_prefix() {
    let server = Guarded::start();
    assert_eq!(server.said(&server.root, "PUT", "/v1/spaces/shop", &JsonValue::Null).0, 201);
    let worker = server.token("worker", &["worker@default/records/jobs.", "read@default/cells/config/"]);
    let job = json!({ "type": "task", "fields": {} });
    for (method, path, body, status) in [
        ("PUT", "/v1/records/jobs.1", &job, 201),
        ("PUT", "/v1/records/other.1", &job, 403),
        ("PUT", "/v1/records/jobs.1?space=shop", &job, 403),
        ("PUT", "/v1/records/jobs.1?space=nowhere", &job, 403),
        ("POST", "/v1/claims", &json!({ "prefix": "jobs." }), 200),
        ("POST", "/v1/claims", &json!({ "prefix": "" }), 403),
        ("GET", "/v1/records?prefix=jobs.", &JsonValue::Null, 200),
        ("GET", "/v1/records", &JsonValue::Null, 403),
        ("GET", "/v1/cells/config%2Fa", &JsonValue::Null, 404),
        ("PUT", "/v1/cells/config%2Fa", &json!(1), 403),
        ("PUT", "/v1/guards/jobs.", &json!({}), 403),
        ("GET", "/metrics", &JsonValue::Null, 403),
        ("GET", "/v1/principals", &JsonValue::Null, 403),
    ] {
        let (found, code) = server.said(&worker, method, path, body);
        assert_eq!(found, status, "{method} {path}: {code}");
        assert_eq!(code == "SH-6002", status == 403, "{method} {path}: {code}");
    }
    let txn = |token: &str, operations: JsonValue| {
        server.said(token, "POST", "/v1/groups/jobs.2/txn", &json!({ "do": operations }))
    };
    let put = json!({ "op": "record.put", "name": "jobs.2", "fields": {} });
    let send = json!({ "op": "send", "group": "other", "do": [{ "op": "cell.set", "name": "a", "value": 1 }] });
    assert_eq!(txn(&worker, json!([put])).0, 200);
    assert_eq!(txn(&worker, json!([put, { "op": "cell.set", "name": "a", "value": 1 }])), refused(403, "SH-6002"));
    assert_eq!(txn(&worker, json!([put, send])), refused(403, "SH-6002"));
}

#[test]
fn who_it_is_and_what_it_may_do_can_be_asked() {
    let server = Guarded::start();
    let worker = server.token("worker", &["worker@default/records/jobs."]);
    let who = server.send(&worker, "GET", "/v1/whoami", &JsonValue::Null).json();
    assert_eq!((&who["principal"], &who["grants"]), (&json!("worker"), &json!(["worker@default/records/jobs."])));
    assert_eq!(who["token"]["token"], json!(worker[4..14]));
    let why = |token: &str, body: &JsonValue| server.send(token, "POST", "/v1/access", body).json();
    let claim = json!({ "verb": "claim", "area": "records", "name": "jobs.1" });
    assert_eq!(why(&worker, &claim)["allowed"], json!(true));
    assert_eq!(why(&worker, &json!({ "verb": "claim", "area": "records" }))["allowed"], json!(false));
    let other = json!({ "verb": "claim", "area": "records", "principal": "root" });
    assert_eq!(why(&worker, &other)["code"], json!("SH-6002"));
    assert_eq!(why(&server.root, &other)["grant"], json!("admin@*"));
    assert_eq!(why(&worker, &json!({ "verb": "clam", "area": "records" }))["code"], json!("SH-1030"));

    // It may have another token, and nobody else's.
    let issued = server.send(&worker, "POST", "/v1/principals/worker/tokens", &json!({}));
    let again = issued.json()["token"].as_str().expect("a token").to_owned();
    assert_eq!(server.said(&worker, "POST", "/v1/principals/worker/tokens", &json!({})), refused(409, "SH-6005"));
    assert_eq!(server.said(&worker, "POST", "/v1/principals/root/tokens", &json!({})), refused(403, "SH-6002"));
    let revoke =
        |token: &str, of: &str| server.said(token, "DELETE", &format!("/v1/tokens/{}", &of[4..14]), &JsonValue::Null);
    assert_eq!(revoke(&worker, &server.root), refused(403, "SH-6002"));
    assert_eq!(revoke(&again, &worker).0, 200);
    assert_eq!(server.said(&worker, "GET", "/v1/whoami", &JsonValue::Null), refused(401, "SH-6001"));
    assert_eq!(server.said(&again, "GET", "/v1/whoami", &JsonValue::Null).0, 200);
}

#[test]
fn a_session_is_of_its_principal_and_its_space() {
    let server = Guarded::start();
    server.send(&server.root, "PUT", "/v1/spaces/shop", &JsonValue::Null);
    let (one, other) = (server.token("one", &["writer@*"]), server.token("other", &["writer@*"]));
    let opened = server.send(&one, "POST", "/v1/sessions?space=default", &json!({})).json();
    let (session, secret) = (opened["session"].as_str().expect("one"), opened["secret"].as_str().expect("one"));
    let put = |token: &str, path: &str, request: &str| {
        let request = Request::new("PUT", path)
            .header("authorization", format!("Bearer {token}"))
            .header("statehouse-session", session)
            .header("statehouse-session-secret", secret)
            .header("statehouse-request", request)
            .body("1");
        let answer = server.running.client().send(request).expect("an answer");
        said(&answer)
    };
    assert_eq!(put(&one, "/v1/cells/a", "1").0, 201);
    assert_eq!(put(&other, "/v1/cells/a", "2"), refused(410, "SH-5004"), "it has the secret, and is not told");
    assert_eq!(put(&one, "/v1/cells/a?space=shop", "2"), refused(422, "SH-5008"));
    assert_eq!(put(&one, "/v1/cells/a", "2").0, 200);
}

#[test]
fn a_principal_sends_at_its_rate() {
    let server = Guarded::start();
    let worker = server.token("worker", &["worker@default"]);
    let principals = server.running.house.principals();
    let slow = Principal::new("worker").granted(Grant::parse("worker@default").expect("a grant"));
    principals.set(&Principal { requests_per_second_max: Some(1), ..slow }).expect("set");
    let found = [0; 5].map(|_| server.said(&worker, "GET", "/v1/whoami", &JsonValue::Null));
    assert_eq!(found[0].0, 200);
    assert!(found.contains(&refused(429, "SH-6007")), "{found:?}");
    assert_eq!(server.said(&server.root, "GET", "/v1/whoami", &JsonValue::Null).0, 200, "others are not concerned");
}

#[test]
fn what_the_store_keeps_for_itself_is_reached_by_no_other_route() {
    let server = Guarded::start();
    let hidden = |method, path: &str, body: &JsonValue| {
        assert_eq!(server.said(&server.root, method, path, body), refused(404, "SH-1005"), "{method} {path}");
    };
    hidden("GET", "/v1/runs?space=_statehouse", &JsonValue::Null);
    hidden("GET", "/v1/changes?space=_statehouse", &JsonValue::Null);
    hidden("GET", "/v1/export?space=_statehouse", &JsonValue::Null);
    hidden("PUT", "/v1/cells/a?space=_statehouse", &json!(1));
    hidden("PUT", "/v1/spaces/_statehouse", &JsonValue::Null);
    hidden("GET", "/v1/spaces/_statehouse/usage", &JsonValue::Null);
    let spaces = server.send(&server.root, "GET", "/v1/spaces", &JsonValue::Null).json();
    assert_eq!(spaces["spaces"], json!(["default"]));
}

#[test]
fn what_lasts_ends_when_its_token_is_revoked() {
    let server = Guarded::start();
    let worker = server.token("worker", &["worker@default"]);
    let waits = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let claim = json!({ "prefix": "jobs.", "wait": "60s" });
            server.send(&worker, "POST", "/v1/claims", &claim).status
        });
        // Each loop's pause is short beside the wait that is asked for.
        eventually("a claim waits", || server.running.server.load().waits.used() == 1);
        server.running.house.principals().revoke_token(&worker[4..14]).expect("revoked");
        eventually("it does not any more", || server.running.server.load().waits.used() == 0);
        waiting.join().expect("answered")
    });
    assert_eq!(waits, 200, "nothing was claimed, and it may ask again");
    assert_eq!(server.said(&worker, "POST", "/v1/claims", &json!({ "prefix": "jobs." })), refused(401, "SH-6001"));
}

#[test]
fn a_backup_is_cut_when_its_token_is_revoked() {
    let server = Guarded::start();
    let operator = server.token("operator", &["operator@*"]);
    // Far more than the system and the server hold for a client that does not read.
    let value = "x".repeat(1 << 20);
    for number in 0..16 {
        let name = format!("large-{number}");
        server.running.house.cells().set(&name, value.as_str()).expect("written");
    }
    let backup = || {
        let mut stream = TcpStream::connect(server.running.address).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
        let head = format!("GET /v1/backup HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {operator}\r\n\r\n");
        stream.write_all(head.as_bytes()).expect("sent");
        let mut first = vec![0; 1 << 16];
        stream.read_exact(&mut first).expect("it begins");
        assert!(first.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&first[..200]));
        stream
    };
    let mut cut = backup();
    server.running.house.principals().revoke_token(&operator[4..14]).expect("revoked");
    // One backup is taken at a time, and the client of the first reads nothing meanwhile.
    let by_root = || server.send(&server.root, "GET", "/v1/backup", &JsonValue::Null);
    eventually("the next one can be taken", || by_root().status == 200);
    let whole = by_root().body.len();
    let mut came = Vec::new();
    let ended = cut.read_to_end(&mut came);
    assert!(ended.is_err() || !came.ends_with(b"\r\n0\r\n\r\n"), "it must not look complete");
    assert!(came.len() < whole * 3 / 4, "{} of {whole} bytes came", came.len());
}

#[test]
fn the_audit_says_who_did_what_and_what_was_refused() {
    let server = Guarded::start();
    let (root, reader) = (&server.root, server.token("reader", &["reader@default"]));
    assert_eq!(server.said(root, "PUT", "/v1/spaces/shop", &JsonValue::Null).0, 201);
    assert_eq!(server.said(root, "GET", "/v1/export", &JsonValue::Null).0, 200);
    assert_eq!(server.said(&reader, "PUT", "/v1/cells/a", &json!("secret value")).0, 403);
    assert_eq!(server.said(&reader, "GET", "/v1/audit", &JsonValue::Null), refused(403, "SH-6002"));
    let read = || server.send(root, "GET", "/v1/audit", &JsonValue::Null).json();
    // Refusals are recorded beside the answers.
    eventually("both are recorded", || {
        let all = read();
        all["events"].as_array().expect("events").iter().filter(|event| event["decision"] == "denied").count() >= 2
    });
    let all = read();
    let said: Vec<String> = all["events"]
        .as_array()
        .expect("events")
        .iter()
        .map(|event| format!("{} {} {}", event["principal"], event["decision"], event["act"]).replace('"', ""))
        .collect();
    for expected in [
        "null done principals.set",
        "root done spaces.create",
        "root permitted export.create",
        "reader denied cells.put",
        "reader denied audit.get",
    ] {
        assert!(said.iter().any(|one| one == expected), "{expected}: {said:?}");
    }
    assert!(!all.to_string().contains("secret value"));
    let mut head = AuditHead::default();
    for event in server.running.house.audit().events(0, 1_000).expect("events") {
        head.check(&event).expect("each event names the one before it");
    }
    head.check_end(&server.running.house.audit().head().expect("a head")).expect("the last is the end");
}
