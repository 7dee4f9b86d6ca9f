//! Answers taken apart as text, so that nothing is decoded before it is compared.

use contract::object_text::{entries, members};

/// The JSON of an answer.
pub(super) struct Answer(String);

impl Answer {
    pub(super) fn new(text: String) -> Self {
        Self(text)
    }

    /// The text of a member at a path; none if it is absent.
    fn find(text: &str, path: &[&str]) -> Option<String> {
        let mut found = text.trim().to_owned();
        for name in path {
            let inner = members(&found).ok()?.into_iter().find(|member| member.name == *name)?.json.to_owned();
            found = inner;
        }
        Some(found)
    }

    /// The member at a path.
    pub(super) fn at(&self, path: &[&str]) -> Vec<String> {
        Self::find(&self.0, path).into_iter().collect()
    }

    /// The member at `path` of each entry of the list at `list`, where it has one.
    pub(super) fn of_each(&self, list: &[&str], path: &[&str]) -> Vec<String> {
        let list = Self::find(&self.0, list).unwrap_or_default();
        entries(&list).unwrap_or_default().into_iter().filter_map(|entry| Self::find(entry, path)).collect()
    }

    /// The first entry of a list.
    pub(super) fn first(&self, list: &[&str]) -> Self {
        let list = Self::find(&self.0, list).unwrap_or_default();
        Self(
            entries(&list)
                .ok()
                .and_then(|entries| entries.first().map(|entry| (*entry).to_owned()))
                .unwrap_or_default(),
        )
    }

    /// The members of the object at a path whose names are numbers, in the order of these.
    pub(super) fn numbered(&self, path: &[&str]) -> Vec<String> {
        let object = Self::find(&self.0, path).unwrap_or_default();
        let found = members(&object).unwrap_or_default();
        let mut numbered: Vec<(usize, String)> =
            found.iter().filter_map(|member| Some((member.name.parse().ok()?, member.json.to_owned()))).collect();
        numbered.sort();
        numbered.into_iter().map(|(_, json)| json).collect()
    }
}
