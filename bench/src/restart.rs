//! The duration of opening with much to replay. The writer is a child process that ends without closing.

use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use statehouse::Options;

use testkit::arguments::Arguments;

/// Nothing is flushed, so that every command must be replayed.
fn options() -> Options {
    let mut options = Options::default().replay_bytes_max(u64::MAX);
    options.overlay.table_bytes_max = usize::MAX;
    options
}

/// Writes, then ends as a crash does.
pub fn child(arguments: &Arguments) -> ExitCode {
    let house = options().open(arguments.text("directory").expect("--directory")).expect("a house");
    let cells = house.cells();
    let commands = arguments.number("commands", 0);
    let mut pending = std::collections::VecDeque::new();
    for command in 0..commands {
        pending.push_back(cells.set_later(&format!("cell-{:09}", command % 50_000), vec![7; 200]));
        if pending.len() > 256 {
            pending.pop_front().expect("one").wait().expect("a set");
        }
    }
    for answer in pending {
        answer.wait().expect("a set");
    }
    std::process::abort();
}

/// Opens a directory with that many commands to replay, and returns the duration.
pub fn measure(directory: &Path, commands: u64) -> Duration {
    let program = std::env::current_exe().expect("this program");
    let mut child = Command::new(program);
    child.arg("restart-child").arg("--directory").arg(directory).arg("--commands").arg(commands.to_string());
    let status = child.stderr(std::process::Stdio::null()).status().expect("a child");
    assert!(!status.success(), "the child ends by abort");
    let started = Instant::now();
    let house = options().open(directory).expect("a house");
    let elapsed = started.elapsed();
    assert_eq!(house.status().expect("status").commit, commands, "everything was replayed");
    elapsed
}
