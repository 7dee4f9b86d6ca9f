//! Merges scans of writes in memory with the scan of what lies below them.
//!
//! Keeps: for each key the newest source wins; a deletion above hides the value below. An error of the store below comes
//! in its place among the keys.

use std::cmp::Ordering;
use std::iter::Peekable;

use crate::key::Key;
use crate::store::{KvError, Order, Row, Rows};
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

    /// The newest table among those positioned at the smallest next key.
    fn next_table(&mut self) -> Option<usize> {
        let order = self.order;
        let keys = self.tables.iter_mut().enumerate().filter_map(|(place, table)| Some((place, &table.peek()?.0)));
        // Of equal keys, the first table's is taken.
        let first = keys.reduce(|best, next| if compare(order, next.1, best.1).is_lt() { next } else { best });
        first.map(|(place, _)| place)
    }
}

/// Which of two keys a scan meets first.
fn compare(order: Order, left: &Key, right: &Key) -> Ordering {
    match order {
        Order::Ascending => left.cmp(right),
        Order::Descending => right.cmp(left),
    }
}

impl Iterator for Merge<'_> {
    type Item = Result<Row, KvError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Some(place) = self.next_table() else {
                return self.below.next();
            };
            // Where keys are compared, none is copied: many do not fit into a key's own bytes.
            let against_below = match (self.tables[place].peek(), self.below.peek()) {
                (Some((key, _)), Some(Ok((below, _)))) => compare(self.order, key, below),
                // A damaged range has its place among the keys: whether the rows before it are in memory or below makes
                // no difference.
                (Some((key, _)), Some(Err(KvError::Damaged(damaged)))) if damaged.is_after(key, self.order) => {
                    Ordering::Less
                }
                (_, Some(Err(_))) => Ordering::Greater,
                (_, None) => Ordering::Less,
                (None, _) => unreachable!("the table stands at a key"),
            };
            if against_below == Ordering::Greater {
                return self.below.next();
            }
            if against_below == Ordering::Equal {
                self.below.next();
            }
            let (key, found) = self.tables[place].next()?;
            for older in &mut self.tables[place + 1..] {
                older.next_if(|(other, _)| *other == key);
            }
            if let Some(value) = found {
                return Some(Ok((key, value)));
            }
        }
    }
}
