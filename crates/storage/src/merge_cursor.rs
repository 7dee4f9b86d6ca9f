//! Several tables read as one: of equal keys, the row of the newest table.
//!
//! A damaged part of a table has its place among the keys. Behind it come the rows of newer tables within the part: they
//! count whatever it holds. Rows of older tables do not.
//!
//! The tables stand in a heap by their next key, so a row costs few comparisons however many tables there are.

use std::cmp::Ordering;

use kv::Order;

use crate::failure::Failure;
use crate::table_cursor::{Barrier, TableCursor};

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
        let heap = (0..tables.len()).filter(|place| !tables[*place].is_at_end()).collect();
        let mut merge = Self { tables, heap, order, last: Vec::new() };
        merge.build_heap();
        merge
    }

    fn build_heap(&mut self) {
        for place in (0..self.heap.len() / 2).rev() {
            self.sift_down(place);
        }
    }

    /// The tables, where the merge has left them.
    pub(crate) fn into_tables(self) -> Vec<TableCursor> {
        self.tables
    }

    fn newest(&self) -> Option<&TableCursor> {
        Some(&self.tables[*self.heap.first()?])
    }

    /// The key of the row, if there is another one and no damaged part before it.
    pub(crate) fn key(&self) -> Option<&[u8]> {
        self.newest().filter(|table| table.barrier().is_none()).map(TableCursor::key)
    }

    /// The damaged part that comes before any further row.
    pub(crate) fn barrier(&self) -> Option<&Barrier> {
        self.newest().and_then(TableCursor::barrier)
    }

    /// Goes behind that damaged part.
    pub(crate) fn pass_barrier(&mut self) -> Result<(), Failure> {
        let Some(first) = self.heap.first().copied() else { return Ok(()) };
        let Some(Barrier { damage, .. }) = self.tables[first].barrier() else { return Ok(()) };
        let damage = damage.clone();
        self.tables[first].pass_barrier(self.order)?;
        for older in &mut self.tables[first + 1..] {
            if !older.is_at_end() {
                older.skip(&damage, self.order)?;
            }
        }
        self.heap = (0..self.tables.len()).filter(|place| !self.tables[*place].is_at_end()).collect();
        self.build_heap();
        Ok(())
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
            if table.barrier().is_some() || table.key() != self.last.as_slice() {
                break;
            }
            match self.order {
                Order::Ascending => table.next()?,
                Order::Descending => table.previous()?,
            }
            if table.is_at_end() {
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
        let (left_table, right_table) = (&self.tables[left], &self.tables[right]);
        let keys = left_table.key().cmp(right_table.key());
        let keys = match self.order {
            // A part begins with its first key, and going down it begins below the key after its last.
            Order::Ascending => keys.then(right_table.barrier().is_some().cmp(&left_table.barrier().is_some())),
            Order::Descending => {
                keys.reverse().then(left_table.barrier().is_some().cmp(&right_table.barrier().is_some()))
            }
        };
        keys.then(left.cmp(&right)) == Ordering::Less
    }
}
