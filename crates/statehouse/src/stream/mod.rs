//! Stream processing on keyed state: what a processor needs between its source and its sinks.
//!
//! - [`node`]: [`StatefulNode`], which applies an update of a key once for each logical time.
//! - [`output_id()`]: names of outputs that are the same in every replay, by which a sink drops what it has.
//! - [`Windows`], [`Watermarks`]: event-time windows, which of them are over, and which events are late.
//! - [`sinks`]: where outputs go, such that a replay leaves them as they are.
//!
//! Keeps: a replay computes and writes nothing twice. Never: reads a source, or assigns logical times; an execution layer does.

pub mod node;
pub mod output_id;
pub mod sinks;
mod watermarks;
mod windows;

pub use node::StatefulNode;
pub use output_id::{OutputId, nth_output_id, output_id};
pub use watermarks::{Arrival, Watermarks};
pub use windows::{CLOSED_WINDOWS_MAX, InvalidWindows, TooManyWindows, Window, Windows};
