//! Keys in words, for messages about damage: which things a range of keys holds.

use kv::KeyRange;

use super::{CATALOGUE_WORDS, GENERATION_BYTES, Keys, Kind, NAMED_GROUP, OWN_GROUP, SHARD_ROWS, ShardKind, take_name};
use crate::catalogue::Catalogue;

/// Between which things a range of keys lies, in words: kind, name and space. A border that is just after a row is named
/// like the row: the first thing may lie before the range, the last one lies in it.
pub fn describe_range(range: &KeyRange, catalogue: &Catalogue) -> (String, String) {
    let row = |key: &[u8]| describe(key, Some(catalogue));
    let to = range.end.as_deref().map_or_else(|| "the end".to_owned(), row);
    (row(&range.start), to)
}

/// The same without a catalogue: spaces are numbers.
pub fn describe_range_by_numbers(range: &KeyRange) -> (String, String) {
    let row = |key: &[u8]| describe(key, None);
    let to = range.end.as_deref().map_or_else(|| "the end".to_owned(), row);
    (row(&range.start), to)
}

/// What the row with this key belongs to.
fn describe(key: &[u8], catalogue: Option<&Catalogue>) -> String {
    if let Some(original) = Keys::original_of(key).filter(|original| original.len() > GENERATION_BYTES) {
        return format!("the second copy of {}", describe(original, catalogue));
    }
    let read = || {
        let rest = key.get(GENERATION_BYTES..)?;
        let (bucket, rest) = rest.split_first_chunk::<2>()?;
        if u16::from_be_bytes(*bucket) == SHARD_ROWS {
            let kind = rest.get(2)?;
            return Some(shard_row(*kind).to_owned());
        }
        let (kind, rest) = rest.split_first()?;
        let what = kind_name(*kind)?;
        let Some((space, rest)) = rest.split_first_chunk::<4>().filter(|_| has_space(*kind)) else {
            return Some(what.to_owned());
        };
        let space = space_name(u32::from_be_bytes(*space), catalogue);
        let name = rest.get(4..).filter(|_| names_a_thing(*kind)).and_then(thing_name);
        Some(match name {
            Some(name) => format!("{what} {name} of space {space}"),
            None => format!("{what} of space {space}"),
        })
    };
    read().unwrap_or_else(|| format!("key {}", key.escape_ascii()))
}

/// The name in a key after the branch, and the group if it has one.
fn thing_name(rest: &[u8]) -> Option<String> {
    let (mark, rest) = rest.split_first()?;
    match *mark {
        OWN_GROUP => take_name(rest).map(|(name, _)| format!("{name:?}")),
        NAMED_GROUP => {
            let (group, rest) = take_name(rest)?;
            Some(match take_name(rest) {
                Some((name, _)) => format!("{name:?} of group {group:?}"),
                None => format!("of group {group:?}"),
            })
        }
        _ => None,
    }
}

fn space_name(space: u32, catalogue: Option<&Catalogue>) -> String {
    let name = catalogue.and_then(|catalogue| catalogue.space(space).ok()).map(|space| format!("{:?}", space.name));
    name.unwrap_or_else(|| space.to_string())
}

/// All kinds of rows, in words.
pub fn kinds() -> impl Iterator<Item = &'static str> {
    Kind::WORDS.into_iter().map(|(_, name)| name).chain(ShardKind::WORDS.into_iter().map(|(_, name)| name))
}

/// The kind of the row with this key, in words; none if it is the second copy of a row.
pub fn kind_of(key: &[u8]) -> Option<&'static str> {
    let (bucket, rest) =
        key.get(GENERATION_BYTES..).filter(|_| Keys::original_of(key).is_none())?.split_first_chunk()?;
    match u16::from_be_bytes(*bucket) {
        SHARD_ROWS => Some(shard_row(*rest.get(2)?)),
        _ => kind_name(*rest.first()?),
    }
}

fn kind_name(kind: u8) -> Option<&'static str> {
    Kind::WORDS.into_iter().find(|(known, _)| *known as u8 == kind).map(|(_, name)| name)
}

fn names_a_thing(kind: u8) -> bool {
    has_space(kind) && !Kind::WITHOUT_NAME.into_iter().any(|known| known as u8 == kind)
}

fn has_space(kind: u8) -> bool {
    !Kind::WITHOUT_SPACE.into_iter().any(|known| known as u8 == kind)
}

fn shard_row(kind: u8) -> &'static str {
    ShardKind::WORDS.into_iter().find(|(known, _)| *known as u8 == kind).map_or(CATALOGUE_WORDS, |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::ThingId;
    use crate::place::Buckets;

    #[test]
    fn a_range_of_keys_is_named_by_space_kind_and_name() {
        let keys = Keys::new(1, crate::BucketRange::ALL);
        let catalogue = Catalogue::genesis(Buckets::default());
        let thing = |name, group| ThingId { bucket: 3, space: 1, branch: 1, group, name };
        let after = |key: &[u8]| [key, &[0]].concat();
        let range = KeyRange {
            start: after(&keys.cell_head(&thing("a/1", None))),
            end: Some(after(&keys.record(&thing("job", Some("g"))))),
        };
        let numbers = describe_range_by_numbers(&range);
        assert_eq!(numbers, ("cell \"a/1\" of space 1".into(), "record \"job\" of group \"g\" of space 1".into()));
        let name = &catalogue.space(1).expect("the first space").name;
        assert_eq!(describe_range(&range, &catalogue).0, format!("cell \"a/1\" of space {name:?}"));
        let shard = KeyRange { start: keys.applied().to_vec(), end: Some(keys.changes(7).to_vec()) };
        let named = describe_range(&shard, &catalogue);
        assert_eq!(named, ("the progress of the store".into(), "the change feed".into()));
        let copy = Keys::copy_of(&keys.applied());
        assert_eq!(describe(&copy, None), "the second copy of the progress of the store");
        assert_eq!((Keys::original_of(&copy), keys.has_copy(&copy)), (Some(&*keys.applied()), false));
        assert_eq!(describe(b"x", None), "key x");
    }
}
