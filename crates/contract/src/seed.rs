//! The state primitive's commands and outputs, exactly as it names them, over the typed contract.
//!
//! A refusal is flattened as that document has it: a compare-and-swap that does not match is
//! `MaybeVersion(None)`. Everything else that goes wrong stays an error and never looks like a mismatch.

use crate::value::Value;

/// A command. `branch` and `cell` are names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Creates a cell, or gives the version of the one that is there.
    StateInit {
        /// The branch.
        branch: String,
        /// The cell.
        cell: String,
        /// Its first value.
        value: Value,
    },
    /// Reads the value.
    StateGet {
        /// The branch.
        branch: String,
        /// The cell.
        cell: String,
    },
    /// Reads every kept version, newest first.
    StateGetv {
        /// The branch.
        branch: String,
        /// The cell.
        cell: String,
    },
    /// Writes if the counter is as expected; without one, only creates.
    StateCas {
        /// The branch.
        branch: String,
        /// The cell.
        cell: String,
        /// The counter that must be there.
        expected_counter: Option<u64>,
        /// The new value.
        value: Value,
    },
    /// Writes whatever is there.
    StateSet {
        /// The branch.
        branch: String,
        /// The cell.
        cell: String,
        /// The new value.
        value: Value,
    },
}

/// What a command gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A value, or none.
    Maybe(Option<Value>),
    /// The counter after the command.
    Version(u64),
    /// The counter after a successful swap, or none if it did not match.
    MaybeVersion(Option<u64>),
    /// The versions of a cell, newest first; none if it never existed.
    MaybeVersions(Option<Vec<State>>),
}

/// One version of a cell as the state primitive shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// The value.
    pub value: Value,
    /// The counter.
    pub version: u64,
    /// When it was written, in µs.
    pub updated_at: u64,
}
