//! The one list of the contracts. A contract is a folder, and a line here.
//!
//! A line has the folder and the contract; then the name of one thing, what is done to one, and what can be a condition.

/// Expands a macro with the list.
macro_rules! with_contracts {
    ($expand:ident) => {
        $expand! {
            cells: Cells { Cell, CellAct, CellGuard }
            records: Records { Record, RecordAct, RecordGuard }
            runs: Runs { Run, RunAct, RunGuard }
        }
    };
}

pub(crate) use with_contracts;
