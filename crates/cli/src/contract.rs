//! What commands across the contracts ask of each. A contract implements it for its noun, in its folder; the list is in `main.rs`.

use serde_json::Value as JsonValue;
use statehouse::Statehouse;
use wire::routes::Route;

use crate::checks::Checked;
use crate::config::Effective;
use crate::connection::Connection;
use crate::equipment::{Equipment, OpenEquipment, OpenError, ServerFlags};
use crate::exit::Failure;
use crate::next::Next;
use crate::table::Column;

pub(crate) trait Contract {
    /// The next step after refusals about its things, by their codes.
    const NEXT: &'static [(&'static str, Next)];

    /// How many of its things an export has.
    const EXPORTED: &'static [Column];

    /// Its flags of `dev` and `serve`.
    type ServerFlags: ServerFlags;

    /// Opens what its settings of a server name; may block.
    fn open_for_server(_: &Effective) -> Result<Option<Equipment>, OpenError> {
        Ok(None)
    }

    /// What requests of a route need beside a directory that a command has opened.
    fn needed_for(_: Route) -> Option<OpenEquipment> {
        None
    }

    /// Examines the things of a directory that nobody else has open, for `doctor`.
    fn examine(_: &Statehouse) -> Option<Checked> {
        None
    }

    /// What a session holds, and with `ends`, what happens to that when it ends; none if sessions cannot hold such things.
    async fn held_by(_: &Connection, _session: &str, _ends: bool) -> Result<Option<Held>, Failure> {
        Ok(None)
    }
}

/// What a session holds of one contract.
pub(crate) struct Held {
    /// The word for several of them.
    pub(crate) kind: &'static str,
    pub(crate) things: Vec<JsonValue>,
    /// Whether all things were searched.
    pub(crate) complete: bool,
    /// How one is shown.
    pub(crate) columns: &'static [Column],
    /// What happens to them when the session ends, if that was asked.
    pub(crate) given_back: String,
}
