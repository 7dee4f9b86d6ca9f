//! How a request follows something that grows: `follow=true` for a stream, `follow=20s` to wait for more.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::{Serialize, Serializer};
use serde_json::{Value as JsonValue, json};

use crate::error::pass;
use crate::schema::{Described, Schemas};
use crate::values::DurationText;

/// How to follow something: as a stream of events, or by waiting if there is nothing yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follow {
    /// A stream: `true`.
    Stream,
    /// Neither a stream nor a wait: `false`.
    No,
    /// Waits at most this long.
    Wait(DurationText),
}

impl Serialize for Follow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Follow::Stream => serializer.serialize_str("true"),
            Follow::No => serializer.serialize_str("false"),
            Follow::Wait(wait) => wait.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Follow {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reading;

        impl Visitor<'_> for Reading {
            type Value = Follow;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("true, false or a duration")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Follow, E> {
                match text {
                    "true" => Ok(Follow::Stream),
                    "false" => Ok(Follow::No),
                    text => DurationText::parse(text).map(Follow::Wait).map_err(pass),
                }
            }
        }

        deserializer.deserialize_str(Reading)
    }
}

impl Described for Follow {
    fn schema(_: &mut Schemas) -> JsonValue {
        json!({ "type": "string", "pattern": "^(true|false|[0-9]{1,4}ms)$" })
    }
}
