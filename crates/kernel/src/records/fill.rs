//! Filling indexes that were declared when there were records already: in bounded steps, which the node proposes until
//! every record has its entries. Until then, scans do not use them.
//!
//! A record that is written in the meantime brings its entries itself; a step that comes to it later writes them again.
//!
//! Touches: `FieldIndex` rows, and the row that says how far it is. Keeps: R5 (a filled index has an entry for every
//! record, but for those of deleted branches, which are erased).

use contract::limits::PAGE_BYTES_MAX;
use kv::{Order, skip_set_apart};
use session::Halt;

use super::index::entry;
use super::row::{Content, Row};
use crate::catalogue::{Declared, FillProgress};
use crate::context::Applying;
use crate::keys::Kind;
use crate::keys::ThingId;
use crate::keys::names::is_name_in_group;
use crate::keys::things::read_thing_key;

/// Records that one step looks at, unless their indexed fields are a page before; branches without records count too.
const LOOKED_AT_MAX: usize = 256;

/// Fills some of the indexes of a type; whether they are all filled now.
pub(crate) fn fill(applying: &mut Applying<'_>, space: u32, record_type: u32) -> Result<bool, Halt> {
    let catalogue = applying.catalogue;
    let declared = catalogue.record_type(space, record_type).filter(|declared| declared.is_filling());
    let (Some(declared), Ok(found)) = (declared, catalogue.space(space)) else {
        return Ok(false);
    };
    let progress_key = applying.keys.index_fill(space, record_type);
    let progress = FillProgress::read(applying.keys, space, record_type, |key| applying.state.get(key))?;
    let no_row = || Halt::Inconsistent("R5: an index that is being filled has no row".into());
    let mut progress = progress.ok_or_else(no_row)?;
    let branches: Vec<u32> = found.branches().filter(|(_, branch)| !branch.deleted).map(|(number, _)| number).collect();
    let (mut left, mut bytes_left) = (LOOKED_AT_MAX, PAGE_BYTES_MAX);
    let here = catalogue.buckets_here();
    progress.bucket = progress.bucket.max(here.start);
    while here.contains(&progress.bucket) {
        let Some(branch) = branches.iter().copied().find(|branch| *branch >= progress.branch) else {
            progress = FillProgress { bucket: progress.bucket + 1, ..FillProgress::begin(progress.filled) };
            continue;
        };
        if branch > progress.branch {
            progress = FillProgress { branch, after: Vec::new(), ..progress };
        }
        if left == 0 {
            applying.state.put_encoded(progress_key, |writer| progress.encode(writer));
            return Ok(false);
        }
        let last = fill_some(applying, space, declared, &progress, (left, &mut bytes_left))?;
        left = left.saturating_sub(last.looked_at.max(1));
        progress = match last.after {
            // There may be more of this branch.
            Some(after) if left == 0 => FillProgress { after, ..progress },
            _ => FillProgress { branch: branch + 1, after: Vec::new(), ..progress },
        };
    }
    applying.state.delete(progress_key);
    Ok(true)
}

/// How far a look got.
struct Looked {
    looked_at: usize,
    after: Option<Vec<u8>>,
}

/// Puts the entries of the next records of a bucket and a branch.
fn fill_some(
    applying: &mut Applying<'_>,
    space: u32,
    declared: &Declared,
    progress: &FillProgress,
    (limit, bytes_left): (usize, &mut usize),
) -> Result<Looked, Halt> {
    let FillProgress { filled, bucket, branch, after } = progress;
    let range = applying.keys.rows_of_branch(Kind::Record, *bucket, space, *branch);
    let prefix = range.start.clone();
    let range = if after.is_empty() { range } else { range.after(&[&*prefix, after].concat()) };
    let rows = skip_set_apart(applying.state.scan(&range, Order::Ascending)).take(limit);
    let rows = rows.collect::<Result<Vec<_>, _>>()?;
    let mut looked = Looked { looked_at: rows.len(), after: rows.last().map(|(key, _)| key[prefix.len()..].to_vec()) };
    for (key, bytes) in &rows {
        if is_name_in_group(key) {
            continue;
        }
        let id = read_thing_key(key, space, *branch)
            .ok_or_else(|| Halt::Inconsistent("a foreign key among records".into()))?;
        let row = Row::decode(bytes)?;
        if !row.numbers.deleted && row.numbers.record_type == declared.id {
            put_entries(applying, &id.in_bucket(*bucket), &row, declared, (*filled).into())?;
            *bytes_left = bytes_left.saturating_sub(indexed_bytes(&row, declared, (*filled).into()));
        }
        if *bytes_left == 0 {
            // Others wait for it: the next step goes on behind this record.
            looked = Looked { looked_at: limit, after: Some(key[prefix.len()..].to_vec()) };
            break;
        }
    }
    Ok(looked)
}

/// Bytes of the fields that the new indexes are on.
fn indexed_bytes(row: &Row<'_>, declared: &Declared, filled: usize) -> usize {
    let new = &declared.definition.indexes[filled..];
    let indexed = row.fields.iter().filter(|field| new.iter().any(|(name, _)| name == field.name));
    let bytes = indexed.map(|field| match field.content {
        Content::Inline(value) => value.len(),
        Content::Apart { bytes } => bytes as usize,
    });
    bytes.sum()
}

fn put_entries(
    applying: &mut Applying<'_>,
    record: &ThingId<'_>,
    row: &Row<'_>,
    declared: &Declared,
    filled: usize,
) -> Result<(), Halt> {
    for number in filled..declared.definition.indexes.len() {
        match entry(applying, record, row, declared, number) {
            Ok(key) => key.into_iter().for_each(|key| applying.state.put(key, kv::Bytes::default())),
            // A field that cannot be read has no place; the rest goes on.
            Err(halt) if halt.set_apart().is_some() => {}
            Err(halt) => return Err(halt),
        }
    }
    Ok(())
}
