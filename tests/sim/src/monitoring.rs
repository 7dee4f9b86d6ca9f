//! What `monitoring/` ships, by Prometheus' own tool: the rules are checked, each alert is tested, and what a server
//! process says at `/metrics` is linted.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use testkit::arguments::Arguments;
use testkit::http::Client;
use testkit::http::message::Request;
use testkit::report::Report;
use testkit::server_process::{Launch, binary};

use crate::tools;

/// What is done before the scrape, so that every kind of metric has something to say.
const DONE: [(&str, &str, &str); 7] = [
    ("PUT", "/v1/cells/a", "1"),
    ("PUT", "/v1/records/jobs.1", r#"{"type":"task","fields":{}}"#),
    ("PUT", "/v1/records/jobs.2", r#"{"type":"task","fields":{}}"#),
    ("POST", "/v1/claims", r#"{"prefix":"jobs."}"#),
    ("POST", "/v1/records/jobs.1/complete", r#"{"attempt":7}"#),
    ("POST", "/v1/sessions", "{}"),
    (
        "POST",
        "/v1/runs/r/events?type=import",
        r#"{"eventType":"RunStarted","idempotencyKey":"k","emittedAt":"2026-02-11T10:00:00Z","eventData":{}}"#,
    ),
];

/// `sim monitoring`.
pub(crate) fn run(_arguments: &Arguments) -> Report {
    let mut report = Report::new("server");
    match check(&mut report) {
        Ok(()) => {}
        Err(why) => {
            eprintln!("{why}");
            report.add("metrics", "it could not be looked at", "promtool finds nothing", false);
        }
    }
    report
}

fn check(report: &mut Report) -> Result<(), String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../monitoring");
    let rules = std::fs::read_to_string(folder.join("alerts.yml")).map_err(|error| error.to_string())?;
    let tests = std::fs::read_to_string(folder.join("alerts_test.yml")).map_err(|error| error.to_string())?;
    let alerts: BTreeSet<&str> = rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    let tool = tools::promtool()?;
    let promtool = |arguments: &[&str], input: Option<&[u8]>| promtool(&tool, arguments, &folder, input);
    promtool(&["check", "rules", "alerts.yml"], None)?;
    report.add("metrics", format!("{} alerts checked", alerts.len()), "promtool finds nothing", !alerts.is_empty());

    promtool(&["test", "rules", "alerts_test.yml"], None)?;
    let tested = |outcome: &str| {
        let named = tests.lines().filter_map(|line| line.trim().strip_prefix("- name: ")?.strip_suffix(outcome));
        named.collect::<BTreeSet<_>>() == alerts
    };
    let both = tested(" fires") && tested(" is quiet");
    report.add("metrics", format!("{} rules tested", 2 * alerts.len()), "each fires and is quiet", both);

    let server = Launch::dev(binary()).start()?;
    let client = Client::to(server.address());
    for (method, path, body) in DONE {
        let request = Request::new(method, path).body(body);
        client.send_plain(&request).map_err(|error| format!("{method} {path}: {error}"))?;
    }
    let scraped = client.send_plain(&Request::get("/metrics")).map_err(|error| error.to_string())?;
    promtool(&["check", "metrics"], Some(&scraped.body))?;
    let text = scraped.text();
    let found: BTreeSet<&str> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let listed: BTreeSet<&str> = server::metrics::list::METRICS.iter().map(|metric| metric.name).collect();
    let missing: Vec<_> = listed.difference(&found).collect();
    if !missing.is_empty() {
        eprintln!("not in the scrape: {missing:?}");
    }
    let goal = format!("{}, all that are listed", listed.len());
    report.add("metrics", format!("{} metrics linted", found.len()), &goal, found == listed);
    Ok(())
}

/// Runs promtool; what it complains about is an error.
fn promtool(tool: &Path, arguments: &[&str], folder: &Path, input: Option<&[u8]>) -> Result<(), String> {
    let mut child = Command::new(tool)
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("could not run promtool: {error}"))?;
    let mut stdin = child.stdin.take().expect("it was asked for");
    stdin.write_all(input.unwrap_or_default()).map_err(|error| error.to_string())?;
    drop(stdin);
    let ended = child.wait_with_output().map_err(|error| error.to_string())?;
    let said = [ended.stdout, ended.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    if ended.status.success() { Ok(()) } else { Err(format!("promtool {}: {said}", arguments.join(" "))) }
}
