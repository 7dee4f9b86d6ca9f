//! List: the cells whose names begin with a prefix, in name order.
//!
//! The cells of a named group stand together in one bucket. Cells that are their own group are spread over all
//! buckets, so their list merges one scan of each.

use std::iter::Peekable;

use contract::limits::PAGE_BYTES_MAX;
use contract::{ListPage, Listed};
use kv::{KeyRange, Order, Rows, View};
use session::Halt;

use super::row::Head;
use super::{ReadCells, ViewCells};
use crate::keys::{CellKey, Keys, ThingId};
use crate::place::Buckets;

/// The cells of a named group. `group` is any cell of it, with the group's name.
pub fn list_group(
    view: &dyn View,
    keys: &Keys,
    group: &ThingId<'_>,
    prefix: &str,
    page: &ListPage,
) -> Result<Listed, Halt> {
    let range = after(keys.cell_heads_with_prefix(group, prefix), keys, group, page);
    let mut rows = view.scan(&range, Order::Ascending).peekable();
    // The cell that has the group's own name is stored under its name alone.
    let own = group.group.filter(|name| name.starts_with(prefix));
    let own = own.filter(|name| page.after.as_deref().is_none_or(|after| *name > after));
    let mut own = own.map(|name| ThingId { group: None, name, ..*group });
    let mut listed = Collector::new(page.limit);
    while let Some(key) = peek_key(&mut rows)? {
        if let Some(cell) = own.take_if(|own| own.name < key.name.as_str())
            && !take_own(view, keys, &cell, &mut listed)?
        {
            return Ok(listed.finish());
        }
        let (_, value) = rows.next().expect("a row was peeked")?;
        if !listed.add(key.name, &value)? {
            return Ok(listed.finish());
        }
    }
    if let Some(cell) = own {
        take_own(view, keys, &cell, &mut listed)?;
    }
    Ok(listed.finish())
}

fn take_own(view: &dyn View, keys: &Keys, cell: &ThingId<'_>, listed: &mut Collector) -> Result<bool, Halt> {
    match (ViewCells { view, keys: *keys }).head(cell)? {
        None => Ok(true),
        Some(row) => listed.add(cell.name.to_owned(), &row),
    }
}

/// The cells of a branch that are their own group.
pub fn list_spread(
    view: &dyn View,
    keys: &Keys,
    buckets: Buckets,
    space: u32,
    branch: u32,
    prefix: &str,
    page: &ListPage,
) -> Result<Listed, Halt> {
    let mut heads: Vec<(CellKey, Peekable<Rows<'_>>)> = Vec::new();
    for bucket in 0..buckets.count() {
        let group = ThingId { bucket, space, branch, group: None, name: "" };
        let range = after(keys.cell_heads_with_prefix(&group, prefix), keys, &group, page);
        let mut rows = view.scan(&range, Order::Ascending).peekable();
        if let Some(key) = peek_key(&mut rows)? {
            heads.push((key, rows));
        }
    }
    let mut listed = Collector::new(page.limit);
    while let Some(smallest) = (0..heads.len()).min_by(|a, b| heads[*a].0.name.cmp(&heads[*b].0.name)) {
        let (key, rows) = &mut heads[smallest];
        let (_, value) = rows.next().expect("a row was peeked")?;
        let name = std::mem::take(&mut key.name);
        match peek_key(rows)? {
            Some(next) => *key = next,
            None => drop(heads.swap_remove(smallest)),
        }
        if !listed.add(name, &value)? {
            break;
        }
    }
    Ok(listed.finish())
}

fn after(range: KeyRange, keys: &Keys, group: &ThingId<'_>, page: &ListPage) -> KeyRange {
    match &page.after {
        None => range,
        Some(after) => range.after(&keys.cell_head(&ThingId { name: after, ..*group })),
    }
}

fn peek_key(rows: &mut Peekable<Rows<'_>>) -> Result<Option<CellKey>, Halt> {
    match rows.peek() {
        None => Ok(None),
        Some(Err(error)) => Err(error.clone().into()),
        Some(Ok((key, _))) => match CellKey::decode(key) {
            Some(key) => Ok(Some(key)),
            None => Err(Halt::Inconsistent("a row among the cells has a key of another form".into())),
        },
    }
}

/// Collects cells that exist, and finds out whether there is one more than fits.
struct Collector {
    listed: Listed,
    limit: usize,
    bytes: usize,
}

impl Collector {
    fn new(limit: usize) -> Self {
        Self { listed: Listed::default(), limit, bytes: 0 }
    }

    /// Adds a cell; false when the page is full.
    fn add(&mut self, name: String, row: &[u8]) -> Result<bool, Halt> {
        let Some(versioned) = Head::decode(row)?.versioned() else {
            return Ok(true);
        };
        if self.listed.cells.len() == self.limit || self.bytes >= PAGE_BYTES_MAX {
            self.listed.next_after = self.listed.cells.last().map(|(name, _)| name.clone());
            return Ok(false);
        }
        self.bytes += row.len();
        self.listed.cells.push((name, versioned));
        Ok(true)
    }

    fn finish(self) -> Listed {
        self.listed
    }
}
