//! The rows of what is due, and the first row of a queue: the only writers of those indexes.
//!
//! Touches: the `DueWall` and `DueCluster` rows. Keeps: R5 for them.

use kv::{Key, copied};
use session::Halt;

use super::window::Entry;
use crate::context::Applying;
use crate::keys::queues::QueueId;
use crate::keys::records::{DueClock, DueOf};
use crate::keys::{Keys, ThingId};
use crate::records::lanes::first_entry;

impl Applying<'_> {
    /// The first row of a queue. With damage, by the lanes alone: a window meets it earlier or later, depending on what it
    /// has read before, and a replay must meet it where it was met first.
    pub(crate) fn first_ready(&mut self, queue: QueueId<'_>) -> Result<Option<Entry>, Halt> {
        match self.expects_damage {
            true => first_entry(self.state, &self.keys, queue),
            false => self.windows.first_ready(self.state, &self.keys, queue),
        }
    }

    pub(crate) fn put_due(&mut self, clock: DueClock, at_us: u64, of: DueOf, record: &ThingId<'_>) {
        self.change_due(clock, record.bucket, Keys::due_suffix(at_us, of, record), b"", true);
    }

    pub(crate) fn delete_due(&mut self, clock: DueClock, at_us: u64, of: DueOf, record: &ThingId<'_>) {
        self.change_due(clock, record.bucket, Keys::due_suffix(at_us, of, record), b"", false);
    }

    pub(crate) fn change_due(&mut self, clock: DueClock, bucket: u16, suffix: Key, value: &[u8], added: bool) {
        let mut key = self.keys.due_prefix(clock, bucket);
        key.extend_from_slice(&suffix);
        self.change_row(key, value, added);
        self.windows.note_due(clock, Entry { suffix, bucket }, added);
    }

    pub(crate) fn change_row(&mut self, key: Key, value: &[u8], added: bool) {
        if added {
            self.state.put(key, copied(value));
        } else {
            self.state.delete(key);
        }
    }
}
