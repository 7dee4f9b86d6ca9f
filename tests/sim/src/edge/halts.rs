//! A panic while applying an entry stops the store at once and for good: planted in every contract's apply, and in a user's
//! machine.
//!
//! Checks for each: writes are refused by name within 100 ms, the probes fail, nothing is journaled after the entry, and
//! reopening names the entry and the way out. Opened without the fault, the store continues with that entry.

use std::time::{Duration, Instant};

use serde_json::Value as JsonValue;
use statehouse::sessions::UserMachine;
use tempfile::TempDir;
use testkit::arguments::Arguments;
use testkit::http::{Client, Request};
use testkit::report::Report;
use testkit::server_process::{Launch, ServerProcess};

use crate::directories::fast_directory;
use crate::http::{PLANTED_KEY, TallyMachine};

const HALTED: &str = "SH-2007";
/// A name that is also the prefix of a queue.
const NAME: &str = "planted.";
const REFUSED_WITHIN: Duration = Duration::from_millis(100);

/// `sim edge-halts`.
pub(crate) fn run(_: &Arguments) -> Report {
    let plants = plants();
    let mut wrong = Vec::new();
    let mut slowest = Duration::ZERO;
    for (what, request) in &plants {
        match try_one(what, request) {
            Ok(took) => slowest = slowest.max(took),
            Err(complaint) => wrong.push(format!("{what}: {complaint}")),
        }
    }
    wrong.iter().for_each(|wrong| println!("{wrong}"));
    let mut report = Report::new("edge");
    let figure = format!("{}-panics-{}-wrong-refused-within-{}ms", plants.len(), wrong.len(), slowest.as_millis());
    let goal = "each is named, red within 100 ms, the last in its journal, and named again at opening";
    report.add("halts", figure, goal, wrong.is_empty());
    report
}

/// The planted faults, and the requests that trigger them.
fn plants() -> Vec<(&'static str, Request)> {
    let event = r#"{"eventType":"T","idempotencyKey":"k"}"#;
    let machine = format!("/v1/sessions/SESSION/requests?machine={}&group=g", TallyMachine::NUMBER);
    let set = format!(r#"{{"do":[{{"op":"cell.set","name":{NAME:?},"value":1}}]}}"#);
    let sent = format!(r#"{{"do":[{{"op":"send","group":"h",{}}}]}}"#, &set[1..set.len() - 1]);
    vec![
        ("cells", Request::put(format!("/v1/cells/{NAME}")).body("1")),
        ("records", Request::put(format!("/v1/records/{NAME}")).body(r#"{"fields":{}}"#)),
        ("claims", Request::post("/v1/claims").body(r#"{"prefix":"planted."}"#)),
        ("runs", Request::post(format!("/v1/runs/{NAME}/events")).body(event)),
        ("transactions", Request::post("/v1/groups/g/txn").body(set)),
        ("messages", Request::post("/v1/groups/g/txn").body(sent)),
        ("machine", Request::post(machine).body(format!("add {PLANTED_KEY}"))),
    ]
}

fn launch(directory: &TempDir, planted: bool) -> Launch {
    let this = std::env::current_exe().expect("the path of this program");
    let launch = Launch::program(this).arguments(["serve-machine", "--data"]).argument(directory.path().join("house"));
    // The store learns of a panic when its message is written, and finding the names for a backtrace takes a while.
    let launch = launch.environment("RUST_BACKTRACE", "0");
    if planted { launch.arguments(["--panic-at", NAME]) } else { launch }
}

/// Returns how long it took until a write was refused.
fn try_one(what: &str, request: &Request) -> Result<Duration, String> {
    let directory = fast_directory().expect("a directory");
    let server = launch(&directory, true).start()?;
    let client = Client::to(server.address());
    client.call(Request::put("/v1/cells/before").body("1")).map_err(|error| error.to_string())?;
    let before = durable(&client)?;
    let request = in_session(&client, request)?;
    let began = Instant::now();
    // The outcome may be unknown, and the answer may not arrive before the deadline of the request.
    let met = client.send(&request).map_err(|error| error.to_string())?;
    if what == "messages" {
        // A tick applies it soon after the answer; until then the store accepts writes, rightly.
        while ready(&client)? && began.elapsed() < Duration::from_secs(5) {}
    }
    let refused = loop {
        let write = client.send(Request::put("/v1/cells/after").body("1")).map_err(|error| error.to_string())?;
        let problem: JsonValue = serde_json::from_slice(&write.body).unwrap_or_default();
        if problem["code"] == HALTED {
            break problem["detail"].as_str().unwrap_or_default().to_owned();
        }
        if began.elapsed() > Duration::from_secs(5) {
            return Err(format!("met {} {}, and writes go on: {}", met.status, met.text(), write.text()));
        }
    };
    let took = began.elapsed();
    let entry = entry_in(&refused).ok_or_else(|| format!("no entry is named: {refused}"))?;
    if what == "machine" && !refused.contains("machine 256 (version 1) panicked") {
        return Err(format!("the machine is not named: {refused}"));
    }
    if took > REFUSED_WITHIN {
        return Err(format!("a write was refused only after {} ms", took.as_millis()));
    }
    let live = client.send(Request::get("/livez")).map_err(|error| error.to_string())?.status;
    if live != 503 || ready(&client)? {
        return Err(format!("the probes are not red: /livez says {live}"));
    }
    for _ in 0..20 {
        let write = client.send(Request::put("/v1/cells/after").body("1")).map_err(|error| error.to_string())?;
        if write.status != 503 {
            return Err(format!("a write behind it was answered {}", write.status));
        }
    }
    let after = durable(&client)?;
    // A message is applied by the tick after the entry that sends it.
    if after != entry || after > before + 2 {
        return Err(format!("entry {entry} panicked, and the journal ends with entry {after}"));
    }
    server.kill();
    reopened(&directory, entry)?;
    Ok(took)
}

fn ready(client: &Client) -> Result<bool, String> {
    let probe = client.send(Request::get("/readyz")).map_err(|error| error.to_string())?;
    Ok(probe.status == 200)
}

/// Reopening with the fault names the entry and what to do; without it, the store continues.
fn reopened(directory: &TempDir, entry: u64) -> Result<(), String> {
    match launch(directory, true).start() {
        Ok(_) => return Err("it opens again with the fault in it".to_owned()),
        Err(said) if entry_in(&said) != Some(entry) => {
            return Err(format!("at opening entry {entry} is not named: {said}"));
        }
        Err(said) if !said.contains("open") => return Err(format!("at opening no way out is named: {said}")),
        Err(_) => {}
    }
    // The fault of this program's machine is in its code: there is no repaired machine to open with.
    let server: Result<ServerProcess, String> = launch(directory, false).start();
    match server {
        Ok(server) => {
            let client = Client::to(server.address());
            let write = client.call(Request::put("/v1/cells/after").body("1"));
            write.map(drop).map_err(|error| format!("opened without the fault: {error}"))
        }
        Err(said) if said.contains("machine 256") => Ok(()),
        Err(said) => Err(format!("it does not open without the fault: {said}")),
    }
}

/// The number after `entry ` in a message.
fn entry_in(message: &str) -> Option<u64> {
    let (_, after) = message.split_once("entry ")?;
    let end = after.find(|character: char| !character.is_ascii_digit()).unwrap_or(after.len());
    after[..end].parse().ok()
}

/// The last durable entry.
fn durable(client: &Client) -> Result<u64, String> {
    let metrics = client.send(Request::get("/metrics")).map_err(|error| error.to_string())?.text();
    let line = metrics.lines().find_map(|line| line.strip_prefix("statehouse_durable_index "));
    let number = line.and_then(|number| number.trim().parse::<f64>().ok()).ok_or("no statehouse_durable_index")?;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count of entries")]
    Ok(number as u64)
}

/// The request with the session that it names.
fn in_session(client: &Client, request: &Request) -> Result<Request, String> {
    if !request.path.contains("SESSION") {
        return Ok(request.clone());
    }
    let opened = client.call(Request::post("/v1/sessions").body(r#"{"timeout":"10m"}"#));
    let opened = opened.map_err(|error| error.to_string())?.json();
    let [session, secret] = ["session", "secret"].map(|member| opened[member].as_str().expect("text").to_owned());
    let request = Request { path: request.path.replace("SESSION", &session), ..request.clone() };
    Ok(request.header("statehouse-session-secret", secret).header("statehouse-request", 1))
}
