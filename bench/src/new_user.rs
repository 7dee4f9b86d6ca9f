//! What a new user meets: README's commands, verbatim, from a clean folder, with nothing but the command; how soon
//! `statehouse dev` is ready, what it takes when nothing is asked of it, and how large the command is.
//!
//! `bench new-user [--starts N] [--idle-seconds N]`. The page is read as `testkit::pages` says; how its reader types is not
//! part of the time.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use testkit::arguments::Arguments;
use testkit::http::{Client, ClientOptions, block_on};
use testkit::pages::reader::Done;
use testkit::pages::{blocks, reader, repository};
use testkit::report::Report;
use testkit::server_process::{Launch, binary};

use bench::resources;

const MB: f64 = 1_000_000.0;
const FIRST_WRITE_MAX: Duration = Duration::from_secs(60);
const READY_MAX: Duration = Duration::from_millis(1_000);
const IDLE_MB_MAX: f64 = 80.0;
const BINARY_MB_MAX: f64 = 30.0;

/// Each contract, by the routes that stand for it.
const CONTRACTS: [(&str, &[&str]); 5] = [
    ("cells", &["/v1/cells/"]),
    ("records", &["/v1/records/", "/v1/claims"]),
    ("runs", &["/v1/runs/"]),
    ("sessions", &["/v1/sessions", "Statehouse-Session"]),
    ("transactions", &["/v1/groups/"]),
];

pub fn run(arguments: &Arguments) -> Report {
    let small = arguments.flag("small");
    let statehouse = binary();
    let mut report = Report::new("server");
    read_page(&statehouse, &mut report);
    start(&statehouse, arguments.number("starts", if small { 3 } else { 10 }), &mut report);
    idle(&statehouse, arguments.number("idle-seconds", if small { 1 } else { 10 }), &mut report);
    measure_binary(&statehouse, &mut report);
    report
}

fn read_page(statehouse: &Path, report: &mut Report) {
    let page = std::fs::read_to_string(repository().join("README.md")).expect("README.md");
    let blocks = blocks::of(&page).expect("its blocks");
    let directory = tempfile::tempdir().expect("a directory");
    let done = reader::run(&blocks, statehouse, directory.path());
    let done = done.unwrap_or_else(|wrong| panic!("README.md: {wrong}"));

    let writes = |done: &&Done| done.step.commands.contains("curl") && done.step.commands.contains("PUT");
    let first = done.iter().find(writes).expect("README.md has a first durable write by curl");
    assert!(first.printed.contains("\"version\":1"), "it is answered: {}", first.printed);
    let figure = format!("{:.1}s", first.after.as_secs_f64());
    report.add(
        "new-user.first-write",
        figure,
        "<60s from having the command, README verbatim",
        first.after < FIRST_WRITE_MAX,
    );

    let by_curl: Vec<_> =
        done.iter().map(|done| &done.step.commands).filter(|commands| commands.contains("curl")).collect();
    let is_used = |routes: &[&str]| routes.iter().all(|route| by_curl.iter().any(|commands| commands.contains(route)));
    let used: Vec<_> = CONTRACTS.iter().filter(|(_, routes)| is_used(routes)).map(|(name, _)| *name).collect();
    let figure = format!("{} of {}: {}", used.len(), CONTRACTS.len(), used.join(", "));
    report.add(
        "new-user.contracts",
        figure,
        "each contract by curl alone, as README shows",
        used.len() == CONTRACTS.len(),
    );
}

/// From the start of the process to the first answer that is a success.
fn start(statehouse: &Path, times: u64, report: &mut Report) {
    let mut took: Vec<_> = (0..times)
        .map(|_| {
            let began = Instant::now();
            let server = Launch::dev(statehouse).start().expect("a server");
            let client = Client::to(server.address()).typed(ClientOptions::default());
            assert!(block_on(client.is_ready()).expect("an answer"), "it is ready");
            let took = began.elapsed();
            server.terminate(Duration::from_secs(30));
            took
        })
        .collect();
    took.sort();
    let (best, worst) = (took[0], took[took.len() - 1]);
    let figure = format!("{}-to-{}ms of {times}", best.as_millis(), worst.as_millis());
    report.add("new-user.ready", figure, "<1000ms from its start to an answer, the worst", worst < READY_MAX);
}

fn idle(statehouse: &Path, seconds: u64, report: &mut Report) {
    let server = Launch::dev(statehouse).start().expect("a server");
    std::thread::sleep(Duration::from_secs(seconds));
    let resident = resources::resident_bytes_of(server.id()) as f64 / MB;
    let figure = format!("{resident:.1}MB after {seconds}s");
    report.add("new-user.idle-memory", figure, "<80MB resident", resident > 0.0 && resident < IDLE_MB_MAX);
}

fn measure_binary(statehouse: &Path, report: &mut Report) {
    let directory = tempfile::tempdir().expect("a directory");
    let stripped = directory.path().join("statehouse");
    let status = Command::new("strip").arg("-o").arg(&stripped).arg(statehouse).status().expect("strip starts");
    assert!(status.success(), "strip: {status}");
    let bytes = std::fs::metadata(&stripped).expect("the stripped command").len();
    let size = bytes as f64 / MB;
    report.add("new-user.binary", format!("{size:.1}MB"), "<30MB stripped", size < BINARY_MB_MAX);
}
