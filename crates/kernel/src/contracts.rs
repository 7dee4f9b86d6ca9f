//! The one list of the contracts. A contract is a folder, and a line here.
//!
//! A line has the folder and the contract; then the name of one thing, what is done to one, what can be a condition, what
//! of one is exported, and what a step of the walk does to one.

/// Expands a macro with the list.
macro_rules! with_contracts {
    ($expand:ident) => {
        $expand! {
            cells: Cells { Cell, CellAct, CellGuard, CellItem, CellTrim }
            records: Records { Record, RecordAct, RecordGuard, RecordItem, RecordTrim }
            runs: Runs { Run, RunAct, RunGuard, RunItem, RunTrim }
            keyed: Keyed { Map, KeyedAct, KeyedGuard, KeyedItem, KeyedTrim }
        }
    };
}

pub(crate) use with_contracts;
