//! What a transaction saw and did, as the checker needs it.

/// The cells, all of one group. One has the group's name, and is stored apart from the others.
pub(super) const CELLS: [&str; 8] = ["a0", "a1", "a2", "a3", "b0", "b1", "b2", "b3"];

/// Their group.
pub(super) const GROUP: &str = "b1";

/// A cell's place in [`CELLS`].
pub(super) type CellIndex = usize;

/// A transaction that was answered as committed.
pub(super) struct Committed {
    /// For a message.
    pub(super) thread: u64,
    /// Its commit number; that of the view it read if it wrote nothing.
    pub(super) commit: u64,
    /// The highest commit number that had been answered to anybody before it began.
    pub(super) floor: u64,
    pub(super) reads: Vec<Read>,
    /// In order; a cell may be there twice.
    pub(super) writes: Vec<Write>,
}

/// What a transaction saw of one cell.
#[derive(Clone, Copy, Debug)]
pub(super) struct Read {
    pub(super) cell: CellIndex,
    /// None if it did not exist.
    pub(super) version: Option<u64>,
}

/// What a transaction wrote: a text that nobody else writes, or a deletion.
#[derive(Clone, Debug)]
pub(super) struct Write {
    pub(super) cell: CellIndex,
    pub(super) value: Option<String>,
}

/// One version in a cell's final history.
#[derive(Clone, Debug)]
pub(super) struct Version {
    pub(super) commit: u64,
    pub(super) value: Option<String>,
}

/// Everything that a run left.
pub(super) struct Ran {
    pub(super) committed: Vec<Committed>,
    pub(super) conflicts: u64,
    /// Of those, how many had read cells that they did not write.
    pub(super) skew_conflicts: u64,
    /// Each cell's versions; the first is version 1.
    pub(super) histories: Vec<Vec<Version>>,
    /// Answers that are neither.
    pub(super) errors: Vec<String>,
}
