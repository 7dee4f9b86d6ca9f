//! A child process that works in a directory, reports what it does, and is killed.
//!
//! It is this program again. What it says are lines: `A...` when something was answered, `E...` when it complains.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use tempfile::TempDir;

use crate::sizes::Sizes;

/// How long a child may take to open a directory and write for the first time.
const FIRST_ANSWER_MAX: Duration = Duration::from_secs(60);

/// A running child process and its reports.
pub(crate) struct Running {
    child: Child,
    listener: JoinHandle<Vec<String>>,
    answered: Receiver<()>,
}

impl Running {
    /// Starts this program with another test.
    pub(crate) fn start(test: &str, directory: &Path, sizes: Sizes, round: u64, seed: u64) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(text)?;
        let mut child = Command::new(program)
            .arg(test)
            .arg("--directory")
            .arg(directory)
            .args(["--round", &round.to_string(), "--seed", &seed.to_string()])
            .args(sizes.arguments())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(text)?;
        let out = child.stdout.take().expect("it was asked for");
        let (sender, answered) = channel();
        let listener = std::thread::spawn(move || {
            let mut said = Vec::new();
            // A read fails only when the child is gone; what it said before counts.
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                if line.starts_with('A') {
                    let _ = sender.send(());
                }
                said.push(line);
            }
            said
        });
        Ok(Self { child, listener, answered })
    }

    /// Waits until the child has been answered something. If it ended by itself, its last words say why.
    pub(crate) fn await_answer(&self) -> Result<(), String> {
        match self.answered.recv_timeout(FIRST_ANSWER_MAX) {
            Err(RecvTimeoutError::Timeout) => Err("the child was answered nothing".into()),
            Ok(()) | Err(RecvTimeoutError::Disconnected) => Ok(()),
        }
    }

    /// Kills the child after a while.
    pub(crate) fn kill(mut self, after: Duration) -> Result<Ended, String> {
        std::thread::sleep(after);
        let by_itself = self.child.try_wait().map_err(text)?;
        self.child.kill().map_err(text)?;
        self.child.wait().map_err(text)?;
        let said = self.listener.join().map_err(|_| "the listener panicked")?;
        Ok(Ended { said, by_itself })
    }

    /// Waits until the child ends, and gives what it said. It must end well.
    pub(crate) fn finish(mut self) -> Result<Vec<String>, String> {
        let said = self.listener.join().map_err(|_| "the listener panicked")?;
        let status = self.child.wait().map_err(text)?;
        let by_itself = Some(status).filter(|status| !status.success());
        Ended { said, by_itself }.said()
    }
}

/// What a child that has ended left.
pub(crate) struct Ended {
    said: Vec<String>,
    /// It was not killed, or ended otherwise than it should.
    by_itself: Option<ExitStatus>,
}

impl Ended {
    /// What it complained of.
    pub(crate) fn complaint(&self) -> Option<&str> {
        self.said.iter().map(String::as_str).find(|line| line.starts_with('E'))
    }

    /// What it said, if all went well until it was killed.
    pub(crate) fn said(self) -> Result<Vec<String>, String> {
        if let Some(complaint) = self.complaint() {
            return Err(format!("the child complained: {complaint}"));
        }
        match self.by_itself {
            None => Ok(self.said),
            Some(status) => Err(format!("the child ended by itself: {status}")),
        }
    }
}

/// Says a line, in a child; ends the process if nobody listens. A line is shorter than what a pipe takes at once, so that
/// a kill never leaves half of one.
pub(crate) fn say(line: &str) {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    let said = out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush());
    if said.is_err() {
        std::process::exit(1);
    }
}

/// A new directory in memory, where the system has such a place.
pub(crate) fn fast_directory() -> std::io::Result<TempDir> {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
