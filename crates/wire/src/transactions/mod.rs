//! Transactions: `transactions.commit`.
//!
//! - `guards`, `operation`: what the conditions and the operations of every contract have in common. [`messages`]: operations
//!   that send something.

pub(crate) mod guards;
pub mod messages;
pub(crate) mod operation;

use crate::contracts::{Done, Guard, Operation};
use crate::owners::OwnerToken;
use crate::schema::object;
use crate::values::Members;

object! {
    /// Operations of any contract in one commit, all or nothing.
    request Transaction {
        /// The conditions.
        "if" guards: Option<Vec<Guard>>,
        /// The attempt that must be live.
        fence: Option<Fence>,
        /// The token of the group's owner, if it is not sent as `Statehouse-Owner`.
        owner: Option<OwnerToken>,
        /// Whether it is written without the fences that a guard requires.
        force: Option<bool>,
        /// The operations.
        "do" operations: Vec<Operation>,
    }

    /// An attempt that must be live.
    request Fence {
        /// The record, in the transaction's group.
        record: String,
        /// Its attempt.
        attempt: u64,
    }

    /// The result of a commit.
    answer Committed {
        /// The commit.
        commit: u64,
        /// The result of each operation.
        done: Vec<Done>,
    }

    /// The result of an operation on a cell or a record.
    answer WrittenOperation {
        /// The version.
        version: u64,
        /// Whether the cell already existed and was left unchanged.
        existing["Option::is_none"]: Option<bool>,
        /// The new value of the incremented field.
        value["Option::is_none"]: Option<i64>,
        /// The new values of a patch's incremented fields.
        values["Option::is_none"]: Option<Members<i64>>,
    }

    /// There was nothing to delete.
    answer NothingDone {
        /// Always `true`.
        nothing: bool,
    }
}

impl WrittenOperation {
    /// The result of an operation that has nothing more to say.
    pub fn at(version: u64) -> Self {
        Self { version, existing: None, value: None, values: None }
    }
}

impl Transaction {
    /// Operations without conditions.
    pub fn of(operations: Vec<Operation>) -> Self {
        Self { guards: None, fence: None, owner: None, force: None, operations }
    }
}
