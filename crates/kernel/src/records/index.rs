//! Declared indexes: for each indexed field of a record one row, sorted by the field's value.
//!
//! Touches: the `FieldIndex` rows. Keeps: R5 for them.

use contract::Value;
use contract::records::types::IndexKind;
use session::Halt;

use super::row::Row;
use crate::keys::ThingId;
use crate::keys::records::sortable;
use crate::machine::Applying;

/// An index does not distinguish text and bytes beyond this length; the record itself decides.
pub const INDEXED_BYTES_MAX: usize = 256;

/// The bytes by which a value of an indexed field is sorted; none if the value is not of the index's kind.
pub fn sort_key(kind: IndexKind, value: &Value) -> Option<Vec<u8>> {
    let cut = |bytes: &[u8]| bytes[..bytes.len().min(INDEXED_BYTES_MAX)].to_vec();
    match (kind, value) {
        (IndexKind::Bytes, Value::Bytes(bytes)) => Some(cut(bytes)),
        (IndexKind::Text, Value::Text(text)) => Some(cut(text.as_bytes())),
        (IndexKind::Unsigned | IndexKind::Signed | IndexKind::Time, Value::Integer(integer)) => {
            Some(sortable(*integer).to_be_bytes().to_vec())
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
    let indexed =
        |row: &Row<'_>| applying.declared(record, row).is_some_and(|declared| !declared.definition.indexes.is_empty());
    if !indexed(before) && !indexed(after) {
        return Ok(());
    }
    let old = entries(applying, record, before)?;
    let new = entries(applying, record, after)?;
    if old == new {
        return Ok(());
    }
    for key in old.iter().filter(|key| !new.contains(key)) {
        applying.state.delete(key.clone());
    }
    for key in new.iter().filter(|key| !old.contains(key)) {
        applying.state.put(key.clone(), kv::Bytes::default());
    }
    Ok(())
}

fn entries(applying: &Applying<'_>, record: &ThingId<'_>, row: &Row<'_>) -> Result<Vec<kv::Key>, Halt> {
    let mut keys = Vec::new();
    let Some(declared) = applying.declared(record, row).filter(|_| !row.numbers.deleted) else {
        return Ok(keys);
    };
    for (number, (field, kind)) in declared.definition.indexes.iter().enumerate() {
        let value = applying.fields().value(record, row, Some(declared), field)?;
        if let Some(sorted) = value.and_then(|value| sort_key(*kind, &value)) {
            let number = u8::try_from(number).expect("few indexes");
            keys.push(applying.keys.index_entry(record, declared.id, number, &sorted));
        }
    }
    Ok(keys)
}
