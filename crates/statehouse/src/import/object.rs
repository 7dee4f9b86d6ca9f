//! One line of an export, as read: members by name, each of its required kind.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use contract::{Json, Value};
use serde_json::{Map, Value as JsonValue};

use crate::export::{BYTES, JSON};

/// What is wrong with a line, without its number.
pub(crate) type Wrong = String;

/// A JSON object.
#[derive(Clone, Copy)]
pub(crate) struct Object<'line>(pub(crate) &'line Map<String, JsonValue>);

impl<'line> Object<'line> {
    pub(crate) fn of(value: &'line JsonValue) -> Result<Self, Wrong> {
        value.as_object().map(Object).ok_or_else(|| "it is not a JSON object".to_owned())
    }

    fn member(&self, name: &str) -> Result<&'line JsonValue, Wrong> {
        self.0.get(name).ok_or_else(|| format!("it has no member {name:?}"))
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(crate) fn text(&self, name: &str) -> Result<&'line str, Wrong> {
        self.member(name)?.as_str().ok_or_else(|| format!("{name:?} is not text"))
    }

    pub(crate) fn text_if(&self, name: &str) -> Result<Option<&'line str>, Wrong> {
        self.has(name).then(|| self.text(name)).transpose()
    }

    pub(crate) fn string_if(&self, name: &str) -> Result<Option<String>, Wrong> {
        Ok(self.text_if(name)?.map(str::to_owned))
    }

    pub(crate) fn number<N: TryFrom<u64>>(&self, name: &str) -> Result<N, Wrong> {
        let number = self.member(name)?.as_u64().ok_or_else(|| format!("{name:?} is not a whole number"))?;
        N::try_from(number).map_err(|_| format!("{name:?} is {number}, which is too large"))
    }

    pub(crate) fn number_if(&self, name: &str) -> Result<Option<u64>, Wrong> {
        self.has(name).then(|| self.number(name)).transpose()
    }

    /// A number, which is omitted where it is 0.
    pub(crate) fn number_or_zero<N: TryFrom<u64> + Default>(&self, name: &str) -> Result<N, Wrong> {
        if self.has(name) { self.number(name) } else { Ok(N::default()) }
    }

    pub(crate) fn boolean(&self, name: &str) -> Result<bool, Wrong> {
        self.member(name)?.as_bool().ok_or_else(|| format!("{name:?} is neither true nor false"))
    }

    /// A boolean, which is omitted where it is false.
    pub(crate) fn flag(&self, name: &str) -> Result<bool, Wrong> {
        if self.has(name) { self.boolean(name) } else { Ok(false) }
    }

    pub(crate) fn object(&self, name: &str) -> Result<Object<'line>, Wrong> {
        Object::of(self.member(name)?).map_err(|wrong| format!("{name:?}: {wrong}"))
    }

    pub(crate) fn object_if(&self, name: &str) -> Result<Option<Object<'line>>, Wrong> {
        self.has(name).then(|| self.object(name)).transpose()
    }

    fn list(&self, name: &str) -> Result<&'line [JsonValue], Wrong> {
        self.member(name)?.as_array().map(Vec::as_slice).ok_or_else(|| format!("{name:?} is not a list"))
    }

    pub(crate) fn objects(&self, name: &str) -> Result<Vec<Object<'line>>, Wrong> {
        self.list(name)?.iter().map(|entry| Object::of(entry).map_err(|wrong| format!("{name:?}: {wrong}"))).collect()
    }

    pub(crate) fn texts(&self, name: &str) -> Result<Vec<String>, Wrong> {
        let text = |entry: &JsonValue| entry.as_str().map(str::to_owned);
        self.list(name)?
            .iter()
            .map(|entry| text(entry).ok_or_else(|| format!("{name:?} is not a list of texts")))
            .collect()
    }

    /// A list of JSON texts.
    pub(crate) fn json_texts(&self, name: &str) -> Result<Vec<Json>, Wrong> {
        self.texts(name)?.into_iter().map(|text| checked(name, text)).collect()
    }

    /// JSON as its original text.
    pub(crate) fn json(&self, name: &str) -> Result<Json, Wrong> {
        checked(name, self.object(name)?.text(JSON)?.to_owned())
    }

    pub(crate) fn json_if(&self, name: &str) -> Result<Option<Json>, Wrong> {
        self.has(name).then(|| self.json(name)).transpose()
    }

    pub(crate) fn octets(&self, name: &str) -> Result<Vec<u8>, Wrong> {
        decoded(name, self.object(name)?.text(BYTES)?)
    }

    pub(crate) fn value(&self, name: &str) -> Result<Value, Wrong> {
        Ok(match self.member(name)? {
            JsonValue::Null => Value::Null,
            JsonValue::Bool(boolean) => Value::Boolean(*boolean),
            JsonValue::String(text) => Value::Text(text.clone()),
            JsonValue::Number(number) => {
                Value::Integer(number.as_i64().ok_or_else(|| format!("{name:?} is {number}, which is not an integer"))?)
            }
            JsonValue::Object(object) if object.contains_key(BYTES) => Value::Bytes(self.octets(name)?),
            JsonValue::Object(object) if object.contains_key(JSON) => Value::Json(self.json(name)?),
            _ => return Err(format!("{name:?} is not a value: JSON is {{\"{JSON}\": text}}")),
        })
    }
}

fn checked(name: &str, text: String) -> Result<Json, Wrong> {
    Json::new(text).map_err(|error| format!("{name:?} is not JSON: {error}"))
}

fn decoded(name: &str, text: &str) -> Result<Vec<u8>, Wrong> {
    STANDARD.decode(text).map_err(|_| format!("{name:?} is not base64"))
}
