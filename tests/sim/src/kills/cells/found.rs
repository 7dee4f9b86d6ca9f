//! The content of a copy of the directory: versions of cells since the last check, and the status.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use contract::HistoryPage;
use statehouse::{PastVersion, Statehouse};

use super::written::{self, SHORT, SHORT_SPACE};
use crate::kills::sizes::Sizes;
use crate::kills::text;

/// How long a directory may take to open and to be read.
const OPENING_MAX: Duration = Duration::from_secs(60);

/// The content of a copy of the directory.
pub(super) struct Found {
    /// Index, commit and hash of what was applied.
    pub(super) applied: [u64; 3],
    /// The versions of each cell from a given one on, oldest first.
    pub(super) versions: BTreeMap<&'static str, Vec<PastVersion>>,
    /// The versions that are kept of the cell that keeps few.
    pub(super) short: Vec<PastVersion>,
    /// Bytes of the store's tables: 0 as long as nothing was flushed.
    pub(super) store_bytes: u64,
}

impl Found {
    /// Opens the directory, which nobody else may use, and reads. `known` says how many versions need not be read.
    /// An opening that does not end is a finding too.
    pub(super) fn read(path: PathBuf, sizes: Sizes, known: BTreeMap<&'static str, u64>) -> Result<Self, String> {
        let (sender, found) = channel();
        std::thread::spawn(move || sender.send(Self::read_here(&path, sizes, &known)));
        match found.recv_timeout(OPENING_MAX) {
            Ok(found) => found,
            Err(RecvTimeoutError::Timeout) => Err("the copy is still not open after a minute".into()),
            Err(RecvTimeoutError::Disconnected) => Err("opening the copy panicked".into()),
        }
    }

    fn read_here(path: &Path, sizes: Sizes, known: &BTreeMap<&'static str, u64>) -> Result<Self, String> {
        let house = sizes.options().open(path).map_err(text)?;
        let status = house.status().map_err(text)?;
        let mut versions = BTreeMap::new();
        for cell in written::kept() {
            versions.insert(cell, read_from(&house, cell, known.get(cell).copied().unwrap_or(0))?);
        }
        let has_short = house.spaces().map_err(text)?.iter().any(|space| space == SHORT_SPACE);
        let short = if has_short { read_from(&house, SHORT, 0)? } else { Vec::new() };
        house.verify_journal().map_err(text)?;
        house.close().map_err(text)?;
        Ok(Self {
            applied: [status.applied_index, status.commit, status.effects_hash],
            versions,
            short,
            store_bytes: status.store_bytes,
        })
    }
}

/// Versions from `first` on, oldest first; with `first` itself, so that it can be seen to be what it was.
fn read_from(house: &Statehouse, cell: &str, first: u64) -> Result<Vec<PastVersion>, String> {
    let cells = written::handle(house, cell);
    let mut versions = Vec::new();
    let mut page = HistoryPage { before: None, limit: 200 };
    loop {
        let history = cells.history(cell, page).map_err(text)?;
        versions.extend(history.versions);
        page.before = history.next_before;
        if page.before.is_none_or(|before| before <= first) {
            break;
        }
    }
    versions.retain(|past| past.version >= first);
    versions.reverse();
    Ok(versions)
}
