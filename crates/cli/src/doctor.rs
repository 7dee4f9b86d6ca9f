//! `doctor`: examines a directory that no server has open, and reports what it found.
//!
//! Keeps: not one byte of the directory changes. It is copied to a scratch folder while its lock is held, and the copy is opened: replaying a
//! journal writes, and damaged data is better left alone. With `--salvage`, everything in the copy that can be read becomes a new directory.
//! Never: repairs the directory itself.

use std::fs::{File, TryLockError};
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value as JsonValue, json};
use statehouse::shell::Suggested;
use statehouse::{DamageEffect, FoundDamage, Statehouse, export, import, owner_only};

use crate::backup::{cannot_write, failed as transfer, listed, refuse_missing};
use crate::check;
use crate::checks::{Checked, number};
use crate::contract::Contract;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::progress::Progress;
use crate::table::size;
use crate::with_contracts;

/// Examine a directory without changing it: journal, store, runs. Exits with 7 if something is wrong.
///
/// No other process may have the directory open. It is copied first, so there must be room for a copy.
///
/// Examples:
///   statehouse doctor /var/lib/statehouse
///   statehouse doctor ./data --scratch /mnt/large -o json
///   statehouse doctor ./data --salvage ./rescued
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Doctor {
    /// The data directory.
    directory: PathBuf,
    /// Folder for the copy, which is deleted afterwards. Default: the folder for temporary files.
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,
    /// Write everything that can be read into this new directory, and list what is missing. Exits with 7 if something is.
    #[arg(long, value_name = "NEW_DIR")]
    salvage: Option<PathBuf>,
}

/// Bytes to copy at a time.
const CHUNK_BYTES: usize = 1 << 20;

impl Doctor {
    pub(crate) fn run(self, output: Output) -> Result<(), Failure> {
        let directory = &self.directory;
        if !directory.join("IDENTITY").is_file() {
            return Err(Failure::new(Exit::NotFound, format!("{} is not a statehouse directory", directory.display()))
                .next("it must contain a file IDENTITY; look one level up or down"));
        }
        let _held = hold(directory)?;
        let files = files_of(directory).map_err(|error| failed(directory, &error))?;
        let bytes: u64 = files.iter().map(|(_, bytes)| bytes).sum();
        let scratch = match &self.scratch {
            Some(scratch) => tempfile::tempdir_in(scratch),
            None => tempfile::tempdir(),
        };
        let scratch = scratch.map_err(|error| Failure::other(format!("cannot create a scratch folder: {error}")))?;
        let copy = scratch.path().join("copy");
        copy_all(directory, &copy, &files, bytes)?;
        let read = Checked::new("files", true, format!("{} files ({}) are readable", files.len(), size(bytes)));
        let mut checked = vec![read.measured(number(bytes), "bytes")];
        let mut found = json!({ "directory": directory.display().to_string() });
        if let Some(new) = &self.salvage {
            return salvage(directory, &copy, new, found, &output);
        }
        examine(&copy, &mut checked, &mut found);
        // A fault of the copy is a fault of the directory, and people know it by the directory's name.
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

/// Builds a new directory from everything in the copy that can be read.
fn salvage(directory: &Path, copy: &Path, new: &Path, mut found: JsonValue, output: &Output) -> Result<(), Failure> {
    let house = Statehouse::open(copy).map_err(|error| Failure::from(error).next(RESTORE))?;
    let lines = copy.with_extension("jsonl");
    let mut out = owner_only::create_new(&lines).map(BufWriter::new).map_err(|error| cannot_write(&lines, &error))?;
    let progress = Progress::steps("reading", 1);
    let exported = export::write(&house, None, &mut out, &mut |_| {}).map_err(|error| transfer(directory, error))?;
    out.flush().map_err(|error| cannot_write(&lines, &error))?;
    progress.leave();
    let damage = house.damage().unwrap_or_default();
    drop(house);
    let input = owner_only::open(&lines).map_err(|error| failed(&lines, &error))?;
    let progress = Progress::bytes("writing", Some(exported.bytes));
    let imported = import::read(new, &mut BufReader::new(input), &mut |at| progress.at(at.done));
    let imported = imported.map_err(|error| transfer(new, error))?;
    progress.leave();
    found["salvaged"] = new.display().to_string().into();
    found["commit"] = imported.commit.into();
    found["counts"] = imported.counts.iter().map(|(kind, count)| (kind.clone(), JsonValue::from(*count))).collect();
    found["missing"] = listed(&exported.missing);
    found["damage"] = damage.iter().map(shown).collect();
    let mut text = format!("{} has everything of {} that can be read:\n", new.display(), directory.display());
    for (kind, count) in &imported.counts {
        text.push_str(&format!("  {count} {kind}\n"));
    }
    for (from, to) in &exported.missing {
        text.push_str(&format!("missing: what lay between {from} and {to}\n"));
    }
    for damage in damage.iter().filter(|damage| damage.in_replay) {
        let entry = damage.from_entry.unwrap_or_default();
        text.push_str(&format!(
            "commands from entry {entry} on that needed what lay between {} and {} have no effect\n",
            damage.from, damage.to
        ));
    }
    output.told(&text, &found)?;
    refuse_missing(new, &exported.missing)
}

/// One damaged part as JSON.
fn shown(damage: &FoundDamage) -> JsonValue {
    let FoundDamage { file, offset, reason, effect, from, to, from_entry, in_replay, .. } = damage;
    json!({
        "file": file, "offset": offset, "reason": reason, "effect": effect.name(), "from": from, "to": to,
        "from_entry": from_entry, "in_replay": in_replay,
    })
}

fn failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::check(format!("{}: {error}", path.display()))
        .next("check the disk; restore from a backup if it is unreadable")
}

/// Holds the directory's lock, so that nobody opens it meanwhile; the lock file is only read.
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
                .run("stop the server first, or query it", Suggested::new(["statehouse", "status"])))
        }
        Err(TryLockError::Error(error)) => Err(failed(&path, &error)),
    }
}

/// Every file under the directory except its lock, by relative path, with its size.
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
                    .next("use --scratch with a folder that has more room")
            })?;
            copied += read as u64;
            progress.at(copied);
        }
    }
    progress.leave();
    Ok(())
}

pub(crate) const RESTORE: &str = "leave the directory as it is, and restore a backup elsewhere";

const SALVAGE: &str = "restore a backup elsewhere, or keep everything else: `statehouse doctor DIR --salvage NEW_DIR`";

macro_rules! examine_things {
    ($($folder:ident: $noun:ident { $($explained:ident)? })*) => {
        /// Examines the things of each contract.
        fn examine_things(house: &Statehouse) -> impl Iterator<Item = Checked> {
            [$(<crate::$folder::$noun as Contract>::examine(house)),*].into_iter().flatten()
        }
    };
}

with_contracts!(examine_things);

/// Opens the copy and examines everything in it.
fn examine(copy: &Path, checked: &mut Vec<Checked>, found: &mut JsonValue) {
    let house = match Statehouse::open(copy) {
        Ok(house) => house,
        Err(error) => {
            checked.push(Checked::new("opens", false, error.to_string()).next(RESTORE));
            return;
        }
    };
    checked.push(Checked::new("opens", true, "opened, journal replayed"));
    checked.push(match house.verify_journal() {
        Ok(entries) => {
            Checked::new("journal", true, format!("{entries} entries, all intact")).measured(number(entries), "entries")
        }
        Err(error) => Checked::new("journal", false, error.to_string()).next(RESTORE),
    });
    // Writing an image reads every row of the store, which checks every block's checksum.
    checked.push(match house.write_image(&mut std::io::sink()) {
        Ok(rows) => Checked::new("store", true, format!("{rows} rows, all readable")).measured(number(rows), "rows"),
        Err(error) if error.code() == "SH-2023" => Checked::new("store", false, error.to_string()).next(SALVAGE),
        Err(error) => Checked::new("store", false, error.to_string()).next(RESTORE),
    });
    let damage = house.damage().unwrap_or_default();
    found["damage"] = damage.iter().map(shown).collect();
    for damage in damage.iter().filter(|damage| damage.effect == DamageEffect::Healed) {
        let said = format!("{} at byte {}: {}; nothing is lost", damage.file, damage.offset, damage.reason);
        checked.push(Checked::new("damage", false, said).next("check the disk, and copy the data to another one"));
    }
    checked.extend(examine_things(&house));
    if let Ok(status) = house.status() {
        found["commit"] = status.commit.into();
        found["applied_index"] = status.applied_index.into();
        found["journal_bytes"] = status.journal_bytes.into();
        found["store_bytes"] = status.store_bytes.into();
    }
    found["spaces"] = house.spaces().unwrap_or_default().into();
    let _ = house.close();
}
