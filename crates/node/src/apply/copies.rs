//! Second copies of the rows without which nothing else can be understood or created: the applied row, the catalogue and
//! the floors of buckets.
//!
//! They are written in the same batch as the rows, under keys of their own ([`Keys::copy_of`]), far away from them, so one
//! damaged block never has both. Touches: these rows. Never: part of the effects of an entry; images, exports and hashes
//! leave them out.

use contract::Error;
use kernel::{Buckets, Catalogue, Hosted, Kernel, Keys};
use kv::{Batch, Bytes, KeyRange, KvError, Order, Row, Rows, Store, View};
use session::Halt;
use storage::TreeStore;

use crate::error::from_kv;

/// Adds the copies of a batch's rows to it.
pub(crate) fn with_copies(keys: &Keys, batch: Batch) -> Batch {
    let copied = batch.writes().filter(|(key, _)| keys.has_copy(key));
    let copied: Vec<_> = copied.map(|(key, value)| (Keys::copy_of(key), value.cloned())).collect();
    copied.into_iter().fold(batch, |batch, (key, value)| match value {
        Some(value) => batch.put(key, value),
        None => batch.delete(key),
    })
}

/// Writes all copies, if the store has none: it is new or restored.
pub(crate) fn ensure_copies(tree: &TreeStore, keys: &Keys, buckets: Buckets) -> Result<(), Error> {
    let view = tree.view().map_err(|error| from_kv(&error))?;
    if !matches!(view.get(&Keys::copy_of(&keys.applied())), Ok(None)) {
        return Ok(());
    }
    // If one cannot be read, whoever needs it says so. Copies without it would look complete.
    let Ok(rows) = rows_with_copies(&*view, keys, buckets) else { return Ok(()) };
    let copies = rows.into_iter().map(|(key, value)| (Keys::copy_of(&key), Some(value)));
    tree.commit(Batch::from_sorted(copies.collect())).map_err(|error| from_kv(&error))?;
    Ok(())
}

/// All rows that have a copy, in order.
fn rows_with_copies(view: &dyn View, keys: &Keys, buckets: Buckets) -> Result<Vec<Row>, KvError> {
    let ranges = keys.ranges_with_copies(buckets);
    ranges.iter().flat_map(|range| view.scan(range, Order::Ascending)).collect()
}

/// Both copies of what the damaged ranges had one copy of. A row of which both copies are damaged is missing: whoever needs
/// it says so.
pub(crate) fn rows_again(
    view: &dyn View,
    keys: &Keys,
    buckets: Buckets,
    damaged: &[KeyRange],
) -> Result<Batch, KvError> {
    let mut again = Batch::new();
    for range in keys.ranges_with_copies(buckets) {
        let copies = Keys::copies_in(&range);
        if !damaged.iter().any(|damaged| damaged.overlaps(&range) || damaged.overlaps(&copies)) {
            continue;
        }
        for row in view.scan(&range, Order::Ascending).chain(Copies(view, *keys).scan(&range, Order::Ascending)) {
            let (key, value) = match row {
                Err(KvError::Damaged(_)) => continue,
                row => row?,
            };
            for key in [Keys::copy_of(&key), key] {
                if damaged.iter().any(|range| range.contains(&key)) {
                    again = again.put(key, value.clone());
                }
            }
        }
    }
    Ok(again)
}

/// The kernel at a view; by the copies if the rows themselves are damaged.
pub(crate) fn load_kernel(view: &dyn View, keys: &Keys, hosted: Hosted) -> Result<Option<Kernel>, Halt> {
    match Kernel::load_with(view, *keys, hosted.clone()) {
        Err(Halt::Store(KvError::Damaged(_))) => Kernel::load_with(&Copies(view, *keys), *keys, hosted),
        loaded => loaded,
    }
}

/// The catalogue at a view; by the copies if the rows themselves are damaged.
pub fn load_catalogue(view: &dyn View, keys: &Keys) -> Result<Catalogue, Halt> {
    match Catalogue::load(view, keys) {
        Err(Halt::Store(KvError::Damaged(_))) => Catalogue::load(&Copies(view, *keys), keys),
        loaded => loaded,
    }
}

/// A view that reads rows with copies from their copies.
struct Copies<'view>(&'view dyn View, Keys);

impl View for Copies<'_> {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, KvError> {
        match self.1.has_copy(key) {
            true => self.0.get(&Keys::copy_of(key)),
            false => self.0.get(key),
        }
    }

    fn scan(&self, range: &KeyRange, order: Order) -> Rows<'_> {
        if !self.1.has_copy(&range.start) {
            return self.0.scan(range, order);
        }
        let copies = self.0.scan(&Keys::copies_in(range), order);
        Box::new(copies.map(|row| row.map(|(key, value)| (Keys::original_of(&key).unwrap_or_default().into(), value))))
    }
}
