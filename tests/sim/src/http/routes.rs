//! A tour over every route, against a server process: each is called so that it does what it is for, and what it answers
//! is looked at. Which routes there are, the server says itself at `/openapi.json`.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value as JsonValue, json};
use statehouse::sessions::UserMachine;
use testkit::http::routes::{Called, Route};
use testkit::http::{Client, Request, Response};
use wire::values::SessionId;

use super::tally_machine::TallyMachine;

/// Calls every route; gives how many there are and those that were never called with success.
pub(super) fn tour(client: &Client, called: &Arc<Called>) -> (usize, Vec<Route>) {
    let tour = Tour { client };
    tour.cells();
    tour.records();
    tour.attempts();
    tour.runs();
    tour.sessions();
    tour.transactions_and_changes();
    tour.catalogue();
    tour.backup();
    tour.health();
    let routes = routes(&tour.get("/openapi.json"));
    (routes.len(), called.missing(&routes))
}

/// The routes of an OpenAPI document.
fn routes(document: &JsonValue) -> Vec<Route> {
    let paths = document["paths"].as_object().expect("paths").iter();
    let of_path = |(template, item): (&String, &JsonValue)| {
        let methods = item
            .as_object()
            .expect("methods")
            .keys()
            .filter(|method| ["get", "head", "put", "post", "patch", "delete"].contains(&method.as_str()));
        let route = |method: &String| Route { method: method.to_uppercase(), template: template.clone() };
        methods.map(route).collect::<Vec<_>>()
    };
    paths.flat_map(of_path).collect()
}

struct Tour<'client> {
    client: &'client Client,
}

impl Tour<'_> {
    fn send(&self, request: Request) -> Response {
        let said = format!("{} {}", request.method, request.path);
        let response = self.client.send(request).expect("an answer");
        assert!(response.is_success(), "{said}: {} {}", response.status, response.text());
        response
    }

    fn json(&self, request: Request) -> JsonValue {
        self.send(request).json()
    }

    fn get(&self, path: &str) -> JsonValue {
        self.json(Request::get(path))
    }

    fn post(&self, path: &str, body: JsonValue) -> JsonValue {
        self.json(Request::post(path).body(body.to_string()))
    }

    fn put(&self, path: &str, body: JsonValue) -> JsonValue {
        self.json(Request::put(path).body(body.to_string()))
    }

    fn cells(&self) {
        let made = self.send(Request::put("/v1/cells/tour/a").body("\"red\""));
        assert_eq!((made.status, made.header("etag")), (201, Some("\"1\"")));
        assert_eq!(self.put("/v1/cells/tour/a", json!({ "b": 1 }))["version"], 2);
        assert_eq!(self.get("/v1/cells/tour/a")["value"], json!({ "b": 1 }));
        let head = self.send(Request::new("HEAD", "/v1/cells/tour/a"));
        assert_eq!((head.header("etag"), head.body.len()), (Some("\"2\""), 0));
        assert_eq!(self.get("/v1/cells/tour/a?at=1")["value"], "red");
        assert_eq!(self.get("/v1/cells/tour/a?view=history")["versions"].as_array().map(Vec::len), Some(2));
        assert_eq!(self.get("/v1/cells?prefix=tour/")["cells"][0]["name"], "tour/a");
        assert_eq!(self.json(Request::delete("/v1/cells/tour/a"))["version"], 3);
        assert_eq!(self.post("/v1/cells/tour/init", json!(1))["created"], true);
        let again = self.post("/v1/cells/tour/init", json!(2));
        assert_eq!((&again["created"], &again["version"]), (&json!(false), &json!(1)));
        let command = |command: JsonValue| self.post("/v1/state/command", command);
        let of = |value: u64| json!({ "branch": "main", "cell": "tour", "value": value });
        assert_eq!(command(json!({ "StateInit": of(1) })), json!({ "Version": 1 }));
        assert_eq!(command(json!({ "StateSet": of(2) })), json!({ "Version": 2 }));
        let swap = json!({ "branch": "main", "cell": "tour", "expected_counter": 1, "value": 3 });
        assert_eq!(command(json!({ "StateCas": swap })), json!({ "MaybeVersion": null }));
        let cell = json!({ "branch": "main", "cell": "tour" });
        assert_eq!(command(json!({ "StateGet": cell })), json!({ "Maybe": 2 }));
        let versions = command(json!({ "StateGetv": cell }));
        let newest = &versions["MaybeVersions"][0];
        assert_eq!((&newest["value"], &newest["version"]), (&json!(2), &json!(2)));
        assert!(newest["updated_at"].as_u64().is_some_and(|us| us > 1_600_000_000_000_000), "{newest}");
    }

    fn records(&self) {
        self.put("/v1/records/tour.r", json!({ "fields": { "n": 1, "color": "red" }, "ttl": "10m" }));
        let patch = json!({ "set": { "color": "blue" }, "incr": { "n": 2 }, "expect": { "n": 1 } });
        let patched = self.json(Request::patch("/v1/records/tour.r").body(patch.to_string()));
        assert_eq!(patched["values"]["n"], 3);
        let found = self.get("/v1/records/tour.r");
        assert_eq!((&found["fields"], &found["version"]), (&json!({ "n": 3, "color": "blue" }), &patched["version"]));
        let etag = format!("\"{}\"", patched["version"]);
        assert_eq!(self.send(Request::new("HEAD", "/v1/records/tour.r")).header("etag"), Some(etag.as_str()));
        let matching = Request::get("/v1/records").query("prefix", "tour.").query("where", r#"[["n","gt",2]]"#);
        assert_eq!(self.json(matching)["records"][0]["name"], "tour.r");
        let others = Request::get("/v1/records").query("prefix", "tour.").query("where", r#"[["n","lt",3]]"#);
        assert_eq!(self.json(others)["records"], json!([]));
        let deleted = self.json(Request::delete("/v1/records/tour.r"))["version"].as_u64();
        assert_eq!(deleted, patched["version"].as_u64().map(|version| version + 1));
    }

    /// Claims a new job and does one thing to it.
    fn attempt(&self, action: &str, more: JsonValue) -> JsonValue {
        let job = format!("tourjobs.{action}");
        self.put(&format!("/v1/records/{job}"), json!({ "type": "task", "fields": {} }));
        let claimed = self.post("/v1/claims", json!({ "name": job, "worker": "w1", "lease": "1m" }));
        let claimed = &claimed["claimed"][0];
        assert_eq!((&claimed["record"], &claimed["attempt"]), (&json!(job), &json!(1)));
        let mut body = more;
        body["attempt"] = claimed["attempt"].clone();
        let answer = self.post(&format!("/v1/records/{job}/{action}"), body);
        let mut record = self.get(&format!("/v1/records/{job}"));
        record["answer"] = answer;
        record
    }

    /// Claims a new job and does one thing to it, by its token.
    fn attempt_by_token(&self, action: &str, more: JsonValue) {
        let job = format!("tourtokens.{action}");
        self.put(&format!("/v1/records/{job}?group=tour"), json!({ "type": "task", "fields": {} }));
        let claimed = self.post("/v1/claims", json!({ "prefix": "tourtokens.", "worker": "w1" }));
        let mut body = more;
        body["token"] = claimed["claimed"][0]["token"].clone();
        assert_eq!(self.post(&format!("/v1/attempts/{action}"), body)["name"], json!(job));
    }

    fn attempts(&self) {
        for action in ["step", "extend", "complete", "fail", "release"] {
            self.attempt_by_token(action, json!({}));
        }
        let fields = json!({ "fields": { "done": 1 } });
        assert_eq!(self.attempt("step", fields.clone())["fields"]["done"], 1);
        let left = self.attempt("extend", json!({ "lease": "10m" }))["holder"]["lease_ms"].as_u64().expect("a lease");
        assert!(left > 120_000, "{left}");
        assert_eq!(self.attempt("release", json!({}))["holder"], JsonValue::Null);
        assert_eq!(self.attempt("complete", fields)["fields"]["state"], "completed");
        assert_eq!(self.attempt("fail", json!({ "error": "no" }))["answer"]["exhausted"], false);
        let counts = self.get("/v1/counts?prefix=tourjobs.");
        let completed = counts["counts"].as_array().expect("counts").iter().find(|count| count["state"] == "completed");
        assert_eq!(completed.map(|count| count["count"].clone()), Some(json!(1)), "{counts}");
        let next = self.post("/v1/claims", json!({ "prefix": "tourjobs.", "wait": "1s" }));
        assert_eq!(next["claimed"][0]["record"], "tourjobs.release");
    }

    fn runs(&self) {
        for (seq, kind) in (1..).zip(["RunStarted", "Progress", "Progress"]) {
            let event = json!({ "eventType": kind, "idempotencyKey": format!("k{seq}") });
            assert_eq!(self.post("/v1/runs/tour/run/events", event)["runSeq"], seq);
        }
        assert_eq!(self.get("/v1/runs/tour/run/events?after=1")["events"].as_array().map(Vec::len), Some(2));
        let mut events =
            self.client.follow(Request::get("/v1/runs/tour/run/events?follow=true&after=2")).expect("events");
        events.set_wait(Duration::from_secs(30)).expect("a wait");
        assert_eq!(events.next().expect("an event").expect("one").id.as_deref(), Some("3"));
        assert_eq!(self.get("/v1/runs/tour/run/snapshot")["status"], "RUNNING");
        assert_eq!(self.get("/v1/runs/tour/run/snapshot?project=true")["lastEventSeq"], 3);
        assert_eq!(self.get("/v1/runs?status=RUNNING")["runs"][0]["runId"], "tour/run");
        assert_eq!(self.post("/v1/runs/tour/run/fork", json!({ "at": 2, "as": "tour/fork" }))["lastEventSeq"], 2);
        // A fork is in the group of its origin.
        assert_eq!(self.post("/v1/runs/tour/fork/close?group=tour/run", json!({}))["lastEventSeq"], 2);
        assert_eq!(self.json(Request::delete("/v1/runs/tour/run"))["lastEventSeq"], 3);
    }

    fn sessions(&self) {
        let opened = self.post("/v1/sessions", json!({ "timeout": "1m" }));
        let session = opened["session"].as_str().expect("a session");
        let number = SessionId::parse(session).expect("a session").0;
        let path = format!("/v1/sessions/{session}");
        assert_eq!(self.get(&path)["timeout_ms"], 60_000);
        assert_eq!(
            self.get(&format!("/v1/sessions?after={}", SessionId(number - 1)))["sessions"][0]["session"],
            session
        );
        self.post(&format!("{path}/keepalive"), json!({}));
        let command = Request::post(format!("{path}/requests")).query("machine", TallyMachine::NUMBER);
        let command = command.header("statehouse-request", 1).body(format!("push {number} hello"));
        assert_eq!(self.send(command.clone()).text(), "sent");
        assert_eq!(self.send(command).text(), "sent", "the stored answer");
        assert_eq!(self.get("/v1/pushes")["pending"], true);
        let again = self.post("/v1/pushes/retry", json!({ "sent_before_us": u64::MAX }));
        assert_eq!(again["pushes"].as_array().map(Vec::len), Some(1));
        assert_eq!(self.get(&format!("{path}/pushes"))["pushes"][0]["payload"], "hello");
        assert_eq!(self.post(&format!("{path}/acks"), json!({ "upto": 1 }))["forgotten"], 1);
        assert_eq!(self.json(Request::delete(path))["ended"], true);
    }

    fn transactions_and_changes(&self) {
        let from = self.get("/v1/changes")["next"].as_str().expect("a cursor").to_owned();
        let body = json!({
            "if": [{ "cell": "tour.c", "absent": true }, { "record": "tour.t", "absent": true }],
            "do": [
                { "op": "cell.set", "name": "tour.c", "value": 1 },
                { "op": "record.put", "name": "tour.t", "fields": { "n": 1 } },
                { "op": "record.incr", "name": "tour.t", "field": "n", "by": 4 },
                { "op": "run.append", "run": "tour.u", "event": { "eventType": "E", "idempotencyKey": "k" } },
            ],
        });
        let done = self.post("/v1/groups/tour/group/txn", body);
        assert_eq!(done["done"][2]["value"], 5, "{done}");
        let changes = self.get(&format!("/v1/changes?from={from}&prefix=tour."));
        let names: Vec<_> = changes["changes"].as_array().expect("changes").iter().map(|one| &one["name"]).collect();
        assert!(names.contains(&&json!("tour.c")) && names.contains(&&json!("tour.t")), "{names:?}");
        let mut stream =
            self.client.follow(Request::get(format!("/v1/changes?follow=true&from={from}"))).expect("events");
        stream.set_wait(Duration::from_secs(30)).expect("a wait");
        assert_eq!(stream.next().expect("an event").expect("one").name, "change");
    }

    fn catalogue(&self) {
        self.put("/v1/spaces/tour", json!({}));
        assert!(self.get("/v1/spaces")["spaces"].as_array().is_some_and(|spaces| spaces.contains(&json!("tour"))));
        self.put("/v1/spaces/tour/retention", json!({ "versions": 3 }));
        assert_eq!(self.get("/v1/spaces/tour/retention")["versions"], 3);
        self.put("/v1/branches/draft?space=tour", json!({}));
        let branches = self.get("/v1/branches?space=tour");
        assert!(branches["branches"].as_array().is_some_and(|names| names.contains(&json!("draft"))), "{branches}");
        self.send(Request::delete("/v1/branches/draft?space=tour"));
        self.put("/v1/types/mails.", json!({ "name": "mail", "attempts_max": 2 }));
        let types = self.get("/v1/types");
        assert!(types["types"].as_array().is_some_and(|types| types.iter().any(|one| one["name"] == "mail")));
        assert_eq!(self.get("/v1/limits")["value_bytes_max"].as_u64().map(|bytes| bytes > 1_000), Some(true));
    }

    fn backup(&self) {
        let backup = self.send(Request::get("/v1/backup"));
        assert!(backup.body.len() > 1_000 && backup.header("statehouse-commit").is_some());
        let export = self.send(Request::get("/v1/export")).text();
        assert!(export.contains("tour.c") && export.lines().all(|line| line.starts_with('{')), "lines of JSON");
        // A check of another store's backup is refused, and the refusal says which store this is.
        let of = |store: &str| Request::post("/v1/backup/verified").body(json!({ "store": store }).to_string());
        let refused = self.client.send(of("another")).expect("an answer").json();
        let store = refused["detail"].as_str().and_then(|detail| detail.rsplit_once("this is ")).expect("it says so").1;
        self.send(of(store));
    }

    fn health(&self) {
        assert!(self.send(Request::get("/")).text().contains("/docs"));
        for path in ["/livez", "/readyz", "/startupz", "/version", "/status"] {
            assert!(self.get(path).is_object(), "{path}");
        }
        assert!(self.send(Request::get("/metrics")).text().contains("statehouse_"));
        assert!(self.send(Request::get("/v1/errors/SH-1003")).text().contains("SH-1003"));
        assert!(self.send(Request::get("/v1/errors")).text().contains("SH-1003"));
        assert!(self.send(Request::get("/docs")).text().contains("<html"));
        assert!(self.send(Request::get("/")).text().contains("/docs"));
        assert!(self.send(Request::get("/").header("accept", "text/html")).text().contains("href=\"/docs\""));
    }
}
