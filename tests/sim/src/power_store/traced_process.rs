//! One process, run under `strace`, and its calls as operations.
//!
//! Its trace is kept in a scratch directory, from which the same operations can be read again.

use std::path::{Path, PathBuf};

use testkit::random::Random;

use super::image::{self, Mode};
use super::observer::Observer;
use super::operation::{Moment, Operation, last_end};
use super::sites::HOUSE;
use super::strace;

/// Calls of two processes are so far apart.
pub(super) const MOMENTS_BETWEEN: Moment = 10;

/// What a process does.
#[derive(Clone, Copy)]
pub(super) struct Life {
    pub(super) seed: u64,
    pub(super) sessions: u64,
    /// Of each thread in each session.
    pub(super) writes: u64,
    /// Whether the directory is made from an image.
    pub(super) restores: bool,
}

/// Traces a process that begins with what `before` has left, unless its trace is there already. Gives `before` and
/// what it did, and the image that it made its directory from.
pub(super) fn record(
    scratch: &Path,
    name: &str,
    number: u64,
    life: Life,
    before: Vec<Operation>,
) -> Result<(Vec<Operation>, Option<Vec<u8>>), String> {
    let directory = scratch.join(name);
    let path = |name: &str| directory.join(name);
    let (root, trace, records, image) = (path("root"), path("trace"), path("records"), path("image"));
    if !trace.exists() {
        let left = image::draw(&before, Moment::MAX, Mode::Killed, None, &mut Random::new(0));
        image::write(&left, &root).map_err(|error| format!("{}: {error}", root.display()))?;
        if let Err(wrong) = run(&root, &records, &trace, life, number, &image) {
            // So that it is no recording another time either.
            let _ = std::fs::rename(&trace, path("trace-of-failure"));
            return Err(format!("{name}: {wrong}"));
        }
    }
    let calls = strace::read(&trace, last_end(&before) + MOMENTS_BETWEEN)?;
    let observer = Observer::new(&text(&root), &text(&records), before);
    let operations = observer.observe(&calls).map_err(|wrong| format!("{name}: {wrong}"))?;
    Ok((operations, std::fs::read(image).ok()))
}

/// Runs the process under `strace`.
fn run(root: &Path, records: &Path, trace: &Path, life: Life, number: u64, image: &Path) -> Result<(), String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let (program, house) = (text(&program), text(&root.join(HOUSE)));
    let (records, image) = (text(records), text(image));
    let [seed, sessions, writes, number] =
        [life.seed, life.sessions, life.writes, number].map(|number| number.to_string());
    let mut command = vec![program.as_str(), "power-store-child", "--directory", &house, "--records", &records];
    command.extend(["--seed", &seed, "--sessions", &sessions, "--writes", &writes, "--life", &number]);
    if life.restores {
        command.extend(["--restore", &image]);
    }
    strace::run(&command, trace)
}

fn text(path: &Path) -> String {
    PathBuf::from(path).display().to_string()
}
