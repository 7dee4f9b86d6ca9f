//! Reading what seals and sweeps remove, a chunk at a time, within the budget of the journal entry. The next step does the rest.
//!
//! Touches: nothing. Never: holds more than a chunk in memory.

use kv::{Bytes, Key, KeyRange, Order};
use session::Halt;

use super::head::MapHead;
use crate::context::Applying;
use crate::keys::Kind;

/// Rows in memory at a time.
const CHUNK_ROWS: usize = 64;

/// The rows of a range, which are removed as they are read.
pub(super) struct Chunks {
    kind: Kind,
    content: u32,
    range: KeyRange,
    /// The length of what all keys have in common.
    prefix: usize,
    has_read: bool,
    has_ended: bool,
}

impl Chunks {
    /// The rows of a kind of a content, from where a seal or a sweep before stopped. The range starts with what all keys have in
    /// common.
    pub(super) fn of(head: &MapHead, kind: Kind, content: u32, mut range: KeyRange) -> Self {
        let prefix = range.start.len();
        range.start.extend_from_slice(head.cursor(kind, content));
        Self { kind, content, range, prefix, has_read: false, has_ended: false }
    }

    /// What follows the beginning that all keys have in common.
    pub(super) fn suffix<'key>(&self, key: &'key [u8]) -> &'key [u8] {
        &key[self.prefix..]
    }

    /// The next rows; none at the end, and when nothing is left. `left` counts rows, and is 0 once the entry has read enough.
    pub(super) fn next(
        &mut self,
        applying: &mut Applying<'_>,
        left: &mut usize,
    ) -> Result<Option<Vec<(Key, Bytes)>>, Halt> {
        let bytes_left = &mut applying.budget.row_bytes;
        let mut rows = Vec::new();
        if *left > 0 && *bytes_left > 0 {
            for row in applying.state.scan(&self.range, Order::Ascending) {
                let (key, row) = row?;
                *bytes_left = bytes_left.saturating_sub(key.len() - self.prefix + row.len());
                rows.push((key, row));
                if rows.len() == CHUNK_ROWS.min(*left) || *bytes_left == 0 {
                    break;
                }
            }
        }
        *left = if *bytes_left == 0 { 0 } else { *left - rows.len() };
        let Some((last, _)) = rows.last() else {
            self.has_ended = *left > 0;
            return Ok(None);
        };
        // Removed rows are passed over only once.
        self.range.start = [last.as_slice(), &[0]].concat();
        self.has_read = true;
        Ok(Some(rows))
    }

    /// Notes how far the rows are gone.
    pub(super) fn leave(self, head: &mut MapHead) {
        let Self { kind, content, range, prefix, has_read, has_ended } = self;
        if !has_read {
            return;
        }
        // Behind the whole range is shorter, and as good.
        let behind = range.end.filter(|end| has_ended && end[..prefix.min(end.len())] == range.start[..prefix]);
        head.set_cursor(kind, content, behind.unwrap_or(range.start)[prefix..].to_vec());
    }
}
