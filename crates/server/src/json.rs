//! Values as JSON, and back. Bytes are `{"$b64": "..."}`; everything else is what it looks like.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use contract::limits::JSON_DEPTH_MAX;
use contract::{InvalidJson, Json, Value};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value as JsonValue};

use crate::problem::Problem;

const BYTES: &str = "$b64";

/// A value as JSON.
pub(crate) struct AsJson<'a>(pub(crate) &'a Value);

impl Serialize for AsJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Null => serializer.serialize_unit(),
            Value::Boolean(boolean) => serializer.serialize_bool(*boolean),
            Value::Integer(integer) => serializer.serialize_i64(*integer),
            Value::Text(text) => serializer.serialize_str(text),
            Value::Json(json) => json.serialize(serializer),
            Value::Bytes(bytes) => serializer.collect_map([(BYTES, STANDARD.encode(bytes))]),
            other => other.as_text().serialize(serializer),
        }
    }
}

pub(crate) fn to_json(value: &Value) -> JsonValue {
    serde_json::to_value(AsJson(value)).expect("a value is JSON")
}

pub(crate) fn from_json(json: &JsonValue) -> Result<Value, Problem> {
    Ok(match json {
        JsonValue::Null => Value::Null,
        JsonValue::Bool(boolean) => Value::Boolean(*boolean),
        JsonValue::Number(number) => match number.as_i64() {
            Some(integer) => Value::Integer(integer),
            None => Value::Json(Json::from_checked(number.to_string())),
        },
        JsonValue::String(text) => Value::Text(text.clone()),
        JsonValue::Object(object) if object.len() == 1 && object.contains_key(BYTES) => {
            let text = object[BYTES].as_str().ok_or_else(|| Problem::malformed("$b64 is not text"))?;
            let bytes = STANDARD.decode(text).map_err(|_| Problem::malformed("$b64 is not base64"))?;
            Value::Bytes(bytes)
        }
        other => Value::Json(Json::from_checked(other.to_string())),
    })
}

/// The value that a body is.
pub(crate) fn value_of(bytes: &[u8]) -> Result<Value, Problem> {
    let text = std::str::from_utf8(bytes).map_err(|_| Problem::malformed("the body is not JSON: it is not UTF-8"))?;
    Value::from_json_text(text).map_err(refused)
}

/// Why JSON cannot be stored.
pub(crate) fn refused(error: InvalidJson) -> Problem {
    match error {
        InvalidJson::TooDeep { max } => Problem::too_deep(max),
        other => Problem::malformed(other.to_string()),
    }
}

/// Text as JSON text.
pub(crate) fn text_json(text: &str) -> String {
    serde_json::to_string(text).expect("text is JSON")
}

/// A body that must be JSON.
pub(crate) fn parse(bytes: &[u8]) -> Result<JsonValue, Problem> {
    serde_json::from_slice(bytes).map_err(|error| match error.to_string() {
        deep if deep.starts_with("recursion limit exceeded") => Problem::too_deep(JSON_DEPTH_MAX),
        other => Problem::malformed(format!("the body is not JSON: {other}")),
    })
}

/// A body that must be a JSON object; an empty one is an empty object.
pub(crate) fn parse_object(bytes: &[u8]) -> Result<Map<String, JsonValue>, Problem> {
    if bytes.is_empty() {
        return Ok(Map::new());
    }
    match parse(bytes)? {
        JsonValue::Object(object) => Ok(object),
        _ => Err(Problem::malformed("the body is no JSON object")),
    }
}

/// The fields of an object as values.
pub(crate) fn fields(object: &Map<String, JsonValue>) -> Result<Vec<(String, Value)>, Problem> {
    object.iter().map(|(name, value)| Ok((name.clone(), from_json(value)?))).collect()
}

/// A text of an object, if it is there.
pub(crate) fn text<'json>(object: &'json Map<String, JsonValue>, name: &str) -> Result<Option<&'json str>, Problem> {
    match object.get(name) {
        None | Some(JsonValue::Null) => Ok(None),
        Some(JsonValue::String(text)) => Ok(Some(text)),
        Some(_) => Err(Problem::malformed(format!("{name} is not text"))),
    }
}

/// An object of an object, if it is there.
pub(crate) fn object_in<'json>(
    object: &'json Map<String, JsonValue>,
    name: &str,
) -> Result<Option<&'json Map<String, JsonValue>>, Problem> {
    match object.get(name) {
        None | Some(JsonValue::Null) => Ok(None),
        Some(JsonValue::Object(found)) => Ok(Some(found)),
        Some(_) => Err(Problem::malformed(format!("{name} is no JSON object"))),
    }
}

/// A list of an object; one that is not there is empty.
pub(crate) fn list<'json>(object: &'json Map<String, JsonValue>, name: &str) -> Result<&'json [JsonValue], Problem> {
    match object.get(name) {
        None | Some(JsonValue::Null) => Ok(&[]),
        Some(JsonValue::Array(found)) => Ok(found),
        Some(_) => Err(Problem::malformed(format!("{name} is no list"))),
    }
}

/// A text that must be there.
pub(crate) fn required<'json>(object: &'json Map<String, JsonValue>, name: &str) -> Result<&'json str, Problem> {
    text(object, name)?.ok_or_else(|| Problem::malformed(format!("{name} is missing")))
}

/// A number that must be there.
pub(crate) fn required_number(object: &Map<String, JsonValue>, name: &str) -> Result<u64, Problem> {
    number(object, name)?.ok_or_else(|| Problem::malformed(format!("{name} is missing")))
}

/// A number of an object, if it is there.
pub(crate) fn number(object: &Map<String, JsonValue>, name: &str) -> Result<Option<u64>, Problem> {
    match object.get(name) {
        None | Some(JsonValue::Null) => Ok(None),
        Some(value) => match value.as_u64() {
            Some(number) => Ok(Some(number)),
            None => Err(Problem::malformed(format!("{name} is not a whole number"))),
        },
    }
}

/// A duration of an object, if it is there: a number of ms, or text as `500ms`, `30s`, `10m`, `2h`, `7d`.
pub(crate) fn duration(object: &Map<String, JsonValue>, name: &str) -> Result<Option<std::time::Duration>, Problem> {
    match object.get(name) {
        None | Some(JsonValue::Null) => Ok(None),
        Some(JsonValue::String(text)) => parse_duration(text).map(Some),
        Some(_) => Ok(number(object, name)?.map(std::time::Duration::from_millis)),
    }
}

/// See [`duration`].
pub(crate) fn parse_duration(text: &str) -> Result<std::time::Duration, Problem> {
    let malformed = || Problem::malformed(format!("{text:?} is no duration; write 500ms, 30s, 10m, 2h or 7d"));
    contract::time::parse_duration(text).ok_or_else(malformed)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_what_they_look_like() {
        let values = [
            (Value::Null, "null"),
            (Value::Boolean(true), "true"),
            (Value::Integer(i64::MIN), "-9223372036854775808"),
            (Value::Text("a".into()), "\"a\""),
            (Value::Json(Json::from_checked("{\"a\":[1,2]}".into())), "{\"a\":[1,2]}"),
            (Value::Json(Json::from_checked("1.5".into())), "1.5"),
            (Value::Bytes(vec![0, 255]), "{\"$b64\":\"AP8=\"}"),
        ];
        for (value, text) in values {
            let json: JsonValue = serde_json::from_str(text).expect("JSON");
            assert_eq!(to_json(&value), json);
            assert_eq!(from_json(&json).expect("a value"), value);
        }
        assert!(from_json(&json!({ BYTES: "?" })).is_err());
    }

    #[test]
    fn durations_have_units() {
        let ms = |text| parse_duration(text).map(|duration| duration.as_millis()).ok();
        assert_eq!(
            (ms("30s"), ms("10m"), ms("5"), ms("7d")),
            (Some(30_000), Some(600_000), Some(5), Some(604_800_000))
        );
        assert_eq!((ms("x"), ms("1y"), ms("99999999999999999999s")), (None, None, None));
    }
}
