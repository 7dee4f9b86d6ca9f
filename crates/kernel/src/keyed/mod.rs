//! Keyed state: maps from keys to values, where each update counts exactly once.
//!
//! - [`head`]: a map as a whole. [`entry`]: a key, and the position of an input, as bytes.
//! - [`command`], [`updates`]: the operations and conditions, as bytes. `contract`: keyed state as one of the contracts.
//! - `changed_map`: a map while an operation changes it. `update`: the one place that changes a key at once; `ordered`:
//!   the one where it waits.
//! - `commit`: numbered commits and their first answers. `sweep`: what nobody needs any more goes, in bounded steps. `chunks`:
//!   reading what they remove.
//! - [`restore`]: a map gets what was put aside for it, [`rows`]. `noting`: removed keys, for checkpoints of what has changed.
//! - [`checkpoint`]: what checkpoints have of a map.
//! - [`read`]: keys, ranges of keys, and input positions. [`list`]: maps by name.
//!
//! What a map holds is its *content*, which has a number that is part of the keys of its rows. A map that is deleted or restored
//! gets another content in one step; the rows of the one before are removed later.
//!
//! Touches: `KeyedMap`, `KeyedEntry`, `KeyedPosition`, `KeyedDeleted`, `KeyedGone`, `KeyedAnswer` and `KeyedWaiting`
//! rows. Keeps: D1 (the value of a key is
//! that of its newest version, or of each of its merges once), D2 (a numbered commit is applied once, and numbers rise by
//! one) and D3 (positions never go back, nor does a seal, and nothing at or below the seal is applied).

mod changed_map;
pub mod checkpoint;
mod chunks;
pub mod command;
mod commit;
pub(crate) mod contract;
pub mod entry;
mod guard;
pub mod head;
pub mod item;
pub mod list;
mod noting;
mod ordered;
pub(crate) mod outcome;
mod portable;
pub mod read;
pub(crate) mod rejection;
pub mod restore;
pub mod rows;
mod sweep;
#[cfg(test)]
mod tests;
pub mod trim;
mod update;
pub mod updates;
