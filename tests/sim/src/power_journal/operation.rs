//! What a recording holds: every change to the simulated disk, and the journal's promises between.

use std::sync::Arc;

use journal::ShardId;

/// Names one file for as long as it exists, whatever it is called.
pub(crate) type FileId = u64;

/// A change, a sync, or a note.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    /// A new, empty file at a path below the journal's directory.
    Create { path: String, file: FileId },
    /// A new directory.
    CreateDirectory { path: String },
    /// A file's name is gone.
    Delete { path: String },
    /// A file has another name.
    Rename { from: String, to: String },
    /// Bytes at a place in a file.
    Write { file: FileId, offset: usize, bytes: Arc<[u8]> },
    /// A file is at least this long; zeros where nothing was written.
    Allocate { file: FileId, end: usize },
    /// A file's bytes and length are durable.
    Sync { file: FileId, site: Site },
    /// A directory's entries are durable.
    SyncDirectory { path: String, site: Site },
    /// Something the journal was asked, or has answered.
    Note(Note),
}

/// What the journal was asked and has answered.
#[derive(Clone, Debug)]
pub(crate) enum Note {
    /// `open` or `create` was called.
    Opening,
    /// It has returned. What it shows from now on is believed.
    Opened { shards: Vec<(ShardId, u64)> },
    /// `append` was called.
    Appending { shard: ShardId, first_index: u64, payloads: Arc<Vec<Vec<u8>>> },
    /// It has returned.
    Appended { shard: ShardId, last_index: u64 },
    /// `append_behind` was called with one entry each of several shards.
    AppendingTogether {
        /// Shard, index and payload of each.
        entries: Vec<(ShardId, u64, Arc<Vec<u8>>)>,
        /// Whether they fit into one batch, and so are there together or not at all.
        is_one_batch: bool,
    },
    /// It has returned.
    AppendedTogether { entries: Vec<(ShardId, u64)> },
    /// `cut` was called.
    Cutting { shard: ShardId, first_kept: u64 },
    /// The files are about to be dropped.
    Closing,
}

/// Which call a sync comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Site {
    /// `watermark.rs`, after a watermark file was written.
    WatermarkWrite,
    /// `watermark.rs`, of the newer watermark file that was found.
    WatermarkReopen,
    /// `segments/open.rs`, of the last batch that was found, and of what was torn.
    RecoveredEntries,
    /// `segments/open.rs`, of `segments/`.
    SegmentsDirectory,
    /// `segments/open.rs`, of the journal's directory.
    JournalDirectory,
    /// `segments/write.rs`, of an appended batch.
    Append,
    /// `segments/spares.rs`, of `segments/`, after a segment was made or got its next name.
    SpareDirectory,
}

impl Site {
    /// Every site, by name.
    pub(crate) const NAMED: &[(&str, Self)] = &[
        ("watermark-write", Self::WatermarkWrite),
        ("watermark-reopen", Self::WatermarkReopen),
        ("recovered-entries", Self::RecoveredEntries),
        ("segments-directory", Self::SegmentsDirectory),
        ("journal-directory", Self::JournalDirectory),
        ("append", Self::Append),
        ("spare-directory", Self::SpareDirectory),
    ];

    /// The site of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::NAMED.iter().find(|(known, _)| *known == name).map(|(_, site)| *site)
    }
}
