//! The store under pressure: when it is nearly full, slightly damaged, stopped or killed in the middle of something.
//!
//! - `fill`: a disk is filled and everything is deleted, again and again; the space comes back. `mounted`: such disks.
//! - `faults`: system calls of the server's own threads fail. `strace`: lets them.
//! - `rot`: one flipped bit in the store costs no more than its block.
//! - `things`: what is written.
//! - `stopped`: a server that stood still ends no session and no lease whose heartbeat was in time.
//! - `transfers`: a restore or import that was killed is not taken for an empty store.

mod faults;
mod fill;
mod mounted;
mod rot;
mod stopped;
mod strace;
mod things;
mod transfers;

pub(crate) use faults::run as run_faults;
pub(crate) use fill::run as run_fill;
pub(crate) use rot::run as run_rot;
pub(crate) use stopped::run as run_stopped;
pub(crate) use transfers::run as run_transfers;
