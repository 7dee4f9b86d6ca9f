//! Exports: the content of a store as lines of JSON, one per thing, for other programs and for a new store;
//! `docs/formats/export.md`.
//!
//! - [`write`](fn@write): an open store, or one space of it. [`write_directory`]: a directory that was never opened
//!   since it was created.
//!
//! Keeps: the lines contain versions, commits, histories, times, attempts and idempotency keys, and are all that is
//! needed to build a store that continues from there ([`import`](crate::import)). The same state gives the same bytes.

pub(crate) mod line;
pub(crate) mod lines;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use kernel::keys::readable::describe_range;
use kernel::{Applied, Catalogue, portable};
use kv::View;
use node::apply::copies::load_catalogue;
use node::error::from_kv;
use node::parts::StoreAtRest;

pub(crate) use line::{BYTES, JSON};

use crate::house::Statehouse;
use crate::options::Options;
use crate::transfer::{HashingWriter, KEYS, OnProgress, Progress, TransferError, hex};
use line::Line;

/// The format written, and the only one read.
pub(crate) const FORMAT: u32 = 1;

/// The kinds of lines.
pub(crate) mod kinds {
    pub(crate) const HEADER: &str = "header";
    pub(crate) const SPACE: &str = "space";
    pub(crate) const TYPE: &str = "type";
    pub(crate) const MACHINE: &str = "machine";
    pub(crate) const BUCKET: &str = "bucket";
    pub(crate) const CELL_FLOOR: &str = "cell_floor";
    pub(crate) const CELL_VERSION: &str = "cell_version";
    pub(crate) const CELL: &str = "cell";
    pub(crate) const RECORD: &str = "record";
    pub(crate) const RUN: &str = "run";
    pub(crate) const EVENT: &str = "event";
    pub(crate) const STEP: &str = "step";
    pub(crate) const RUN_REMOVAL: &str = "run_removal";
    pub(crate) const MAP: &str = "map";
    pub(crate) const MAP_KEY: &str = "map_key";
    pub(crate) const MAP_POSITION: &str = "map_position";
    pub(crate) const MAP_WAITING: &str = "map_waiting";
    pub(crate) const MAP_ANSWER: &str = "map_answer";
    pub(crate) const MESSAGE: &str = "message";
    pub(crate) const DEAD_LETTER: &str = "dead_letter";
    pub(crate) const MESSAGE_NUMBERS: &str = "message_numbers";
    pub(crate) const RECEIVED: &str = "received";
    pub(crate) const MACHINE_STATE: &str = "machine_state";
    pub(crate) const MACHINE_MEMBER: &str = "machine_member";
    pub(crate) const FOOTER: &str = "footer";
}

/// The result of an export or an import.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exported {
    /// The number of the last command in it.
    pub commit: u64,
    /// The number of lines of each kind, without the last line.
    pub counts: BTreeMap<String, u64>,
    /// Bytes of the lines, but for the last line.
    pub bytes: u64,
    /// SHA-256 over these.
    pub sha256: [u8; 32],
    /// What is missing because its stored bytes are damaged: where each range begins and ends.
    pub missing: Vec<(String, String)>,
}

/// Exports an open store, or one space of it, as it is now. Commands continue meanwhile. Progress is in buckets.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// use statehouse::{Statehouse, export, import};
/// let house = Statehouse::open(directory.path().join("house"))?;
/// house.cells().set("greeting", "hello")?;
/// house.cells().set("greeting", "hello again")?;
/// let mut lines = Vec::new();
/// export::write(&house, None, &mut lines, &mut |_| {})?;
///
/// let elsewhere = directory.path().join("elsewhere");
/// import::read(&elsewhere, &mut lines.as_slice(), &mut |_| {})?;
/// let imported = Statehouse::open(&elsewhere)?;
/// assert_eq!(imported.cells().set("greeting", "again")?.version, 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write(
    house: &Statehouse,
    space: Option<&str>,
    out: &mut dyn Write,
    on_progress: OnProgress<'_>,
) -> Result<Exported, TransferError> {
    Prepared::new(house, space)?.write(out, on_progress)
}

/// An export about to be written, with its state chosen.
pub struct Prepared {
    view: std::sync::Arc<dyn View>,
    catalogue: std::sync::Arc<Catalogue>,
    space: Option<String>,
    commit: u64,
}

impl Prepared {
    /// Chooses everything committed so far, of all spaces or of one that must exist.
    pub fn new(house: &Statehouse, space: Option<&str>) -> Result<Self, TransferError> {
        let (view, _) = house.shard.view()?;
        // The catalogue that belongs to this very view.
        let catalogue = std::sync::Arc::new(load_catalogue(&*view, &KEYS)?);
        if let Some(space) = space {
            catalogue.space_named(space).map_err(contract::Error::from)?;
        }
        let commit = node::image::applied(&*view, &KEYS)?.commit;
        Ok(Self { view, catalogue, space: space.map(str::to_owned), commit })
    }

    /// The number of the last command in it.
    pub fn commit(&self) -> u64 {
        self.commit
    }

    /// Writes the lines. Progress is in buckets.
    pub fn write(self, out: &mut dyn Write, on_progress: OnProgress<'_>) -> Result<Exported, TransferError> {
        let source = Source { view: &*self.view, catalogue: &self.catalogue, release: env!("CARGO_PKG_VERSION") };
        source.write(self.space.as_deref(), out, on_progress)
    }
}

/// Exports a directory that is not open: nothing is replayed and nothing expires. It is the complete state only for a
/// directory that was restored or imported and never opened since.
pub fn write_directory(
    path: &Path,
    out: &mut dyn Write,
    on_progress: OnProgress<'_>,
) -> Result<Exported, TransferError> {
    let store = StoreAtRest::open(path, &Options::default())?;
    let view = store.view().map_err(|error| from_kv(&error))?;
    let catalogue = Catalogue::load(&*view, &KEYS)?;
    let source = Source { view: &*view, catalogue: &catalogue, release: env!("CARGO_PKG_VERSION") };
    source.write(None, out, on_progress)
}

/// The source of an export.
pub(crate) struct Source<'view> {
    pub(crate) view: &'view dyn View,
    pub(crate) catalogue: &'view Catalogue,
    /// The content of the header; to write an export again, that of the original.
    pub(crate) release: &'view str,
}

impl Source<'_> {
    pub(crate) fn write(
        &self,
        space: Option<&str>,
        out: &mut dyn Write,
        on_progress: OnProgress<'_>,
    ) -> Result<Exported, TransferError> {
        let catalogue = self.catalogue;
        let applied: Applied = node::image::applied(self.view, &KEYS)?;
        let only = space.map(|space| catalogue.space_named(space)).transpose().map_err(contract::Error::from)?;
        let mut written = Lines { out: HashingWriter::new(out), counts: BTreeMap::new() };
        written.put(kinds::HEADER, lines::header(self.release, space, &applied, catalogue))?;
        for (number, found) in catalogue.spaces_of_users().filter(|(number, _)| only.is_none_or(|only| only == *number))
        {
            written.put(kinds::SPACE, lines::space(number, found))?;
            for (kind, line) in lines::declared(found) {
                written.put(kind, line)?;
            }
        }
        for (number, version) in catalogue.machines() {
            written.put(kinds::MACHINE, lines::machine(number, version))?;
        }
        let total = u64::from(catalogue.buckets.count());
        let missing = portable::walk(self.view, &KEYS, catalogue, only, &mut |item| {
            if let portable::Item::Bucket(bucket) = item {
                on_progress(Progress { done: (*bucket).into(), total: Some(total) });
            }
            match lines::item(catalogue, &applied, item)? {
                Some((kind, line)) => written.put(kind, line),
                None => Ok(()),
            }
        })?;
        on_progress(Progress { done: total, total: Some(total) });
        let missing = missing.iter().map(|range| describe_range(range, catalogue)).collect();
        written.finish(applied.commit, missing)
    }
}

struct Lines<'out> {
    out: HashingWriter<'out>,
    counts: BTreeMap<&'static str, u64>,
}

impl Lines<'_> {
    fn put(&mut self, kind: &'static str, line: Line) -> Result<(), TransferError> {
        let mut line = line.finish();
        line.push(b'\n');
        self.out.write_all(&line)?;
        *self.counts.entry(kind).or_default() += 1;
        Ok(())
    }

    fn finish(mut self, commit: u64, missing: Vec<(String, String)>) -> Result<Exported, TransferError> {
        let (bytes, sha256) = (self.out.bytes, self.out.so_far());
        let counts = self.counts.iter().fold(Line::object(), |counts, (kind, count)| counts.number(kind, *count));
        let footer = Line::new(kinds::FOOTER).nested("counts", counts).text("sha256", &hex(&sha256));
        let footer = match missing.is_empty() {
            true => footer,
            false => footer
                .list("missing", missing.iter().map(|(from, to)| Line::object().text("from", from).text("to", to))),
        };
        let mut footer = footer.finish();
        footer.push(b'\n');
        self.out.write_all(&footer)?;
        self.out.flush()?;
        let counts = self.counts.into_iter().map(|(kind, count)| (kind.to_owned(), count)).collect();
        Ok(Exported { commit, counts, bytes, sha256, missing })
    }
}
