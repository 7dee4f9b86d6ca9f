//! A session's request number is bound to its command: tests all pairs of operations, each sent under the other's number.
//!
//! Every operation that can be sent in a session is here, each also with another body, under another name and in another
//! space. Checks for each pair: the second is refused as `RequestReused`, nothing changes, and the first, sent again, gets
//! the same answer as before.

use serde_json::Value as JsonValue;
use tempfile::TempDir;
use testkit::arguments::Arguments;
use testkit::http::{Client, Request, Response};
use testkit::report::Report;
use testkit::server_process::{Launch, ServerProcess};

use crate::directories::fast_directory;

const REUSED: &str = "SH-5006";

/// `sim edge-reuse [--stride N]`: with a stride, every Nth pair.
pub(crate) fn run(arguments: &Arguments) -> Report {
    let stride = usize::try_from(arguments.number("stride", 1)).expect("a small number");
    let found = Scene::start(&[]).try_pairs(stride);
    found.wrong.iter().take(20).for_each(|wrong| println!("{wrong}"));
    let canary = Scene::start(&["--miss-reuse"]).try_pairs(stride.max(7));
    let mut report = Report::new("edge");
    let figure = format!("{}-pairs-of-{}-requests-{}-wrong", found.pairs, found.requests, found.wrong.len());
    let goal = "every pair refused by name, nothing changed, the answer kept";
    report.add("reuse", figure, goal, found.wrong.is_empty() && found.pairs > 0);
    let missed = canary.wrong.len();
    report.add("reuse-canary", format!("{missed}-wrong"), "wrong answers found without digests", missed > 0);
    report
}

struct Found {
    requests: usize,
    pairs: usize,
    wrong: Vec<String>,
}

/// A server on a directory with some data.
struct Scene {
    client: Client,
    _server: ServerProcess,
    _directory: TempDir,
}

impl Scene {
    fn start(plant: &[&str]) -> Self {
        let directory = fast_directory().expect("a directory");
        let this = std::env::current_exe().expect("the path of this program");
        let launch = Launch::program(this).arguments(["serve-machine", "--data"]);
        let server = launch.argument(directory.path().join("house")).arguments(plant).start().expect("a server");
        let client = Client::to(server.address());
        client.call(Request::put("/v1/spaces/other")).expect("a space");
        let scene = Self { client, _server: server, _directory: directory };
        for name in ["jobs.a", "jobs.b", "left.a"] {
            let task = Request::put(format!("/v1/records/{name}")).body(r#"{"type":"task","fields":{"n":1}}"#);
            scene.client.call(task).expect("a job");
        }
        for run in ["run-a", "run-b"] {
            let event = Request::post(format!("/v1/runs/{run}/events"));
            scene.client.call(event.body(r#"{"eventType":"T","idempotencyKey":"first"}"#)).expect("a run");
        }
        scene
    }

    /// Sends every request under the number of every other.
    fn try_pairs(&self, stride: usize) -> Found {
        let requests = requests(&["default", "other"].map(|space| (space, self.place_of_tokens(space))));
        let mut found = Found { requests: requests.len(), pairs: 0, wrong: Vec::new() };
        for (place, one) in requests.iter().enumerate() {
            let session = self.session();
            let send = |request: &Request| self.client.send(numbered(request, &session)).expect("an answer");
            let first = send(one);
            let before = self.position();
            for (other_place, other) in requests.iter().enumerate() {
                if other_place == place || (place + other_place) % stride != 0 {
                    continue;
                }
                found.pairs += 1;
                let response = send(other);
                if code(&response) != REUSED || response.status != 422 {
                    found.wrong.push(format!("{} under the number of {}: {}", said(other), said(one), response.text()));
                }
            }
            if self.position() != before {
                found.wrong.push(format!("something changed under the number of {}", said(one)));
            }
            let again = send(one);
            let replayed = again.header("statehouse-replayed") == Some("true") || again.status >= 400;
            if (again.status, &again.body, replayed) != (first.status, &first.body, true) {
                found.wrong.push(format!("{}: {} became {}", said(one), first.text(), again.text()));
            }
        }
        found
    }

    /// A new session and its secret, as the headers have them.
    fn session(&self) -> [String; 2] {
        let opened = self.client.call(Request::post("/v1/sessions").body(r#"{"timeout":"10m"}"#)).expect("a session");
        let opened = opened.json();
        ["session", "secret"].map(|member| opened[member].as_str().expect("text").to_owned())
    }

    /// What a token of the owner of a group in a space says behind the attempt.
    fn place_of_tokens(&self, space: &str) -> String {
        let own = Request::post("/v1/groups/place/own").query("space", space).body(r#"{"worker":"w"}"#);
        let owned = self.client.call(own).expect("a token").json();
        let token = owned["token"].as_str().expect("text");
        token.strip_prefix("place#1").unwrap_or_else(|| panic!("{token}")).to_owned()
    }

    /// The end of the change feed.
    fn position(&self) -> String {
        let read = Request::get("/v1/changes?limit=1000&from=c-0");
        let mut last = String::new();
        let mut page = self.client.call(read).expect("changes").json();
        while let Some(changes) = page["changes"].as_array().filter(|changes| !changes.is_empty()) {
            last = changes.last().expect("one").to_string();
            let Some(next) = next_page(&page) else { break };
            page =
                self.client.call(Request::get("/v1/changes?limit=1000").query("from", next)).expect("changes").json();
        }
        last
    }
}

fn next_page(page: &JsonValue) -> Option<String> {
    match &page["next"] {
        JsonValue::Null => None,
        JsonValue::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

fn numbered(request: &Request, [session, secret]: &[String; 2]) -> Request {
    let request = request.clone().header("statehouse-session", session).header("statehouse-session-secret", secret);
    request.header("statehouse-request", 1)
}

fn code(response: &Response) -> String {
    let problem: JsonValue = serde_json::from_slice(&response.body).unwrap_or_default();
    problem["code"].as_str().unwrap_or_default().to_owned()
}

fn said(request: &Request) -> String {
    format!("{} {} {}", request.method, request.path, String::from_utf8_lossy(&request.body))
}

/// Every operation, each with another body where it has one, under another name, and in another space.
fn requests(places_of_tokens: &[(&str, String); 2]) -> Vec<Request> {
    let mut requests = Vec::new();
    for name in ["a", "b"] {
        let cell = format!("/v1/cells/{name}");
        let (record, job, run) =
            (format!("/v1/records/{name}"), format!("/v1/records/jobs.{name}"), format!("/v1/runs/run-{name}"));
        let put = r#"{"fields":{"f":1}}"#;
        let mut add = |request: Request| {
            requests.push(request.clone().query("space", "other"));
            requests.push(request);
        };
        for value in ["1", "1.0", "\"1\""] {
            add(Request::put(&cell).body(value));
        }
        add(Request::put(&cell).header("if-match", "\"1\"").body("1"));
        add(Request::put(&cell).header("if-none-match", "*").body("1"));
        add(Request::put(&cell).query("group", "g").body("1"));
        add(Request::delete(&cell));
        add(Request::put(&record).body(put));
        add(Request::put(&record).body(r#"{"fields":{"f":1},"ttl":"10m"}"#));
        add(Request::put(&record).body(r#"{"fields":{"f":1},"type":"task"}"#));
        for patch in [
            r#"{"set":{"f":2}}"#,
            r#"{"unset":["f"]}"#,
            r#"{"incr":{"n":1}}"#,
            r#"{"incr":{"n":2}}"#,
            r#"{"set":{"f":2},"expect":{"f":1}}"#,
            r#"{"ttl":"10m"}"#,
        ] {
            add(Request::patch(&record).body(patch));
        }
        add(Request::patch(&record).header("if-match", "\"1\"").body(r#"{"set":{"f":2}}"#));
        add(Request::delete(&record));
        for (act, body) in [
            ("step", r#"{"attempt":1,"fields":{"f":1}}"#),
            ("step", r#"{"attempt":2,"fields":{"f":1}}"#),
            ("extend", r#"{"attempt":1}"#),
            ("extend", r#"{"attempt":1,"lease":"1m"}"#),
            ("release", r#"{"attempt":1}"#),
            ("complete", r#"{"attempt":1}"#),
            ("complete", r#"{"attempt":1,"fields":{"f":1}}"#),
            ("fail", r#"{"attempt":1,"error":"e"}"#),
            ("fail", r#"{"attempt":1,"error":"f"}"#),
        ] {
            add(Request::post(format!("{job}/{act}")).body(body));
        }
        let event = r#"{"eventType":"T","idempotencyKey":"k"}"#;
        let events = format!("{run}/events");
        add(Request::post(&events).body(event));
        add(Request::post(&events).body(r#"{"eventType":"T","idempotencyKey":"l"}"#));
        add(Request::post(&events).body(format!("[{event},{event}]")));
        add(Request::post(&events).header("if-match", "\"9\"").body(event));
        add(Request::post(&events).query("type", "t").body(event));
        add(Request::post(format!("{run}/fork")).body(format!(r#"{{"as":"fork-{name}","at":1}}"#)));
        add(Request::post(format!("{run}/close")));
        let set = r#"{"op":"cell.set","name":"t","value":1}"#;
        let txn = format!("/v1/groups/{name}/txn");
        for body in [
            format!(r#"{{"do":[{set}]}}"#),
            format!(r#"{{"do":[{set},{set}]}}"#),
            format!(r#"{{"if":[{{"cell":"t","absent":true}}],"do":[{set}]}}"#),
            format!(r#"{{"do":[{{"op":"send","group":"h","after":"2h","do":[{set}]}}]}}"#),
            format!(r#"{{"do":[{{"op":"send","group":"h","after":"1h","do":[{set}]}}]}}"#),
            format!(r#"{{"do":[{{"op":"record.incr","name":"n","field":"f","by":1}},{set}]}}"#),
        ] {
            add(Request::post(&txn).body(body));
        }
        for number in [1, 2] {
            let letter = format!(r#"{{"number":{number}}}"#);
            add(Request::post("/v1/letters/retry").query("group", name).body(letter.clone()));
            add(Request::post("/v1/letters/drop").query("group", name).body(letter));
        }
        // The owner of a group is taken last, and the others have tried to touch it.
        for (space, place) in places_of_tokens {
            let token = format!("{name}#1{place}");
            let body = format!(r##"{{"token":"{token}"}}"##);
            let mut add = |request: Request| match *space {
                "default" => requests.push(request),
                _ => requests.push(request.query("space", space)),
            };
            add(Request::post(format!("/v1/groups/{name}/extend")).body(body.clone()));
            add(Request::post(format!("/v1/groups/{name}/release")).body(body));
            add(Request::put(&cell).query("group", name).header("statehouse-owner", token).body("1"));
        }
        let mut add = |request: Request| {
            requests.push(request.clone().query("space", "other"));
            requests.push(request);
        };
        add(Request::put(&cell).query("group", name).header("statehouse-force", "true").body("1"));
        for body in [r#"{"worker":"w"}"#, r#"{"worker":"v"}"#, r#"{"worker":"w","lease":"1m"}"#] {
            add(Request::post(format!("/v1/groups/{name}/own")).body(body));
        }
        add(Request::post(format!("/v1/groups/{name}/own"))
            .header("statehouse-force", "true")
            .body(r#"{"worker":"w"}"#));
        // Last of a name: what they take, the others have tried to touch.
        add(Request::post("/v1/claims").body(format!(r#"{{"name":"jobs.{name}","worker":"w"}}"#)));
    }
    // A claim that finds nothing stores no answer, so each of these has its own job.
    requests.push(Request::post("/v1/claims").body(r#"{"prefix":"left.","n":1,"worker":"w"}"#));
    requests
}
