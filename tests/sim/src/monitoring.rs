//! What `monitoring/` ships, by Prometheus' own tool: the rules are checked, each alert is tested, and what a server
//! process says at `/metrics` is linted.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use client::ClientOptions;
use testkit::arguments::Arguments;
use testkit::http::{Client, Request, block_on};
use testkit::report::Report;
use testkit::server_process::{Launch, binary};

use wire::keyed::checkpoints::TakeCheckpoint;
use wire::keyed::operators::{AcquirePartition, CommitPartition};
use wire::records::PutRecord;
use wire::records::claims::Claim;
use wire::runs::{AppendEvents, NewEvents};
use wire::sessions::OpenSession;
use wire::values::{DurationText, JsonText, Members, UserJson};

use crate::tools;

/// What is done before the scrape, so that every kind of metric has something to say.
async fn work(client: &client::Client) -> Result<(), client::Error> {
    client.cells().set("a", 1).await?;
    let job = PutRecord { record_type: Some("task".to_owned()), ..PutRecord::of(Members::default()) };
    for name in ["jobs.1", "jobs.2"] {
        client.records().put(name, &job, None).await?;
    }
    client.records().claim(&Claim::of_queue("jobs.")).await?;
    // As a projector stores its position, in a program that embeds the store.
    let position = Members(vec![("cursor".to_owned(), UserJson(1.into()))]);
    client.records().put("projectors.sums", &PutRecord::of(position), None).await?;
    client.sessions().open(&OpenSession::default()).await?;
    let owned = client.partition("words", 0).acquire(&AcquirePartition::by("w")).await?;
    owned.commit(&CommitPartition::numbered(owned.next())).await?;
    let wait = Some(DurationText(Duration::from_secs(30)));
    owned.checkpoint(&TakeCheckpoint { wait, ..TakeCheckpoint::default() }).await?;
    let import = AppendEvents { run_type: Some("import".to_owned()), ..AppendEvents::default() };
    let started = NewEvents::One(JsonText(
        r#"{"eventType":"RunStarted","idempotencyKey":"k","emittedAt":"2026-02-11T10:00:00Z","eventData":{}}"#
            .to_owned(),
    ));
    client.runs().send("r", &started, &import, None).await.map(drop)
}

/// An attempt that nobody has begun: no typed call can name it.
fn stale() -> Request {
    Request::post("/v1/records/jobs.1/complete").body(r#"{"attempt":7}"#)
}

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

    let folder_of_checkpoints = tempfile::tempdir().map_err(|error| error.to_string())?;
    let server = Launch::dev(binary()).environment("STATEHOUSE_CHECKPOINTS", folder_of_checkpoints.path()).start()?;
    let client = Client::to(server.address());
    block_on(work(&client.typed(ClientOptions::default()))).map_err(|error| error.to_string())?;
    client.send(stale()).map_err(|error| error.to_string())?;
    let scraped = client.send(Request::get("/metrics")).map_err(|error| error.to_string())?;
    promtool(&["check", "metrics"], Some(&scraped.body))?;
    let text = scraped.text();
    let found: BTreeSet<&str> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let listed: BTreeSet<&str> = server::metrics::all().map(|metric| metric.name).collect();
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
