//! Several tables read as one: of equal keys, the row of the newest table.
//!
//! The tables stand in a heap by their next key, so a row costs few comparisons however many tables there are.

use std::cmp::Ordering;

use kv::Order;

use crate::failure::Failure;
use crate::table_cursor::TableCursor;

pub(crate) struct MergeCursor {
    /// Newest first.
    tables: Vec<TableCursor>,
    /// Places in `tables` of all that are at a row; the smallest next key comes first, of equal ones the newest.
    heap: Vec<usize>,
    order: Order,
    /// The key of the row before.
    last: Vec<u8>,
}

impl MergeCursor {
    /// Reads tables, newest first, that are already positioned.
    pub(crate) fn new(tables: Vec<TableCursor>, order: Order) -> Self {
        let heap = (0..tables.len()).filter(|place| tables[*place].is_at_row()).collect();
        let mut merge = Self { tables, heap, order, last: Vec::new() };
        for place in (0..merge.heap.len() / 2).rev() {
            merge.sift_down(place);
        }
        merge
    }

    /// The tables, where the merge has left them.
    pub(crate) fn into_tables(self) -> Vec<TableCursor> {
        self.tables
    }

    fn newest(&self) -> Option<&TableCursor> {
        Some(&self.tables[*self.heap.first()?])
    }

    /// The key of the row, if there is another one.
    pub(crate) fn key(&self) -> Option<&[u8]> {
        self.newest().map(TableCursor::key)
    }

    /// The value of the row, or none for a tombstone.
    pub(crate) fn value(&self) -> Option<&[u8]> {
        self.newest().and_then(TableCursor::value)
    }

    /// Goes to the next key. After a failure the cursor is of no use.
    pub(crate) fn advance(&mut self) -> Result<(), Failure> {
        let Some(first) = self.heap.first() else { return Ok(()) };
        self.last.clear();
        self.last.extend_from_slice(self.tables[*first].key());
        while let Some(first) = self.heap.first() {
            let table = &mut self.tables[*first];
            if table.key() != self.last.as_slice() {
                break;
            }
            match self.order {
                Order::Ascending => table.next()?,
                Order::Descending => table.previous()?,
            }
            if !table.is_at_row() {
                self.heap.swap_remove(0);
            }
            self.sift_down(0);
        }
        Ok(())
    }

    fn sift_down(&mut self, mut place: usize) {
        loop {
            let (left, right) = (2 * place + 1, 2 * place + 2);
            if left >= self.heap.len() {
                return;
            }
            let child = if right < self.heap.len() && self.is_before(right, left) { right } else { left };
            if !self.is_before(child, place) {
                return;
            }
            self.heap.swap(child, place);
            place = child;
        }
    }

    fn is_before(&self, left: usize, right: usize) -> bool {
        let (left, right) = (self.heap[left], self.heap[right]);
        let keys = self.tables[left].key().cmp(self.tables[right].key());
        let keys = if self.order == Order::Ascending { keys } else { keys.reverse() };
        keys.then(left.cmp(&right)) == Ordering::Less
    }
}
