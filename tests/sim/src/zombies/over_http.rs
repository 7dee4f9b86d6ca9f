//! Writes of an owner that was replaced, over HTTP: it shows the token of its attempt, in a session and without one.

use std::collections::BTreeMap;

use serde_json::{Value as JsonValue, json};
use server::Server;
use statehouse::Statehouse;
use statehouse::keyed::Checkpoints;
use tempfile::TempDir;
use testkit::http::{Client, Request, Response};
use tokio::runtime::{self, Runtime};

use super::{Before, CELL, Change, PARTITIONS, RECORD, RUN, Tally, Unfenced};
use crate::directories::fast_directory;

const OPERATOR: &str = "counts";
/// It is not numbered. A restore is no write of an owner: it takes the partition over by force, whoever asks for it.
const CHECKPOINT: &str = "a checkpoint";

/// An owner: its token, and the number of its next commit.
struct Owner {
    token: String,
    next: u64,
}

struct Scene {
    house: Statehouse,
    client: Client,
    /// A session and its secret.
    session: [String; 2],
    _runtime: Runtime,
    _directory: TempDir,
}

/// Each kind once, in a partition of its own, and those that can be in a session once more in one.
pub(super) fn without_fences() -> Unfenced {
    let (scene, mut unfenced) = (Scene::new(), Unfenced::default());
    let kinds = writes("g", "t", 1).len();
    for (kind, number) in (0..2 * kinds).zip(0..) {
        let old = scene.first_owner(number);
        scene.replace(number, &old.token, Change::Force).expect("it is forced");
        let (name, request) = writes(&group_of(number), &old.token, old.next).swap_remove(kind % kinds);
        let in_session = kind >= kinds;
        if in_session && name == CHECKPOINT {
            continue;
        }
        let request = scene.as_zombie(request, &old.token, in_session, number.into());
        let what = format!("{name} over HTTP{}", if in_session { " in a session" } else { "" });
        let code = scene.send(&request).map_or_else(|error| error, |answer| code(&answer));
        unfenced.note(&what, name, &code);
    }
    unfenced
}

pub(super) fn run(attempts: u64) -> Tally {
    let scene = Scene::new();
    let mut tally = Tally { kinds: writes("g", "t", 1).len(), ..Tally::default() };
    let mut owners: BTreeMap<u32, Owner> = (0..PARTITIONS).map(|number| (number, scene.first_owner(number))).collect();
    for attempt in 0..attempts {
        let number = u32::try_from(attempt % u64::from(PARTITIONS)).expect("it is small");
        if let Err(wrong) = scene.attempt(attempt, number, &mut owners, &mut tally) {
            tally.wrong.push(format!("attempt {attempt}: {wrong}"));
            break;
        }
    }
    let counted: i64 = (0..PARTITIONS).filter_map(|number| scene.count(number)).sum();
    if counted != i64::try_from(attempts).expect("it is small") + i64::from(PARTITIONS) {
        tally.wrong.push(format!("the owners have counted {counted} of {attempts} attempts"));
    }
    if scene.house.group("free").cells().get("sent").expect("a cell").is_some() {
        tally.wrong.push("a message of somebody who was replaced has arrived".to_owned());
    }
    tally
}

impl Scene {
    fn new() -> Self {
        let directory = fast_directory().expect("a directory");
        let house = Statehouse::open(directory.path().join("house")).expect("a house");
        let folder = directory.path().join("checkpoints");
        let checkpoints = Checkpoints::open(folder.to_str().expect("text")).expect("a folder");
        let runtime = runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
        let listener = runtime.block_on(server::listen(([127, 0, 0, 1], 0).into())).expect("a port");
        let client = Client::to(listener.local_addr().expect("an address"));
        let served = Server::new(house.clone()).keeping_checkpoints(checkpoints);
        runtime.spawn(server::serve_all(listener, served, std::future::pending()));
        let opened = client.call(Request::post("/v1/sessions").body(r#"{"timeout":"1h"}"#)).expect("a session").json();
        let session = ["session", "secret"].map(|member| opened[member].as_str().expect("text").to_owned());
        Self { house, client, session, _runtime: runtime, _directory: directory }
    }

    /// The request as whoever owned the partition before sends it.
    fn as_zombie(&self, request: Request, token: &str, in_session: bool, number: u64) -> Request {
        // What is done to the owner itself has the token in its body.
        let is_shown = !request.path.starts_with("/v1/groups/") || request.path.ends_with("/txn");
        let request = if is_shown { request.header("statehouse-owner", token) } else { request };
        if in_session { self.numbered(request, number) } else { request }
    }

    fn attempt(
        &self,
        attempt: u64,
        number: u32,
        owners: &mut BTreeMap<u32, Owner>,
        tally: &mut Tally,
    ) -> Result<(), String> {
        let change = Change::of(attempt / tally.kinds as u64);
        let old = owners.remove(&number).expect("an owner");
        let mut next = self.replace(number, &old.token, change)?;
        let kind = usize::try_from(attempt).expect("it is small") % tally.kinds;
        let (name, request) = writes(&group_of(number), &old.token, old.next).swap_remove(kind);
        let before = Before::look(&self.house, &self.house.keyed(OPERATOR).partition(number));
        let in_session = name != CHECKPOINT && attempt / tally.kinds as u64 % 2 == 1;
        let request = self.as_zombie(request, &old.token, in_session, attempt);
        let answer = self.send(&request)?;
        let session = if in_session { " in a session" } else { "" };
        let what = format!("attempt {attempt}, {name}{session} after a change by {change:?}");
        before.compare(&what, &code(&answer), tally);
        self.commit(number, &mut next)?;
        owners.insert(number, next);
        Ok(())
    }

    fn send(&self, request: &Request) -> Result<Response, String> {
        self.client.send(request).map_err(|error| error.to_string())
    }

    /// The request as the next one of the session, which only the store can refuse: it may have been executed before.
    fn numbered(&self, request: Request, number: u64) -> Request {
        let [session, secret] = &self.session;
        let request = request.header("statehouse-session", session).header("statehouse-session-secret", secret);
        request.header("statehouse-request", number).header("statehouse-lowest-pending", number)
    }

    fn must(&self, request: &Request) -> Result<Response, String> {
        let answer = self.send(request)?;
        if answer.is_success() { Ok(answer) } else { Err(answer.text()) }
    }

    fn acquire(&self, number: u32, force: bool) -> Result<Owner, String> {
        let acquire = Request::post(format!("/v1/keyed/{}/acquire", group_of(number)));
        let acquire = acquire.body(r#"{"worker":"next","lease":"10m","wait":"1m"}"#);
        let acquire = if force { acquire.header("statehouse-force", "true") } else { acquire };
        let acquired = self.must(&acquire)?.json();
        let token = acquired["token"].as_str().expect("a token").to_owned();
        Ok(Owner { token, next: acquired["next"].as_u64().expect("a number") })
    }

    fn replace(&self, number: u32, token: &str, change: Change) -> Result<Owner, String> {
        match change {
            Change::Force => return self.acquire(number, true),
            Change::Release => self.must(&of_owner(&group_of(number), "release", json!({ "token": token })))?,
            Change::EndOfLease => {
                self.must(&of_owner(&group_of(number), "extend", json!({ "token": token, "lease": "20ms" })))?
            }
        };
        self.acquire(number, false)
    }

    /// Counts as the owner.
    fn commit(&self, number: u32, owner: &mut Owner) -> Result<(), String> {
        let commit = json!({ "number": owner.next, "updates": [{ "op": "add", "key": "count", "value": 1 }] });
        let commit = Request::post(format!("/v1/keyed/{}/commits", group_of(number))).body(commit.to_string());
        self.must(&commit.header("statehouse-owner", &owner.token))?;
        owner.next += 1;
        Ok(())
    }

    fn count(&self, number: u32) -> Option<i64> {
        let found = self.house.keyed(OPERATOR).partition(number).get(b"count").expect("a key");
        found?.value.as_integer()
    }

    /// Owns a partition, and puts into it what others will try to change.
    fn first_owner(&self, number: u32) -> Owner {
        let mut owner = self.acquire(number, false).expect("it is free");
        self.commit(number, &mut owner).expect("a commit");
        let things = json!({ "do": [
            { "op": "map.update", "name": OPERATOR, "updates": [{ "op": "put", "key": "put", "value": 1, "version": 1 }] },
            { "op": "map.create", "name": "other" },
            { "op": "cell.set", "name": CELL, "value": 1 },
            { "op": "record.put", "name": RECORD, "type": "task", "fields": {} },
            { "op": "run.append", "run": RUN, "event": event("first") },
        ] });
        let things = Request::post(format!("/v1/groups/{}/txn", group_of(number))).body(things.to_string());
        self.must(&things.header("statehouse-owner", &owner.token)).expect("things");
        owner
    }
}

fn group_of(number: u32) -> String {
    format!("{OPERATOR}/{number}")
}

fn of_owner(group: &str, verb: &str, body: JsonValue) -> Request {
    Request::post(format!("/v1/groups/{group}/{verb}")).body(body.to_string())
}

fn event(key: &str) -> JsonValue {
    json!({ "eventType": "Progress", "idempotencyKey": key, "emittedAt": "2026-02-11T10:00:00Z" })
}

/// All kinds of writes in the group of a partition.
fn writes(group: &str, token: &str, next: u64) -> Vec<(&'static str, Request)> {
    let of_thing = |method: &'static str, path: String, body: JsonValue| {
        let request = Request::new(method, path).query("group", group);
        if body.is_null() { request } else { request.body(body.to_string()) }
    };
    let none = || JsonValue::Null;
    let put = json!({ "op": "put", "key": "put", "value": 2, "version": 2 });
    let add = json!({ "op": "add", "key": "count", "value": 1 });
    let commit = |more: JsonValue| {
        let mut body = json!({ "number": next });
        body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        Request::post(format!("/v1/keyed/{group}/commits")).body(body.to_string())
    };
    let sends = json!([{ "op": "send", "group": "free", "do": [{ "op": "cell.init", "name": "sent", "value": 1 }] }]);
    let txn = |ops: JsonValue| Request::post(format!("/v1/groups/{group}/txn")).body(json!({ "do": ops }).to_string());
    let map = format!("/v1/maps/{OPERATOR}");
    let numbered = json!({ "number": next, "updates": [add] });
    vec![
        ("a commit", commit(json!({ "updates": [add], "positions": { "input": 2 } }))),
        ("a commit of puts", commit(json!({ "updates": [put] }))),
        ("a commit with a seal", commit(json!({ "seal": 9 }))),
        ("a commit with a cell", commit(json!({ "do": [{ "op": "cell.set", "name": CELL, "value": 2 }] }))),
        ("a commit with a message", commit(json!({ "do": sends }))),
        ("a put", of_thing("PUT", format!("{map}/keys/put"), 2.into()).query("version", 2)),
        ("a deletion of a key", of_thing("DELETE", format!("{map}/keys/put"), none()).query("version", 2)),
        ("updates", of_thing("POST", format!("{map}/updates"), json!({ "updates": [put] }))),
        ("a numbered commit of the map", of_thing("POST", format!("{map}/commits"), numbered)),
        ("a seal", of_thing("POST", format!("{map}/seal"), json!({ "version": 9 }))),
        ("a new map", of_thing("PUT", "/v1/maps/new".to_owned(), json!({}))),
        ("a deletion of the map", of_thing("DELETE", map.clone(), none())),
        ("a deletion of another map", of_thing("DELETE", "/v1/maps/other".to_owned(), none())),
        ("a cell", of_thing("PUT", format!("/v1/cells/{CELL}"), 2.into())),
        ("a new cell", of_thing("POST", "/v1/cells/new".to_owned(), 2.into())),
        ("a deletion of a cell", of_thing("DELETE", format!("/v1/cells/{CELL}"), none())),
        ("a record", of_thing("PUT", format!("/v1/records/{RECORD}"), json!({ "type": "task", "fields": { "n": 2 } }))),
        ("a field", of_thing("PATCH", format!("/v1/records/{RECORD}"), json!({ "set": { "n": 2 } }))),
        ("a claim", of_thing("POST", "/v1/claims".to_owned(), json!({ "name": RECORD, "worker": "zombie" }))),
        ("a deletion of a record", of_thing("DELETE", format!("/v1/records/{RECORD}"), none())),
        ("an event", of_thing("POST", format!("/v1/runs/{RUN}/events"), event("again"))),
        ("the end of a run", of_thing("POST", format!("/v1/runs/{RUN}/close"), none())),
        ("a deletion of a run", of_thing("DELETE", format!("/v1/runs/{RUN}"), none())),
        ("a message", txn(sends.clone())),
        (
            "a transaction",
            txn(json!([{ "op": "cell.set", "name": CELL, "value": 2 }, { "op": "map.delete", "name": "other" }])),
        ),
        (CHECKPOINT, Request::post(format!("/v1/keyed/{group}/checkpoints")).body(r#"{"wait":"30s"}"#)),
        ("an extension", of_owner(group, "extend", json!({ "token": token, "lease": "15m" }))),
        ("a release", of_owner(group, "release", json!({ "token": token }))),
    ]
}

/// The code of a refusal, or that it was done.
fn code(answer: &Response) -> String {
    if answer.is_success() {
        return "done".to_owned();
    }
    let problem: JsonValue = serde_json::from_slice(&answer.body).unwrap_or_default();
    problem["code"].as_str().map_or_else(|| format!("status {}: {}", answer.status, answer.text()), str::to_owned)
}
