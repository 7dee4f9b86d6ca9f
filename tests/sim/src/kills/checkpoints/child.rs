//! The process that is killed: it commits in one thread and takes checkpoints in another.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use statehouse::keyed::{CheckpointOptions, Checkpoints};
use statehouse::records::ClaimOptions;
use statehouse::{Error, Statehouse};
use testkit::arguments::Arguments;

use super::super::{child, text};
use super::work::{OPERATOR, commit};

pub(super) fn run(arguments: &Arguments) -> ExitCode {
    child::run(arguments, work)
}

/// Where the checkpoints of a directory lie.
pub(super) fn target(path: &Path) -> String {
    path.with_extension("checkpoints").to_str().expect("temporary folders have names of text").to_owned()
}

/// The number of the newest checkpoint that was begun, if it has no marker.
pub(super) fn unfinished(path: &Path) -> Result<Option<u64>, String> {
    let (mut folders, mut newest) = (vec![PathBuf::from(target(path))], None);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(text)? {
            let entry = entry.map_err(text)?;
            if entry.path().is_dir() {
                folders.push(entry.path());
            }
        }
        if folder.join("begun").exists() {
            let name = folder.file_name().ok_or("a checkpoint has no name")?.to_string_lossy();
            let number: u64 = name.parse().map_err(|error| format!("{name}: {error}"))?;
            newest = newest.max(Some((number, folder.join("marker").exists())));
        }
    }
    Ok(newest.filter(|(_, has_marker)| !has_marker).map(|(number, _)| number))
}

fn work(path: &Path, until: Instant) -> Result<(), Error> {
    let house = Statehouse::open(path)?;
    let checkpoints = Checkpoints::open(&target(path)).expect("a folder");
    let partition = house.keyed(OPERATOR).partition(0);
    let lease = ClaimOptions::worker("child").lease(Duration::from_secs(600));
    let mut owned = partition.acquire_by_force(&lease)?;
    let taking = partition.owned(owned.epoch())?;
    let mut number = owned.summary()?.map_or(0, |summary| summary.last_number);
    std::thread::scope(|scope| {
        let taker = scope.spawn(|| {
            let options = CheckpointOptions::default().changes_max(3).keep(2);
            while Instant::now() < until {
                let taken = taking.checkpoint(&checkpoints, &options).expect("a checkpoint");
                child::say(&format!("A {} {}", taken.number, taken.depth));
            }
        });
        while Instant::now() < until {
            number += 1;
            commit(&mut owned, number)?;
        }
        taker.join().expect("checkpoints are taken");
        Ok(())
    })
}
