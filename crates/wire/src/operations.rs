//! Backups, exports, errors, health, and routes without a body.

use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Value as JsonValue, json};

use crate::schema::{Described, Schemas, object};
use crate::values::Members;

object! {
    /// Reports a verified backup.
    request VerifiedBackup {
        /// The store's id, from the backup.
        store: String,
    }

    /// An entry in the list of codes.
    answer ErrorCode {
        /// The code.
        code: String,
        /// Its title.
        title: String,
        /// The path of its page.
        page: String,
    }

    /// Every code.
    answer ErrorList {
        /// The codes.
        errors: Vec<ErrorCode>,
    }

    /// Options of a probe.
    request Probe {
        /// Whether to list each check with its reason.
        verbose: Option<bool>,
    }

    /// The release of the server.
    answer Version {
        /// The release.
        statehouse: String,
        /// The version of each contract that has one.
        contracts: ContractVersions,
    }

    /// The versions of contracts.
    answer ContractVersions {
        /// Of runs.
        runs: String,
    }

    /// A refusal.
    answer Problem {
        /// The path of the code's page.
        "type" page: String,
        /// The code.
        code: String,
        /// The title of the code.
        title: String,
        /// The HTTP status.
        status: u16,
        /// What happened, for people.
        detail: String,
        /// Whether the same call may succeed later.
        retryable: Option<bool>,
        /// Whether a write may have been applied: `not_applied` or `unknown`.
        outcome: Option<String>,
        /// The refused member of the body, parameter or header.
        member: Option<String>,
        /// The closest known name, if it was misspelt.
        nearest: Option<String>,
    }

    /// Done; there is nothing to return.
    answer Nothing {
    }
}

/// The answer of a probe: `{"ready": true}`.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct ProbeAnswer(pub serde_json::Map<String, JsonValue>);

impl Described for ProbeAnswer {
    fn schema(_: &mut Schemas) -> JsonValue {
        json!({ "type": "object", "properties": { "detail": { "type": "string" } } })
    }
}

/// The status of the server; the documentation of operations lists the members.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct StatusAnswer(pub serde_json::Map<String, JsonValue>);

impl Described for StatusAnswer {
    fn schema(_: &mut Schemas) -> JsonValue {
        json!({
            "type": "object",
            "required": ["status", "version", "uptime_ms", "ready", "problems", "applied_index", "durable_index"],
            "properties": {
                "status": { "type": "string", "enum": ["ok", "degraded", "stopped"] },
                "version": { "type": "string" },
                "uptime_ms": { "type": "integer", "minimum": 0 },
                "ready": { "type": "boolean" },
                "problems": { "type": "array", "items": { "type": "object" } },
                "applied_index": { "type": "integer", "minimum": 0 },
                "durable_index": { "type": "integer", "minimum": 0 },
            },
        })
    }
}

/// An OpenAPI document.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct OpenApiDocument(pub Members<JsonValue>);

impl Described for OpenApiDocument {
    fn schema(_: &mut Schemas) -> JsonValue {
        json!({ "type": "object", "required": ["openapi", "info", "paths"] })
    }
}

/// A body without content: empty, or an object without members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct NoBody {}

impl<'de> Deserialize<'de> for NoBody {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reading;

        impl<'de> Visitor<'de> for Reading {
            type Value = NoBody;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("empty: this call takes no body")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<NoBody, A::Error> {
                match map.next_key::<String>()? {
                    None => Ok(NoBody {}),
                    Some(name) => Err(de::Error::unknown_field(&name, &[])),
                }
            }
        }

        deserializer.deserialize_map(Reading)
    }
}

impl Described for NoBody {
    const OBJECT: bool = true;

    fn schema(_: &mut Schemas) -> JsonValue {
        json!({ "type": "object", "additionalProperties": false })
    }
}
