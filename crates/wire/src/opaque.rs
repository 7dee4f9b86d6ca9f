//! Text that clients keep and send back unchanged: sessions, cursors, and tokens of attempts.
//!
//! Keeps: one thing has one text; any other spelling is refused.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};
use serde_json::{Value as JsonValue, json};

use crate::schema::{Described, Schemas};

/// A session: clients keep it, and send it back unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionId(pub u64);

impl SessionId {
    /// Reads what a server issued.
    pub fn parse(text: &str) -> Option<Self> {
        let number = text.strip_prefix("s-")?.parse().ok()?;
        (Self(number).to_string() == text).then_some(Self(number))
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "s-{}", self.0)
    }
}

/// A position in the change feed: clients keep it, and send it back unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FeedCursor(pub u64);

impl FeedCursor {
    /// Reads what a server issued.
    pub fn parse(text: &str) -> Option<Self> {
        let number = text.strip_prefix("c-")?.parse().ok()?;
        (Self(number).to_string() == text).then_some(Self(number))
    }
}

impl fmt::Display for FeedCursor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "c-{}", self.0)
    }
}

/// Where a list continues: clients keep it, and send it back unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageCursor(pub Vec<u8>);

impl PageCursor {
    /// Reads what a server issued.
    pub fn parse(text: &str) -> Option<Self> {
        URL_SAFE_NO_PAD.decode(text).ok().map(Self)
    }

    /// The text inside, if it is text.
    pub fn into_text(self) -> Option<String> {
        String::from_utf8(self.0).ok()
    }
}

impl fmt::Display for PageCursor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&URL_SAFE_NO_PAD.encode(&self.0))
    }
}

/// The attempt of a claim: workers keep it, and send it back unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptToken {
    /// The record's group, or none if it has none.
    pub group: Option<String>,
    /// The record.
    pub record: String,
    /// The attempt.
    pub attempt: u64,
}

impl AttemptToken {
    /// Reads what a server issued.
    pub fn parse(text: &str) -> Option<Self> {
        let (group, record, attempt) = contract::records::parse_token(text)?;
        Some(Self { group, record, attempt })
    }
}

impl fmt::Display for AttemptToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&contract::records::token(self.group.as_deref(), &self.record, self.attempt))
    }
}

macro_rules! opaque {
    ($($type:ident: $what:literal, $pattern:literal),* $(,)?) => {$(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Reading;

                impl Visitor<'_> for Reading {
                    type Value = $type;

                    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                        formatter.write_str(concat!("a ", $what, " issued by a server"))
                    }

                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$type, E> {
                        $type::parse(text).ok_or_else(|| {
                            E::custom(format!(concat!("{:?} is not a ", $what, " issued by a server"), text))
                        })
                    }
                }

                deserializer.deserialize_str(Reading)
            }
        }

        impl Described for $type {
            fn schema(_: &mut Schemas) -> JsonValue {
                json!({
                    "type": "string",
                    "pattern": $pattern,
                    "description": concat!("A ", $what, ": keep it, and send it back unchanged"),
                })
            }
        }
    )*};
}

opaque! {
    SessionId: "session", "^s-(0|[1-9][0-9]{0,18})$",
    FeedCursor: "cursor", "^c-(0|[1-9][0-9]{0,18})$",
    PageCursor: "cursor", "^[A-Za-z0-9_-]*$",
    AttemptToken: "token", "^[^#]+#([^#]+#)?[0-9]{1,19}$",
}
