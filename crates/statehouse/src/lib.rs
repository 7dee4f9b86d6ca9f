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
//! - [`keyed`]: keyed state: maps whose updates count once, and operators that own partitions of them.
//! - [`publish`]: where messages for brokers go.
//! - [`sessions`]: clients whose requests are executed exactly once, with pushes; and machines that you bring.
//! - [`stream`]: event-time windows, watermarks and sinks, for stream processors.
//! - [`Group`]: things stored and committed together; [`Transaction`] on it.
//! - [`Changes`]: the changes of every command, followed with a cursor; [`Watch`]: a list of cells, then its changes.
//! - [`Pending`]: a future answer; block on it or await it, without a runtime.
//! - [`Principals`]: who may do what, for servers; [`Audit`]: what was done to that.
//! - [`backup`]: everything as one file, verified, and restored.
//! - [`export`], [`import`]: everything as lines of JSON, and a new store built from them.
//! - [`owner_only`]: files that only their owner can read, never created through a link.
//! - [`counters`]: activity and content, as numbers.
//! - [`seed`]: the state primitive's commands and outputs.
//!
//! Every call fails with [`Error`]: a rejection is an answer, a failure comes from the environment.

mod admission;
mod audit;
pub mod backup;
mod branches;
#[cfg(feature = "canary")]
pub mod canary;
mod cells;
mod changes;
mod commit;
pub mod counters;
mod dead_letters;
pub mod export;
mod group;
pub mod guards;
mod house;
pub mod import;
pub mod keyed;
mod options;
mod paging;
mod principals;
pub mod publish;
pub mod records;
mod restore;
pub mod runs;
mod sender;
pub mod sessions;
pub mod stream;
mod transaction;
mod transfer;
mod usage;
mod watch;

/// The one list of the contracts. A contract is a folder, and a line here: the folder, the name of one thing, the results that
/// only its operations have, and its part of an overview. Expands a macro with the list.
macro_rules! with_contracts {
    ($expand:ident) => {
        $expand! {
            cells: Cell { CellDone, CellsOverview }
            records: Record { RecordDone, RecordsOverview }
            runs: Run { RunDone, RunsOverview }
            keyed: Map { KeyedDone, KeyedOverview }
        }
    };
}

pub(crate) use with_contracts;

pub use ::session::ImagePolicy;
#[doc(hidden)]
pub use ::session::user::panic_message;
pub use audit::Audit;
pub use cells::{CellDone, Cells, CellsOverview, seed};
pub use changes::Changes;
pub use commit::{Commit, Committed, Done};
pub use contract::catalogue::{DEFAULT_SPACE, MAIN_BRANCH};
pub use contract::cells::PastVersion;
pub use contract::{AccessRejection, CellRejection, KeyedRejection, RecordRejection, RunRejection, SessionRejection};
pub use contract::{
    AsOf, Cells as CellsContract, Change, ChangesPage, Deleted, Error, Expected, Failure, FailureKind, Followed,
    History, HistoryPage, Initialised, InvalidJson, Json, Limits, ListPage, Listed, Moment, NameInGroup, Outcome,
    Reason, Rejection, Retention, SpaceUsage, Subject, Swapped, Usage, Value, Versioned, Written,
};
pub use contract::{access, facts, limits};
pub use contract::{object_text, shell, terminal, time, value};
pub use counters::{Counters, Overview};
pub use dead_letters::{DeadLetter, DeadLetterCursor, DeadLetterOverview, DeadLetters, InvalidDeadLetterCursor};
pub use group::Group;
pub use house::{Space, Statehouse, Status};
pub use journal::{Durations, JournalMeter, durations};
pub use kernel::outbox::waiting::WaitingMessage;
pub use kernel::records::oldest::OldestReady;
pub use kernel::{MessageCounts, MessageState};
pub use keyed::Maps;
pub use node::background::plans::ImagePlan;
pub use node::background::scrub_progress::ScrubProgress;
pub use node::clock::{Clock, SystemClock};
pub use node::damage::{DamageEffect, FoundDamage};
pub use node::directory::owner_only;
pub use node::opening::Opening;
pub use node::pending::Pending;
pub use node::space::disk::{DiskReserve, DiskSpace};
pub use node::space::waits::{StoreWait, WaitingWork};
pub use options::Options;
pub use principals::{Principals, Shown, draw_token};
pub use records::Records;
pub(crate) use records::authority::Authority;
pub use records::owned_group::OwnedGroup;
pub use runs::Runs;
pub use sender::Sender;
pub use sessions::{Session, Sessions};
pub use transaction::{Isolation, Transaction};
pub use transfer::{Progress, TransferError, hex};
pub use watch::Watch;

#[cfg(test)]
mod tests {
    macro_rules! folders {
        ($($folder:ident: $kind:ident { $done:ident, $overview:ident })*) => {
            [$(stringify!($folder)),*]
        };
    }

    #[test]
    fn every_contract_is_listed() {
        assert_eq!(with_contracts!(folders), contract::CONTRACTS);
    }
}
