//! `sim pressure-transfers [--kills N] [--faults N] [--seed S]`: restores and imports are killed at random moments, or one of
//! their system calls fails, and the folder is served.
//!
//! What was finished is served and is equal by hash. What was not is refused by name, and running the transfer again
//! completes it. A folder without anything in it may be served: nothing had begun.
//! Would see broken: an unfinished folder that is served as a new, empty store.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use statehouse::records::Put;
use statehouse::{Statehouse, backup, export};
use testkit::arguments::Arguments;
use testkit::random::Random;
use testkit::report::Report;
use testkit::server_process::{Launch, binary};

use super::strace::run_failing;
use crate::directories::fast_directory;

/// Records of the source: enough that a transfer takes a while.
const RECORDS: u64 = 20_000;

/// How long a server may take to stop.
const STOP_MAX: Duration = Duration::from_secs(60);

/// What a refusal of an unfinished folder says.
const INTERRUPTED: &str = "was interrupted";

/// Calls to the disk that a transfer makes.
const CALLS: [&str; 10] =
    ["write", "pwrite64", "fallocate", "openat", "rename", "fsync", "fdatasync", "fchmod", "mkdir", "unlink"];

/// What happens to a transfer.
#[derive(Debug)]
enum Interruption {
    /// It is killed after this time.
    Killed(Duration),
    /// One call fails.
    Fault { call: &'static str, errno: &'static str, number: u64 },
}

/// A file to restore or import, and what comes of it.
struct Source {
    arguments: fn(&Path, &Path) -> Vec<PathBuf>,
    file: PathBuf,
    /// How long the whole transfer takes.
    takes: Duration,
    image: [u8; 32],
}

#[derive(Default)]
struct Tally {
    finished: u64,
    refused: u64,
    not_begun: u64,
    /// Faults that were met.
    failed_calls: u64,
    again: u64,
    wrong: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Report {
    let seed = arguments.seed();
    let (kills, faults) = (arguments.number("kills", 200), arguments.number("faults", 200));
    println!("pressure-transfers: seed {seed}, {kills} kills, {faults} faults");
    let folder = fast_directory().expect("a folder");
    let sources = sources(folder.path());
    let mut random = Random::new(seed);
    let mut tally = Tally::default();
    for number in 0..kills + faults {
        let source = random.choose(&sources);
        let target = folder.path().join(format!("target-{number}"));
        let interruption = if number < kills { kill(source, &mut random) } else { fault(&mut random) };
        if let Err(wrong) = one(source, &target, &interruption, &mut tally) {
            tally.wrong.push(format!("{interruption:?} of {}: {wrong}", source.file.display()));
        }
        // It may never have been made.
        let _ = std::fs::remove_dir_all(&target);
    }
    tally.wrong.iter().for_each(|wrong| println!("{wrong}"));
    let Tally { finished, refused, not_begun, failed_calls, again, wrong } = tally;
    println!(
        "pressure-transfers: {finished} were finished, {refused} refused, {not_begun} not begun, {again} completed again"
    );
    let mut report = Report::new("pressure");
    let figure = format!("{kills}-kills-{failed_calls}-failed-calls-{refused}-refused-{}-wrong", wrong.len());
    let goal = format!(
        "{kills} kills and {faults} transfers with a failing call; what is unfinished is refused by name, the rest is equal by hash"
    );
    report.add("transfers", figure, &goal, wrong.is_empty() && refused > 0 && again == refused);
    report
}

/// A backup and an export of the same store.
fn sources(folder: &Path) -> Vec<Source> {
    let path = folder.join("source");
    let house = Statehouse::open(&path).expect("a house");
    let records = house.records();
    let puts: Vec<_> = (0..RECORDS)
        .map(|number| records.put_later(&format!("jobs.{number}"), [("text", "x".repeat(200))], Put::typed("task")))
        .collect();
    for put in puts {
        put.wait().expect("put");
    }
    let (shbackup, jsonl) = (folder.join("source.shbackup"), folder.join("source.jsonl"));
    let mut file = std::fs::File::create(&shbackup).expect("a file");
    backup::create(&house, &mut file, &mut |_| {}).expect("a backup");
    let mut file = std::fs::File::create(&jsonl).expect("a file");
    export::write(&house, None, &mut file, &mut |_| {}).expect("an export");
    house.close().expect("closed");
    let restore = |file: &Path, target: &Path| vec!["backup".into(), "restore".into(), file.into(), target.into()];
    let import = |file: &Path, target: &Path| vec!["import".into(), file.into(), "--data".into(), target.into()];
    // Before the clock starts: the command may have to be built.
    let program = binary();
    let whole = |arguments: fn(&Path, &Path) -> Vec<PathBuf>, file: PathBuf| {
        let target = folder.join("whole");
        let began = Instant::now();
        let ended = Command::new(&program).args(arguments(&file, &target)).output().expect("the command");
        assert!(ended.status.success(), "{ended:?}");
        let takes = began.elapsed();
        let image = backup::image_of_directory(&target).expect("an image");
        std::fs::remove_dir_all(&target).expect("removed");
        Source { arguments, file, takes, image }
    };
    vec![whole(restore, shbackup), whole(import, jsonl)]
}

fn kill(source: &Source, random: &mut Random) -> Interruption {
    let takes_us = u64::try_from(source.takes.as_micros()).expect("short");
    Interruption::Killed(Duration::from_micros(random.below(takes_us * 11 / 10)))
}

fn fault(random: &mut Random) -> Interruption {
    let call = random.pick(&CALLS);
    let numbers = if call == "write" { 60 } else { 12 };
    Interruption::Fault { call, errno: random.pick(&["ENOSPC", "EIO"]), number: 1 + random.below(numbers) }
}

/// Runs a transfer that may not finish.
fn interrupted(source: &Source, target: &Path, interruption: &Interruption, tally: &mut Tally) -> Result<(), String> {
    let arguments = (source.arguments)(&source.file, target);
    match interruption {
        Interruption::Killed(after) => {
            let mut command = Command::new(binary());
            let command = command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
            let mut child = command.spawn().map_err(|error| error.to_string())?;
            std::thread::sleep(*after);
            // It may have ended by now.
            let _ = child.kill();
            child.wait().map(drop).map_err(|error| error.to_string())
        }
        Interruption::Fault { call, errno, number } => {
            let (ended, failed) = run_failing(&[&[binary()], &arguments[..]].concat(), call, errno, *number)?;
            tally.failed_calls += u64::from(failed);
            let said = String::from_utf8_lossy(&ended.stderr).into_owned();
            match (ended.status.success(), call.contains("sync")) {
                (true, true) if failed => Err("it succeeded although a sync had failed".to_owned()),
                (false, _) if said.contains("panicked") || said.is_empty() => {
                    Err(format!("it failed and said {said:?}"))
                }
                _ => Ok(()),
            }
        }
    }
}

fn one(source: &Source, target: &Path, interruption: &Interruption, tally: &mut Tally) -> Result<(), String> {
    interrupted(source, target, interruption, tally)?;
    let has_begun = target.join("store").exists();
    let is_whole = target.join("IDENTITY").exists();
    match Launch::serve(binary(), target).start() {
        Ok(server) => {
            let ended = server.terminate(STOP_MAX);
            match (is_whole, has_begun) {
                (true, _) if !ended.status.success() => Err(format!("it ended with {:?}", ended.status)),
                (true, _) => {
                    tally.finished += 1;
                    equal(source, target)
                }
                (false, false) => {
                    tally.not_begun += 1;
                    Ok(())
                }
                (false, true) => Err("an unfinished folder was served".to_owned()),
            }
        }
        Err(refusal) if refusal.contains(INTERRUPTED) => {
            tally.refused += 1;
            let again = Command::new(binary()).args((source.arguments)(&source.file, target)).output();
            let again = again.map_err(|error| error.to_string())?;
            if !again.status.success() {
                return Err(format!("run again: {again:?}"));
            }
            equal(source, target)?;
            tally.again += 1;
            Ok(())
        }
        Err(refusal) => Err(format!("refused, but not by name: {refusal}")),
    }
}

fn equal(source: &Source, target: &Path) -> Result<(), String> {
    match backup::image_of_directory(target).map_err(|error| error.to_string())? == source.image {
        true => Ok(()),
        false => Err("it differs from the source".to_owned()),
    }
}
