//! What a server on this machine gets from the contracts beside its data directory: their flags, and what these name.
//!
//! Touches: what the contracts open. Keeps: a server opens everything that its settings name before anything is made in its data
//! directory; a command that opens a directory itself opens only what its requests need.

use clap::Args;
use server::Server;
use wire::routes::Route;

use crate::config::{Effective, Flag};
use crate::contract::Contract;
use crate::with_contracts;

/// Something that was opened; it is given to a server.
pub(crate) type Equipment = Box<dyn FnOnce(Server) -> Server + Send>;

/// Why something cannot be opened.
pub(crate) type OpenError = Box<dyn std::error::Error + Send + Sync>;

/// Opens something; may block.
pub(crate) type OpenEquipment = Box<dyn FnOnce() -> Result<Equipment, OpenError> + Send>;

/// The flags of `dev` and `serve` that only one contract has.
pub(crate) trait ServerFlags: Args {
    /// Those that are given, with the settings that they set.
    fn given(&self) -> Vec<Flag>;
}

/// None.
#[derive(Args)]
#[group(skip)]
pub(crate) struct NoFlags {}

impl ServerFlags for NoFlags {
    fn given(&self) -> Vec<Flag> {
        Vec::new()
    }
}

macro_rules! equipment {
    ($($folder:ident: $noun:ident { $($explained:ident)? })*) => {
        /// The flags of all contracts.
        #[derive(Args)]
        #[group(skip)]
        pub(crate) struct ContractFlags {
            $(
                #[command(flatten)]
                $folder: <crate::$folder::$noun as Contract>::ServerFlags,
            )*
        }

        impl ContractFlags {
            /// Those that are given, with the settings that they set.
            pub(crate) fn given(&self) -> Vec<Flag> {
                [$(self.$folder.given()),*].concat()
            }
        }

        /// Opens what the settings of a server name; may block.
        pub(crate) fn open_for_server(settings: &Effective) -> Result<Vec<Equipment>, OpenError> {
            let opened = [$(<crate::$folder::$noun as Contract>::open_for_server(settings)?),*];
            Ok(opened.into_iter().flatten().collect())
        }

        /// For each contract, what requests of a route need beside the directory that a command has opened.
        pub(crate) const NEEDED: &[fn(Route) -> Option<OpenEquipment>] =
            &[$(<crate::$folder::$noun as Contract>::needed_for),*];
    };
}

with_contracts!(equipment);
