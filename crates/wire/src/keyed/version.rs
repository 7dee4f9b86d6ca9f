//! Versions of keys: a number, or an epoch and a round.

use std::fmt;

use contract::keyed::LogicalTime;
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};
use serde_json::{Value as JsonValue, json};

use crate::schema::{Described, Schemas};

/// A version in a body or an answer: a number such as `7`, or text such as `"1:7"`.
///
/// ```
/// use statehouse_wire::from_json_text;
/// use statehouse_wire::keyed::version::Version;
/// assert_eq!(from_json_text::<Version>("7")?.0, 7.into());
/// assert_eq!(from_json_text::<Version>("\"1:7\"")?.0.epoch, 1);
/// # Ok::<(), statehouse_wire::DecodeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub LogicalTime);

impl<V: Into<LogicalTime>> From<V> for Version {
    fn from(version: V) -> Self {
        Self(version.into())
    }
}

impl Serialize for Version {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            LogicalTime { epoch: 0, round } => serializer.serialize_u64(round),
            other => serializer.collect_str(&other),
        }
    }
}

struct Reading;

impl Visitor<'_> for Reading {
    type Value = LogicalTime;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a version: a number such as 7, or an epoch and a round such as \"1:7\"")
    }

    fn visit_u64<E: de::Error>(self, round: u64) -> Result<LogicalTime, E> {
        Ok(round.into())
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<LogicalTime, E> {
        text.parse().map_err(|error| E::custom(format!("{text:?} is {error}")))
    }
}

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reading).map(Self)
    }
}

impl Described for Version {
    fn schema(_: &mut Schemas) -> JsonValue {
        json!({
            "description": "A number, or an epoch and a round as \"1:7\"",
            "anyOf": [
                { "type": "integer", "minimum": 0, "maximum": u64::MAX },
                { "type": "string", "pattern": "^[0-9]{1,20}(:[0-9]{1,20})?$" },
            ],
        })
    }
}

/// A version in a query: `7` or `1:7`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionText(pub LogicalTime);

impl Serialize for VersionText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for VersionText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Reading).map(Self)
    }
}

impl Described for VersionText {
    fn schema(_: &mut Schemas) -> JsonValue {
        json!({ "type": "string", "pattern": "^[0-9]{1,20}(:[0-9]{1,20})?$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::from_json_text;

    #[test]
    fn a_version_is_read_as_it_is_written() {
        for version in [LogicalTime::from(0), LogicalTime::from(u64::MAX), LogicalTime::new(1, 7)] {
            let written = serde_json::to_string(&Version(version)).expect("JSON");
            assert_eq!(from_json_text::<Version>(&written), Ok(Version(version)), "{written}");
        }
        assert_eq!(serde_json::to_string(&Version(7.into())).expect("JSON"), "7");
        assert_eq!(serde_json::to_string(&Version(LogicalTime::new(1, 7))).expect("JSON"), "\"1:7\"");
        assert_eq!(from_json_text::<Version>("\"7\""), Ok(Version(7.into())), "or as text");
    }

    #[test]
    fn what_is_no_version_is_refused() {
        for raw in ["-1", "1.5", "18446744073709551616", "\"1:\"", "\"\"", "null", "[]", "\"NaN\"", "NaN", "\"+1\""] {
            assert!(from_json_text::<Version>(raw).is_err(), "{raw}");
        }
        let refused = from_json_text::<Version>("\"1:2:3\"").expect_err("three numbers").to_string();
        assert_eq!(refused, r#""1:2:3" is not a version: a number such as 7, or an epoch and a round such as 1:7"#);
    }
}
