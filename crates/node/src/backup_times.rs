//! When a store was last backed up, in a small file beside it: a restart must not make an old backup look fresh, or a missing one look young.
//!
//! Touches: `BACKUPS` in the directory; `docs/formats/directory.md`. Never: is needed to open a directory. A file that
//! is damaged or cannot be written counts as never.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use xxhash_rust::xxh3::xxh3_64;

use crate::directory::owner_only;

const FILE: &str = "BACKUPS";

/// When the last backup was taken whole, and when one was last verified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupTimes {
    /// When the last backup was taken whole, µs since 1970 in UTC; none if none ever was.
    pub taken_us: Option<u64>,
    /// When a backup of this store was last reported as verified.
    pub verified_us: Option<u64>,
}

impl BackupTimes {
    fn encode(&self) -> String {
        let time = |time: Option<u64>| time.map_or("never".to_owned(), |us| us.to_string());
        let lines = format!("taken {}\nverified {}\n", time(self.taken_us), time(self.verified_us));
        format!("{lines}hash {:016x}\n", xxh3_64(lines.as_bytes()))
    }

    fn decode(text: &str) -> Option<Self> {
        let (lines, hash) = text.rsplit_once("hash ")?;
        if u64::from_str_radix(hash.trim_end(), 16) != Ok(xxh3_64(lines.as_bytes())) {
            return None;
        }
        let line = |name: &str| lines.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        let time = |name: &str| line(name)?.parse().ok();
        Some(Self { taken_us: time("taken"), verified_us: time("verified") })
    }
}

/// The file, and its content.
pub struct BackupLog {
    path: PathBuf,
    times: Mutex<BackupTimes>,
}

impl BackupLog {
    pub(crate) fn open(directory: &Path) -> Self {
        let path = directory.join(FILE);
        owner_only::clear_unfinished(&path);
        let times = match std::fs::read_to_string(&path) {
            Ok(text) => BackupTimes::decode(&text).unwrap_or_else(|| {
                tracing::warn!(path = %path.display(), "it is damaged: the time of the last backup is unknown");
                BackupTimes::default()
            }),
            Err(_) => BackupTimes::default(),
        };
        Self { path, times: Mutex::new(times) }
    }

    /// The times that were noted last.
    pub fn times(&self) -> BackupTimes {
        *self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the times, and writes them down.
    pub fn note(&self, change: impl FnOnce(&mut BackupTimes)) {
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut times);
        if let Err(error) = owner_only::replace(&self.path, times.encode().as_bytes()) {
            tracing::warn!(%error, path = %self.path.display(), "could not record the time of the backup");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_outlive_the_process_and_a_damaged_file_says_never() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = BackupLog::open(folder.path());
        assert_eq!(log.times(), BackupTimes::default());
        log.note(|times| times.taken_us = Some(7));
        log.note(|times| times.verified_us = Some(8));
        let both = BackupTimes { taken_us: Some(7), verified_us: Some(8) };
        assert_eq!(BackupLog::open(folder.path()).times(), both);
        let path = folder.path().join(FILE);
        let whole = std::fs::read(&path).expect("written");
        assert_eq!(String::from_utf8_lossy(&whole), "taken 7\nverified 8\nhash 967ccd9a72f892fd\n");
        for position in 0..whole.len() - 1 {
            let mut bytes = whole.clone();
            bytes[position] ^= 1;
            std::fs::write(&path, bytes).expect("written");
            assert_eq!(BackupLog::open(folder.path()).times(), BackupTimes::default(), "byte {position}");
        }
    }
}
