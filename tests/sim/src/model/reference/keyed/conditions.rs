//! Conditions on maps.

use contract::keyed::{LogicalTime, shown_key};
use contract::{KeyedRejection, Rejection};
use kernel::KeyedGuard;

use super::{Key, State};
use crate::model::reference::{Id, Reference};

impl Reference {
    pub(in super::super) fn check_map_guard(&self, id: &Id, guard: &KeyedGuard<'_>) -> Result<(), Rejection> {
        let content = self.content(id);
        let found = |key: &[u8]| content.and_then(|content| content.keys.get(key));
        let exists = |key: &[u8]| found(key).is_some_and(|key| key.state.value().is_some());
        let version = |key: &[u8]| found(key).and_then(|key| key.state.version());
        let changed_at = |key: &Key| content.map_or(0, |content| content.changed_at(key));
        let (key, holds) = match guard {
            KeyedGuard::Absent(_, key) => (*key, !exists(key)),
            KeyedGuard::Exists(_, key) => (*key, exists(key)),
            KeyedGuard::VersionIs(_, key, expected) => (*key, version(key) == Some(*expected)),
            KeyedGuard::VersionBelow(_, key, bound) => (*key, version(key).is_none_or(|current| current < *bound)),
            KeyedGuard::UnchangedSince(_, key, commit) => (
                *key,
                match found(key) {
                    Some(key) => changed_at(key) <= *commit,
                    None => !self.was_forgotten_since(id, *commit),
                },
            ),
            KeyedGuard::RangeUnchangedSince(_, from, to, commit) => {
                if self.was_forgotten_since(id, *commit) {
                    return Err(conflict(id, from, None));
                }
                let inside = |key: &[u8]| key >= *from && to.is_none_or(|to| key < to);
                let mut keys = content.into_iter().flat_map(|content| &content.keys);
                return match keys.find(|(key, known)| inside(key) && changed_at(known) > *commit) {
                    Some((key, known)) => Err(conflict(id, key, version_of(known))),
                    None => Ok(()),
                };
            }
            KeyedGuard::PositionIs(_, input, expected) => {
                let current = content.and_then(|content| content.positions.get(*input)).map(|known| known.position);
                let (map, input) = (id.name.clone(), (*input).to_owned());
                return match current == *expected {
                    true => Ok(()),
                    false => Err(KeyedRejection::PositionConflict { map, input, current }.into()),
                };
            }
        };
        if holds { Ok(()) } else { Err(conflict(id, key, found(key).and_then(version_of))) }
    }

    /// Whether a key of which nothing is known may have been changed since a command.
    fn was_forgotten_since(&self, id: &Id, commit: u64) -> bool {
        let Some(map) = self.maps.get(id) else { return false };
        map.content.as_ref().map_or(map.commit, |content| content.forgotten) > commit
    }
}

fn version_of(key: &Key) -> Option<LogicalTime> {
    if let State::Put(_, version) = key.state { Some(version) } else { None }
}

fn conflict(id: &Id, key: &[u8], current: Option<LogicalTime>) -> Rejection {
    let current = current.map(|version| version.to_string());
    KeyedRejection::Conflict { map: id.name.clone(), key: shown_key(key), current }.into()
}
