//! Statehouse as a library: open a directory and keep state in it, durably, from any number of threads.
//!
//! ```
//! use statehouse::{Expected, Statehouse, Swapped};
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("house");
//!
//! let house = Statehouse::open(&path)?;
//! let cells = house.cells();
//! let first = cells.set("greeting", "hello")?; // durable when it returns
//! let swapped = cells.cas("greeting", Expected::Version(first.version), "hello again")?;
//! assert!(matches!(swapped, Swapped::Written(_)));
//! assert_eq!(cells.get("greeting")?.as_ref().and_then(|v| v.as_text()), Some("hello again"));
//! house.close()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! - [`Statehouse`]: an open directory. Handles are cheap to clone and can be sent anywhere.
//! - [`Cells`]: named values with versions, history and compare-and-swap.
//! - [`Records`]: job state: fields, TTL, claims, leases, fences.
//! - [`Runs`]: append-only logs of events, with projections in the same commit.
//! - [`publish`]: where messages for brokers go.
//! - [`sessions`]: clients whose requests are executed exactly once, with pushes; and machines that you bring.
//! - [`Group`]: things stored and committed together; [`Transaction`] on it.
//! - [`Changes`]: the changes of every command, followed with a cursor; [`Watch`]: a list of cells, then its changes.
//! - [`Pending`]: a future answer; block on it or await it, without a runtime.
//! - [`backup`]: everything as one file, verified, and restored.
//! - [`export`], [`import`]: everything as lines of JSON, and a new store built from them.
//! - [`owner_only`]: files that only their owner can read, never created through a link.
//! - [`counters`]: activity and content, as numbers.
//! - [`seed`]: the state primitive's commands and outputs.
//!
//! Every call fails with [`Error`]: a rejection is an answer, a failure comes from the environment.

mod access;
mod admission;
mod adoption;
mod answers;
mod apply;
mod arrivals;
mod background;
pub mod backup;
mod branches;
mod cells;
mod changes;
mod clock;
mod commit;
mod contracts;
mod copies;
pub mod counters;
mod damage;
mod directory;
mod encoding;
mod error;
pub mod export;
mod group;
mod house;
mod identity;
mod image;
mod imager;
pub mod import;
mod journal_cut;
mod meters;
mod naming_view;
mod opening;
mod options;
pub mod owner_only;
mod paging;
mod pending;
mod plans;
mod proposer;
pub mod publish;
mod quarantine;
pub mod records;
mod repeating;
mod restore;
pub mod runs;
mod scrub_progress;
mod scrubber;
pub mod sessions;
mod shard;
mod shard_keys;
mod shared;
mod space;
mod timer;
mod transaction;
mod transfer;
mod walker;
mod watch;

pub use ::session::ImagePolicy;
#[doc(hidden)]
pub use ::session::user::panic_message;
pub use cells::{Cells, seed};
pub use changes::Changes;
pub use clock::{Clock, SystemClock};
pub use commit::{Commit, Committed, Done};
pub use contract::catalogue::{DEFAULT_SPACE, MAIN_BRANCH};
pub use contract::cells::PastVersion;
pub use contract::{
    AsOf, Cells as CellsContract, Change, ChangesPage, Deleted, Error, Expected, Failure, FailureKind, Followed,
    History, HistoryPage, Initialised, InvalidJson, Json, Limits, ListPage, Listed, Moment, NameInGroup, Outcome,
    Reason, Rejection, Retention, Subject, Swapped, Value, Versioned, Written,
};
pub use contract::{CellRejection, RecordRejection, RunRejection, SessionRejection};
pub use contract::{facts, limits};
pub use contract::{object_text, shell, terminal, time, value};
pub use counters::{Counters, Overview};
pub use damage::{DamageEffect, FoundDamage};
pub use group::Group;
pub use house::{Space, Statehouse, Status};
pub use journal::{Durations, JournalMeter, durations};
pub use kernel::MessageCounts;
pub use kernel::outbox::waiting::WaitingMessage;
pub use kernel::records::oldest::OldestReady;
pub use opening::Opening;
pub use options::Options;
pub use pending::Pending;
pub use plans::ImagePlan;
pub use records::Records;
pub use runs::Runs;
pub use scrub_progress::ScrubProgress;
pub use sessions::{Session, Sessions};
pub use space::disk::{DiskReserve, DiskSpace};
pub use space::waits::{StoreWait, WaitingWork};
pub use transaction::{Isolation, Transaction};
pub use transfer::{Progress, TransferError, hex};
pub use watch::Watch;
