//! The one list of the contracts, for what a shard does for each besides applying its commands. A contract that needs something
//! is a folder here, and a line in this list.

/// Expands a macro with the list: the folders.
macro_rules! with_contracts {
    ($expand:ident) => {
        $expand! { runs }
    };
}

pub(crate) use with_contracts;

macro_rules! beside {
    ($($folder:ident)*) => {
        /// What a shard keeps for its contracts beside their rows.
        #[derive(Default)]
        pub struct Beside {
            $(
                /// For the contract of this name.
                pub $folder: crate::$folder::beside::Beside,
            )*
        }
    };
}

with_contracts!(beside);
