//! The time to live of a record, as text.

use std::fmt;

use contract::records::Ttl;
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};
use serde_json::{Value as JsonValue, json};

use crate::schema::{Described, Schemas};
use crate::values::DurationText;

/// A time to live: a duration, `keep`, `session` or `forever`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TtlText(pub Ttl);

impl Serialize for TtlText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Ttl::Persist => serializer.serialize_str("forever"),
            Ttl::Keep => serializer.serialize_str("keep"),
            Ttl::WithSession => serializer.serialize_str("session"),
            Ttl::After(duration) => DurationText(duration).serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for TtlText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reading;

        impl Visitor<'_> for Reading {
            type Value = TtlText;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a duration, keep, session or forever")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<TtlText, E> {
                Ok(TtlText(match text {
                    "forever" => Ttl::Persist,
                    "keep" => Ttl::Keep,
                    "session" => Ttl::WithSession,
                    text => match contract::time::parse_duration(text) {
                        Some(duration) => Ttl::After(duration),
                        None => {
                            return Err(E::custom(format!(
                                "{text:?} is not a time to live; write 500ms, 30s, 10m, 2h, 7d, keep, session or forever"
                            )));
                        }
                    },
                }))
            }
        }

        deserializer.deserialize_any(Reading)
    }
}

impl Described for TtlText {
    fn schema(_: &mut Schemas) -> JsonValue {
        let pattern = "^([0-9]{1,9}(ms|s|m|h|d)|keep|session|forever)$";
        json!({ "type": "string", "description": "A duration, keep, session or forever", "pattern": pattern })
    }
}
