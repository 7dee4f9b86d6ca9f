//! JSON objects written as text, member after member, with user JSON in them as it was given.

use crate::value::{Json, write_text_json};

/// An object that is being written. Members stand in the order they were added.
pub(crate) struct ObjectText(String);

impl ObjectText {
    pub(crate) fn new() -> Self {
        Self("{".to_owned())
    }

    /// Adds a member whose value is JSON already.
    pub(crate) fn raw(&mut self, name: &str, json: &str) -> &mut Self {
        self.name(name);
        self.0.push_str(json);
        self
    }

    pub(crate) fn text(&mut self, name: &str, text: &str) -> &mut Self {
        self.name(name);
        write_text_json(text, &mut self.0);
        self
    }

    /// Adds a text, if there is one.
    pub(crate) fn text_if(&mut self, name: &str, text: Option<&str>) -> &mut Self {
        match text {
            Some(text) => self.text(name, text),
            None => self,
        }
    }

    pub(crate) fn number(&mut self, name: &str, number: u64) -> &mut Self {
        self.raw(name, &number.to_string())
    }

    /// Adds a list whose entries are JSON already.
    pub(crate) fn list<'json>(&mut self, name: &str, entries: impl Iterator<Item = &'json str>) -> &mut Self {
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
    pub(crate) fn jsons(&mut self, name: &str, entries: &[Json]) -> &mut Self {
        self.list(name, entries.iter().map(Json::as_str))
    }

    pub(crate) fn finish(mut self) -> String {
        self.0.push('}');
        self.0
    }

    fn name(&mut self, name: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        write_text_json(name, &mut self.0);
        self.0.push(':');
    }
}
