//! Disk space: how much is kept free, what is refused when it runs low, and how the store gives space back.
//!
//! - [`disk`]: the free space; what makes the store larger is refused below the reserve.
//! - `fit`: what the store writes at once, by the size of the disk; from that comes what it needs to go on.
//! - `keeper`: the thread that frees space while it is short.
//! - [`waits`]: what waits for space, or for a disk that fails.

pub mod disk;
pub(crate) mod fit;
pub(crate) mod keeper;
pub mod waits;
