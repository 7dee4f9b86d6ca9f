//! What a cell can hold: bytes with a kind.

use serde::de::IgnoredAny;

/// A value with its kind. Integers and bytes keep every bit; nothing passes through JSON unless it is JSON.
///
/// ```
/// use statehouse_contract::Value;
/// assert_eq!(Value::from("red"), Value::Text("red".into()));
/// assert_eq!(Value::from(-7), Value::Integer(-7));
/// assert!(Value::json("{\"a\": [1, 2]}").is_ok());
/// assert!(Value::json("{\"a\": ").is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Value {
    /// Nothing, as a value: the cell exists.
    Null,
    /// True or false.
    Boolean(bool),
    /// A signed integer of 64 bits.
    Integer(i64),
    /// Unicode text.
    Text(String),
    /// JSON text, checked and kept as it was given.
    Json(Json),
    /// Any bytes.
    Bytes(Vec<u8>),
}

/// Text that is well-formed JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Json(String);

impl Json {
    /// Checks `text`.
    pub fn new(text: impl Into<String>) -> Result<Self, InvalidJson> {
        let text = text.into();
        match serde_json::from_str::<IgnoredAny>(&text) {
            Ok(_) => Ok(Self(text)),
            Err(error) => Err(InvalidJson { reason: error.to_string() }),
        }
    }

    /// Text that was checked before it was stored.
    pub fn from_checked(text: String) -> Self {
        Self(text)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The JSON, to be put into other JSON. What is nested deeper than can be read is null.
    pub(crate) fn parsed(&self) -> serde_json::Value {
        serde_json::from_str(&self.0).unwrap_or_default()
    }

    /// The text.
    pub fn into_string(self) -> String {
        self.0
    }
}

/// Text that is not JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not JSON: {reason}")]
pub struct InvalidJson {
    /// What is wrong, and where.
    pub reason: String,
}

impl Value {
    /// A JSON value, if `text` is JSON.
    pub fn json(text: impl Into<String>) -> Result<Self, InvalidJson> {
        Json::new(text).map(Self::Json)
    }

    /// How many bytes the value takes.
    pub fn len(&self) -> usize {
        match self {
            Value::Null => 0,
            Value::Boolean(_) => 1,
            Value::Integer(_) => 8,
            Value::Text(text) => text.len(),
            Value::Json(json) => json.0.len(),
            Value::Bytes(bytes) => bytes.len(),
        }
    }

    /// Whether the value takes no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The text of a text value.
    pub fn as_text(&self) -> Option<&str> {
        if let Value::Text(text) = self { Some(text) } else { None }
    }

    /// The number of an integer value.
    pub fn as_integer(&self) -> Option<i64> {
        if let Value::Integer(integer) = self { Some(*integer) } else { None }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::Text(text)
    }
}

impl From<i64> for Value {
    fn from(integer: i64) -> Self {
        Value::Integer(integer)
    }
}

impl From<i32> for Value {
    fn from(integer: i32) -> Self {
        Value::Integer(integer.into())
    }
}

impl From<bool> for Value {
    fn from(boolean: bool) -> Self {
        Value::Boolean(boolean)
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        Value::Bytes(bytes)
    }
}

impl From<&[u8]> for Value {
    fn from(bytes: &[u8]) -> Self {
        Value::Bytes(bytes.to_vec())
    }
}

impl From<Json> for Value {
    fn from(json: Json) -> Self {
        Value::Json(json)
    }
}
