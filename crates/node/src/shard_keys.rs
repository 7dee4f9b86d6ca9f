//! The keys of the one shard of a directory.

use kernel::Keys;

const GENERATION: u32 = 1;
const FIRST_BUCKET: u16 = 0;

/// The keys of its rows.
pub fn keys() -> Keys {
    Keys::new(GENERATION, FIRST_BUCKET)
}
