//! Imports: builds a new directory from an export; `docs/formats/export.md`.
//!
//! Keeps: the imported store is exported again before it becomes a directory, and must produce the same bytes: counts
//! and hashes match the file, and versions, histories and times are preserved. Then what was held is released. Never: adds to an existing store, or
//! leaves anything behind on failure.

mod catalogue;
pub(crate) mod items;
pub(crate) mod object;

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};
use std::path::Path;

use contract::{Error, Failure, FailureKind};
use kernel::portable::{BuildError, Builder, release_held};
use kernel::{Buckets, Catalogue};
use kv::Store;
use node::directory::FilledBy;
use node::error::{from_halt, from_kv};
use node::parts::Parts;
use serde_json::Value as JsonValue;
use sha2::{Digest, Sha256};

use crate::export::{Exported, Source, kinds};
use crate::options::Options;
use crate::transfer::{KEYS, OnProgress, Progress, TransferError, hex, make_or_leave_nothing};
use catalogue::Header;
use items::Unput;
use object::Object;

/// Maximum bytes of a line. The largest thing is a record whose fields are bytes, which is far below this.
pub const LINE_BYTES_MAX: u64 = 64 << 20;

/// What an import does besides putting everything that an export has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImportOptions {
    /// Whether workers keep what they hold.
    pub keep_claims: bool,
}

impl ImportOptions {
    /// Workers keep what they hold: for a store that moves, and is not there any more. If it is, the same attempt goes on in both.
    pub fn keep_claims(mut self) -> Self {
        self.keep_claims = true;
        self
    }
}

/// Builds a new directory at `path` from an export. An existing path is refused; on failure nothing is left behind. What a worker
/// held is released, since it works for the store that was exported. Progress is in bytes.
pub fn read(path: &Path, input: &mut dyn BufRead, on_progress: OnProgress<'_>) -> Result<Exported, TransferError> {
    read_with(path, input, ImportOptions::default(), on_progress)
}

/// [`read`], with options.
pub fn read_with(
    path: &Path,
    input: &mut dyn BufRead,
    options: ImportOptions,
    on_progress: OnProgress<'_>,
) -> Result<Exported, TransferError> {
    make_or_leave_nothing(path, || {
        let mut outcome = None;
        let created = Parts::create(path, &Options::default(), FilledBy::Transfer, |store: &dyn Store| {
            let (imported, buckets) = match fill(store, input, options, on_progress) {
                Ok((imported, buckets)) => (Ok(imported), Ok(buckets)),
                // The directory is abandoned; the error is reported below.
                Err(error) => (Err(error), Err(Error::from(Failure::not_applied(FailureKind::Corrupt, "an import")))),
            };
            outcome = Some(imported);
            buckets
        });
        match (outcome, created) {
            (Some(Err(error)), _) => Err(error),
            (_, Err(error)) => Err(error.into()),
            (Some(Ok(imported)), Ok(())) => Ok(imported),
            (None, Ok(())) => unreachable!("a directory is made by filling it"),
        }
    })
}

/// Puts everything into an empty store, and compares.
fn fill(
    store: &dyn Store,
    input: &mut dyn BufRead,
    options: ImportOptions,
    on_progress: OnProgress<'_>,
) -> Result<(Exported, Buckets), TransferError> {
    let mut lines =
        LineReader { input, number: 0, bytes: 0, hash: Sha256::new(), counts: BTreeMap::new(), on_progress };
    let first = lines.next()?;
    let header = match first.kind() {
        kinds::HEADER => Header::read(first.object()?).map_err(|wrong| first.wrong(&wrong))?,
        _ => return Err(first.wrong("an export starts with a line of the kind header")),
    };
    let mut catalogue = header.catalogue().map_err(|wrong| first.wrong(&wrong))?;
    // The catalogue comes first. The first line of another kind is the first thing.
    let mut line = loop {
        let line = lines.next()?;
        let object = line.object()?;
        let is_put = match line.kind() {
            kinds::SPACE => catalogue::space(&mut catalogue, object).map(|()| true),
            kinds::MACHINE => object.number("number").and_then(|number| {
                catalogue.put_machine(number, object.number("version")?);
                Ok(true)
            }),
            kind => items::declare(&mut catalogue, kind, object),
        };
        if !is_put.map_err(|wrong| line.wrong(&wrong))? {
            break line;
        }
    };
    catalogue.complete().map_err(|wrong| line.wrong(wrong))?;
    let buckets = catalogue.buckets;
    let mut builder = Builder::new(store, KEYS, catalogue, header.applied).map_err(from_build)?;
    while line.kind() != kinds::FOOTER {
        items::put(&mut builder, line.kind(), line.object()?).map_err(|unput| match unput {
            Unput::Wrong(wrong) => line.wrong(&wrong),
            Unput::Build(error) => from_build(error),
        })?;
        line = lines.next()?;
    }
    let imported = lines.end(&line, header.applied.commit)?;
    // The hash over all effects starts over, with the content of the lines.
    let hash = u64::from_le_bytes(*imported.sha256.first_chunk().expect("a hash has 32 bytes"));
    builder.finish(hash).map_err(from_build)?;
    compare(store, &header, &imported)?;
    if !options.keep_claims {
        release_held(store, KEYS).map_err(from_build)?;
    }
    Ok((imported, buckets))
}

/// Checks that exporting the imported store gives the same bytes.
fn compare(store: &dyn Store, header: &Header, imported: &Exported) -> Result<(), TransferError> {
    let view = store.view().map_err(|error| from_kv(&error))?;
    let catalogue = Catalogue::load(&*view, &KEYS)?;
    let source = Source { view: &*view, catalogue: &catalogue, release: &header.release };
    let again = source.write(header.space.as_deref(), &mut io::sink(), &mut |_| {})?;
    if (again.bytes, again.sha256, &again.counts) != (imported.bytes, imported.sha256, &imported.counts) {
        let message =
            "the imported store differs from the file: exporting it again gives another hash; nothing was kept";
        return Err(TransferError::damaged(message));
    }
    Ok(())
}

fn from_build(error: BuildError) -> TransferError {
    match error {
        BuildError::Store(error) => TransferError::Store(from_kv(&error)),
        BuildError::Halt(halt) => TransferError::Store(from_halt(&halt)),
        refused => TransferError::damaged(refused.to_string()),
    }
}

/// One line.
struct Line {
    number: u64,
    kind: String,
    value: JsonValue,
    bytes: Vec<u8>,
}

impl Line {
    fn kind(&self) -> &str {
        &self.kind
    }

    fn object(&self) -> Result<Object<'_>, TransferError> {
        Object::of(&self.value).map_err(|wrong| self.wrong(&wrong))
    }

    fn wrong(&self, wrong: &str) -> TransferError {
        wrong_at(self.number, wrong)
    }
}

fn wrong_at(number: u64, wrong: &str) -> TransferError {
    TransferError::damaged(format!("line {number} of the export: {wrong}; nothing was imported"))
}

struct LineReader<'input, 'caller> {
    input: &'input mut dyn BufRead,
    number: u64,
    bytes: u64,
    /// Over all lines but the last one read, which may be the footer.
    hash: Sha256,
    counts: BTreeMap<String, u64>,
    on_progress: OnProgress<'caller>,
}

impl LineReader<'_, '_> {
    /// The next line. It is hashed and counted, unless it is the footer.
    fn next(&mut self) -> Result<Line, TransferError> {
        self.number += 1;
        let number = self.number;
        let mut bytes = Vec::new();
        Read::take(&mut *self.input, LINE_BYTES_MAX).read_until(b'\n', &mut bytes)?;
        if bytes.len() as u64 == LINE_BYTES_MAX {
            return Err(wrong_at(number, &format!("it is longer than {LINE_BYTES_MAX} bytes (line_bytes_max)")));
        }
        if bytes.last() != Some(&b'\n') {
            return Err(wrong_at(number, "the file has no footer: it was cut short"));
        }
        let value: JsonValue =
            serde_json::from_slice(&bytes).map_err(|error| wrong_at(number, &format!("it is not JSON ({error})")))?;
        let kind = value.get("kind").and_then(JsonValue::as_str).ok_or_else(|| wrong_at(number, "it has no kind"))?;
        let line = Line { number, kind: kind.to_owned(), value, bytes };
        if line.kind() != kinds::FOOTER {
            self.hash.update(&line.bytes);
            self.bytes += line.bytes.len() as u64;
            *self.counts.entry(line.kind.clone()).or_default() += 1;
            (self.on_progress)(Progress { done: self.bytes, total: None });
        }
        Ok(line)
    }

    /// Compares the footer with what was read. Nothing may follow it.
    fn end(self, footer: &Line, commit: u64) -> Result<Exported, TransferError> {
        let sha256: [u8; 32] = self.hash.finalize().into();
        let said = footer.object()?;
        if said.text("sha256").map_err(|wrong| footer.wrong(&wrong))? != hex(&sha256) {
            return Err(footer.wrong("the hash does not match the lines: the file is damaged"));
        }
        let counts = said.object("counts").map_err(|wrong| footer.wrong(&wrong))?;
        for (kind, count) in &self.counts {
            if counts.number::<u64>(kind).ok() != Some(*count) {
                return Err(
                    footer.wrong(&format!("there are {count} lines of the kind {kind}, but the footer says otherwise"))
                );
            }
        }
        if counts.0.len() != self.counts.len() || !self.input.fill_buf()?.is_empty() {
            return Err(footer.wrong("lines are missing, or something follows the footer"));
        }
        let missing = match footer.value.get("missing") {
            None => Vec::new(),
            Some(missing) => serde_json::from_value::<Vec<BTreeMap<String, String>>>(missing.clone())
                .map_err(|_| footer.wrong("its list of what is missing cannot be read"))?
                .into_iter()
                .map(|mut range| (range.remove("from").unwrap_or_default(), range.remove("to").unwrap_or_default()))
                .collect(),
        };
        Ok(Exported { commit, counts: self.counts, bytes: self.bytes, sha256, missing })
    }
}
