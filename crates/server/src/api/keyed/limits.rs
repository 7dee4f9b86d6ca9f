//! The limits of the server for checkpoints.

/// Checkpoints and restores of partitions at a time.
pub const CHECKPOINTS_RUNNING_MAX: usize = 8;

/// A restore of at most so many bytes reads and checks all rows before it takes the partition over. Whoever asked for it waits for
/// that, and would be gone before more were read.
pub const RESTORE_CHECKED_BYTES_MAX: u64 = 256 << 20;
