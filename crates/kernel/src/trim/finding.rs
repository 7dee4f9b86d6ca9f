//! Looking for steps in a view, row by row, a bounded number at a time.

use kv::{Bytes, KeyRange, Order, View};
use session::Halt;

use crate::catalogue::Catalogue;
use crate::command::trim_step::{TRIM_STEPS_MAX, TrimStep};
use crate::keys::Keys;

/// Where steps are looked for.
#[derive(Clone, Copy)]
pub(crate) struct Situation<'view> {
    pub(crate) view: &'view dyn View,
    pub(crate) catalogue: &'view Catalogue,
    pub(crate) keys: &'view Keys,
    pub(crate) now_us: u64,
    /// Whether what is deleted is forgotten before its time, because space is short.
    pub(crate) forgets: bool,
}

/// What was found so far.
pub(crate) struct Finding<'view> {
    pub(crate) situation: Situation<'view>,
    /// Rows up to this key were looked at before.
    cursor: Option<&'view [u8]>,
    looked_at: usize,
    looked_at_max: usize,
    pub(super) steps: Vec<TrimStep>,
    /// The last key that was looked at, once enough was.
    pub(super) stopped_at: Option<Vec<u8>>,
}

impl<'view> Finding<'view> {
    pub(super) fn new(situation: Situation<'view>, cursor: Option<&'view [u8]>, looked_at_max: usize) -> Self {
        Self { situation, cursor, looked_at: 0, looked_at_max, steps: Vec::new(), stopped_at: None }
    }

    /// Looks at the rows of a range, unless enough was looked at or found. Ranges come in the order of their keys.
    pub(crate) fn among(
        &mut self,
        mut range: KeyRange,
        steps_for: impl Fn(&[u8], Bytes) -> Result<Vec<TrimStep>, Halt>,
    ) -> Result<(), Halt> {
        if self.stopped_at.is_some() {
            return Ok(());
        }
        if let Some(cursor) = self.cursor {
            range = range.after(cursor);
        }
        for row in self.situation.view.scan(&range, Order::Ascending) {
            let (key, row) = row?;
            self.looked_at += 1;
            self.steps.extend(steps_for(&key, row)?);
            if self.looked_at >= self.looked_at_max || self.steps.len() >= TRIM_STEPS_MAX {
                self.steps.truncate(TRIM_STEPS_MAX);
                self.stopped_at = Some(key.to_vec());
                return Ok(());
            }
        }
        Ok(())
    }
}
