//! How far the journal can be cut: up to what the store has made durable.

use kv::{Overlay, Store};

/// What one of those who cut the journal knows. Cutting twice at the same place does nothing.
pub(crate) struct JournalCut {
    /// The applied index when the store was opened: its batches count from there.
    applied_at_open: u64,
    /// Up to where it was cut.
    upto: u64,
}

impl JournalCut {
    pub(crate) fn new(applied_at_open: u64) -> Self {
        Self { applied_at_open, upto: applied_at_open }
    }

    /// The first entry to keep, if there is something to cut since the last time.
    pub(crate) fn next(&mut self, store: &Overlay) -> Option<u64> {
        let durable = self.applied_at_open + store.durable();
        (durable > self.upto).then(|| {
            self.upto = durable;
            durable + 1
        })
    }
}
