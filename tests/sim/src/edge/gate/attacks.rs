//! Pages in a real browser that try to change and read a server's data.
//!
//! - from another site: `http://evil.example`, at `localhost` and `127.0.0.1`;
//! - from the same site and another port: `http://localhost:PORT`;
//! - by DNS rebinding: `http://rebind.example` is our server when the page asks again. To the browser all of it is one origin, so
//!   only the name gives it away. The same page must succeed where that name is listed, or the test proves nothing.
//!
//! Also: `/docs` still works under its policy.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value as JsonValue};
use testkit::http::Client;
use testkit::http::message::Request;
use testkit::report::Report;
use testkit::server_process::{Launch, ServerProcess, binary};

use super::browser::{Browser, rendered};
use super::lure::{Lure, Passed};
use crate::directories::fast_directory;
use crate::tools;

const PAGE: &str = include_str!("attack_page.html");

/// The secret that must not be read. It is in a value and in a name, and so in metrics and feeds.
const SECRET: &str = "the-secret-of-the-house";

/// How long a page may take for all its attempts.
const PAGE_TIME_MAX: Duration = Duration::from_secs(40);

/// The attempts of a page, per target.
const ATTEMPTS: usize = 29;

/// Runs every attack and reports what got through.
pub(super) fn run(report: &mut Report) {
    let goals =
        ["nothing changed, nothing read", "the same page reads and writes where its name is listed", "it works"];
    let ran = tools::chromium().and_then(|chromium| {
        attack(&chromium, report, goals[0])?;
        control(&chromium, report, goals[1])?;
        docs(&chromium, report, goals[2])
    });
    if let Err(complaint) = ran {
        println!("edge-gate: {complaint}");
        report.add("gate.chromium", "not-run", goals[0], false);
    }
}

/// A server with data to change and read.
struct House {
    server: ServerProcess,
    client: Client,
    _directory: tempfile::TempDir,
}

impl House {
    fn start(hosts: &str) -> Result<Self, String> {
        let directory = fast_directory().map_err(|error| error.to_string())?;
        let launch = Launch::serve(binary(), directory.path().join("house"));
        let server = launch.environment("STATEHOUSE_SERVER__HOSTS", hosts).start()?;
        let client = Client::to(server.address());
        let record = r#"{"fields":{"f":"unchanged"}}"#.to_owned();
        let job = r#"{"type":"task","fields":{}}"#.to_owned();
        for (path, body) in [
            ("/v1/cells/secret", format!("{SECRET:?}")),
            ("/v1/cells/victim/put", "\"unchanged\"".to_owned()),
            ("/v1/cells/victim/delete", "\"unchanged\"".to_owned()),
            ("/v1/cells/victim/txn?group=victim", "\"unchanged\"".to_owned()),
            ("/v1/records/victim", record),
            ("/v1/records/job.1", job),
        ] {
            let made = client.send(Request::put(path).body(body)).map_err(|error| error.to_string())?;
            assert!(made.is_success(), "{path}: {}", made.text());
        }
        Ok(Self { server, client, _directory: directory })
    }

    /// Everything that a page could have changed: the change feed ends at the same commit, there are no sessions, and no backup
    /// was taken.
    fn state(&self) -> String {
        let get = |path: &str| self.client.send(Request::get(path)).expect("an answer").text();
        let metrics = get("/metrics");
        let backups: Vec<_> = metrics.lines().filter(|line| line.starts_with("statehouse_backup")).collect();
        let lists = ["/v1/changes?from=c-0&limit=1000", "/v1/sessions", "/v1/cells", "/v1/records?prefix="].map(get);
        format!("{} {}", lists.join(" "), backups.join(" "))
    }
}

/// Opens a page under a name; returns its report and its lure. The page reports to a third party: a browser could send a report to the
/// page's own origin on a connection to our server.
fn visit(
    chromium: &Path,
    name: &str,
    server: SocketAddr,
    targets: &[String],
) -> Result<(Map<String, JsonValue>, Lure), String> {
    let collector = Lure::set(server, String::new()).map_err(|error| error.to_string())?;
    let page = PAGE.replace("TARGETS", &serde_json::to_string(targets).expect("JSON"));
    let page = page.replace("REPORT_TO", &format!("http://127.0.0.1:{}/report", collector.port));
    let lure = Lure::set(server, page).map_err(|error| error.to_string())?;
    let _browser = Browser::open(chromium, &format!("http://{name}:{}/page", lure.port))?;
    let reported = collector.report(PAGE_TIME_MAX).ok_or_else(|| format!("the page at {name} reported nothing"))?;
    Ok((reported.as_object().cloned().unwrap_or_default(), lure))
}

fn attack(chromium: &Path, report: &mut Report, goal: &str) -> Result<(), String> {
    let house = House::start("state.internal")?;
    let before = house.state();
    let address = house.server.address();
    // All requests to our server pass through this, so that they are visible.
    let wire = Lure::set(address, String::new()).map_err(|error| error.to_string())?;
    let both = [format!("http://localhost:{}", wire.port), format!("http://127.0.0.1:{}", wire.port)];
    let own = ["own".to_owned()];
    for (item, name, targets) in [
        ("gate.cross-site", "evil.example", both.as_slice()),
        ("gate.same-site", "localhost", &both[..1]),
        ("gate.rebinding", "rebind.example", &own),
    ] {
        let passed_before = wire.passed();
        let (results, lure) = visit(chromium, name, address, targets)?;
        let passed = match item {
            "gate.rebinding" => lure.passed(),
            _ => since(&wire.passed(), &passed_before),
        };
        let read = results.iter().filter(|(_, result)| result.as_str().is_some_and(|text| text.contains(SECRET)));
        let read: Vec<_> = read.map(|(attempt, _)| attempt.as_str()).collect();
        let let_in: Vec<_> = passed.statuses.iter().filter(|status| !is_refusal(status)).collect();
        let changed = house.state() != before;
        if !read.is_empty() || !let_in.is_empty() || changed {
            println!("edge-gate: {item}: read by {read:?}, answered {let_in:?}, changed {changed}: {passed:?}");
        }
        let (tried, arrived) = (results.len(), passed.requests.len());
        let figure = format!(
            "{tried}-tried {arrived}-arrived {}-let-in {}-read {}",
            let_in.len(),
            read.len(),
            if changed { "changed" } else { "nothing-changed" }
        );
        // The browser stops some of them after a refused preflight. Most arrive.
        let enough = tried == ATTEMPTS * targets.len() && arrived >= tried * 2 / 3;
        report.add(item, figure, goal, enough && let_in.is_empty() && read.is_empty() && !changed);
    }
    Ok(())
}

fn since(now: &Passed, before: &Passed) -> Passed {
    Passed {
        requests: now.requests[before.requests.len()..].to_vec(),
        statuses: now.statuses[before.statuses.len()..].to_vec(),
    }
}

fn is_refusal(status: &str) -> bool {
    status.starts_with("403 ") || status.starts_with("421 ")
}

/// The rebound page, where its name is listed: it must read and write, or the attack above proves nothing.
fn control(chromium: &Path, report: &mut Report, goal: &str) -> Result<(), String> {
    let house = House::start("rebind.example")?;
    let before = house.state();
    let (results, _lure) = visit(chromium, "rebind.example", house.server.address(), &["own".to_owned()])?;
    let read = results.values().filter(|result| result.as_str().is_some_and(|text| text.contains(SECRET))).count();
    let changed = house.state() != before;
    let figure = format!("{read}-read {}", if changed { "changed" } else { "nothing-changed" });
    report.add("gate.control", figure, goal, read > 0 && changed);
    Ok(())
}

/// The page that shows the API runs under its policy.
fn docs(chromium: &Path, report: &mut Report, goal: &str) -> Result<(), String> {
    let house = House::start("state.internal")?;
    let (page, console) = rendered(chromium, &format!("http://{}/docs", house.server.address()))?;
    let operations = page.matches("<details>").count();
    let violations = console.matches("Content Security Policy").count();
    if violations > 0 {
        println!("edge-gate: {console}");
    }
    let figure = format!("{operations}-operations-shown {violations}-violations");
    report.add("gate.docs", figure, goal, operations > 30 && violations == 0);
    Ok(())
}
