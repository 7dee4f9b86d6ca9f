//! Reading maps: keys, ranges of keys, and input positions, at one view.

use contract::keyed::{InputPosition, KeyedValue};
use kv::{KeyRange, Order, View};
use session::Halt;

use super::entry::{Entry, decode_position};
use super::head::MapHead;
use crate::keys::{Keys, Kind, ThingId};

/// The head of a map, if it exists.
pub fn head(view: &dyn View, keys: &Keys, map: &ThingId<'_>) -> Result<Option<MapHead>, Halt> {
    let head = view.get(&keys.map(map))?.map(|row| MapHead::decode(&row)).transpose()?;
    Ok(head.filter(|head| !head.deleted))
}

/// The value of a key.
pub fn get(
    view: &dyn View,
    keys: &Keys,
    map: &ThingId<'_>,
    head: &MapHead,
    key: &[u8],
) -> Result<Option<KeyedValue>, Halt> {
    let row = view.get(&Keys::entry_at(&keys.entry_prefix(map, head.content.number), key))?;
    row.map_or(Ok(None), |row| found(head, &row))
}

fn found(head: &MapHead, row: &[u8]) -> Result<Option<KeyedValue>, Halt> {
    let entry = Entry::decode(row)?;
    let commit = head.content.changed_at(&entry);
    Ok(entry.value()?.map(|value| KeyedValue::new(value.to_value(), entry.version(), commit)))
}

/// Which keys of a map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeysFrom<'key> {
    /// Those that begin with this.
    pub prefix: &'key [u8],
    /// Those from this one on.
    pub from: Option<&'key [u8]>,
    /// Those before this one.
    pub to: Option<&'key [u8]>,
    /// Those after this one.
    pub after: Option<&'key [u8]>,
}

/// How much of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Keys in the page.
    pub keys_max: usize,
    /// Rows that are looked at, those of deleted keys included.
    pub rows_max: usize,
    /// Bytes of keys and values after which the page ends.
    pub bytes_max: usize,
}

/// A page of keys with their values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeysPage {
    /// Keys with their values, in the order of their bytes.
    pub keys: Vec<(Vec<u8>, KeyedValue)>,
    /// The key after which the next page starts, if there may be more.
    pub next_after: Option<Vec<u8>>,
}

/// The keys of a range, in the order of their bytes.
pub fn scan(
    view: &dyn View,
    keys: &Keys,
    map: &ThingId<'_>,
    head: &MapHead,
    which: &KeysFrom<'_>,
    bounds: &Bounds,
) -> Result<KeysPage, Halt> {
    let prefix = keys.entry_prefix(map, head.content.number);
    let range = range_of(&prefix, which);
    let (mut page, mut rows, mut bytes) = (KeysPage::default(), 0, 0);
    for row in view.scan(&range, Order::Ascending) {
        let (row_key, row) = row?;
        let key = &row_key[prefix.len()..];
        rows += 1;
        if let Some(value) = found(head, &row)? {
            bytes += key.len() + row.len();
            page.keys.push((key.to_vec(), value));
        }
        if page.keys.len() >= bounds.keys_max || rows >= bounds.rows_max || bytes >= bounds.bytes_max {
            page.next_after = Some(key.to_vec());
            break;
        }
    }
    Ok(page)
}

fn range_of(prefix: &kv::Key, which: &KeysFrom<'_>) -> KeyRange {
    let KeysFrom { prefix: begins, from, to, after } = *which;
    let at = |key: &[u8]| Keys::entry_at(prefix, key).to_vec();
    let mut range = KeyRange::prefix(&at(begins));
    if let Some(from) = from {
        range.start = range.start.max(at(from));
    }
    if let Some(to) = to {
        let to = at(to);
        range.end = Some(range.end.map_or_else(|| to.clone(), |end| end.min(to.clone())));
    }
    match after {
        None => range,
        Some(after) => {
            let after = at(after);
            // A cursor before the range skips nothing.
            if after < range.start { range } else { range.after(&after) }
        }
    }
}

/// The positions of inputs, by name, after one of them.
pub fn positions(
    view: &dyn View,
    keys: &Keys,
    map: &ThingId<'_>,
    head: &MapHead,
    after: Option<&str>,
    inputs_max: usize,
) -> Result<Vec<(String, InputPosition)>, Halt> {
    let mut range = keys.map_rows(Kind::KeyedPosition, map, head.content.number);
    let prefix = range.start.len();
    if let Some(after) = after {
        range = range.after(&keys.input_position(map, head.content.number, after));
    }
    let rows = view.scan(&range, Order::Ascending).take(inputs_max);
    rows.map(|row| {
        let (key, row) = row?;
        let input = std::str::from_utf8(&key[prefix..]);
        let input = input.map_err(|_| Halt::Inconsistent("the name of an input is not text".into()))?;
        Ok((input.to_owned(), decode_position(&row)?))
    })
    .collect()
}

/// The position of an input.
pub fn position(
    view: &dyn View,
    keys: &Keys,
    map: &ThingId<'_>,
    head: &MapHead,
    input: &str,
) -> Result<Option<InputPosition>, Halt> {
    let row = view.get(&keys.input_position(map, head.content.number, input))?;
    row.map(|row| decode_position(&row)).transpose()
}
