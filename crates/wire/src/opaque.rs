//! Text that clients keep and send back unchanged: sessions and cursors. `opaque!` makes further ones.
//!
//! Keeps: one thing has one text; any other spelling is refused.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

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

/// Makes a type with `parse` and `Display` one that is read, written and described as its text.
macro_rules! opaque {
    ($($type:ident: $what:literal, $pattern:literal),* $(,)?) => {$(
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Reading;

                impl serde::de::Visitor<'_> for Reading {
                    type Value = $type;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        formatter.write_str(concat!("a ", $what, " issued by a server"))
                    }

                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$type, E> {
                        $type::parse(text).ok_or_else(|| {
                            E::custom(format!(concat!("{:?} is not a ", $what, " issued by a server"), text))
                        })
                    }
                }

                deserializer.deserialize_str(Reading)
            }
        }

        impl $crate::schema::Described for $type {
            fn schema(_: &mut $crate::schema::Schemas) -> serde_json::Value {
                serde_json::json!({
                    "type": "string",
                    "pattern": $pattern,
                    "description": concat!("A ", $what, ": keep it, and send it back unchanged"),
                })
            }
        }
    )*};
}

pub(crate) use opaque;

opaque! {
    SessionId: "session", "^s-(0|[1-9][0-9]{0,19})$",
    FeedCursor: "cursor", "^c-(0|[1-9][0-9]{0,18})$",
    PageCursor: "cursor", "^[A-Za-z0-9_-]*$",
}
