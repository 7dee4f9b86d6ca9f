//! `doctor`: looks through a directory that no server has open, and says what it found.
//!
//! Keeps: not one byte of the directory is changed. It is copied to a scratch folder, under its own lock, and the copy is opened: replaying a
//! journal writes, and what is damaged is better kept as it is. Never: repairs.

use std::fs::{File, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value as JsonValue, json};
use statehouse::runs::RunList;
use statehouse::shell::Suggested;
use statehouse::{Statehouse, owner_only};

use crate::check;
use crate::checks::{Checked, number};
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::progress::Progress;
use crate::table::size;

/// Look through a directory without changing it: the journal, the store, the runs. Exits with 7 if something is wrong.
///
/// The directory must not be open anywhere. It is copied first, so there has to be room for a second one.
///
/// Examples:
///   statehouse doctor /var/lib/statehouse
///   statehouse doctor ./data --scratch /mnt/large -o json
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Doctor {
    /// The directory.
    directory: PathBuf,
    /// Where the copy is made; it is deleted again. Left out, where temporary files go.
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,
}

/// Bytes that are copied at a time.
const CHUNK_BYTES: usize = 1 << 20;
/// Runs that are replayed of each branch.
const RUNS_MAX: usize = 1_000;

impl Doctor {
    pub(crate) fn run(self, output: Output) -> Result<(), Failure> {
        let directory = &self.directory;
        if !directory.join("IDENTITY").is_file() {
            return Err(Failure::new(Exit::NotFound, format!("{} is no statehouse directory", directory.display()))
                .next("it has to hold a file IDENTITY; look one level up or down"));
        }
        let _held = hold(directory)?;
        let files = files_of(directory).map_err(|error| failed(directory, &error))?;
        let bytes: u64 = files.iter().map(|(_, bytes)| bytes).sum();
        let scratch = match &self.scratch {
            Some(scratch) => tempfile::tempdir_in(scratch),
            None => tempfile::tempdir(),
        };
        let scratch = scratch.map_err(|error| Failure::other(format!("no scratch folder: {error}")))?;
        let copy = scratch.path().join("copy");
        copy_all(directory, &copy, &files, bytes)?;
        let read = Checked::new("files", true, format!("{} files with {} can be read", files.len(), size(bytes)));
        let mut checked = vec![read.measured(number(bytes), "bytes")];
        let mut found = json!({ "directory": directory.display().to_string() });
        examine(&copy, &mut checked, &mut found);
        // What was wrong with the copy is wrong with the directory, and that is the name that people know.
        let (copied, own) = (copy.display().to_string(), directory.display().to_string());
        for one in &mut checked {
            one.said = one.said.replace(&copied, &own);
        }
        found["ok"] = checked.iter().all(|checked| checked.ok).into();
        found["checks"] = checked.iter().map(Checked::to_json).collect();
        output.told(&check::text(&checked), &found)?;
        match checked.iter().find(|checked| !checked.ok) {
            None => Ok(()),
            Some(first) => Err(Failure::check(format!("{}: {}: {}", directory.display(), first.name, first.said))
                .next(first.next.clone().unwrap_or_default())),
        }
    }
}

fn failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::check(format!("{}: {error}", path.display()))
        .next("look at the disk; restore from a backup if it cannot be read")
}

/// Holds the directory's lock, so that nobody opens it meanwhile; the file is only read.
fn hold(directory: &Path) -> Result<Option<File>, Failure> {
    let path = directory.join("LOCK");
    let lock = match owner_only::open(&path) {
        Ok(lock) => lock,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(&path, &error)),
    };
    match lock.try_lock() {
        Ok(()) => Ok(Some(lock)),
        Err(TryLockError::WouldBlock) => {
            Err(Failure::new(Exit::Unavailable, format!("{} is open in another process", directory.display()))
                .run("stop the server first, or ask it", Suggested::new(["statehouse", "status"])))
        }
        Err(TryLockError::Error(error)) => Err(failed(&path, &error)),
    }
}

/// Every file below the directory but its lock, by its path from there, with its size.
fn files_of(directory: &Path) -> std::io::Result<Vec<(PathBuf, u64)>> {
    let (mut files, mut folders) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(directory.join(&folder))? {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            let metadata = entry.metadata()?;
            if metadata.is_dir() {
                folders.push(path);
            } else if path != Path::new("LOCK") {
                files.push((path, metadata.len()));
            }
        }
    }
    files.sort();
    Ok(files)
}

fn copy_all(from: &Path, to: &Path, files: &[(PathBuf, u64)], bytes: u64) -> Result<(), Failure> {
    let progress = Progress::bytes("copying", Some(bytes));
    let mut copied = 0;
    let mut chunk = vec![0; CHUNK_BYTES];
    owner_only::create_folders(to).map_err(|error| Failure::other(format!("{}: {error}", to.display())))?;
    for (path, _) in files {
        let (source, target) = (from.join(path), to.join(path));
        let made = target.parent().map_or(Ok(()), owner_only::create_folders);
        made.map_err(|error| Failure::other(format!("{}: {error}", target.display())))?;
        let mut input = owner_only::open(&source).map_err(|error| failed(&source, &error))?;
        let mut output = owner_only::create_new(&target)
            .map_err(|error| Failure::other(format!("{}: {error}", target.display())))?;
        loop {
            let read = input.read(&mut chunk).map_err(|error| failed(&source, &error))?;
            if read == 0 {
                break;
            }
            let written = output.write_all(&chunk[..read]);
            written.map_err(|error| {
                Failure::other(format!("{}: {error}; there is not enough room for a copy", target.display()))
                    .next("give --scratch a folder with more room")
            })?;
            copied += read as u64;
            progress.at(copied);
        }
    }
    progress.leave();
    Ok(())
}

const RESTORE: &str = "keep the directory as it is, and restore a backup elsewhere";

/// Opens the copy and looks at everything in it.
fn examine(copy: &Path, checked: &mut Vec<Checked>, found: &mut JsonValue) {
    let house = match Statehouse::open(copy) {
        Ok(house) => house,
        Err(error) => {
            checked.push(Checked::new("opens", false, error.to_string()).next(RESTORE));
            return;
        }
    };
    checked.push(Checked::new("opens", true, "it opens, and its journal could be replayed"));
    checked.push(match house.verify_journal() {
        Ok(entries) => Checked::new("journal", true, format!("{entries} entries, each as it was written"))
            .measured(number(entries), "entries"),
        Err(error) => Checked::new("journal", false, error.to_string()).next(RESTORE),
    });
    // An image reads every row of the store, and with it every block's checksum.
    checked.push(match house.write_image(&mut std::io::sink()) {
        Ok(rows) => Checked::new("store", true, format!("{rows} rows, all can be read")).measured(number(rows), "rows"),
        Err(error) => Checked::new("store", false, error.to_string()).next(RESTORE),
    });
    checked.push(match replay_runs(&house) {
        Ok((replayed, differing, all)) if differing.is_empty() => {
            Checked::new("runs", true, format!("{replayed} of {all} replayed, each as its projection says"))
                .measured(number(replayed), "runs")
        }
        Ok((_, differing, _)) => {
            Checked::new("runs", false, format!("the projections of {} differ from their events", differing.join(", ")))
                .next("keep the directory and report it: this is a defect")
        }
        Err(error) => Checked::new("runs", false, error.to_string()).next(RESTORE),
    });
    if let Ok(status) = house.status() {
        found["commit"] = status.commit.into();
        found["applied_index"] = status.applied_index.into();
        found["journal_bytes"] = status.journal_bytes.into();
        found["store_bytes"] = status.store_bytes.into();
    }
    found["spaces"] = house.spaces().unwrap_or_default().into();
    let _ = house.close();
}

/// How many runs were replayed, which of them differ, and how many there are.
fn replay_runs(house: &Statehouse) -> Result<(u64, Vec<String>, u64), statehouse::Error> {
    let (mut replayed, mut differing, mut all) = (0, Vec::new(), 0);
    for space in house.spaces()? {
        let space = house.space(&space);
        for branch in space.branches()? {
            let branch = space.branch(&branch);
            all += branch.runs().counts()?.values().sum::<u64>();
            let list = RunList::default().limit(RUNS_MAX);
            for run in branch.runs().list(&list)?.runs {
                let runs = match &run.group {
                    Some(group) => branch.group(group).runs(),
                    None => branch.runs(),
                };
                if runs.verify(&run.name)?.difference.is_some() {
                    differing.push(run.name);
                }
                replayed += 1;
            }
        }
    }
    Ok((replayed, differing, all))
}
