//! Values as JSON and back: bytes are `{"$b64": "..."}`, everything else is what it looks like. JSON stays as it is written.

use contract::Value;
use serde_json::Value as JsonValue;

/// A value as JSON text.
pub fn to_text(value: &Value) -> String {
    value.to_json_text()
}

/// Bytes as JSON text.
pub fn bytes_text(bytes: &[u8]) -> String {
    Value::from(bytes).to_json_text()
}

/// A value in JSON text.
///
/// # Panics
/// If it is not JSON.
pub fn from_text(text: &str) -> Value {
    Value::from_json_text(text).unwrap_or_else(|error| panic!("{error} in {text:?}"))
}

/// The bytes that a payload stands for: text as it is, other bytes as `{"$b64": ...}`.
pub fn payload(json: &JsonValue) -> Vec<u8> {
    match from_text(&json.to_string()) {
        Value::Text(text) => text.into_bytes(),
        Value::Bytes(bytes) => bytes,
        other => panic!("a payload is {other:?}"),
    }
}

/// The time that RFC 3339 text says, in µs since 1970.
///
/// # Panics
/// If it is none.
pub fn micros(text: &str) -> u64 {
    let time: jiff::Timestamp = text.parse().unwrap_or_else(|error| panic!("{error} in {text:?}"));
    u64::try_from(time.as_microsecond()).expect("after 1970")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back() {
        for value in [
            Value::Null,
            Value::Integer(i64::MIN),
            Value::Text("\0\"".into()),
            Value::json("{\"a\":  [1.0]}").expect("JSON"),
            Value::json("18446744073709551615").expect("JSON"),
            Value::Bytes(vec![0, 255]),
        ] {
            assert_eq!(from_text(&to_text(&value)), value);
        }
        assert_eq!(micros("2026-02-11T10:00:00.123456Z"), 1_770_804_000_123_456);
    }
}
