//! The state primitive's commands and outputs, exactly as it names them, over the typed contract.
//!
//! A refusal is flattened as in the specification of the primitive: a compare-and-swap that does not match is
//! `MaybeVersion(None)`. Every other failure stays an error and never looks like a mismatch.

use crate::value::Value;

/// A command. `branch` and `cell` are names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Creates a cell, or returns the version of the existing one.
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
    /// Writes if the counter is as expected; without an expected counter, creates only.
    StateCas {
        /// The branch.
        branch: String,
        /// The cell.
        cell: String,
        /// The expected counter.
        expected_counter: Option<u64>,
        /// The new value.
        value: Value,
    },
    /// Writes unconditionally.
    StateSet {
        /// The branch.
        branch: String,
        /// The cell.
        cell: String,
        /// The new value.
        value: Value,
    },
}

/// The result of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A value, or none.
    Maybe(Option<Value>),
    /// The counter after the command.
    Version(u64),
    /// The counter after a successful swap, or none on a mismatch.
    MaybeVersion(Option<u64>),
    /// The versions of a cell, newest first; none if it never existed.
    MaybeVersions(Option<Vec<State>>),
}

/// One version of a cell, as the state primitive shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// The value.
    pub value: Value,
    /// The counter.
    pub version: u64,
    /// When it was written, in µs.
    pub updated_at: u64,
}
