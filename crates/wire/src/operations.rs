//! Backups, exports, errors, health, and what has no body.

use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Value as JsonValue, json};

use crate::schema::{Described, Schemas, object};
use crate::values::Members;

object! {
    /// A backup that was verified.
    request VerifiedBackup {
        /// The store that it is of, as the backup says.
        store: String,
    }

    /// A code in the list of codes.
    answer ErrorCode {
        /// The code.
        code: String,
        /// What it means.
        title: String,
        /// Where its page is.
        page: String,
    }

    /// Every code.
    answer ErrorList {
        /// The codes.
        errors: Vec<ErrorCode>,
    }

    /// What is read of a probe.
    request Probe {
        /// Each check with its reason.
        verbose: Option<bool>,
    }

    /// Which release it is.
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
        /// Where the page of the code is.
        "type" page: String,
        /// The code.
        code: String,
        /// What the code means.
        title: String,
        /// The status of HTTP.
        status: u16,
        /// What is the case here.
        detail: String,
        /// Whether the same call may succeed later.
        retryable: Option<bool>,
        /// Whether a write may have been done: `not_applied` or `unknown`.
        outcome: Option<String>,
        /// The member of the body, the parameter or the header that was refused.
        member: Option<String>,
        /// The known member that is closest to a misspelt one.
        nearest: Option<String>,
    }

    /// Done, and there is nothing to say.
    answer Nothing {
    }
}

/// What a probe says: `{"ready": true}`.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct ProbeAnswer(pub serde_json::Map<String, JsonValue>);

impl Described for ProbeAnswer {
    fn schema(_: &mut Schemas) -> JsonValue {
        json!({ "type": "object", "properties": { "detail": { "type": "string" } } })
    }
}

/// How the server is doing; the members are in the documentation of operations.
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

/// A document of OpenAPI.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct OpenApiDocument(pub Members<JsonValue>);

impl Described for OpenApiDocument {
    fn schema(_: &mut Schemas) -> JsonValue {
        json!({ "type": "object", "required": ["openapi", "info", "paths"] })
    }
}

/// A body that says nothing: empty, or an object without members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct NoBody {}

impl<'de> Deserialize<'de> for NoBody {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reading;

        impl<'de> Visitor<'de> for Reading {
            type Value = NoBody;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("empty: this call has no body")
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
