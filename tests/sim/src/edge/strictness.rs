//! `sim edge-strictness`: everything in a request is honoured or refused by name.
//!
//! - [`bodies`]: every body of the document with every member misspelt, added, repeated and of another type.
//! - [`heads`]: every parameter and every header that could change what a request means, for every route.
//! - [`together`]: every pair of members of a guard and of a patch: both count, or the pair is refused.
//!
//! The cases are generated from `/openapi.json`, which the server generates from its table of routes. Keeps: a refused request
//! changes nothing; the store's hash and its last commit are the same before and after.

mod bodies;
mod heads;
mod together;

use std::collections::BTreeMap;

use serde_json::Value as JsonValue;
use server::Server;
use statehouse::Statehouse;
use testkit::arguments::Arguments;
use testkit::http::{Client, Request, Response};
use testkit::report::Report;

use crate::directories::fast_directory;

/// The minimum number of cases.
const CASES_MIN: u64 = 3_000;

/// The number of cases, and the failures.
#[derive(Default)]
pub(crate) struct Tally {
    cases: BTreeMap<&'static str, u64>,
    exceptions: Vec<String>,
}

impl Tally {
    fn case(&mut self, kind: &'static str, held: bool, what: impl FnOnce() -> String) {
        *self.cases.entry(kind).or_default() += 1;
        if !held {
            self.exceptions.push(format!("{kind}: {}", what()));
        }
    }

    /// Sends a request that must be refused with 400, naming a member.
    fn refused(&mut self, kind: &'static str, client: &Client, request: Request, member: &str) {
        let said = format!("{} {} {:?} {}", request.method, request.path, request.headers, show(&request.body));
        let response = client.send(&request).expect("an answer");
        let named = is_refused(&response, member);
        self.case(kind, named, || {
            format!("{said} is not refused by {member:?}: {} {}", response.status, response.text())
        });
    }
}

fn show(body: &[u8]) -> String {
    String::from_utf8_lossy(body).chars().take(400).collect()
}

/// Whether an answer refuses a member: its name is in the problem and in the text for people.
fn is_refused(response: &Response, member: &str) -> bool {
    if response.status != 400 {
        return false;
    }
    let problem = response.json();
    let detail = problem["detail"].as_str().unwrap_or_default();
    // Invalid events have their own code.
    if problem["code"] == "SH-3001" {
        return problem["what"] == last_name(member) || (problem["what"] == "event" && member.ends_with(']'));
    }
    problem["code"] == "SH-1030" && problem["member"] == member && detail.contains(last_name(member))
}

/// The last name of a path of members.
fn last_name(member: &str) -> &str {
    member.rsplit(['.', ']']).next().filter(|name| !name.is_empty()).unwrap_or(member)
}

/// One call of the document.
pub(crate) struct Operation {
    method: &'static str,
    /// With names filled in.
    path: String,
    name: String,
    described: JsonValue,
}

impl Operation {
    fn request(&self) -> Request {
        Request::new(self.method, &self.path)
    }

    /// The parameters in the query or in headers, by name.
    fn parameters(&self, within: &str) -> Vec<&JsonValue> {
        let parameters = self.described["parameters"].as_array().into_iter().flatten();
        parameters.filter(|parameter| parameter["in"] == within).collect()
    }

    fn honours(&self, within: &str, name: &str) -> bool {
        self.parameters(within).iter().any(|parameter| parameter["name"] == name)
    }
}

fn operations(document: &JsonValue) -> Vec<Operation> {
    let mut operations = Vec::new();
    for (template, item) in document["paths"].as_object().expect("paths") {
        for (method, described) in item.as_object().expect("methods") {
            let method = match method.as_str() {
                "get" => "GET",
                "put" => "PUT",
                "patch" => "PATCH",
                "post" => "POST",
                "delete" => "DELETE",
                _ => continue,
            };
            let path = template
                .replace("{session}", "s-1")
                .replace("{prefix}", "strict.")
                .replace("{space}", "strict")
                .replace("{branch}", "strict")
                .replace("{code}", "SH-1030")
                .replace("{name}", "strict")
                .replace("{run}", "strict")
                .replace("{map}", "strict")
                .replace("{operator}", "strict")
                .replace("{partition}", "0")
                .replace("{principal}", "strict")
                .replace("{token}", "strict")
                .replace("{key}", "strict")
                .replace("{group}", "strict");
            let name = described["operationId"].as_str().expect("an id").to_owned();
            operations.push(Operation { method, path, name, described: described.clone() });
        }
    }
    operations
}

/// A server in this process.
pub(crate) struct Served {
    house: Statehouse,
    client: Client,
    _runtime: tokio::runtime::Runtime,
    _directory: tempfile::TempDir,
}

impl Served {
    fn start() -> Self {
        let directory = fast_directory().expect("a directory");
        let house = Statehouse::open(directory.path().join("house")).expect("a house");
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let listener = runtime.block_on(server::listen("127.0.0.1:0".parse().expect("an address"))).expect("a port");
        let client = Client::to(listener.local_addr().expect("an address"));
        runtime.spawn(server::serve_all(listener, Server::new(house.clone()), std::future::pending()));
        Self { house, client, _runtime: runtime, _directory: directory }
    }

    /// The state of the store: its last commit, and the hash over everything ever applied.
    fn state(&self) -> (u64, u64) {
        let status = self.house.status().expect("a status");
        (status.commit, status.effects_hash)
    }
}

/// Generates the cases from the OpenAPI document and sends them.
pub(crate) fn run(_: &Arguments) -> Report {
    let served = Served::start();
    let document = served.client.send(Request::get("/openapi.json")).expect("an answer").json();
    let operations = operations(&document);
    for (path, body) in [("/v1/cells/strict", "1"), ("/v1/records/strict", r#"{"fields":{"n":1}}"#)] {
        assert!(served.client.send(Request::put(path).body(body)).expect("an answer").is_success());
    }
    let before = served.state();
    let mut tally = Tally::default();
    for operation in &operations {
        bodies::run(&served.client, operation, &document, &mut tally);
        heads::run(&served.client, operation, &mut tally);
    }
    let unchanged = served.state() == before;
    together::run(&served, &mut tally);

    for exception in tally.exceptions.iter().take(40) {
        println!("{exception}");
    }
    let cases: u64 = tally.cases.values().sum();
    let counted: Vec<_> = tally.cases.iter().map(|(kind, count)| format!("{count}-{kind}")).collect();
    println!("{} operations: {}", operations.len(), counted.join(" "));
    let mut report = Report::new("edge");
    let exceptions = tally.exceptions.len();
    let figure = format!("{cases}-cases-{exceptions}-exceptions");
    let goal = "3,000 cases, 0 exceptions: each honoured, or refused with 400 by name";
    report.add("strictness", figure, goal, cases >= CASES_MIN && exceptions == 0);
    let figure = if unchanged { "equal" } else { "different" };
    report.add("strictness-hash", figure, "the store's hash is equal before and after", unchanged);
    report
}
