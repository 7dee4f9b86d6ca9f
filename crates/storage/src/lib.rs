//! The `kv` trait on disk: a tree of sorted tables, for one writer that brings whole flushes.
//!
//! Above it is `kv::Overlay`, so a batch here has megabytes, sorted, each key once. That is why there is no log, no table
//! in memory and no sequence number in a row: a batch becomes one table file, and a view is a list of tables.
//!
//! Read in this order:
//! - [`tree`]: [`TreeStore`]: commits and opening. `tree_state`: the newest version, and how the next one takes its place.
//! - `version`: ranges of keys with their stacks of tables; reads. `version_edit`: flushes, cuts and merges change it.
//! - `policy`: what to merge next. `weigh`: what that would free. `piece`: one merge. `merger`: the thread that does them.
//! - `table`, `table_top`, `table_writer`, `table_cursor`: a table file. `block`, `rows`, `bloom`: its parts.
//! - `manifest`: the file that names the tables. `files`: every file call.
//! - `scrub`: reading everything to find damage.
//! - [`Options`]: every limit by name.
//!
//! `docs/formats/tables.md` has every byte. Never: depends on the kernel, or interprets a key.

mod block;
mod bloom;
mod failure;
mod files;
mod manifest;
mod merge_cursor;
mod merger;
mod parts;
mod piece;
mod policy;
mod rebuild;
mod rows;
mod scrub;
mod signal;
mod status;
mod table;
mod table_cursor;
mod table_facts;
mod table_files;
mod table_top;
mod table_writer;
pub mod tree;
mod tree_state;
mod version;
mod version_edit;
mod weigh;

pub use failure::{Damage, Effect};
pub use scrub::Scrubbed;
pub use status::{SpaceState, StoreStatus};
pub use tree::TreeStore;

/// Bounds of a [`TreeStore`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Memory for blocks read from disk, filters and indexes included.
    pub cache_bytes_max: u64,
    /// Table files kept open.
    pub open_files_max: usize,
    /// About how large a table gets by merging, and how much one merge reads.
    pub table_bytes_target: u64,
    /// So many tables of similar size are merged into one.
    pub unmerged_tables_max: usize,
    /// A batch waits for merges while a read may have to look into this many tables.
    pub unmerged_tables_stall: usize,
    /// Merges leave this many bytes of the disk free, for flushes. Those that free space leave what flushes need at the time.
    pub space_reserve_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cache_bytes_max: 128 << 20,
            open_files_max: 512,
            table_bytes_target: 48 << 20,
            unmerged_tables_max: 4,
            unmerged_tables_stall: 32,
            space_reserve_bytes: 64 << 20,
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

#[cfg(test)]
mod tests;
