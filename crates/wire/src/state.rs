//! The commands of the state primitive as JSON: `{"StateSet": {"branch": "main", "cell": "n", "value": 1}}`, answered as
//! `{"Version": 1}`.

use serde_json::{Value as JsonValue, json};

use crate::schema::{Described, Schemas, object};
use crate::values::UserJson;

object! {
    /// Creates a cell, or gives the version of the one that is there.
    request StateInit {
        /// The branch.
        branch: String,
        /// The cell.
        cell: String,
        /// Its first value.
        value: UserJson,
    }

    /// Reads the value.
    request StateGet {
        /// The branch.
        branch: String,
        /// The cell.
        cell: String,
    }

    /// Reads every kept version, newest first.
    request StateGetv {
        /// The branch.
        branch: String,
        /// The cell.
        cell: String,
    }

    /// Writes if the counter is as expected; without one, only creates.
    request StateCas {
        /// The branch.
        branch: String,
        /// The cell.
        cell: String,
        /// The counter that must be there.
        expected_counter: Option<u64>,
        /// The new value.
        value: UserJson,
    }

    /// Writes whatever is there.
    request StateSet {
        /// The branch.
        branch: String,
        /// The cell.
        cell: String,
        /// The new value.
        value: UserJson,
    }

    /// One version of a cell, as the state primitive shows it.
    answer State {
        /// The value.
        value: UserJson,
        /// The counter.
        version: u64,
        /// When it was written, µs since 1970 in UTC.
        updated_at: u64,
    }
}

/// A command.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum StateCommand {
    /// Creates a cell, or gives the version of the one that is there.
    StateInit(StateInit),
    /// Reads the value.
    StateGet(StateGet),
    /// Reads every kept version.
    StateGetv(StateGetv),
    /// Writes if the counter is as expected.
    StateCas(StateCas),
    /// Writes whatever is there.
    StateSet(StateSet),
}

/// What a command gives.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum StateOutput {
    /// A value, or none.
    Maybe(Option<UserJson>),
    /// The counter after the command.
    Version(u64),
    /// The counter after a successful swap, or none if it did not match.
    MaybeVersion(Option<u64>),
    /// The versions of a cell, newest first; none if it never existed.
    MaybeVersions(Option<Vec<State>>),
}

fn tagged(tag: &str, schema: JsonValue) -> JsonValue {
    json!({ "type": "object", "required": [tag], "properties": { tag: schema }, "additionalProperties": false })
}

impl Described for StateCommand {
    fn schema(schemas: &mut Schemas) -> JsonValue {
        json!({ "oneOf": [
            tagged("StateInit", StateInit::schema(schemas)),
            tagged("StateGet", StateGet::schema(schemas)),
            tagged("StateGetv", StateGetv::schema(schemas)),
            tagged("StateCas", StateCas::schema(schemas)),
            tagged("StateSet", StateSet::schema(schemas)),
        ] })
    }
}

impl Described for StateOutput {
    fn schema(schemas: &mut Schemas) -> JsonValue {
        json!({ "oneOf": [
            tagged("Maybe", <Option<UserJson>>::schema(schemas)),
            tagged("Version", u64::schema(schemas)),
            tagged("MaybeVersion", <Option<u64>>::schema(schemas)),
            tagged("MaybeVersions", <Option<Vec<State>>>::schema(schemas)),
        ] })
    }
}
