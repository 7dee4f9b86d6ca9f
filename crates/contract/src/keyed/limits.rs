//! The limits of keyed state. What seals apply in one journal entry is limited with all else that an entry does:
//! [`limits`](crate::limits).

/// Updates in one operation. They are within the bytes of its transaction, too.
pub const KEYED_UPDATES_MAX: usize = 10_000;

/// Updates of one key that wait in an ordered map for the seal.
pub const KEYED_WAITING_MAX: u32 = 1_000;

/// Input positions in one commit.
pub const KEYED_POSITIONS_MAX: usize = 1_000;
