//! The rows of what is due: the only writer of those indexes.
//!
//! Touches: the `DueWall` and `DueCluster` rows. Keeps: R5 for them.

use kv::{Key, copied};

use super::window::Entry;
use crate::context::Applying;
use crate::keys::due::{DueClock, DueOf};
use crate::keys::{Keys, ThingId};

impl Applying<'_> {
    pub(crate) fn put_due(&mut self, clock: DueClock, at_us: u64, of: DueOf, thing: &ThingId<'_>) {
        self.change_due(clock, thing.bucket, Keys::due_suffix(at_us, of, thing), b"", true);
    }

    pub(crate) fn delete_due(&mut self, clock: DueClock, at_us: u64, of: DueOf, thing: &ThingId<'_>) {
        self.change_due(clock, thing.bucket, Keys::due_suffix(at_us, of, thing), b"", false);
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
