//! `backup`: write a whole store to one file, verify such a file, and restore a directory from it.
//!
//! Keeps: a file gets its name once it is complete, verified and durable; until then it is `FILE.NUMBER.partial`. Never: overwrites a file or
//! a directory.

use std::fs::File;
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Value as JsonValue, json};
use statehouse::backup::file::WholeFile;
use statehouse::shell::Suggested;
use statehouse::{TransferError, backup, hex};
use wire::operations::VerifiedBackup;
use wire::routes::{BACKUP_CREATE, BACKUP_VERIFIED};

use crate::connection::{Connection, Streaming, serve_command};
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::progress::Progress;
use crate::reach::Reach;
use crate::table::{Column, plain, size};

/// Backups: create, verify, restore.
///
/// Examples:
///   statehouse backup create monday.shbackup
///   statehouse backup restore monday.shbackup ./restored
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Backup {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Back up a store as of one commit, and verify the file. The store stays in use meanwhile.
    ///
    /// Examples:
    ///   statehouse backup create monday.shbackup
    ///   statehouse backup create monday.shbackup --data ./data
    #[command(verbatim_doc_comment)]
    Create {
        #[command(flatten)]
        reach: Reach,
        /// The file to write; an existing file is never overwritten.
        file: PathBuf,
    },
    /// Read a backup and check every hash in it. Exits with 7 if it is damaged.
    ///
    /// Examples:
    ///   statehouse backup verify monday.shbackup
    ///   statehouse backup verify monday.shbackup --deep -o json
    #[command(verbatim_doc_comment)]
    Verify {
        /// The backup file.
        file: PathBuf,
        /// Also restore it next to the file, read and compare every row, then delete the restored copy.
        #[arg(long)]
        deep: bool,
    },
    /// Restore a backup into a new directory. Exits with 7 if it is damaged, leaving nothing behind.
    ///
    /// Examples:
    ///   statehouse backup restore monday.shbackup ./restored
    ///   statehouse backup restore monday.shbackup ./restored && statehouse serve --data ./restored
    #[command(verbatim_doc_comment)]
    Restore {
        /// The backup file.
        file: PathBuf,
        /// The new directory; it must not exist.
        directory: PathBuf,
    },
}

const SHOWN: &[Column] = &[
    plain("FILE", "file").raw(),
    plain("BYTES", "bytes"),
    plain("COMMIT", "commit"),
    plain("ROWS", "rows"),
    plain("STORE", "store"),
    plain("OF", "state_at"),
    plain("SHA-256", "sha256"),
];

impl Backup {
    pub(crate) fn run(self, output: Output) -> Result<(), Failure> {
        match self.verb {
            Verb::Create { reach, file } => reach.run(async |connection| create(connection, &file, &output).await),
            Verb::Verify { file, deep } => verify(&file, deep, &output),
            Verb::Restore { file, directory } => restore(&file, &directory, &output),
        }
    }
}

async fn create(connection: &Connection, file: &Path, output: &Output) -> Result<(), Failure> {
    let mut out = WholeFile::begin(file).map_err(|error| cannot_write(file, &error))?;
    let mut answer = Streaming::begin(connection.call(BACKUP_CREATE, &[])).await?;
    let mut progress = Progress::bytes("measure", None);
    let mut done = 0;
    while let Some(bytes) = answer.next().await? {
        if done == 0 {
            // The manifest comes first and gives the total size.
            progress.leave();
            progress = Progress::bytes("backup", backup::Manifest::peek(&bytes).map(|manifest| manifest.file_bytes()));
        }
        out.write_all(&bytes).map_err(|error| cannot_write(file, &error))?;
        done += bytes.len() as u64;
        progress.at(done);
    }
    progress.done();
    let partial = out.sync().map_err(|error| cannot_write(file, &error))?;
    let checked = check(partial, |input, progress| backup::verify(input, progress))?;
    out.finish().map_err(|error| cannot_write(file, &error))?;
    // The server monitors the age of the last verified backup. An older server does not know this route.
    let store = format!("{:016x}", checked.manifest.store_id);
    connection.call(BACKUP_VERIFIED, &[]).json(&VerifiedBackup { store }).answer().await?;
    output.card(&shown(file, &checked), SHOWN)?;
    refuse_missing(file, &missing_of(&checked))?;
    output.done(&format!("done: {} in {}, verified", size(checked.bytes), file.display()))
}

/// The ranges that a backup does not have: where each begins and ends.
fn missing_of(backup: &backup::Backup) -> Vec<(String, String)> {
    backup.manifest.missing.iter().map(|range| (range.from.clone(), range.to.clone())).collect()
}

/// A file without everything is kept, but nobody should take it for a whole one.
pub(crate) fn refuse_missing(file: &Path, missing: &[(String, String)]) -> Result<(), Failure> {
    let Some((from, to)) = missing.first() else { return Ok(()) };
    let more = match missing.len() - 1 {
        0 => String::new(),
        more => format!(", and {more} more ranges"),
    };
    let detail = format!(
        "{} is incomplete: stored bytes are damaged; missing is what lay between {from} and {to}{more}",
        file.display()
    );
    Err(Failure::check(detail)
        .run("it has everything else; see what is damaged", Suggested::new(["statehouse", "explain", "SH-2023"])))
}

fn verify(file: &Path, deep: bool, output: &Output) -> Result<(), Failure> {
    let checked = match deep {
        false => check(file, |input, progress| backup::verify(input, progress))?,
        true => {
            let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let beside = tempfile::Builder::new().prefix(".statehouse-verify-").tempdir_in(folder);
            let beside = beside.map_err(|error| cannot_write(folder, &error))?;
            check(file, |input, progress| backup::verify_deep(input, &beside.path().join("restored"), progress))?
        }
    };
    output.card(&shown(file, &checked), SHOWN)?;
    refuse_missing(file, &missing_of(&checked))?;
    output.done(&format!("done: {} is intact", file.display()))
}

fn restore(file: &Path, directory: &Path, output: &Output) -> Result<(), Failure> {
    let restored = check(file, |input, progress| backup::restore(directory, input, progress))?;
    let mut found = shown(file, &restored);
    found["directory"] = directory.display().to_string().into();
    output.card(&found, SHOWN)?;
    refuse_missing(file, &missing_of(&restored))?;
    output.done(&format!("done: restored; serve it: {}", serve_command(directory).shell()))
}

/// Reads a file, showing a progress bar.
fn check(
    file: &Path,
    read: impl FnOnce(&mut dyn std::io::Read, &mut dyn FnMut(statehouse::Progress)) -> Result<backup::Backup, TransferError>,
) -> Result<backup::Backup, Failure> {
    let (input, bytes) = open(file)?;
    let progress = Progress::bytes("verify", Some(bytes));
    let read = read(&mut BufReader::with_capacity(1 << 20, input), &mut |at| progress.at(at.done));
    let checked = read.map_err(|error| failed(file, error))?;
    progress.done();
    Ok(checked)
}

/// Opens a file and returns its size in bytes.
pub(crate) fn open(file: &Path) -> Result<(File, u64), Failure> {
    let opened = File::open(file).and_then(|opened| opened.metadata().map(|about| (opened, about.len())));
    opened.map_err(|error| {
        let exit = if error.kind() == std::io::ErrorKind::NotFound { Exit::NotFound } else { Exit::Other };
        Failure::new(exit, format!("cannot read {}: {error}", file.display()))
    })
}

/// The failure of reading or restoring a file.
pub(crate) fn failed(file: &Path, error: TransferError) -> Failure {
    match error {
        TransferError::Damaged(reason) => Failure::check(format!("{}: {reason}", file.display()))
            .next("use another copy of the file; nothing was changed"),
        TransferError::Store(error) => Failure::from(error),
        other => Failure::other(format!("{}: {other}", file.display())),
    }
}

pub(crate) fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    match error.kind() {
        std::io::ErrorKind::AlreadyExists => Failure::new(Exit::Conflict, error.to_string()),
        _ => Failure::other(format!("cannot write {}: {error}", path.display())),
    }
}

fn shown(file: &Path, found: &backup::Backup) -> JsonValue {
    let manifest = &found.manifest;
    let time = |us: u64| i64::try_from(us).ok().and_then(|us| jiff::Timestamp::from_microsecond(us).ok());
    json!({
        "file": file.display().to_string(),
        "bytes": found.bytes,
        "commit": manifest.commit,
        "applied_index": manifest.applied_index,
        "rows": manifest.rows,
        "store": format!("{:016x}", manifest.store_id),
        "effects_hash": format!("{:016x}", manifest.effects_hash),
        "state_at": time(manifest.state_us).map(|time| time.to_string()),
        "made_at": time(manifest.made_us).map(|time| time.to_string()),
        "release": manifest.release,
        "image_sha256": hex(&found.image_sha256),
        "sha256": hex(&found.sha256),
        "missing": listed(&missing_of(found)),
    })
}

/// Missing ranges as JSON.
pub(crate) fn listed(missing: &[(String, String)]) -> JsonValue {
    missing.iter().map(|(from, to)| json!({ "from": from, "to": to })).collect()
}
