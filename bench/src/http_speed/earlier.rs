//! Get and claim over HTTP, beside the server of an earlier commit, so that a change that costs speed is seen.
//!
//! The earlier commit is cloned and built once, in the release profile. Both servers are filled over HTTP, since they may
//! store data in different formats, and are measured in turns by the same load. `--earlier self` starts today's server
//! twice: the ratio then says how much two runs of the same program differ on this machine.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use testkit::arguments::Arguments;
use testkit::cargo::cargo;
use testkit::http::Client;
use testkit::report::Report;
use testkit::server_process::{Launch, ServerProcess, binary};

use super::requests::{Operation, put_cell};
use super::turns::{Turns, put_tasks};
use super::{CELLS, CLAIMS_PER_SECOND, compare, median, print_row};

/// The commit before requests were decoded into types.
const EARLIER: &str = "03d0970";
const CONNECTIONS: usize = 64;
/// How much of the earlier speed must be left.
const GOAL: f64 = 0.97;
/// Threads that write cells.
const FILLERS: usize = 64;

/// `bench http-earlier [--earlier COMMIT|self] [--rounds N] [--milliseconds N] [--small]`.
pub fn run(arguments: &Arguments) -> Report {
    let turns = Turns::read(arguments, (60, 200), (2, 100));
    let named = arguments.text("earlier").unwrap_or(EARLIER);
    let today = || Launch::program(binary()).asking_nobody();
    let earlier = match named {
        "self" => today(),
        // It does not know the setting.
        commit => Launch::program(build(commit)),
    };
    let directory = tempfile::tempdir().expect("a directory");
    let (earlier, later) = (start(earlier, &directory, "earlier"), start(today(), &directory, "later"));
    let mut report = Report::new("edge");
    for server in [&earlier, &later] {
        put_cells(server);
        put_tasks(server.address(), turns.all_of(CLAIMS_PER_SECOND));
    }
    for operation in [Operation::Get, Operation::Claim] {
        let compared = compare([operation; 2], CONNECTIONS, turns, [&later, &earlier]);
        print_row(operation, CONNECTIONS, &compared, ["later", "earlier"]);
        let (now, before) = (median(&compared.first), median(&compared.second));
        let ratio = now / before;
        let figure = format!("{ratio:.2} {now:.0}/s of {before:.0}/s");
        report.add(&format!("speed.{}", operation.name()), figure, &format!(">={GOAL} of {named}"), ratio >= GOAL);
    }
    report
}

fn start(launch: Launch, directory: &TempDir, name: &str) -> ServerProcess {
    let launch = launch.arguments(["serve", "--listen", "127.0.0.1:0", "--data"]);
    launch.argument(directory.path().join(name)).start().expect("a server")
}

fn put_cells(server: &ServerProcess) {
    let client = Client::to(server.address());
    std::thread::scope(|scope| {
        for filler in 0..FILLERS as u64 {
            let client = &client;
            scope.spawn(move || {
                for number in (filler..CELLS).step_by(FILLERS) {
                    assert!(client.send(put_cell(number)).expect("an answer").is_success(), "cell {number}");
                }
            });
        }
    });
}

/// The program of an earlier commit of this repository.
fn build(commit: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the repository");
    let program = std::env::current_exe().expect("the path of this program");
    let target = program.ancestors().nth(2).expect("a target directory").join("earlier").join(commit);
    let built = target.join("release/statehouse");
    if built.is_file() {
        return built;
    }
    let clone = tempfile::tempdir().expect("a directory");
    let succeeds = |command: &mut Command| {
        let status = command.current_dir(clone.path()).status().expect("it starts");
        assert!(status.success(), "{command:?} failed");
    };
    succeeds(Command::new("git").args(["clone", "--quiet", "--shared", "--no-checkout"]).arg(root).arg("."));
    succeeds(Command::new("git").args(["checkout", "--quiet", commit]));
    let build = ["build", "--release", "--locked", "--package", "statehouse-cli"];
    succeeds(cargo().args(build).env("CARGO_TARGET_DIR", &target));
    built
}
