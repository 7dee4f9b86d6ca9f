//! JSON objects as text: written member by member, and split into members; user JSON inside stays as it was sent.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::value::{InvalidJson, Json, check, write_text_json};

/// An object under construction. Members keep the order in which they were added.
///
/// ```
/// use statehouse_contract::object_text::ObjectText;
/// let mut object = ObjectText::default();
/// object.text("name", "a").number("version", 3).raw("value", "1.50");
/// assert_eq!(object.finish(), r#"{"name":"a","version":3,"value":1.50}"#);
/// ```
#[derive(Clone, Debug, Default)]
pub struct ObjectText(String);

impl ObjectText {
    /// Adds a member whose value already is JSON.
    pub fn raw(&mut self, name: &str, json: &str) -> &mut Self {
        self.name(name);
        self.0.push_str(json);
        self
    }

    /// Adds a text.
    pub fn text(&mut self, name: &str, text: &str) -> &mut Self {
        self.name(name);
        write_text_json(text, &mut self.0);
        self
    }

    /// Adds a text, if there is one.
    pub fn text_if(&mut self, name: &str, text: Option<&str>) -> &mut Self {
        match text {
            Some(text) => self.text(name, text),
            None => self,
        }
    }

    /// Adds a number.
    pub fn number(&mut self, name: &str, number: u64) -> &mut Self {
        self.raw(name, &number.to_string())
    }

    /// Adds a list whose entries already are JSON.
    pub fn list<'json>(&mut self, name: &str, entries: impl Iterator<Item = &'json str>) -> &mut Self {
        self.name(name);
        self.0.push('[');
        for (place, entry) in entries.enumerate() {
            if place > 0 {
                self.0.push(',');
            }
            self.0.push_str(entry);
        }
        self.0.push(']');
        self
    }

    /// Adds a list of JSON.
    pub fn jsons(&mut self, name: &str, entries: &[Json]) -> &mut Self {
        self.list(name, entries.iter().map(Json::as_str))
    }

    /// Adds members that already are JSON, as they are in `object`, a JSON object.
    pub fn members_of(&mut self, object: &str) -> &mut Self {
        let members = object.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or_default();
        if !members.trim().is_empty() {
            self.begin();
            self.0.push_str(members);
        }
        self
    }

    /// The object.
    pub fn finish(mut self) -> String {
        self.0.push_str(if self.0.is_empty() { "{}" } else { "}" });
        self.0
    }

    fn begin(&mut self) {
        self.0.push(if self.0.is_empty() { '{' } else { ',' });
    }

    fn name(&mut self, name: &str) {
        self.begin();
        write_text_json(name, &mut self.0);
        self.0.push(':');
    }
}

/// A member of an object, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member<'text> {
    /// Its name.
    pub name: Cow<'text, str>,
    /// Its name as spelled, with its quotes.
    pub spelled: &'text str,
    /// Its value.
    pub json: &'text str,
}

/// The members of a JSON object in order, including repeated ones. Their values are not parsed.
///
/// ```
/// use statehouse_contract::object_text::members;
/// let found = members(r#"{"b": 1.0, "\u0061": [ ], "b": 2}"#)?;
/// let names: Vec<_> = found.iter().map(|member| (&*member.name, member.json)).collect();
/// assert_eq!(names, [("b", "1.0"), ("a", "[ ]"), ("b", "2")]);
/// # Ok::<(), statehouse_contract::InvalidJson>(())
/// ```
pub fn members(object: &str) -> Result<Vec<Member<'_>>, InvalidJson> {
    let malformed = |error: serde_json::Error| InvalidJson::Malformed { reason: error.to_string() };
    let Pairs(pairs) = serde_json::from_str(object).map_err(malformed)?;
    let found = pairs
        .into_iter()
        .map(|(spelled, json)| Ok(Member { name: text(spelled.get())?, spelled: spelled.get(), json: json.get() }));
    found.collect()
}

/// The decoded text of a JSON string.
pub fn text(json: &str) -> Result<Cow<'_, str>, InvalidJson> {
    if let Some(plain) = json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'))
        && !plain.contains(['\\', '"'])
        && !plain.bytes().any(|byte| byte < 0x20)
    {
        return Ok(Cow::Borrowed(plain));
    }
    check(json)?;
    let decoded = serde_json::from_str::<String>(json);
    decoded.map(Cow::Owned).map_err(|error| InvalidJson::Malformed { reason: error.to_string() })
}

/// The entries of a JSON list, as text.
pub fn entries(list: &str) -> Result<Vec<&str>, InvalidJson> {
    let malformed = |error: serde_json::Error| InvalidJson::Malformed { reason: error.to_string() };
    let entries: Vec<&RawValue> = serde_json::from_str(list).map_err(malformed)?;
    Ok(entries.into_iter().map(RawValue::get).collect())
}

struct Pairs<'text>(Vec<(&'text RawValue, &'text RawValue)>);

impl<'de> Deserialize<'de> for Pairs<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(PairsVisitor)
    }
}

struct PairsVisitor;

impl<'de> Visitor<'de> for PairsVisitor {
    type Value = Pairs<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = map.next_entry()? {
            pairs.push(pair);
        }
        Ok(Pairs(pairs))
    }
}
