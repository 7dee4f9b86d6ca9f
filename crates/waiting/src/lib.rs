//! Waiting, for threads and for tasks: for an answer ([`Slot`]), for a change of something named ([`Bells`]), or for a
//! turn at a queue ([`Waiters`]).
//!
//! Touches: locks, and nothing else. Keeps: nobody sleeps through what it waits for, and nothing is kept of those who wait
//! no longer. `cargo xtask show inside waits` tries out the orders of events of small models. Never: knows what is waited for.

mod bell;
mod bells;
mod block_on;
mod slot;
mod sync;
mod waiters;

pub use bell::{Bell, Rung};
pub use bells::{Bells, Listener, Ringing, Waited};
pub use block_on::block_on;
pub use slot::Slot;
pub use waiters::{Place, Waiters, Wanted};
