//! The `kv` trait on disk.
//!
//! - [`tree`]: [`TreeStore`], a store on an `lsm-tree`; each batch is one sorted run, synced before it is visible.
//! - [`Options`]: every limit by name.
//!
//! `kv::Overlay` is above it, so that a batch here is a whole flush and not a command. Never: depends on the kernel, or
//! interprets a key.

mod compactor;
mod pinned;
pub mod tree;

pub use tree::TreeStore;

/// Bounds of a [`TreeStore`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Memory for blocks read from disk, filters and indexes included.
    pub cache_bytes_max: u64,
    /// Table files kept open.
    pub open_files_max: usize,
    /// About how large one table file gets by compaction.
    pub table_bytes_target: u64,
    /// Runs that lie unmerged before they are merged into the levels below.
    pub unmerged_tables_max: u8,
    /// A batch waits for compaction while this many runs lie unmerged.
    pub unmerged_runs_stall: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cache_bytes_max: 128 << 20,
            open_files_max: 512,
            table_bytes_target: 64 << 20,
            unmerged_tables_max: 4,
            unmerged_runs_stall: 24,
        }
    }
}

impl Options {
    /// Sets [`cache_bytes_max`](Self::cache_bytes_max).
    pub fn cache_bytes_max(mut self, bytes: u64) -> Self {
        self.cache_bytes_max = bytes;
        self
    }
}
