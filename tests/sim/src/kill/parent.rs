//! The parent: starts children, kills them, and looks at copies of what they left.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use tempfile::TempDir;
use testkit::random::Random;

use super::history::Found;
use super::ledger::{Ledger, Sums};
use super::sizes::Sizes;

/// How long a child may take to open a directory and write for the first time.
const FIRST_ANSWER_MAX: Duration = Duration::from_secs(60);

/// Directories in a run of many kills; each is killed over and over.
const DIRECTORIES: u64 = 20;

/// Kills children `times` times.
pub(super) fn run(seed: u64, times: u64, sums: &mut Sums) -> Result<(), String> {
    let mut random = Random::new(seed);
    let kills_per_directory = times.div_ceil(DIRECTORIES).max(5);
    while sums.kills < times {
        let kills = kills_per_directory.min(times - sums.kills);
        let sizes = Sizes::draw(&mut random);
        let mut victim = Victim::new(sizes, sums.directories)?;
        sums.directories += 1;
        for round in 0..kills {
            let outcome = victim.round(round, &mut random, sums);
            outcome.map_err(|what| victim.explain(&what, round))?;
        }
    }
    Ok(())
}

/// A directory, and what is known of it.
struct Victim {
    place: TempDir,
    sizes: Sizes,
    ledger: Ledger,
}

impl Victim {
    fn new(sizes: Sizes, number: u64) -> Result<Self, String> {
        // On disk a write takes long and kills meet syncs; in memory there are far more flushes and new files.
        let place = if number.is_multiple_of(2) { tempfile::tempdir() } else { fast_directory() };
        Ok(Self { place: place.map_err(text)?, sizes, ledger: Ledger::default() })
    }

    fn path(&self) -> PathBuf {
        self.place.path().join("house")
    }

    /// Keeps the directory for a look at it.
    fn explain(&mut self, what: &str, round: u64) -> String {
        self.place.disable_cleanup(true);
        let path = self.path();
        format!("{what}\n  in round {round} of {}, kept, with {:?}", path.display(), self.sizes)
    }

    fn round(&mut self, round: u64, random: &mut Random, sums: &mut Sums) -> Result<(), String> {
        let seed = random.next() >> 1;
        let running = Running::start(&self.path(), self.sizes, round, seed)?;
        // A directory that holds nothing yet is killed while it is being made, more often than not.
        let is_new = self.ledger.applied.is_none_or(|applied| applied[0] == 0);
        let said = if random.one_in(if is_new { 2 } else { 6 }) {
            // In the middle of opening, which is the recovery of the kill before.
            running.end(Duration::from_micros(random.below(25_000)), sums)
        } else {
            running.await_answer()?;
            let most_ms = if random.one_in(4) { 150 } else { 50 };
            running.end(Duration::from_micros(random.below(most_ms * 1_000)), sums)
        }?;
        sums.kills += 1;
        sums.kills_while_opening += u64::from(said.is_empty());
        let copy = fast_directory().map_err(text)?;
        let path = copy.path().join("house");
        copy_directory(&self.path(), &path).map_err(text)?;
        let found = Found::read(path, self.sizes, self.ledger.known())?;
        sums.kills_with_tables += u64::from(found.store_bytes > 4_096);
        let before = self.ledger.applied.map_or(0, |applied| applied[0]);
        sums.entries += found.applied[0].saturating_sub(before);
        self.ledger.settle(&said, &found, sums)
    }
}

/// A child that writes, and what it says.
struct Running {
    child: Child,
    listener: JoinHandle<Vec<String>>,
    answered: Receiver<()>,
}

impl Running {
    fn start(directory: &Path, sizes: Sizes, round: u64, seed: u64) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(text)?;
        let mut child = Command::new(program)
            .arg("kill-child")
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
    fn await_answer(&self) -> Result<(), String> {
        match self.answered.recv_timeout(FIRST_ANSWER_MAX) {
            Err(RecvTimeoutError::Timeout) => Err("the child was answered nothing".into()),
            Ok(()) | Err(RecvTimeoutError::Disconnected) => Ok(()),
        }
    }

    /// Kills the child after a while. Gives what it said.
    fn end(mut self, after: Duration, sums: &mut Sums) -> Result<Vec<String>, String> {
        std::thread::sleep(after);
        let ended = self.child.try_wait().map_err(text)?;
        self.child.kill().map_err(text)?;
        self.child.wait().map_err(text)?;
        let said = self.listener.join().map_err(|_| "the listener panicked")?;
        if let Some(complaint) = said.iter().find(|line| line.starts_with('E')) {
            sums.wrong += 1;
            return Err(format!("the child complained: {complaint}"));
        }
        match ended {
            None => Ok(said),
            Some(status) => Err(format!("the child ended by itself: {status}")),
        }
    }
}

/// A new directory in memory, where the system has such a place.
fn fast_directory() -> std::io::Result<TempDir> {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }
}

/// Copies what is there; nothing if the child did not get that far.
fn copy_directory(from: &Path, to: &Path) -> std::io::Result<()> {
    if !from.exists() {
        return Ok(());
    }
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_directory(&entry.path(), &to)?;
        } else {
            std::fs::copy(entry.path(), &to)?;
        }
    }
    Ok(())
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
