//! Declared indexes: for each indexed field of a record one row, sorted by the field's value.
//!
//! The index of `updated_at` knows the minute only: a record that is written often moves its entry at most once a minute, so
//! that most writes write no row for it.
//!
//! Touches: the `FieldIndex` rows. Keeps: R5 for them.

use contract::Value;
use contract::records::types::{IndexKind, UPDATED_AT};
use session::Halt;

use super::row::Row;
use crate::catalogue::Declared;
use crate::context::Applying;
use crate::keys::ThingId;
use crate::keys::sortable;

/// An index does not distinguish text and bytes beyond this length; the record itself decides.
pub const INDEXED_BYTES_MAX: usize = 256;

/// An index of `updated_at` does not distinguish times within so many ms; the record itself decides.
pub const UPDATED_AT_STEP_MS: i64 = 60_000;

const US_PER_MS: i64 = 1_000;

/// The bytes by which a value of an indexed field is sorted; none if the value is not of the index's kind.
pub fn sort_key(field: &str, kind: IndexKind, value: &Value) -> Option<Vec<u8>> {
    let cut = |bytes: &[u8]| bytes[..bytes.len().min(INDEXED_BYTES_MAX)].to_vec();
    match (kind, value) {
        (IndexKind::Bytes, Value::Bytes(bytes)) => Some(cut(bytes)),
        (IndexKind::Text, Value::Text(text)) => Some(cut(text.as_bytes())),
        (IndexKind::Unsigned | IndexKind::Signed | IndexKind::Time, Value::Integer(integer)) => {
            let step = if field == UPDATED_AT { UPDATED_AT_STEP_MS } else { 1 };
            let stepped = integer.div_euclid(step).saturating_mul(step);
            Some(sortable(stepped).to_be_bytes().to_vec())
        }
        _ => None,
    }
}

/// Brings the index rows of a record up to date.
pub(crate) fn update(
    applying: &mut Applying<'_>,
    record: &ThingId<'_>,
    before: &Row<'_>,
    after: &Row<'_>,
) -> Result<(), Halt> {
    let existing = |row: &Row<'_>| applying.declared(record, row).filter(|_| !row.numbers.deleted);
    let (old, new) = (existing(before), existing(after));
    let same_type = old.map(|declared| declared.id) == new.map(|declared| declared.id);
    let count = |declared: Option<&Declared>| declared.map_or(0, |declared| declared.definition.indexes.len());
    for number in 0..count(old).max(count(new)) {
        if same_type && new.is_some_and(|declared| stays(declared, number, before, after)) {
            continue;
        }
        let was = old.map_or(Ok(None), |declared| entry(applying, record, before, declared, number))?;
        let is = new.map_or(Ok(None), |declared| entry(applying, record, after, declared, number))?;
        if was != is {
            was.into_iter().for_each(|key| applying.state.delete(key));
            is.into_iter().for_each(|key| applying.state.put(key, kv::Bytes::default()));
        }
    }
    Ok(())
}

/// Whether an entry stays where it is, as far as that is seen without making its key.
fn stays(declared: &Declared, number: usize, before: &Row<'_>, after: &Row<'_>) -> bool {
    let minute = |row: &Row<'_>| row.numbers.updated_us / (UPDATED_AT_STEP_MS * US_PER_MS).unsigned_abs();
    let indexed = &declared.definition.indexes[number].0;
    indexed == UPDATED_AT && declared.definition.state_field != UPDATED_AT && minute(before) == minute(after)
}

/// The entry of a record in an index of its type.
pub(super) fn entry(
    applying: &Applying<'_>,
    record: &ThingId<'_>,
    row: &Row<'_>,
    declared: &Declared,
    number: usize,
) -> Result<Option<kv::Key>, Halt> {
    let Some((field, kind)) = declared.definition.indexes.get(number) else {
        return Ok(None);
    };
    let value = applying.fields().value(record, row, Some(declared), field)?;
    let number = u8::try_from(number).expect("few indexes");
    let sorted = value.and_then(|value| sort_key(field, *kind, &value));
    Ok(sorted.map(|sorted| applying.keys.index_entry(record, declared.id, number, &sorted)))
}
