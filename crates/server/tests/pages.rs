//! Pages of origins that the operator has named, through a real socket: what a browser is told, and that it is told nothing else.

mod limited;
mod running;

use std::io::{Read, Write};
use std::time::Duration;

use limited::Served;
use running::Running;
use statehouse::Options;
use statehouse::access::{Grant, Principal};
use statehouse_server::Server;
use statehouse_server::gate::Hosts;

const APP: &str = "https://app.example";

fn hosts() -> Hosts {
    let mut hosts = Hosts::default();
    assert!(hosts.add_origin(APP) && hosts.add_origin("http://localhost:3000"));
    hosts
}

/// A server that asks for tokens, and the token of somebody who may do everything.
fn asking() -> (Served, String) {
    let running =
        Running::start(&Options::default(), |house| Server::new(house).answering_to(hosts()).asking_for_tokens());
    let principals = running.house.principals();
    principals.set(&Principal::new("root").granted(Grant::parse("admin@*").expect("a grant"))).expect("set");
    let token = principals.issue_token("root", Duration::from_secs(3_600)).expect("a token").to_text();
    (Served(running), token)
}

/// The head and the body of an answer, as text; the names of headers in small letters.
fn raw(served: &Served, line: &str, headers: &str) -> (u16, String, String) {
    let mut stream = served.connect();
    let request = format!("{line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    let lower = |line: &str| line.split_once(": ").map(|(name, value)| format!("{}: {value}", name.to_lowercase()));
    (status, head.lines().filter_map(lower).collect::<Vec<_>>().join("\n"), body.to_owned())
}

fn has(head: &str, line: &str) -> bool {
    head.lines().any(|said| said == line)
}

#[test]
fn a_preflight_is_answered_for_a_named_origin_only() {
    let (served, _) = asking();
    let ask = |origin: &str, more: &str| {
        raw(&served, "OPTIONS /v1/cells/c", &format!("{origin}access-control-request-method: PUT\r\n{more}"))
    };
    let app = format!("origin: {APP}\r\n");
    let browser = "access-control-request-headers: authorization,content-type,if-match\r\nsec-fetch-site: cross-site\r\nsec-fetch-mode: cors\r\n";
    let (status, head, body) = ask(&app, browser);
    assert_eq!((status, body.as_str()), (204, ""), "{head}");
    for line in [
        "access-control-allow-origin: https://app.example",
        "access-control-allow-methods: GET, HEAD, PUT, PATCH, POST, DELETE",
        "access-control-max-age: 600",
        "vary: Origin",
        "x-content-type-options: nosniff",
    ] {
        assert!(has(&head, line), "{line}: {head}");
    }
    let allowed = head.lines().find_map(|line| line.strip_prefix("access-control-allow-headers: ")).expect("headers");
    for header in ["authorization", "content-type", "if-match", "statehouse-session"] {
        assert!(allowed.split(", ").any(|allowed| allowed == header), "{header}: {allowed}");
    }
    assert!(!head.contains("credentials"), "{head}");

    for other in [
        "origin: https://evil.example\r\n",
        "origin: http://app.example\r\n",
        "origin: https://app.example:8443\r\n",
        "origin: https://app.example.evil.example\r\n",
        "origin: null\r\n",
        "origin: https://app.example\r\norigin: https://evil.example\r\n",
    ] {
        let (status, head, body) = ask(other, browser);
        assert_eq!(status, 403, "{other}");
        assert!(body.contains("SH-1061") && !head.contains("access-control"), "{other}: {head}");
    }
    // It asks for nothing: the server knows no such method.
    let (status, head, _) = raw(&served, "OPTIONS /v1/cells/c", &app);
    assert_eq!(status, 405, "{head}");
}

#[test]
fn a_page_of_a_named_origin_reads_and_writes_with_a_token_and_is_told_why_not_without() {
    let (served, token) = asking();
    let page = format!("origin: {APP}\r\nsec-fetch-site: cross-site\r\n");
    let with_token = format!("{page}authorization: Bearer {token}\r\n");
    let put = raw(&served, "PUT /v1/cells/c", &format!("{with_token}content-length: 1\r\n\r\n1"));
    assert_eq!(put.0, 201, "{put:?}");
    let (status, head, body) = raw(&served, "GET /v1/cells/c", &with_token);
    assert_eq!(status, 200, "{body}");
    assert!(has(&head, "access-control-allow-origin: https://app.example") && has(&head, "vary: Origin"), "{head}");
    let exposed = head.lines().find_map(|line| line.strip_prefix("access-control-expose-headers: ")).expect("headers");
    assert!(exposed.contains("etag") && exposed.contains("statehouse-request-id"), "{exposed}");
    assert!(!head.contains("credentials"), "{head}");

    // What is refused, the page may read too: it says what to do.
    let (status, head, body) = raw(&served, "GET /v1/cells/c", &page);
    assert_eq!(status, 401);
    assert!(body.contains("SH-6001") && has(&head, "access-control-allow-origin: https://app.example"), "{head}");
    // A page that names no origin, as an image does, is of nobody, token or not.
    for image in ["sec-fetch-site: cross-site\r\n".to_owned(), with_token.replace(APP, "https://evil.example")] {
        let (status, head, body) = raw(&served, "GET /v1/cells/c", &image);
        assert_eq!(status, 403, "{image}");
        assert!(body.contains("SH-1061") && !head.contains("access-control"), "{head}");
    }
    // The name of the server is checked first.
    let rebound = format!("GET /v1/cells/c HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n{with_token}\r\n");
    assert_eq!(parse_status(&served, &rebound), (421, "SH-1060".to_owned()));
    // Nothing is said to programs, which send no origin.
    let (status, head, _) = raw(&served, "GET /v1/cells/c", &format!("authorization: Bearer {token}\r\n"));
    assert!(status == 200 && !head.contains("access-control"), "{head}");
}

#[test]
fn a_server_that_asks_for_no_token_lets_no_page_in() {
    let served = Served(Running::start(&Options::default(), |house| Server::new(house).answering_to(hosts())));
    let page = format!("origin: {APP}\r\nsec-fetch-site: cross-site\r\n");
    for line in ["GET /v1/spaces", "PUT /v1/cells/c"] {
        let (status, head, body) = raw(&served, line, &page);
        assert_eq!(status, 403, "{line}");
        assert!(body.contains("SH-1061") && !head.contains("access-control"), "{line}: {head}");
    }
    let preflight = format!("{page}access-control-request-method: PUT\r\n");
    assert_eq!(raw(&served, "OPTIONS /v1/cells/c", &preflight).0, 403);
}

#[test]
fn origins_and_hosts_change_while_it_runs() {
    let (served, token) = asking();
    let of = |origin: &str| {
        raw(&served, "GET /v1/spaces", &format!("origin: {origin}\r\nauthorization: Bearer {token}\r\n")).0
    };
    assert_eq!((of(APP), of("https://new.example")), (200, 403));
    let mut hosts = Hosts::default();
    assert!(hosts.add_origin("https://new.example") && hosts.add("state.internal"));
    served.0.server.reloading().done(hosts, Vec::new());
    assert_eq!((of(APP), of("https://new.example")), (403, 200));
    let named = format!(
        "GET /v1/spaces HTTP/1.1\r\nhost: state.internal\r\nconnection: close\r\nauthorization: Bearer {token}\r\n\r\n"
    );
    assert_eq!(parse_status(&served, &named).0, 200);
}

fn parse_status(served: &Served, request: &str) -> (u16, String) {
    let answer = served.send(request);
    (answer.status, answer.code().to_owned())
}

#[test]
fn settings_that_were_refused_are_a_problem_until_they_are_taken() {
    let served = limited::served(|_| {});
    let problems = |name: &str| served.get("/status").body[name].clone();
    let reloading = served.0.server.reloading();
    reloading.refused("/etc/s.toml".as_ref(), "s.toml:2:1: x is not a setting\n  |".to_owned());
    let found = problems("problems");
    assert_eq!(found[0]["problem"], "settings_refused", "{found}");
    assert_eq!(found[0]["command"]["shell"], "statehouse config check --config=/etc/s.toml");
    assert!(found[0]["text"].as_str().is_some_and(|text| text.contains("x is not a setting")), "{found}");
    reloading.done(Hosts::default(), vec!["memory".to_owned()]);
    assert_eq!(problems("problems"), serde_json::json!([]));
    let notes = problems("notes");
    assert_eq!((&notes[0]["problem"], &notes[0]["object"]), (&"settings_wait".into(), &"memory".into()), "{notes}");
    let scraped = raw(&served, "GET /metrics", "").2;
    for line in ["statehouse_reloads_total{result=\"taken\"} 1", "statehouse_reloads_total{result=\"refused\"} 1"] {
        assert!(scraped.lines().any(|said| said == line), "{line}");
    }
}
