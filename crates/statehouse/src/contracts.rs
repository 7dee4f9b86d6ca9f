//! The one list of the contracts, for what the library does with each. A contract is a folder here, and a line
//! in this list.

/// Expands a macro with the list: the folder, and the name of one thing.
macro_rules! with_contracts {
    ($expand:ident) => {
        $expand! {
            cells: Cell
            records: Record
            runs: Run
        }
    };
}

pub(crate) use with_contracts;
