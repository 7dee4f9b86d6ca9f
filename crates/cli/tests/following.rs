//! What is followed goes on over a restart of the server, and lists of what waits hold nothing that is finished.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value as JsonValue;
use testkit::server_process::{Launch, ServerProcess};

const BINARY: &str = env!("CARGO_BIN_EXE_statehouse");
const PATIENCE: Duration = Duration::from_secs(60);

fn serve(data: &Path, listen: &str) -> ServerProcess {
    let launch =
        Launch::program(BINARY).asking_nobody().arguments(["serve", "--listen", listen, "--data"]).argument(data);
    launch.environment("STATEHOUSE_DISK__LOW_BYTES", "1MiB").start().expect("a server")
}

fn command(address: SocketAddr, arguments: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.args(arguments).args(["--url", &format!("http://{address}")]).stdin(Stdio::null());
    command
}

fn succeeds(address: SocketAddr, arguments: &[&str]) -> String {
    let output: Output = command(address, arguments).output().expect("it starts");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// A command that goes on, and its lines as they come.
struct Followed {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Followed {
    fn begin(address: SocketAddr, arguments: &[&str]) -> Self {
        let mut child = command(address, arguments).stdout(Stdio::piped()).spawn().expect("it starts");
        let lines = BufReader::new(child.stdout.take().expect("it was asked for")).lines();
        Self { child, lines }
    }

    fn next(&mut self, member: &str) -> String {
        let line = self.lines.next().expect("it goes on").expect("a line");
        let row: JsonValue = serde_json::from_str(&line).expect("JSON");
        row[member].to_string()
    }

    fn end(mut self) {
        assert!(self.lines.next().is_none(), "no line comes twice");
        assert!(self.child.wait().expect("it ends").success());
    }
}

#[test]
fn a_restart_is_waited_for_and_nothing_is_shown_twice() {
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path().join("house");
    let server = serve(&data, "127.0.0.1:0");
    let address = server.address();
    let mut watched = Followed::begin(address, &["watch", "c", "--from", "0", "--limit", "2", "-o", "jsonl"]);
    let mut tailed = Followed::begin(address, &["cell", "watch", "c", "--from", "0", "--limit", "2", "-o", "jsonl"]);
    succeeds(address, &["cell", "set", "c1", "1"]);
    succeeds(address, &["run", "append", "r", "RunStarted"]);
    let mut events = Followed::begin(address, &["run", "tail", "r", "--follow", "--limit", "2", "-o", "jsonl"]);
    assert_eq!((watched.next("name"), tailed.next("name")), ("\"c1\"".into(), "\"c1\"".into()));
    assert_eq!(events.next("runSeq"), "1");
    assert!(server.terminate(PATIENCE).status.success());
    // Long enough that each of them has asked while nobody listens.
    std::thread::sleep(Duration::from_millis(600));
    let server = serve(&data, &address.to_string());
    assert_eq!(server.address(), address);
    succeeds(address, &["cell", "set", "c2", "2"]);
    succeeds(address, &["run", "append", "r", "Noted"]);
    assert_eq!((watched.next("name"), tailed.next("name")), ("\"c2\"".into(), "\"c2\"".into()));
    assert_eq!(events.next("runSeq"), "2");
    watched.end();
    tailed.end();
    events.end();
}

#[test]
fn a_server_that_never_answered_is_not_waited_for() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    for arguments in [&["watch", "c"][..], &["run", "tail", "r", "--follow"]] {
        let output = command(nobody, arguments).output().expect("it starts");
        assert_eq!(output.status.code(), Some(5), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("connection refused"), "{output:?}");
    }
}

#[test]
fn stuck_runs_are_those_that_are_not_finished() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = serve(&directory.path().join("house"), "127.0.0.1:0");
    let address = server.address();
    for (run, events) in [
        ("open", &["RunStarted"][..]),
        ("paused", &["RunStarted", "RunPaused"]),
        ("completed", &["RunStarted", "RunCompleted"]),
        ("failed", &["RunStarted", "RunFailed"]),
        ("cancelled", &["RunStarted", "RunCancelled"]),
    ] {
        for event in events {
            succeeds(address, &["run", "append", run, event, "--type", "import"]);
        }
    }
    std::thread::sleep(Duration::from_millis(10));
    let listed = |flags: &[&str]| {
        let mut names: Vec<_> =
            succeeds(address, &[&["run", "ls", "-o", "raw"], flags].concat()).lines().map(str::to_owned).collect();
        names.sort();
        names
    };
    assert_eq!(listed(&[]), ["cancelled", "completed", "failed", "open", "paused"]);
    assert_eq!(listed(&["--stuck", "1ms"]), ["open", "paused"]);
    assert_eq!(listed(&["--stuck", "1ms", "--type", "import"]), ["open", "paused"]);
    assert_eq!(listed(&["--stuck", "1ms", "--status", "FAILED"]), ["failed"], "what is asked for by name is shown");
    assert_eq!(listed(&["--stuck", "1h"]), [""; 0]);
}
