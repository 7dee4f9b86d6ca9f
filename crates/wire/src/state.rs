//! The commands of the state primitive as JSON: `{"StateSet": {"branch": "main", "cell": "n", "value": 1}}`, answered as
//! `{"Version": 1}`.

use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Value as JsonValue, json};

use crate::error::{DecodeError, pass};
use crate::schema::{Described, Schemas, object};
use crate::values::UserJson;

object! {
    /// Creates a cell, or returns the version of the existing one.
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

    /// Writes if the counter is as expected; without an expected counter, creates only.
    request StateCas {
        /// The branch.
        branch: String,
        /// The cell.
        cell: String,
        /// The expected counter.
        expected_counter: Option<u64>,
        /// The new value.
        value: UserJson,
    }

    /// Writes unconditionally.
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
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub enum StateCommand {
    /// Creates a cell, or returns the version of the existing one.
    StateInit(StateInit),
    /// Reads the value.
    StateGet(StateGet),
    /// Reads every kept version.
    StateGetv(StateGetv),
    /// Writes if the counter is as expected.
    StateCas(StateCas),
    /// Writes unconditionally.
    StateSet(StateSet),
}

/// The result of a command.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum StateOutput {
    /// A value, or none.
    Maybe(Option<UserJson>),
    /// The counter after the command.
    Version(u64),
    /// The counter after a successful swap, or none on a mismatch.
    MaybeVersion(Option<u64>),
    /// The versions of a cell, newest first; none if it never existed.
    MaybeVersions(Option<Vec<State>>),
}

/// Every command by name.
const COMMANDS: &[&str] = &["StateInit", "StateGet", "StateGetv", "StateCas", "StateSet"];

impl<'de> Deserialize<'de> for StateCommand {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reading;

        impl<'de> Visitor<'de> for Reading {
            type Value = StateCommand;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("an object with one command")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<StateCommand, A::Error> {
                let Some(name) = map.next_key::<String>()? else {
                    return Err(de::Error::custom("it must be an object with one command"));
                };
                let command = match name.as_str() {
                    "StateInit" => StateCommand::StateInit(map.next_value()?),
                    "StateGet" => StateCommand::StateGet(map.next_value()?),
                    "StateGetv" => StateCommand::StateGetv(map.next_value()?),
                    "StateCas" => StateCommand::StateCas(map.next_value()?),
                    "StateSet" => StateCommand::StateSet(map.next_value()?),
                    other => return Err(de::Error::unknown_field(other, COMMANDS)),
                };
                match map.next_key::<String>()? {
                    None => Ok(command),
                    Some(more) if more == name => Err(pass(DecodeError::repeated_member(&more))),
                    Some(more) if COMMANDS.contains(&more.as_str()) => {
                        Err(pass(DecodeError::wrong_value("there is one command already").in_member(&more)))
                    }
                    Some(more) => Err(de::Error::unknown_field(&more, COMMANDS)),
                }
            }
        }

        deserializer.deserialize_map(Reading)
    }
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
