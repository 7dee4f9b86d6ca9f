//! Guarded groups as catalogue state: which prefixes of group names have a guard in a space, and their bytes.

use std::collections::BTreeMap;
use std::ops::Bound;

use contract::Rejection;
use contract::guards::GroupGuard;
use contract::limits::GUARDS_MAX;
use kv::{DecodeError, Reader, Writer};

use super::SpaceId;
use crate::command::count;

const FORMAT: u8 = 1;

/// The guards of one space, by their prefixes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuardedGroups {
    by_prefix: BTreeMap<String, GroupGuard>,
}

impl GuardedGroups {
    /// The guard of a group.
    pub fn of_group(&self, group: &str) -> Option<&GroupGuard> {
        self.deciding(group).map(|(_, guard)| guard)
    }

    /// The guard that decides about a group, with its prefix: the one with the longest prefix of the group's name.
    pub fn deciding(&self, group: &str) -> Option<(&str, &GroupGuard)> {
        // Of two prefixes of one name the longer one is the greater.
        let up_to_it = (Bound::Unbounded, Bound::Included(group));
        let mut below = self.by_prefix.range::<str, _>(up_to_it).rev();
        below.find(|(prefix, _)| group.starts_with(prefix.as_str())).map(|(prefix, guard)| (prefix.as_str(), guard))
    }

    /// The guard of exactly this prefix.
    pub fn get(&self, prefix: &str) -> Option<&GroupGuard> {
        self.by_prefix.get(prefix)
    }

    /// All of them, by prefix.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &GroupGuard)> {
        self.by_prefix.iter().map(|(prefix, guard)| (prefix.as_str(), guard))
    }

    /// Sets the guard of a prefix.
    pub(super) fn set(&mut self, prefix: &str, guard: &GroupGuard) -> Result<(), Rejection> {
        guard.check(prefix)?;
        let others = self.by_prefix.keys().filter(|other| *other != prefix).count();
        Rejection::check_limit("guards_max", GUARDS_MAX, others + 1)?;
        self.by_prefix.insert(prefix.to_owned(), guard.clone());
        Ok(())
    }

    /// Removes the guard of a prefix; whether there was one.
    pub(super) fn remove(&mut self, prefix: &str) -> bool {
        self.by_prefix.remove(prefix).is_some()
    }

    /// Inserts a guard read from its row.
    pub(super) fn insert(&mut self, prefix: String, guard: GroupGuard) {
        self.by_prefix.insert(prefix, guard);
    }
}

/// The row of a guard.
pub(super) fn encode_row(space: SpaceId, prefix: &str, guard: &GroupGuard) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.u8(FORMAT).u32(space).bytes(prefix.as_bytes());
    encode(&mut writer, guard);
    writer.finish()
}

/// Reads the row of a guard.
pub(super) fn decode_row(row: &[u8]) -> Result<(SpaceId, String, GroupGuard), DecodeError> {
    let mut reader = Reader::new(row);
    reader.format(FORMAT)?;
    let (space, prefix) = (reader.u32()?, reader.text()?.to_owned());
    let guard = decode(&mut reader)?;
    reader.end().map(|()| (space, prefix, guard))
}

/// Appends a guard's bytes, in a command and in its row alike.
pub(super) fn encode<'writer>(writer: &'writer mut Writer, guard: &GroupGuard) -> &'writer mut Writer {
    writer.u32(count(guard.open.len()));
    for name in &guard.open {
        writer.bytes(name.as_bytes());
    }
    writer.no_members()
}

/// Reads a guard.
pub(super) fn decode(reader: &mut Reader<'_>) -> Result<GroupGuard, DecodeError> {
    let mut open = Vec::new();
    for _ in 0..reader.u32()? {
        open.push(reader.text()?.to_owned());
    }
    reader.no_members()?;
    Ok(GroupGuard { open })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_decides() {
        let mut guards = GuardedGroups::default();
        assert_eq!(guards.of_group("agents.7"), None);
        let inbox = GroupGuard::new().open("inbox");
        assert_eq!(guards.set("agents.", &GroupGuard::new()), Ok(()));
        assert_eq!(guards.set("agents.open.", &inbox), Ok(()));
        assert_eq!(guards.set("agents.o", &GroupGuard::new().open("o")), Ok(()));
        for (group, open) in [
            ("agents.7", Some(vec![])),
            ("agents.", Some(vec![])),
            ("agents.open.1", Some(vec!["inbox".to_owned()])),
            ("agents.open", Some(vec!["o".to_owned()])),
            ("agents.p", Some(vec![])),
            ("agent", None),
            ("zebra", None),
        ] {
            assert_eq!(guards.of_group(group).map(|guard| guard.open.clone()), open, "{group}");
        }
        assert!(guards.remove("agents.") && !guards.remove("agents."));
        assert_eq!(guards.of_group("agents.7"), None);
        assert!(guards.of_group("agents.open.").is_some());
    }

    #[test]
    fn there_are_so_many_at_most_and_each_is_read_as_written() {
        let mut guards = GuardedGroups::default();
        for number in 0..GUARDS_MAX {
            assert_eq!(guards.set(&format!("{number}."), &GroupGuard::new()), Ok(()));
        }
        assert_eq!(guards.set("0.", &GroupGuard::new().open("again")), Ok(()), "one of them");
        let refused = guards.set("one more", &GroupGuard::new());
        assert_eq!(refused, Err(Rejection::too_large("guards_max", GUARDS_MAX, GUARDS_MAX + 1)));
        let guard = GroupGuard::new().open("inbox").open("in");
        let golden = b"\x01\x03\0\0\0\x07\0\0\0agents.\x02\0\0\0\x05\0\0\0inbox\x02\0\0\0in\0";
        assert_eq!(encode_row(3, "agents.", &guard), golden, "as docs/formats/keys.md has it");
        assert_eq!(decode_row(&encode_row(3, "agents.", &guard)), Ok((3, "agents.".to_owned(), guard)));
    }
}
