//! What the bodies of requests look like.

use serde_json::{Map, Value as JsonValue, json};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;

use super::operations::Kind;

fn schema(json: JsonValue) -> RefOr<Schema> {
    serde_json::from_value(json).expect("a schema")
}

/// A parameter of a path.
pub(super) fn path_parameter(name: &str) -> RefOr<Schema> {
    match name {
        "id" => schema(json!({ "type": "integer", "minimum": 0 })),
        _ => schema(json!({ "type": "string", "minLength": 1 })),
    }
}

/// A parameter of the query, or a header.
pub(super) fn of_kind(kind: Kind) -> RefOr<Schema> {
    match kind {
        Kind::Text => schema(json!({ "type": "string" })),
        Kind::Number => schema(json!({ "type": "integer", "minimum": 0 })),
        Kind::Boolean => schema(json!({ "type": "boolean" })),
        Kind::Duration => schema(duration()),
    }
}

fn duration() -> JsonValue {
    json!({ "type": "string", "description": "500ms, 30s, 10m, 2h or 7d", "pattern": "^[0-9]{1,9}(ms|s|m|h|d)$" })
}

/// Every schema by name.
pub(super) fn all() -> Map<String, JsonValue> {
    let text = || json!({ "type": "string" });
    let number = || json!({ "type": "integer", "minimum": 0 });
    let fields = || json!({ "type": "object", "description": "Names and values" });
    let object = |required: &[&str], properties: JsonValue| json!({ "type": "object", "required": required, "properties": properties });
    let event = || {
        object(
            &["eventType"],
            json!({
                "eventType": text(),
                "eventData": {},
                "idempotencyKey": text(),
                "emittedAt": { "type": "string", "format": "date-time" },
                "eventId": { "type": "string", "format": "uuid" },
                "stepId": text(),
                "logicalAttemptId": text(),
                "engineAttemptId": text(),
            }),
        )
    };
    let list = |items: JsonValue| json!({ "type": "array", "items": items });
    let schemas = [
        ("Value", json!({ "description": "Any JSON; bytes are {\"$b64\": \"...\"}" })),
        ("Bytes", json!({ "type": "string", "format": "binary" })),
        ("PutRecord", object(&["fields"], json!({ "fields": fields(), "type": text(), "ttl": text() }))),
        (
            "PatchRecord",
            object(
                &[],
                json!({
                    "set": fields(),
                    "unset": list(text()),
                    "incr": { "type": "object", "additionalProperties": { "type": "integer" } },
                    "expect": { "type": "object", "description": "Fields and what they must hold; null for one that must not be there" },
                    "ttl": { "type": "string", "description": "A duration, keep, session or forever" },
                }),
            ),
        ),
        (
            "Attempt",
            object(
                &["attempt"],
                json!({ "attempt": number(), "fields": fields(), "lease": duration(), "error": text() }),
            ),
        ),
        (
            "Claim",
            object(
                &[],
                json!({
                    "prefix": { "type": "string", "description": "Of queues: ends with '.', ':' or '/', or is empty" },
                    "name": { "type": "string", "description": "One record, instead of a prefix" },
                    "n": { "type": "integer", "minimum": 0, "maximum": 256 },
                    "worker": text(),
                    "lease": duration(),
                    "wait": { "type": "string", "enum": ["0s", "10ms", "100ms"], "description": "Any duration up to 60s" },
                }),
            ),
        ),
        (
            "Transaction",
            object(
                &["do"],
                json!({
                    "if": list(object(&[], json!({
                        "cell": text(), "record": text(), "version": number(), "absent": { "type": "boolean" },
                        "state_in": list(text()), "field": text(), "is": {},
                    }))),
                    "fence": object(&["record", "attempt"], json!({ "record": text(), "attempt": number() })),
                    "do": list(object(&["op"], json!({
                        "op": { "type": "string", "enum": [
                            "cell.set", "cell.init", "cell.delete", "record.put", "record.patch", "record.incr",
                            "record.complete", "record.delete", "run.append", "publish", "push", "send",
                        ] },
                        "name": text(), "value": {}, "fields": fields(), "type": text(), "ttl": text(), "set": fields(),
                        "unset": list(text()), "field": text(), "by": { "type": "integer" }, "attempt": number(),
                        "run": text(), "event": event(), "expect": number(), "topic": text(), "payload": {},
                        "after": duration(), "session": number(), "group": text(),
                        "do": list(json!({ "type": "object" })), "if": list(json!({ "type": "object" })),
                    }))),
                }),
            ),
        ),
        ("Events", json!({ "oneOf": [event(), list(event())] })),
        ("Fork", object(&["as", "at"], json!({ "as": text(), "at": number() }))),
        (
            "NewSession",
            object(
                &[],
                json!({
                    "timeout": duration(),
                    "capabilities": { "type": "object", "additionalProperties": text() },
                }),
            ),
        ),
        ("Acknowledge", object(&["upto"], json!({ "upto": number() }))),
        ("Retry", object(&["sent_before_us"], json!({ "sent_before_us": number(), "limit": number() }))),
        ("Retention", object(&[], json!({ "versions": number(), "age": duration() }))),
        ("Verified", json!({ "type": "object" })),
        (
            "RecordType",
            object(
                &["name"],
                json!({
                    "name": text(), "state_field": text(),
                    "states": list(object(&["name", "kind"], json!({
                        "name": text(), "kind": { "type": "string", "enum": ["ready", "held", "terminal"] },
                    }))),
                    "completed": text(), "failed": text(),
                    "indexes": { "type": "object", "additionalProperties": {
                        "type": "string", "enum": ["bytes", "unsigned", "signed", "text", "time"],
                    } },
                    "lease": duration(), "attempts_max": number(), "default_ttl": duration(), "terminal_ttl": duration(),
                    "backoff": object(&[], json!({ "first": duration(), "max": duration() })),
                    "ready_order": text(), "rescued_to": text(), "exhausted_to": text(),
                }),
            ),
        ),
        (
            "Problem",
            object(
                &["type", "code", "title", "status", "detail"],
                json!({
                    "type": { "type": "string", "description": "Where the page of the code is" },
                    "code": text(), "title": text(), "status": number(), "detail": text(),
                    "retryable": { "type": "boolean" },
                    "outcome": { "type": "string", "enum": ["not_applied", "unknown"] },
                }),
            ),
        ),
    ];
    schemas.into_iter().map(|(name, json)| (name.to_owned(), json)).collect()
}
