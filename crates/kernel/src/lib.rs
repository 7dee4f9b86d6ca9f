//! The deterministic kernel: a function from state, stamp and command to answer and effects.
//!
//! - [`kernel`]: [`Kernel`], which applies entries in order.
//! - [`entry`], [`command`], [`answer`]: inputs and outputs, as bytes.
//! - [`keys`]: the only place that builds raw keys. [`place`]: which slot and bucket a thing is in.
//! - [`catalogue`]: spaces, branches, retention and limits, as state.
//! - `contracts`: the list of the contracts; `contract`: what each must do. [`cells`], [`records`], [`runs`], [`keyed`]: the contracts.
//! - [`changes`]: the feed of what every command changed.
//! - [`draft`]: a transaction in preparation, read together with what it has done so far.
//! - [`names`]: listings by name, over all groups.
//! - [`sessions`]: things that end with a session, and users' machines.
//! - [`tally`]: totals for metrics.
//! - [`trim`]: the bounded walk over expired history.
//! - `held`: the rows of things themselves; [`usage`]: how many things a space has, and how many bytes they take.
//! - [`image`]: the whole state as a stream, and back. [`portable`]: the same as named things.
//!
//! Keeps: K1 to K8 of `ARCHITECTURE.md`. Never: reads a clock, draws a random number, iterates in hash order, does
//! I/O or waits. `clippy.toml` of this crate bans the types.

pub mod answer;
pub mod applied;
pub mod audit;
#[cfg(feature = "canary")]
pub mod canary;
pub mod catalogue;
pub mod cells;
pub mod changes;
pub mod command;
mod conflicts;
mod context;
mod contract;
mod contracts;
pub mod counts;
mod damage;
pub mod draft;
pub mod entry;
pub mod entry_budget;
mod folded;
#[cfg(test)]
mod golden;
mod held;
pub mod image;
#[cfg(test)]
mod kept;
pub mod kernel;
pub mod keyed;
pub mod keys;
pub mod machine;
mod merge;
pub mod names;
pub mod outbox;
pub mod place;
pub mod portable;
mod readable;
pub mod records;
pub mod runs;
pub mod schedule;
#[cfg(test)]
mod script;
pub mod sessions;
pub mod tally;
pub mod transact;
pub mod trim;
pub mod usage;
pub mod value;

pub use answer::{Answer, ClaimedOutcome, OpOutcome};
pub use applied::Applied;
pub use catalogue::{AccessChange, BranchId, Catalogue, CatalogueChange, SpaceId};
pub use cells::trim::CellTrim;
pub use command::hosted::HostedCommand;
pub use command::{
    Body, CellAct, CellGuard, ClaimNext, Fence, Guard, KeyedAct, KeyedGuard, Op, RecordAct, RecordGuard, RunAct,
    RunGuard, Transact,
};
pub use counts::MessageCounts;
pub use draft::Draft;
pub use entry::{EntryHeader, EntryPlace};
pub use kernel::{Effects, Kernel};
pub(crate) use keyed::outcome::{decode_updated, encode_updated};
pub use keys::Keys;
pub use machine::NextDue;
pub use outbox::MessageState;
pub use outbox::command::{DeadLetterAct, DeadLetterCommand, Deliver, Delivered, Send, Target};
pub use place::{BucketRange, Buckets};
pub use records::command::TtlArgument;
pub use records::trim::RecordTrim;
pub use runs::command::{Append, Duplicates, EventRef};
pub use schedule::windows::{FreedThing, ReadyQueue};
pub use sessions::brought::Hosted;
pub use tally::{Conflict, Tally};
pub use value::ValueRef;

/// The level of behaviour that this release proposes and the highest it can apply.
pub const LEVEL: u32 = LEVEL_OF_ACCESS;

/// From this level on groups can be guarded, types can be without an end, and a claim by name of a held record has a
/// refusal of its own.
pub(crate) const LEVEL_OF_GUARDS: u32 = 2;

/// From this level on a message that is refused becomes a dead letter.
pub(crate) const LEVEL_OF_DEAD_LETTERS: u32 = 3;

/// From this level on there is keyed state.
pub(crate) const LEVEL_OF_KEYED: u32 = 3;

/// From this level on there are principals, and the audit.
pub(crate) const LEVEL_OF_ACCESS: u32 = 4;

/// From here on, attempts of another history start above those of the one before.
pub(crate) const LEVEL_OF_EPOCHS: u32 = 3;
