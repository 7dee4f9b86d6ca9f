//! Text that clients keep and send back unchanged: sessions and cursors. `opaque!` makes further ones.
//!
//! Keeps: one thing has one text; any other spelling is refused.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use contract::SessionSecret;

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

/// The secret of a session, as text. Whatever is not one is refused without being repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretText(pub SessionSecret);

impl serde::Serialize for SecretText {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.to_text())
    }
}

impl<'de> serde::Deserialize<'de> for SecretText {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        let refused = || serde::de::Error::custom("not a secret of a session issued by a server");
        SessionSecret::parse(&text).map(Self).ok_or_else(refused)
    }
}

impl crate::schema::Described for SecretText {
    fn schema(_: &mut crate::schema::Schemas) -> serde_json::Value {
        serde_json::json!({
            "type": "string",
            "pattern": "^[0-9a-f]{32}$",
            "description": "The secret of a session: keep it where only the session's client can read it",
        })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_read_as_it_is_written_and_appears_in_no_error() {
        let secret = SecretText(SessionSecret::from_bytes([0xab; 16]));
        let written = serde_json::to_string(&secret).expect("JSON");
        assert_eq!(written, format!("\"{}\"", "ab".repeat(16)));
        assert_eq!(serde_json::from_str::<SecretText>(&written).expect("a secret"), secret);
        for wrong in [written.to_uppercase(), written.replacen("ab", "a", 1), "7".to_owned()] {
            let error = serde_json::from_str::<SecretText>(&wrong).expect_err("no secret").to_string();
            assert!(!error.contains("abab") && !error.contains("ABAB"), "{error}");
        }
        assert!(!format!("{secret:?}").contains("ab"), "{secret:?}");
    }
}
