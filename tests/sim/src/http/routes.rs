//! A tour of every route, against a server process: calls each one successfully and checks the answer. The list of routes
//! comes from the server's `/openapi.json`. The contracts are called through the typed client; requests that it does not
//! offer are sent as written here: `HEAD`, pages, the commands of a cell, attempts by number.

mod keyed;
mod letters;
mod principals;

use std::sync::Arc;
use std::time::Duration;

use client::records::fields;
use client::{ClientOptions, Error, Expected, HistoryPage, Moment, Value};
use contract::records::Ttl;
use contract::records::filter::{Filter, Test};
use serde_json::{Value as JsonValue, json};
use statehouse::sessions::UserMachine;
use testkit::http::routes::{Called, Route};
use testkit::http::{Client, Request, Response, block_on};
use wire::catalogue::SetRetention;
use wire::cells::ListCells;
use wire::changes::{ChangesAnswer, ReadChanges};
use wire::contracts::Done;
use wire::owners::{OwnGroup, SetGuard};
use wire::records::claims::{Claim, ClaimedRecord};
use wire::records::types::DeclareType;
use wire::records::{PatchRecord, PutRecord, ScanRecords, TtlText, Where};
use wire::runs::{Fork, ListRuns, ReadEvents, StatusText};
use wire::sessions::{ListSessions, OpenSession, ReadPushes, RetryPushes, WaitingPushes};
use wire::transactions::Transaction;
use wire::values::{DurationText, Members, SessionId};

use super::tally_machine::TallyMachine;

/// Calls every route; returns their number and those never called successfully.
pub(super) fn tour(client: &Client, called: &Arc<Called>) -> (usize, Vec<Route>) {
    let tour = Tour { client, typed: client.typed(ClientOptions::default()) };
    let called_all = async {
        tour.cells().await?;
        tour.records().await?;
        tour.attempts().await?;
        tour.runs().await?;
        tour.sessions().await?;
        tour.transactions_and_changes().await?;
        tour.owners().await?;
        tour.letters().await?;
        tour.maps().await?;
        tour.partitions().await?;
        tour.catalogue().await?;
        tour.principals().await?;
        tour.operations().await
    };
    block_on(called_all).expect("every call succeeds");
    tour.by_hand();
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
    typed: client::Client,
}

/// A job without fields.
fn job() -> PutRecord {
    PutRecord { record_type: Some("task".to_owned()), ..PutRecord::of(Members::default()) }
}

impl Tour<'_> {
    async fn cells(&self) -> Result<(), Error> {
        let cells = self.typed.cells();
        assert_eq!(cells.set("tour/a", "red").await?.version, 1);
        let json = Value::json(r#"{ "b": 1 }"#).expect("JSON");
        assert_eq!(cells.cas("tour/a", Expected::Version(1), json.clone()).await?.version, 2);
        assert_eq!(cells.get("tour/a").await?.map(|cell| cell.value.0), Some(json));
        let first = cells.at("tour/a", Moment::Version(1)).await?;
        assert_eq!(first.map(|cell| cell.value.0), Some("red".into()));
        assert_eq!(cells.history("tour/a", HistoryPage::default()).await?.versions.len(), 2);
        let listed = cells.list(&ListCells { prefix: Some("tour/".into()), ..ListCells::default() }).await?;
        assert_eq!(listed.cells[0].name, "tour/a");
        assert_eq!(cells.delete("tour/a", None).await?.map(|deleted| deleted.version), Some(3));
        assert!(cells.init("tour/init", 1).await?.created);
        let again = cells.init("tour/init", 2).await?;
        assert_eq!((again.created, again.version), (false, 1));
        Ok(())
    }

    async fn records(&self) -> Result<(), Error> {
        let records = self.typed.records();
        let of = [("n", Value::from(1)), ("color", "red".into())];
        let ttl = Some(TtlText(Ttl::After(Duration::from_secs(600))));
        records.put("tour.r", &PutRecord { ttl, ..PutRecord::of(fields(of)) }, None).await?;
        let patch = PatchRecord {
            set: Some(fields([("color", "blue")])),
            incr: Some(Members(vec![("n".to_owned(), 2)])),
            expect: Some(fields([("n", 1)])),
            ..PatchRecord::default()
        };
        let patched = records.patch("tour.r", &patch, None).await?;
        assert_eq!(patched.values, Some(Members(vec![("n".to_owned(), 3)])));
        let found = records.get("tour.r").await?.expect("a record");
        let of = [found.fields.get("n"), found.fields.get("color")].map(|value| value.map(|value| value.0.clone()));
        assert_eq!((of, found.version), ([Some(Value::from(3)), Some("blue".into())], patched.version));
        for (test, count) in [(Test::Gt(Value::from(2)), 1), (Test::Lt(Value::from(3)), 0)] {
            let filter = Some(Where(Filter { tests: vec![("n".to_owned(), test)] }));
            let query = ScanRecords { prefix: Some("tour.".into()), filter, ..ScanRecords::default() };
            assert_eq!(records.scan(&query).await?.records.len(), count);
        }
        let deleted = records.delete("tour.r", None).await?.map(|deleted| deleted.version);
        assert_eq!(deleted, Some(patched.version + 1));
        Ok(())
    }

    /// Claims a new job of a group.
    async fn claimed(&self, job_of: &str) -> Result<ClaimedRecord, Error> {
        let job_of = format!("tourtokens.{job_of}");
        self.typed.group("tour").records().put(&job_of, &job(), None).await?;
        let mut claimed = self.typed.records().claim(&Claim::of_queue("tourtokens.")).await?;
        assert_eq!(claimed[0].record, job_of);
        Ok(claimed.remove(0))
    }

    async fn attempts(&self) -> Result<(), Error> {
        let records = self.typed.records();
        let step = self.claimed("step").await?;
        assert_eq!(records.step(&step.token, [("done", 1)]).await?.name, step.record);
        let extend = self.claimed("extend").await?;
        records.extend(&extend.token, Some(Duration::from_secs(600))).await?;
        let left = self.typed.group("tour").records().get(&extend.record).await?.and_then(|record| record.holder);
        assert!(left.is_some_and(|holder| holder.lease_ms > 120_000));
        let complete = self.claimed("complete").await?;
        assert_eq!(records.complete(&complete.token, [("done", 1)]).await?.name, complete.record);
        let fail = self.claimed("fail").await?;
        assert!(!records.fail(&fail.token, "no").await?.exhausted);
        let release = self.claimed("release").await?;
        assert_eq!(records.release(&release.token).await?.name, release.record);
        let counts = records.counts("tourtokens.").await?.counts;
        let completed = counts.iter().find(|count| count.state == "completed").map(|count| count.count);
        assert_eq!(completed, Some(1), "{counts:?}");
        let wait = Some(DurationText(Duration::from_secs(1)));
        let next = records.claim(&Claim { wait, ..Claim::of_queue("tourtokens.") }).await?;
        assert_eq!(next[0].record, release.record);
        Ok(())
    }

    async fn runs(&self) -> Result<(), Error> {
        let runs = self.typed.runs();
        for (seq, kind) in (1..).zip(["RunStarted", "Progress", "Progress"]) {
            let event = json!({ "eventType": kind, "idempotencyKey": format!("k{seq}") });
            assert_eq!(runs.append("tour/run", event.to_string(), None).await?.run_seq, seq);
        }
        // A known key with other content: the answer holds the stored event.
        let other = json!({ "eventType": "Progress", "idempotencyKey": "k3", "eventData": 1.50 });
        let known = runs.append("tour/run", other.to_string(), None).await?;
        assert!(known.payload_mismatch && known.event.is_some(), "{known:?}");
        let after = ReadEvents { after: Some(1), ..ReadEvents::default() };
        assert_eq!(runs.events("tour/run", &after).await?.events.len(), 2);
        let mut events = runs.follow("tour/run", 2);
        assert_eq!(events.next().await?.id, "3");
        let snapshot = runs.snapshot("tour/run").await?.expect("a run");
        assert!(snapshot.0.0.contains("\"RUNNING\""), "{snapshot:?}");
        assert_eq!(runs.project("tour/run").await?, snapshot);
        let running = runs.list(&ListRuns { status: Some(StatusText::Running), ..ListRuns::default() }).await?;
        assert_eq!(running.runs[0].run_id, "tour/run");
        let fork = runs.fork("tour/run", &Fork { at: 2, name: "tour/fork".to_owned() }).await?;
        assert_eq!(fork.last_event_seq, 2);
        // A fork is in the group of its origin.
        assert_eq!(self.typed.group("tour/run").runs().close("tour/fork").await?.last_event_seq, 2);
        assert_eq!(runs.delete("tour/run").await?.last_event_seq, 3);
        Ok(())
    }

    async fn sessions(&self) -> Result<(), Error> {
        let sessions = self.typed.sessions();
        let timeout = Some(DurationText(Duration::from_secs(60)));
        let opened = sessions.open(&OpenSession { timeout, ..OpenSession::default() }).await?;
        let (session, credentials) = (opened.session, &opened.credentials());
        assert_eq!(sessions.get(session).await?.map(|found| found.timeout_ms), Some(60_000));
        let after = Some(SessionId(session.0 - 1));
        let listed = sessions.list(&ListSessions { after, ..ListSessions::default() }).await?;
        assert_eq!(listed.sessions[0].session, session);
        sessions.keep_alive(credentials).await?;
        // Sent again, it gets the stored answer.
        for _ in 0..2 {
            let command = format!("push {} hello", session.0).into_bytes();
            let reply = sessions.request(credentials, (1, 1), Some(TallyMachine::NUMBER), command).await?;
            assert_eq!(&reply.body[..], b"sent");
        }
        assert!(sessions.waiting(&WaitingPushes { sent_before_us: None }).await?.pending);
        let retried = sessions.retry(&RetryPushes { sent_before_us: u64::MAX, limit: None }).await?;
        assert_eq!(retried.pushes.len(), 1);
        let pushes = sessions.pushes(credentials, &ReadPushes::default()).await?.pushes;
        assert_eq!(pushes[0].payload.0, b"hello");
        assert_eq!(sessions.follow_pushes(credentials, 0).next().await?.id, "1");
        assert_eq!(sessions.acknowledge(credentials, 1).await?.forgotten, 1);
        assert!(sessions.end(credentials).await?.ended);
        let forced = sessions.open(&OpenSession::default()).await?.session;
        assert!(sessions.force_end(forced).await?.ended);
        Ok(())
    }

    async fn transactions_and_changes(&self) -> Result<(), Error> {
        let ChangesAnswer::Page(now) = self.typed.changes(&ReadChanges::default()).await? else {
            panic!("a page of nothing")
        };
        let body = json!({
            "if": [{ "cell": "tour.c", "absent": true }, { "record": "tour.t", "absent": true }],
            "do": [
                { "op": "cell.set", "name": "tour.c", "value": 1 },
                { "op": "record.put", "name": "tour.t", "fields": { "n": 1 } },
                { "op": "record.incr", "name": "tour.t", "field": "n", "by": 4 },
                { "op": "run.append", "run": "tour.u", "event": { "eventType": "E", "idempotencyKey": "k" } },
            ],
        });
        let body: Transaction = wire::from_json_text(&body.to_string()).expect("a transaction");
        let committed = self.typed.transact("tour/group", &body).await?;
        assert!(matches!(&committed.done[2], Done::Written(written) if written.value == Some(5)), "{committed:?}");
        let query = ReadChanges { from: Some(now.next), prefix: Some("tour.".to_owned()), ..ReadChanges::default() };
        let ChangesAnswer::Page(page) = self.typed.changes(&query).await? else { panic!("a page of changes") };
        let names: Vec<_> = page.changes.iter().map(|change| change.name.as_str()).collect();
        assert!(names.contains(&"tour.c") && names.contains(&"tour.t"), "{names:?}");
        assert_eq!(self.typed.follow_changes("tour.", Some(now.next)).next().await?.kind, "change");
        Ok(())
    }

    async fn owners(&self) -> Result<(), Error> {
        let catalogue = self.typed.catalogue();
        assert_eq!(catalogue.set_guard("tour.guarded", &SetGuard::open(["inbox"])).await?.open, ["inbox"]);
        assert!(catalogue.guards().await?.guards.iter().any(|guard| guard.prefix == "tour.guarded"));
        let owned = self.typed.own("tour.guarded.1", &OwnGroup::by("w1")).await?;
        owned.extend(Some(Duration::from_secs(600))).await?;
        let owner = self.typed.owner("tour.guarded.1").await?;
        assert_eq!(owner.guard.as_deref(), Some("tour.guarded"));
        assert!(owner.holder.is_some_and(|holder| holder.lease_ms > 120_000));
        owned.cells().set("step", 1).await?;
        let beside = self.typed.group("tour.guarded.1");
        let refused = beside.cells().set("step", 2).await.expect_err("it is guarded");
        assert_eq!(refused.code(), Some("SH-4003"));
        beside.forced().cells().set("step", 3).await?;
        owned.release().await?;
        assert_eq!(self.typed.owner("tour.guarded.1").await?.holder, None);
        catalogue.remove_guard("tour.guarded").await.map(drop)
    }

    async fn catalogue(&self) -> Result<(), Error> {
        let catalogue = self.typed.catalogue();
        catalogue.create_space("tour").await?;
        assert!(catalogue.spaces().await?.spaces.contains(&"tour".to_owned()));
        catalogue.set_retention("tour", &SetRetention { versions: Some(3), age: None, age_ms: None }).await?;
        assert_eq!(catalogue.retention("tour").await?.versions, Some(3));
        let usage = catalogue.usage("tour").await?;
        let contracts: Vec<_> = usage.contracts.iter().map(|one| (one.contract.as_str(), one.things)).collect();
        assert_eq!((contracts, usage.bytes), (vec![("cells", 0), ("keyed", 0), ("records", 0), ("runs", 0)], 0));
        let in_space = self.typed.space("tour");
        in_space.catalogue().create_branch("draft").await?;
        assert!(in_space.catalogue().branches().await?.branches.contains(&"draft".to_owned()));
        in_space.catalogue().delete_branch("draft").await?;
        let mail: DeclareType = wire::from_json_text(r#"{"name":"mail","attempts_max":2}"#).expect("a type");
        catalogue.declare_type("mails.", &mail).await?;
        assert!(catalogue.types().await?.types.iter().any(|one| one.name == "mail"));
        assert!(catalogue.limits().await?.value_bytes_max > 1_000);
        Ok(())
    }

    async fn operations(&self) -> Result<(), Error> {
        let mut backup = self.typed.backup().await?;
        let mut bytes = 0;
        while let Some(more) = backup.next().await? {
            bytes += more.len();
        }
        assert!(bytes > 1_000, "{bytes}");
        let mut export = self.typed.export().await?;
        let mut text = Vec::new();
        while let Some(more) = export.next().await? {
            text.extend(more);
        }
        let text = String::from_utf8_lossy(&text);
        assert!(text.contains("tour.c") && text.lines().all(|line| line.starts_with('{')), "lines of JSON");
        assert!(self.typed.is_ready().await?);
        self.typed.version().await?;
        self.typed.status().await?;
        self.typed.close().await
    }

    /// Requests that the typed client does not offer.
    fn by_hand(&self) {
        self.heads_and_commands();
        self.attempts_by_number();
        self.verified_backup();
        self.pages();
    }

    fn send(&self, request: Request) -> Response {
        self.client.call(request).unwrap_or_else(|error| panic!("{error}"))
    }

    fn get(&self, path: &str) -> JsonValue {
        self.send(Request::get(path)).json()
    }

    fn post(&self, path: &str, body: &JsonValue) -> JsonValue {
        self.send(Request::post(path).body(body.to_string())).json()
    }

    fn heads_and_commands(&self) {
        let made = self.send(Request::put("/v1/cells/heads/tour").body("\"red\""));
        assert_eq!((made.status, made.header("etag")), (201, Some("\"1\"")));
        self.send(Request::put("/v1/records/tour.head").body(r#"{"fields":{}}"#));
        for path in ["/v1/cells/heads/tour", "/v1/records/tour.head"] {
            let head = self.send(Request::new("HEAD", path));
            assert_eq!((head.header("etag"), head.body.len()), (Some("\"1\""), 0), "{path}");
        }
        for path in ["/v1/maps/tour/keys/b", "/v1/keyed/tour/3/keys/hello"] {
            assert_eq!(self.send(Request::new("HEAD", path)).body.len(), 0, "{path}");
        }
        let command = |command: JsonValue| self.post("/v1/state/command", &command);
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

    /// Claims a new job and does one thing to it.
    fn attempt(&self, action: &str, more: JsonValue) -> JsonValue {
        let job = format!("tourjobs.{action}");
        self.send(Request::put(format!("/v1/records/{job}")).body(r#"{"type":"task","fields":{}}"#));
        let claimed = self.post("/v1/claims", &json!({ "name": job, "worker": "w1", "lease": "1m" }));
        let mut body = more;
        body["attempt"] = claimed["claimed"][0]["attempt"].clone();
        let answer = self.post(&format!("/v1/records/{job}/{action}"), &body);
        let mut record = self.get(&format!("/v1/records/{job}"));
        record["answer"] = answer;
        record
    }

    fn attempts_by_number(&self) {
        let fields = json!({ "fields": { "done": 1 } });
        assert_eq!(self.attempt("step", fields.clone())["fields"]["done"], 1);
        let left = self.attempt("extend", json!({ "lease": "10m" }))["holder"]["lease_ms"].as_u64().expect("a lease");
        assert!(left > 120_000, "{left}");
        assert_eq!(self.attempt("release", json!({}))["holder"], JsonValue::Null);
        assert_eq!(self.attempt("complete", fields)["fields"]["state"], "completed");
        assert_eq!(self.attempt("fail", json!({ "error": "no" }))["answer"]["exhausted"], false);
    }

    /// Reporting the backup of another store is refused, and the refusal names this store.
    fn verified_backup(&self) {
        let of = |store: &str| Request::post("/v1/backup/verified").body(json!({ "store": store }).to_string());
        let refused = self.client.send(of("another")).expect("an answer").json();
        let store =
            refused["detail"].as_str().and_then(|detail| detail.rsplit_once("this is store ")).expect("it says so").1;
        self.send(of(store));
    }

    fn pages(&self) {
        for path in ["/livez", "/startupz"] {
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
