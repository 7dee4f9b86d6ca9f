//! Keys of the index of names: a row for each thing in a named group, next to the things without a group.
//!
//! The row is where the thing would be without a group, with the group after its name. One range of a bucket therefore
//! contains every name of the bucket, ordered by (name, group), and listing all groups scans no more than listing the
//! things without a group.

use kv::Key;

use super::{
    GENERATION_BYTES, Keys, Kind, NAMED_GROUP, OWN_GROUP, ThingId, push_group, push_name, skip_name, take_name,
};

/// Bytes of a key in front of the group: generation, bucket, kind, space, branch.
const BRANCH_BYTES: usize = GENERATION_BYTES + 2 + 1 + 4 + 4;

impl Keys {
    /// The row of a cell's newest version, of a record or of a run.
    pub fn thing(&self, kind: Kind, thing: &ThingId<'_>) -> Key {
        let mut key = self.group_prefix(kind, thing);
        push_name(&mut key, thing.name.as_bytes());
        key
    }

    /// The row that names a thing of a named group; none for a thing without a group.
    pub fn name_in_group(&self, kind: Kind, thing: &ThingId<'_>) -> Option<Key> {
        thing.group?;
        let mut key = self.names_prefix(kind, thing.bucket, thing.space, thing.branch);
        key.extend_from_slice(&Self::position(thing.name, thing.group));
        Some(key)
    }

    /// The prefix of every [`position`](Self::position) in a bucket.
    pub fn names_prefix(&self, kind: Kind, bucket: u16, space: u32, branch: u32) -> Key {
        let mut key = self.branch_prefix(kind, bucket, space, branch);
        key.push(OWN_GROUP);
        key
    }

    /// The position of a thing in the order of (name, group), as bytes that sort the same way.
    pub fn position(name: &str, group: Option<&str>) -> Key {
        let mut position = Key::default();
        push_name(&mut position, name.as_bytes());
        if group.is_some() {
            push_group(&mut position, group);
        }
        position
    }
}

/// Reads [`Keys::position`]: the name, and the group.
pub fn read_position(position: &[u8]) -> Option<(String, Option<String>)> {
    let (name, rest) = take_name(position)?;
    let Some((mark, rest)) = rest.split_first() else {
        return Some((name, None));
    };
    let (group, rest) = take_name(rest)?;
    (*mark == NAMED_GROUP && rest.is_empty()).then_some((name, Some(group)))
}

/// Whether a key among those of cells, records or runs is a name of the index, and not a thing.
pub fn is_name_in_group(key: &[u8]) -> bool {
    let behind_name = match key.get(BRANCH_BYTES..).and_then(<[u8]>::split_first) {
        Some((&OWN_GROUP, rest)) => skip_name(rest),
        _ => None,
    };
    behind_name.is_some_and(|rest| !rest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::things::read_thing_key;

    const KINDS: [Kind; 3] = [Kind::CellHead, Kind::Record, Kind::Run];
    const NAMES: [&str; 6] = ["a", "a\0", "a\0b", "a\u{1}", "ab", "b"];

    fn id<'name>(group: Option<&'name str>, name: &'name str) -> ThingId<'name> {
        ThingId { bucket: 5, space: 1, branch: 2, group, name }
    }

    #[test]
    fn names_of_a_bucket_sort_by_name_and_then_by_group() {
        let keys = Keys::new(7, crate::BucketRange::ALL);
        for kind in KINDS {
            let mut sorted = Vec::new();
            for name in NAMES {
                sorted.push(keys.thing(kind, &id(None, name)));
                sorted.extend(NAMES.iter().filter_map(|group| keys.name_in_group(kind, &id(Some(group), name))));
            }
            assert!(sorted.is_sorted(), "{kind:?}");
        }
    }

    #[test]
    fn a_name_is_told_from_a_thing_and_read_back() {
        let keys = Keys::new(7, crate::BucketRange::ALL);
        let prefix = keys.names_prefix(Kind::Record, 5, 1, 2);
        for name in NAMES {
            assert_eq!(keys.name_in_group(Kind::Record, &id(None, name)), None);
            for group in NAMES.map(Some).into_iter().chain([None]) {
                let thing = keys.thing(Kind::Record, &id(group, name));
                assert!(!is_name_in_group(&thing), "{name:?} in {group:?}");
                assert!(read_thing_key(&thing, 1, 2).is_some());
                if let Some(key) = keys.name_in_group(Kind::Record, &id(group, name)) {
                    assert!(is_name_in_group(&key) && read_thing_key(&key, 1, 2).is_none());
                    let read = read_position(&key[prefix.len()..]).expect("a position");
                    assert_eq!((read.0.as_str(), read.1.as_deref()), (name, group));
                }
            }
        }
        for broken in [&b""[..], b"a", b"a\0", b"a\0\0\x02g\0\0", b"a\0\0\x01g", b"a\0\0\x01g\0\0x", b"\xff\0\0"] {
            assert_eq!(read_position(broken), None, "{broken:?}");
        }
    }

    /// Part of the stored format; `docs/formats/keys.md`.
    #[test]
    fn golden_names() {
        let hex = |key: &[u8]| key.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let keys = Keys::new(1, crate::BucketRange::ALL);
        for (kind, code) in [(Kind::CellHead, "03"), (Kind::Record, "05"), (Kind::Run, "0f")] {
            let key = keys.name_in_group(kind, &id(Some("g"), "hi")).expect("a group");
            assert_eq!(hex(&key), format!("000000010005{code}0000000100000002") + "0068690000" + "01670000");
        }
    }
}
