//! Every route that writes in a group, and every operation of a transaction, with every fence that a request could show, in a session
//! and without one.
//!
//! The routes come from the table of the wire, and the operations from its list: one that has no case here is a wrong cell.

mod keyed;
mod letters;
mod shown;

use std::collections::BTreeSet;

use serde_json::{Value as JsonValue, json};
use server::Server;
use statehouse::Options;
use statehouse::keyed::Checkpoints;
use statehouse::publish::MemoryBroker;
use statehouse::sessions::UserMachine;
use testkit::http::{Client, Request, Response};
use testkit::session_store::Tally;
use wire::contracts::Operation;
use wire::routes::{ALL, TRANSACTIONS_COMMIT};

use self::shown::{ALL_SHOWN, In, Owners, Shown, shows};
use super::{Cells, ForAnybody};
use crate::directories::fast_directory;
use crate::fences;
use crate::http::TallyMachine;

/// The group of the commands of the state primitive.
const STATE: &str = "state";

/// One operation on a thing.
struct Case {
    /// The route's name, or that of the operation in a transaction.
    name: &'static str,
    /// The group, if it is not the caller's to choose.
    fixed_group: Option<&'static str>,
    /// What makes it possible.
    before: Vec<Request>,
    request: Request,
    for_anybody: ForAnybody,
    /// Whether it is about a message that the group refuses first.
    of_letter: bool,
}

/// Routes that take no number of a request in a session: the first is one, and a checkpoint goes on when its request has ended.
const NOT_NUMBERED: [&str; 2] = ["sessions.request", "keyed.checkpoint"];

impl Case {
    fn new(name: &'static str, before: &[&Request], request: Request, for_anybody: ForAnybody) -> Self {
        let before = before.iter().map(|request| (*request).clone()).collect();
        Self { name, fixed_group: None, before, request, for_anybody, of_letter: false }
    }

    fn in_transaction(&self) -> bool {
        Operation::names().contains(&self.name)
    }
}

/// With the kernel's fences on or off.
pub(super) fn try_all(fenced: bool) -> Cells {
    fences::skip(!fenced);
    let directory = fast_directory().expect("a directory");
    let options = Options::default().machine(TallyMachine).publish_to(std::sync::Arc::new(MemoryBroker::default()));
    let house = options.open(directory.path().join("house")).expect("a house");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let listener = runtime.block_on(server::listen(([127, 0, 0, 1], 0).into())).expect("a port");
    let client = Client::to(listener.local_addr().expect("an address"));
    let checkpoints = directory.path().join("checkpoints");
    let place = Checkpoints::open(checkpoints.to_str().expect("text")).expect("a place for checkpoints");
    let served = Server::new(house.clone()).hosting::<TallyMachine>().keeping_checkpoints(place);
    runtime.spawn(server::serve_all(listener, served, std::future::pending()));
    let history = format!("{:016x}", house.id());
    let mut scene =
        Scene { session: open_session(&client), client, history, groups: 0, fenced, cells: Cells::default() };
    for prefix in ["agents/", STATE] {
        scene.call(Request::put(format!("/v1/guards/{prefix}")).body(r#"{"open":["inbox"]}"#));
    }
    scene.is_complete();
    for place in 0..scene.cases("none", "thing").len() {
        for thing in ["thing", "inbox.1"] {
            let case = scene.cases("none", thing).swap_remove(place);
            let (name, in_transaction) = (case.name, case.in_transaction());
            for in_session in [false, true].into_iter().filter(|is_in| !is_in || !NOT_NUMBERED.contains(&name)) {
                for shown in ALL_SHOWN {
                    scene.try_case(place, thing, in_session, shown, In::Header);
                    if in_transaction {
                        scene.try_case(place, thing, in_session, shown, In::Body);
                    }
                }
            }
        }
        scene.try_again(place);
    }
    fences::skip(false);
    scene.cells
}

struct Scene {
    client: Client,
    /// A session and its secret, for pushes and for commands to a machine.
    session: [String; 2],
    history: String,
    /// Groups that were used up.
    groups: usize,
    /// Whether fences are checked.
    fenced: bool,
    cells: Cells,
}

impl Scene {
    /// Every route that can be fenced and every operation has a case.
    fn is_complete(&mut self) {
        let cases = self.cases("g", "thing");
        let names = |in_transaction: bool| {
            cases.iter().filter(move |case| case.in_transaction() == in_transaction).map(|case| case.name)
        };
        let routes = ALL.iter().filter(|route| route.is_fenced() && **route != TRANSACTIONS_COMMIT);
        let tables = [
            (routes.map(|route| route.name).collect::<BTreeSet<_>>(), names(false).collect::<BTreeSet<_>>()),
            (Operation::names().iter().copied().collect(), names(true).collect()),
        ];
        for (table, cases) in tables {
            self.cells.compare(&|| "cases for every name".to_owned(), &format!("{cases:?}"), &format!("{table:?}"));
        }
    }

    fn call(&self, request: Request) -> Response {
        self.client.call(request).unwrap_or_else(|error| panic!("{error}"))
    }

    fn own(&self, group: &str, worker: &str) -> String {
        let own = Request::post(format!("/v1/groups/{group}/own")).header("statehouse-force", "true");
        let owned = self.call(own.body(json!({ "worker": worker, "lease": "10m" }).to_string())).json();
        owned["token"].as_str().expect("a token").to_owned()
    }

    fn try_case(&mut self, place: usize, thing: &str, in_session: bool, shown: Shown, token_in: In) {
        let (case, owners) = self.ready(place, thing);
        let expected = match shown {
            Shown::Nothing if thing == "inbox.1" && case.for_anybody != ForAnybody::Never => "done",
            Shown::Nothing => "SH-4003",
            Shown::Old | Shown::OldAndForce => "SH-4002",
            Shown::Right | Shown::Force => "done",
            Shown::OfAnotherGroup | Shown::OfAnotherSpace | Shown::OfAnotherBranch => "SH-1030",
            Shown::OfAnotherHistory => "SH-1034",
        };
        let mut request = shows(case.request, shown, token_in, &owners);
        if in_session {
            let [session, secret] = open_session(&self.client);
            request = request.header("statehouse-session", session).header("statehouse-session-secret", secret);
            request = request.header("statehouse-request", 1);
        }
        let first = outcome(&self.client.send(&request).expect("an answer"));
        let what = || {
            let session = if in_session { " in a session" } else { "" };
            format!("{}{session} on {thing}, showing {shown:?} in the {token_in:?}", case.name)
        };
        self.cells.compare(&what, &first, expected);
        if in_session {
            // A client that lost the answer sends it again, and gets the same one.
            let again = outcome(&self.client.send(&request).expect("an answer"));
            self.cells.compare(&|| format!("{}, again", what()), &again, expected);
        }
    }

    /// What anybody may do to an open name: once, or as often as they like.
    fn try_again(&mut self, place: usize) {
        let (case, _) = self.ready(place, "inbox.1");
        let of_thing =
            case.request.path.contains("inbox") || String::from_utf8_lossy(&case.request.body).contains("inbox");
        if case.for_anybody == ForAnybody::Never || !of_thing {
            return;
        }
        let made = case.request.clone().header("statehouse-force", "true");
        self.client.send(made).expect("an answer");
        let again = outcome(&self.client.send(&case.request).expect("an answer"));
        self.cells.again(&|| format!("{} on an open name that is there", case.name), &again, case.for_anybody);
    }

    /// A case in a group of its own, where it is possible, and which has been owned twice.
    fn ready(&mut self, place: usize, thing: &str) -> (Case, Owners) {
        self.groups += 1;
        // It is a partition, too.
        let mut group = format!("agents/{}", self.groups);
        let thing = match self.cases(&group, thing)[place].fixed_group {
            // Things of this group were written before.
            Some(fixed) => {
                fixed.clone_into(&mut group);
                format!("{thing}.{}", self.groups)
            }
            None => thing.to_owned(),
        };
        let mut case = self.cases(&group, &thing).swap_remove(place);
        if case.of_letter {
            // Without fences nothing would be refused.
            fences::skip(false);
        }
        for request in &case.before {
            self.call(request.clone().header("statehouse-force", "true"));
        }
        if case.of_letter {
            case.request =
                case.request.body(json!({ "number": letters::refused_by(&self.client, &group) }).to_string());
            fences::skip(!self.fenced);
        }
        let (old, right) = (self.own(&group, "first"), self.own(&group, "second"));
        let number = right.split('#').nth(1).expect("an attempt");
        let other_group = format!("other#{number}#h{}", self.history);
        let other_history = format!("{group}#{number}#h0123456789abcdef");
        let [other_space, other_branch] = ["#other#main#1", "#default#other#1"].map(|place| right.clone() + place);
        (case, Owners { old, right, other_group, other_history, other_space, other_branch })
    }

    /// All cases, on one thing in one group.
    fn cases(&self, group: &str, thing: &str) -> Vec<Case> {
        let mut cases = self.routes(group, thing);
        cases.extend(self.operations(group, thing));
        cases
    }

    fn routes(&self, group: &str, thing: &str) -> Vec<Case> {
        use ForAnybody::{Always, IfAbsent, Never};
        let put_task =
            Request::put(format!("/v1/records/{thing}")).body(r#"{"type":"task","fields":{}}"#).query("group", group);
        let claim =
            Request::post("/v1/claims").query("group", group).body(json!({ "name": thing, "worker": "v" }).to_string());
        let set = Request::put(format!("/v1/cells/{thing}")).query("group", group).body("1");
        let append = |run: &str| {
            let event = Request::post(format!("/v1/runs/{run}/events")).query("group", group);
            event.body(r#"{"eventType":"Progress","idempotencyKey":"k"}"#)
        };
        let of_record = |method: &'static str, body: &str| {
            Request::new(method, format!("/v1/records/{thing}")).query("group", group).body(body)
        };
        let command = json!({ "StateSet": { "branch": "main", "cell": thing, "value": 1 } }).to_string();
        let of_state = Case::new("state.command", &[], Request::post("/v1/state/command").body(command), IfAbsent);
        let mut cases = vec![
            Case::new("cells.put", &[], set.clone(), IfAbsent),
            Case::new("cells.init", &[], Request { method: "POST", ..set.clone() }, Always),
            Case::new("cells.delete", &[&set], Request { method: "DELETE", body: Vec::new(), ..set.clone() }, Never),
            Case { fixed_group: Some(STATE), ..of_state },
            Case::new("records.put", &[], put_task.clone(), IfAbsent),
            Case::new("records.patch", &[], of_record("PATCH", r#"{"set":{"f":1}}"#), IfAbsent),
            Case::new("records.delete", &[&put_task], of_record("DELETE", ""), Never),
            Case::new("records.claim", &[&put_task], claim.clone(), Never),
            Case::new("runs.append", &[], append(thing), Always),
        ];
        for (verb, of_attempt, of_token) in ATTEMPTS {
            let token = format!("{group}#{thing}#1#h{}", self.history);
            let with = |member: &str, value: JsonValue| {
                let mut body = json!({ member: value });
                match *verb {
                    "step" => body["fields"] = json!({ "f": 1 }),
                    "fail" => body["error"] = "e".into(),
                    _ => {}
                }
                body.to_string()
            };
            let numbered = Request::post(format!("/v1/records/{thing}/{verb}")).query("group", group);
            cases.push(Case::new(of_attempt, &[&put_task, &claim], numbered.body(with("attempt", 1.into())), Never));
            let shown = Request::post(format!("/v1/attempts/{verb}")).body(with("token", token.into()));
            cases.push(Case::new(of_token, &[&put_task, &claim], shown, Never));
        }
        let of_run = |request: Request| request.query("group", group);
        let close = of_run(Request::post(format!("/v1/runs/{thing}/close")));
        cases.push(Case::new("runs.close", &[&append(thing)], close, Never));
        cases.push(Case::new(
            "runs.delete",
            &[&append(thing)],
            of_run(Request::delete(format!("/v1/runs/{thing}"))),
            Never,
        ));
        let fork = of_run(Request::post("/v1/runs/origin/fork")).body(json!({ "at": 1, "as": thing }).to_string());
        cases.push(Case::new("runs.fork", &[&append("origin")], fork, Never));
        cases.push(Case::new("sessions.request", &[], self.to_machine(group), Never));
        for (name, before, request) in keyed::routes(group, thing) {
            cases.push(Case::new(name, &before.iter().collect::<Vec<_>>(), request, Never));
        }
        for (name, before, request) in letters::routes(group, thing) {
            cases.push(Case { of_letter: true, ..Case::new(name, &[&before], request, Never) });
        }
        cases
    }

    /// A command for a user's machine.
    fn to_machine(&self, group: &str) -> Request {
        let [session, secret] = &self.session;
        let request = Request::post(format!("/v1/sessions/{session}/requests")).query("group", group);
        let request = request.query("machine", TallyMachine::NUMBER).header("statehouse-session-secret", secret);
        let request =
            request.header("statehouse-request", self.groups).header("statehouse-lowest-pending", self.groups);
        request.body(Tally::Add("n".into()).encode())
    }

    fn operations(&self, group: &str, thing: &str) -> Vec<Case> {
        use ForAnybody::{Always, IfAbsent, Never};
        let txn = format!("/v1/groups/{group}/txn");
        let ops = |ops: JsonValue| Request::post(&txn).body(json!({ "do": ops }).to_string());
        let set = ops(json!([{ "op": "cell.set", "name": thing, "value": 1 }]));
        let put = ops(json!([{ "op": "record.put", "name": thing, "type": "task", "fields": {} }]));
        let claim =
            Request::post("/v1/claims").query("group", group).body(json!({ "name": thing, "worker": "v" }).to_string());
        let held = [&put, &claim];
        let event = json!({ "eventType": "Progress", "idempotencyKey": "k", "emittedAt": "2026-02-11T10:00:00Z" });
        let [session, _] = &self.session;
        let named = |op: &str, more: JsonValue| {
            let mut operation = json!({ "op": op, "name": thing });
            let members = more.as_object().expect("an object").clone();
            operation.as_object_mut().expect("an object").extend(members);
            ops(json!([operation]))
        };
        let nothing = || json!({});
        let mut cases = vec![
            Case::new("cell.set", &[], set.clone(), IfAbsent),
            Case::new("cell.init", &[], named("cell.init", json!({ "value": 1 })), Always),
            Case::new("cell.delete", &[&set], named("cell.delete", nothing()), Never),
            Case::new("record.put", &[], put.clone(), IfAbsent),
            Case::new("record.patch", &[], named("record.patch", json!({ "set": { "f": 1 } })), IfAbsent),
            Case::new("record.incr", &[], named("record.incr", json!({ "field": "f" })), IfAbsent),
            Case::new("record.step", &held, named("record.step", json!({ "attempt": 1, "fields": { "f": 1 } })), Never),
            Case::new("record.release", &held, named("record.release", json!({ "attempt": 1 })), Never),
            Case::new("record.complete", &held, named("record.complete", json!({ "attempt": 1 })), Never),
            Case::new("record.fail", &held, named("record.fail", json!({ "attempt": 1, "error": "e" })), Never),
            Case::new("record.delete", &[&put], named("record.delete", nothing()), Never),
            Case::new("run.append", &[], ops(json!([{ "op": "run.append", "run": thing, "event": event }])), Always),
            Case::new("publish", &[], ops(json!([{ "op": "publish", "topic": "t", "payload": "p" }])), Never),
            Case::new("push", &[], ops(json!([{ "op": "push", "session": session, "payload": "p" }])), Never),
            Case::new(
                "send",
                &[],
                ops(json!([{ "op": "send", "group": "free", "do": [{ "op": "cell.init", "name": "a", "value": 1 }] }])),
                Never,
            ),
        ];
        for (name, first, members) in keyed::operations() {
            let before: Vec<_> = first.map(|first| named(first, nothing())).into_iter().collect();
            cases.push(Case::new(name, &before.iter().collect::<Vec<_>>(), named(name, members), Never));
        }
        cases
    }
}

/// The verbs of an attempt, with their two routes.
const ATTEMPTS: &[(&str, &str, &str)] = &[
    ("step", "records.step", "attempts.step"),
    ("extend", "records.extend", "attempts.extend"),
    ("release", "records.release", "attempts.release"),
    ("complete", "records.complete", "attempts.complete"),
    ("fail", "records.fail", "attempts.fail"),
];

/// A new session and its secret.
fn open_session(client: &Client) -> [String; 2] {
    let opened = client.call(Request::post("/v1/sessions").body(r#"{"timeout":"10m"}"#)).expect("a session").json();
    ["session", "secret"].map(|member| opened[member].as_str().expect("text").to_owned())
}

/// The code of a refusal, or that it was done.
fn outcome(response: &Response) -> String {
    if response.is_success() {
        return "done".to_owned();
    }
    let problem: JsonValue = serde_json::from_slice(&response.body).unwrap_or_default();
    problem["code"].as_str().map_or_else(|| format!("status {}", response.status), str::to_owned)
}
