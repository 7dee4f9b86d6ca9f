//! What commands across the contracts ask of each. A contract implements it for its noun, in its folder; the list is in `main.rs`.

use serde_json::Value as JsonValue;
use statehouse::Statehouse;

use crate::checks::Checked;
use crate::connection::Connection;
use crate::exit::Failure;
use crate::next::Next;
use crate::table::Column;

pub(crate) trait Contract {
    /// The next step after refusals about its things, by their codes.
    const NEXT: &'static [(&'static str, Next)];

    /// How many of its things an export has.
    const EXPORTED: &'static [Column];

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
