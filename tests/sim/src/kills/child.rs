//! A child process that works in a directory, reports what it does, and is killed.
//!
//! It is this program again. What it says are lines: `A...` when something was answered, `E...` when it complains.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use contract::Error;
use testkit::arguments::Arguments;

use super::text;

/// How long a child may take to open a directory and be answered for the first time.
const FIRST_ANSWER_MAX: Duration = Duration::from_secs(60);

/// A child that nobody kills ends by itself.
const LIFE_MAX: Duration = Duration::from_secs(60);

/// A running child process and its reports.
pub(super) struct Running {
    child: Child,
    /// None once it was joined.
    listener: Option<JoinHandle<Vec<String>>>,
    answered: Receiver<()>,
}

impl Running {
    /// Starts this program with another test, on a directory, with options that are numbers.
    pub(super) fn start(test: &str, directory: &Path, options: &[(&str, u64)]) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(text)?;
        let options = options.iter().flat_map(|(name, number)| [format!("--{name}"), number.to_string()]);
        let mut child = Command::new(program)
            .arg(test)
            .arg("--directory")
            .arg(directory)
            .args(options)
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
        Ok(Self { child, listener: Some(listener), answered })
    }

    /// Waits until the child has been answered something. If it ended by itself, its last words say why.
    pub(super) fn await_answer(&self) -> Result<(), String> {
        match self.answered.recv_timeout(FIRST_ANSWER_MAX) {
            Err(RecvTimeoutError::Timeout) => Err("the child was answered nothing".into()),
            Ok(()) | Err(RecvTimeoutError::Disconnected) => Ok(()),
        }
    }

    /// Kills the child, and gives what it said. It must have been at work until then.
    pub(super) fn kill(mut self) -> Result<Vec<String>, String> {
        let by_itself = self.child.try_wait().map_err(text)?;
        self.child.kill().map_err(text)?;
        self.child.wait().map_err(text)?;
        self.said(by_itself)
    }

    /// Waits until the child ends, and gives what it said. It must end well.
    pub(super) fn finish(mut self) -> Result<Vec<String>, String> {
        let status = self.child.wait().map_err(text)?;
        self.said(Some(status).filter(|status| !status.success()))
    }

    /// What it said, if it ended as it should.
    fn said(mut self, ended_wrongly: Option<ExitStatus>) -> Result<Vec<String>, String> {
        let listener = self.listener.take().expect("nobody has joined it");
        let said = listener.join().map_err(|_| "the listener panicked")?;
        if let Some(complaint) = said.iter().find(|line| line.starts_with('E')) {
            return Err(format!("the child complained: {complaint}"));
        }
        match ended_wrongly {
            None => Ok(said),
            Some(status) => Err(format!("the child ended by itself: {status}")),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both are harmless if it has ended. If not, it must not go on in a directory that somebody looks at.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The child's side: works in the directory that the parent named, until a deadline. Complains if that fails.
pub(super) fn run(arguments: &Arguments, work: impl FnOnce(&Path, Instant) -> Result<(), Error>) -> ExitCode {
    let directory = arguments.text("directory").expect("the parent names a directory");
    match work(Path::new(directory), Instant::now() + LIFE_MAX) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("E {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Complains of a thread that failed.
pub(super) fn complain_of(thread: &str, outcome: Result<(), Error>) {
    if let Err(error) = outcome {
        say(&format!("E {thread}: {error}"));
    }
}

/// Says a line, in a child; ends the process if nobody listens. A line is shorter than what a pipe takes at once, so that
/// a kill never leaves half of one.
pub(super) fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let said = out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush());
    if said.is_err() {
        std::process::exit(1);
    }
}
