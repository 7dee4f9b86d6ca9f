//! Merges scans of writes in memory with the scan of what lies below them.
//!
//! Keeps: for each key the newest source wins; a deletion above hides the value below.

use std::cmp::Ordering;
use std::iter::Peekable;

use crate::key::Key;
use crate::store::{Bytes, KvError, Order, Row, Rows};
use crate::table::Found;

/// Writes in scan order: a value, or a deletion.
pub(crate) type Writes<'view> = Box<dyn Iterator<Item = (Key, Found)> + Send + 'view>;

/// Rows of several sources, newest source first, the store below last.
pub(crate) struct Merge<'view> {
    tables: Vec<Peekable<Writes<'view>>>,
    below: Peekable<Rows<'view>>,
    order: Order,
}

impl<'view> Merge<'view> {
    pub(crate) fn new(tables: Vec<Writes<'view>>, below: Rows<'view>, order: Order) -> Self {
        let tables = tables.into_iter().map(Iterator::peekable).collect();
        Self { tables, below: below.peekable(), order }
    }

    /// Which of two keys a scan meets first.
    fn compare(&self, left: &Key, right: &Key) -> Ordering {
        match self.order {
            Order::Ascending => left.cmp(right),
            Order::Descending => right.cmp(left),
        }
    }

    /// The next key of any table.
    fn next_table_key(&mut self) -> Option<Key> {
        let order = self.order;
        let keys = self.tables.iter_mut().filter_map(|table| table.peek().map(|(key, _)| key));
        match order {
            Order::Ascending => keys.min().cloned(),
            Order::Descending => keys.max().cloned(),
        }
    }

    /// Takes `key` from every table that stands at it; the newest one's word counts.
    fn take_from_tables(&mut self, key: &Key) -> Option<Bytes> {
        let mut newest = None;
        for table in &mut self.tables {
            if let Some((_, found)) = table.next_if(|(other, _)| other == key) {
                newest.get_or_insert(found);
            }
        }
        newest.flatten()
    }
}

impl Iterator for Merge<'_> {
    type Item = Result<Row, KvError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let table_key = self.next_table_key();
            let below_key = match self.below.peek() {
                Some(Err(_)) => return self.below.next(),
                Some(Ok((key, _))) => Some(key.clone()),
                None => None,
            };
            let key = match (table_key, below_key) {
                (None, _) => return self.below.next(),
                (Some(table), Some(below)) => match self.compare(&table, &below) {
                    Ordering::Greater => return self.below.next(),
                    Ordering::Equal => {
                        self.below.next();
                        table
                    }
                    Ordering::Less => table,
                },
                (Some(table), None) => table,
            };
            if let Some(value) = self.take_from_tables(&key) {
                return Some(Ok((key, value)));
            }
        }
    }
}
