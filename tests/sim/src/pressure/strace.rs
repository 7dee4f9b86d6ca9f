//! Lets system calls of another process fail, from outside, with `strace`.
//!
//! Keeps: when a [`Failing`] is gone, its thread runs as before.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// How long a thread may take to say its name.
const NAMED_WITHIN: Duration = Duration::from_secs(10);

/// A thread whose calls fail as long as this exists.
pub(super) struct Failing {
    strace: Child,
    output: PathBuf,
    _folder: TempDir,
}

impl Failing {
    /// From its `first` call on, `call` fails in the thread with `errno`: once, or every time.
    pub(super) fn calls(thread: u32, call: &str, errno: &str, first: u64, every: bool) -> Result<Self, String> {
        let folder = TempDir::new().map_err(|error| error.to_string())?;
        let output = folder.path().join("calls");
        let every = if every { "+" } else { "" };
        let mut strace = Command::new("strace")
            .args(["-e", &format!("trace={call}"), "-e", &format!("inject={call}:error={errno}:when={first}{every}")])
            .args(["-e", "signal=none", "-p", &thread.to_string(), "-o"])
            .arg(&output)
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("could not run strace, which this test needs: {error}"))?;
        let mut said = String::new();
        let stderr = strace.stderr.take().expect("it was asked for");
        let read = BufReader::new(stderr).read_line(&mut said).map_err(|error| error.to_string())?;
        let failing = Self { strace, output, _folder: folder };
        match read > 0 && said.contains("attached") {
            true => Ok(failing),
            false => Err(format!("strace does not attach: {said}")),
        }
    }

    /// How many calls have failed so far.
    pub(super) fn failed(&self) -> usize {
        std::fs::read_to_string(&self.output).map_or(0, |calls| calls.matches("(INJECTED)").count())
    }
}

impl Drop for Failing {
    fn drop(&mut self) {
        // Asked to end, it lets go of the thread; killed, it might leave it stopped.
        let _ = Command::new("kill").arg(self.strace.id().to_string()).status();
        let _ = self.strace.wait();
    }
}

/// Runs a command of which one call fails: the one with this number, of those with this name. Returns how it ended, and whether
/// it got that far.
pub(super) fn run_failing(command: &[PathBuf], call: &str, errno: &str, number: u64) -> Result<(Output, bool), String> {
    let folder = TempDir::new().map_err(|error| error.to_string())?;
    let calls = folder.path().join("calls");
    let ended = Command::new("strace")
        .args(["-f", "-qq", "-e", "signal=none", "-e", &format!("trace={call}")])
        .args(["-e", &format!("inject={call}:error={errno}:when={number}"), "-o"])
        .arg(&calls)
        .args(command)
        .output()
        .map_err(|error| format!("could not run strace, which this test needs: {error}"))?;
    let failed = std::fs::read_to_string(&calls).is_ok_and(|calls| calls.contains("(INJECTED)"));
    Ok((ended, failed))
}

/// The one thread of a process with this name; a thread that has just started may not have it yet.
pub(super) fn thread_named(process: u32, name: &str) -> Result<u32, String> {
    let began = Instant::now();
    loop {
        match threads_named(process, name)[..] {
            [thread] => return Ok(thread),
            [] if began.elapsed() < NAMED_WITHIN => std::thread::sleep(Duration::from_millis(5)),
            ref threads => return Err(format!("{} threads are named {name}", threads.len())),
        }
    }
}

fn threads_named(process: u32, name: &str) -> Vec<u32> {
    let tasks = std::fs::read_dir(Path::new("/proc").join(process.to_string()).join("task"));
    let named = tasks
        .into_iter()
        .flatten()
        .flatten()
        .filter(|task| std::fs::read_to_string(task.path().join("comm")).is_ok_and(|comm| comm.trim_end() == name));
    named.filter_map(|task| task.file_name().to_str()?.parse().ok()).collect()
}
