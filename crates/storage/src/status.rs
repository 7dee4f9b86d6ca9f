//! What a store tells about itself, and what it is told about the space it has.

/// Whether there is space for merges; set from above by [`TreeStore::set_space`](crate::TreeStore::set_space).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpaceState {
    /// Merge what keeps reads fast.
    #[default]
    Enough,
    /// Merge first what frees most.
    Short {
        /// The bytes that wait to be flushed: merges leave space for them.
        unflushed_bytes: u64,
    },
}

/// The state of a [`TreeStore`](crate::TreeStore).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreStatus {
    /// The bytes of all table files.
    pub bytes_on_disk: u64,
    /// About how many bytes would be left if everything was merged.
    pub bytes_live: u64,
    /// Table files that the store consists of.
    pub tables: usize,
    /// The most tables that a read may have to look into.
    pub depth: usize,
    /// Merges done since the store was opened.
    pub merges: u64,
    /// Bytes of rows that merges have read since the store was opened.
    pub merge_bytes_read: u64,
    /// Bytes of tables that merges have written since the store was opened.
    pub merge_bytes_written: u64,
    /// The bytes that the next merge needs, if merges wait for space.
    pub waiting_for_space: Option<u64>,
    /// Why merges wait, if they do.
    pub waiting_reason: Option<String>,
    /// The tables that could not be read by a merge. They are left out of merges until the store is opened again.
    pub damaged_tables: Vec<u64>,
}
