//! The HTTP API of Statehouse: a type for every body, query and answer, and every route by name.
//!
//! - [`routes`]: method, path and name of every route. Servers and clients spell them only here.
//! - [`cells`], [`state`], [`records`], [`runs`], [`keyed`], [`transactions`], [`sessions`], [`changes`], [`catalogue`],
//!   [`operations`]: one file or folder per contract. [`written`], [`follow`]: what several of them share.
//! - [`owners`]: guarded groups, and who owns one. [`contracts`]: what every contract has a part of.
//! - [`values`]: user JSON and durations. [`opaque`]: text that clients keep and send back.
//! - [`reader`], [`query`]: decode bytes into these types. [`error`]: which member was refused, and why.
//! - [`schema`]: the types as JSON Schema.
//!
//! Keeps: a request means exactly what it says or is refused: unknown, repeated or mistyped members are errors that
//! name the member. User JSON stays the text that was sent.
//!
//! Never: opens a socket, or accesses a store.

pub mod access;
pub mod catalogue;
pub mod cells;
pub mod changes;
pub mod contracts;
pub mod error;
pub mod follow;
pub mod keyed;
pub mod letters;
pub mod opaque;
pub mod operations;
pub mod owners;
pub mod query;
pub mod reader;
pub mod records;
pub mod routes;
pub mod runs;
mod scanner;
pub mod schema;
pub mod sessions;
pub mod state;
pub mod transactions;
pub mod values;
pub mod written;

/// The one list of the contracts. A contract is a file or a folder, and a line here: its name, one thing and the word for it, its
/// operations and conditions in a transaction, and a result that only it has. Expands a macro with the list.
macro_rules! with_contracts {
    ($expand:ident) => {
        $expand! {
            /// A cell.
            cells: Cell = "cell" { CellOperation, CellGuard }
            /// A record.
            records: Record = "record" { RecordOperation, RecordGuard, Failed(FailedOperation) }
            /// A run.
            runs: Run = "run" { RunOperation, RunGuard, Appended(Appended) }
            /// A map of keyed state.
            keyed: Map = "map" { MapOperation, MapGuard, Updated(MapUpdated) }
        }
    };
}

pub(crate) use with_contracts;

pub use error::{DecodeError, Reason};
pub use reader::{from_json, from_json_text};
