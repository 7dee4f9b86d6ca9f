//! Backups: the whole state of a store at one commit, as one file that can be verified and restored;
//! `docs/formats/backup.md`.
//!
//! - [`create`]: writes a backup of a running store. [`Prepared`]: the same in two steps.
//! - [`verify`]: reads one and checks every hash. [`verify_deep`]: restores it beside, and compares.
//! - [`restore`]: builds a new directory from one.
//! - [`file`](mod@file): a file that gets its name when it is whole and durable. [`BackupTimes`]: when the last ones were.
//!
//! Keeps: a backup is the state after one command, from one view, whatever is written meanwhile. A restored store is
//! equal by hash. If stored bytes are damaged, the backup has everything else and lists what is missing. Never: changes the store it is taken from, or an existing directory.

pub mod file;
mod manifest;

use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use contract::Error;
use kernel::keys::GENERATION_BYTES;
use kernel::keys::readable::describe_range;
use kernel::{Applied, Catalogue, image};
use kv::{Gaps, KeyRange, Store, View};
use node::directory::FilledBy;
use node::error::{from_halt, from_kv};
use node::parts::{Parts, StoreAtRest};

pub use manifest::{Manifest, MissingRange};
pub use node::backup_times::BackupTimes;

use crate::export;
use crate::house::Statehouse;
use crate::import::ImportOptions;
use crate::options::Options;
use crate::transfer::{HashingReader, HashingWriter, KEYS, OnProgress, Progress, TransferError, make_or_leave_nothing};

/// A backup that was written or read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Backup {
    /// Its manifest.
    pub manifest: Manifest,
    /// Bytes of the whole file.
    pub bytes: u64,
    /// SHA-256 over the image alone: two stores with the same state have the same.
    pub image_sha256: [u8; 32],
    /// SHA-256 over everything before it.
    pub sha256: [u8; 32],
}

/// Writes a backup of an open store. Commands continue meanwhile; the backup contains what was committed when it
/// started.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// use statehouse::{Statehouse, backup};
/// let house = Statehouse::open(directory.path().join("house"))?;
/// house.cells().set("greeting", "hello")?;
/// let mut file = Vec::new();
/// let made = backup::create(&house, &mut file, &mut |_| {})?;
/// assert_eq!(backup::verify(&mut file.as_slice(), &mut |_| {})?, made);
///
/// let elsewhere = directory.path().join("elsewhere");
/// backup::restore(&elsewhere, &mut file.as_slice(), &mut |_| {})?;
/// let restored = Statehouse::open(&elsewhere)?;
/// assert_eq!(restored.cells().get("greeting")?.as_ref().and_then(|v| v.as_text()), Some("hello"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn create(house: &Statehouse, out: &mut dyn Write, on_progress: OnProgress<'_>) -> Result<Backup, TransferError> {
    Prepared::new(house)?.write(out, on_progress)
}

/// A backup about to be written, with its state chosen.
pub struct Prepared {
    view: Arc<dyn View>,
    catalogue: Arc<Catalogue>,
    applied: Applied,
    store_id: u64,
    made_us: u64,
}

impl Prepared {
    /// Chooses everything committed so far.
    pub fn new(house: &Statehouse) -> Result<Self, TransferError> {
        let (view, catalogue) = house.shard.view()?;
        let applied = node::image::applied(&*view, &KEYS)?;
        Ok(Self { view, catalogue, applied, store_id: house.id(), made_us: house.shard.clock().wall_us() })
    }

    /// The number of the last command in it.
    pub fn commit(&self) -> u64 {
        self.applied.commit
    }

    /// Reads everything once, to know how much it is.
    fn measure(&self) -> Result<Manifest, TransferError> {
        let mut sink = Counted(0);
        let (rows, damaged) =
            image::write_readable(&*self.view, &KEYS, &mut sink).map_err(TransferError::from_image)?;
        let missing = damaged.iter().map(|damaged| {
            let (from, to) = describe_range(&damaged.range, &self.catalogue);
            let without = |key: &[u8]| key.get(GENERATION_BYTES..).unwrap_or_default().to_vec();
            let end = damaged.range.end.as_deref().map_or_else(Vec::new, without);
            MissingRange { from, to, keys: KeyRange { start: without(&damaged.range.start), end: Some(end) } }
        });
        let mut missing: Vec<MissingRange> = missing.collect();
        missing.dedup();
        Ok(Manifest {
            missing,
            store_id: self.store_id,
            commit: self.applied.commit,
            applied_index: self.applied.index,
            effects_hash: self.applied.hash,
            state_us: self.applied.stamp.wall_us,
            made_us: self.made_us,
            rows,
            image_bytes: sink.0,
            release: env!("CARGO_PKG_VERSION").to_owned(),
        })
    }

    /// Writes the file. Everything is read twice: first to know how much it is. Progress is in bytes.
    pub fn write(self, out: &mut dyn Write, on_progress: OnProgress<'_>) -> Result<Backup, TransferError> {
        let manifest = self.measure()?;
        let mut out = ReportingWriter { out, done: 0, total: manifest.file_bytes(), on_progress };
        let mut all = HashingWriter::new(&mut out);
        manifest.write(&mut all)?;
        let mut image = HashingWriter::new(&mut all);
        let (rows, _) = image::write_readable(&*self.view, &KEYS, &mut image).map_err(TransferError::from_image)?;
        let (image_bytes, image_sha256) = (image.bytes, image.so_far());
        if (rows, image_bytes) != (manifest.rows, manifest.image_bytes) {
            return Err(TransferError::damaged(
                "a view changed while it was read twice: keep the directory, report it",
            ));
        }
        all.write_all(&image_sha256)?;
        let sha256 = all.so_far();
        all.write_all(&sha256)?;
        all.flush()?;
        let bytes = all.bytes;
        Ok(Backup { manifest, bytes, image_sha256, sha256 })
    }
}

/// Counts the bytes written to it, and does nothing else.
struct Counted(u64);

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads a backup to its end and checks every hash and every number in its manifest. Progress is in bytes.
pub fn verify(input: &mut dyn Read, on_progress: OnProgress<'_>) -> Result<Backup, TransferError> {
    read(input, on_progress, |image| image::read(image, |_| Ok(())).map_err(TransferError::from_image))
}

/// Also restores it to a new directory at `beside`, which is removed afterwards: reads every row there, and compares
/// the image of the restored store.
pub fn verify_deep(input: &mut dyn Read, beside: &Path, on_progress: OnProgress<'_>) -> Result<Backup, TransferError> {
    let backup = restore(beside, input, on_progress)?;
    // From here on the directory is ours: this call created it.
    let checked = check_restored(beside, &backup);
    std::fs::remove_dir_all(beside)?;
    checked.map(|()| backup)
}

/// Builds a new directory at `path` from a backup. An existing path is refused; on failure nothing is left behind.
/// Progress is in bytes.
pub fn restore(path: &Path, input: &mut dyn Read, on_progress: OnProgress<'_>) -> Result<Backup, TransferError> {
    make_or_leave_nothing(path, || {
        let mut outcome = None;
        let created = Parts::create(path, &Options::default(), FilledBy::Transfer, |store: &dyn Store| {
            let restored = read(input, on_progress, |image| {
                image::restore(image, store, &KEYS).map_err(TransferError::from_image)
            });
            // The directory becomes complete only after this, so a backup damaged at its end never becomes one.
            let buckets = match &restored {
                Ok(backup) => check_state(store, &backup.manifest),
                Err(_) => Err(Error::from(contract::Failure::not_applied(contract::FailureKind::Corrupt, "a backup"))),
            };
            outcome = Some(restored);
            buckets
        });
        match (outcome, created) {
            (Some(Err(error)), _) => Err(error),
            (_, Err(error)) => Err(error.into()),
            (Some(Ok(backup)), Ok(())) => {
                if !backup.manifest.missing.is_empty() {
                    build_again(path, &backup.manifest)?;
                }
                Ok(backup)
            }
            (None, Ok(())) => unreachable!("a directory is made by filling it"),
        }
    })
}

/// Builds a directory again without the things that its backup does not have as a whole. Rows that follow from others,
/// such as indexes, would contradict what is missing.
fn build_again(path: &Path, manifest: &Manifest) -> Result<(), TransferError> {
    let beside = |end: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        std::path::PathBuf::from(name)
    };
    let (lines, rebuilt) = (beside(".lines"), beside(".rebuilt"));
    let build = || {
        let mut out = io::BufWriter::new(node::directory::owner_only::create_new(&lines)?);
        let store = StoreAtRest::open(path, &Options::default())?;
        let view = store.view().map_err(|error| from_kv(&error))?;
        let gaps = manifest.missing.iter().map(|range| {
            let end = range.keys.end.as_deref().unwrap_or_default();
            KeyRange::between(&*KEYS.in_generation(&range.keys.start), &*KEYS.in_generation(end))
        });
        let view = Gaps::new(&*view, gaps.collect());
        let catalogue = Catalogue::load(&view, &KEYS)?;
        let source = export::Source { view: &view, catalogue: &catalogue, release: &manifest.release };
        source.write(None, &mut out, &mut |_| {})?;
        out.flush()?;
        drop((view, store));
        let mut lines = io::BufReader::new(node::directory::owner_only::open(&lines)?);
        // A restored backup takes the place of its store, claims included.
        crate::import::read_with(&rebuilt, &mut lines, ImportOptions::default().keep_claims(), &mut |_| {})?;
        std::fs::remove_dir_all(path)?;
        std::fs::rename(&rebuilt, path)?;
        node::directory::owner_only::sync_folder_of(path)?;
        Ok(())
    };
    let built = build();
    let _ = std::fs::remove_file(&lines);
    built
}

/// That the state in the store is the one that the manifest speaks of.
fn check_state(store: &dyn Store, manifest: &Manifest) -> Result<kernel::Buckets, Error> {
    let view = store.view().map_err(|error| from_kv(&error))?;
    let applied = node::image::applied(&*view, &KEYS)?;
    if (applied.commit, applied.index, applied.hash) != (manifest.commit, manifest.applied_index, manifest.effects_hash)
    {
        let message = format!("the backup has commit {}, but its image has {}", manifest.commit, applied.commit);
        return Err(contract::Failure::not_applied(contract::FailureKind::Corrupt, message).into());
    }
    let catalogue = Catalogue::load(&*view, &KEYS).map_err(|halt| from_halt(&halt))?;
    Ok(catalogue.buckets)
}

/// Checks that a directory equals a backup, row by row and by hash.
fn check_restored(path: &Path, backup: &Backup) -> Result<(), TransferError> {
    let found = image_of_directory(path)?;
    if found != backup.image_sha256 && backup.manifest.missing.is_empty() {
        return Err(TransferError::damaged("the restored store differs from the backup: its image is different"));
    }
    // An export reads everything, so unreadable data is found now and not when it is needed.
    export::write_directory(path, &mut io::sink(), &mut |_| {}).map(|_| ())
}

/// SHA-256 over the image of a directory that is not open: nothing is replayed and nothing expires. It is the complete
/// state only for a directory that was restored or imported and never opened since.
pub fn image_of_directory(path: &Path) -> Result<[u8; 32], TransferError> {
    let store = StoreAtRest::open(path, &Options::default())?;
    let view = store.view().map_err(|error| from_kv(&error))?;
    let mut sink = io::sink();
    let mut image = HashingWriter::new(&mut sink);
    image::write(&*view, &KEYS, &mut image).map_err(TransferError::from_image)?;
    Ok(image.so_far())
}

fn read(
    input: &mut dyn Read,
    on_progress: OnProgress<'_>,
    take_image: impl FnOnce(&mut dyn Read) -> Result<u64, TransferError>,
) -> Result<Backup, TransferError> {
    let mut input = ReportingReader { input, done: 0, total: None, on_progress };
    let mut all = HashingReader::new(&mut input);
    let manifest = Manifest::read(&mut all)?;
    // The image is read up to its own end mark; if that is beyond the manifest's size, something is damaged.
    let mut limited = Read::take(&mut all, manifest.image_bytes);
    let mut image = HashingReader::new(&mut limited);
    let rows = take_image(&mut image)?;
    let (image_bytes, computed) = (image.bytes, image.so_far());
    if (rows, image_bytes) != (manifest.rows, manifest.image_bytes) {
        let message = format!("its manifest says {} rows, but its image has {rows}", manifest.rows);
        return Err(TransferError::damaged(format!("the backup is damaged: {message}")));
    }
    let take = |all: &mut HashingReader<'_>| {
        let mut hash = [0; 32];
        all.read_exact(&mut hash).map_err(|error| TransferError::reading("the backup", error))?;
        Ok::<_, TransferError>(hash)
    };
    let image_sha256 = take(&mut all)?;
    let computed_all = all.so_far();
    let sha256 = take(&mut all)?;
    if image_sha256 != computed || sha256 != computed_all {
        return Err(TransferError::damaged("the backup is damaged: its hash does not match its bytes"));
    }
    if all.read(&mut [0])? != 0 {
        return Err(TransferError::damaged("the backup is damaged: there are bytes after its end"));
    }
    let bytes = all.bytes;
    Ok(Backup { manifest, bytes, image_sha256, sha256 })
}

/// Tells how much was written.
struct ReportingWriter<'out, 'caller> {
    out: &'out mut dyn Write,
    done: u64,
    total: u64,
    on_progress: OnProgress<'caller>,
}

impl Write for ReportingWriter<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.done += written as u64;
        (self.on_progress)(Progress { done: self.done, total: Some(self.total) });
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Tells how much was read.
struct ReportingReader<'input, 'caller> {
    input: &'input mut dyn Read,
    done: u64,
    total: Option<u64>,
    on_progress: OnProgress<'caller>,
}

impl Read for ReportingReader<'_, '_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(into)?;
        self.done += read as u64;
        (self.on_progress)(Progress { done: self.done, total: self.total });
        Ok(read)
    }
}
