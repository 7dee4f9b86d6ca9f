//! The parts of a table that cannot be read: noticed ones, and those that were set apart.
//!
//! A part is the keys of a data block, of a partition or of the whole table. Once it is set apart, its keys count as
//! damaged in this table even if the bytes can be read after all, so that a replay gets the same answers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use kv::KeyRange;

use crate::failure::{Damage, Effect};

#[derive(Default)]
pub(crate) struct Parts {
    /// Whether there are any, so that the usual case takes no lock.
    any: AtomicBool,
    list: Mutex<Vec<Damage>>,
}

impl Parts {
    fn lock(&self) -> Option<MutexGuard<'_, Vec<Damage>>> {
        let any = self.any.load(Ordering::Acquire);
        any.then(|| self.list.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds a part, or sets apart one that was only noticed.
    pub(crate) fn add(&self, damage: Damage) {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        match list.iter_mut().find(|known| known.keys == damage.keys) {
            None => list.push(damage),
            Some(known) if damage.effect == Effect::SetApart => *known = damage,
            Some(_) => {}
        }
        self.any.store(true, Ordering::Release);
    }

    /// The set-apart part that a key lies in.
    pub(crate) fn set_apart_at(&self, key: &[u8]) -> Option<Damage> {
        let list = self.lock()?;
        list.iter().find(|part| part.effect == Effect::SetApart && part.keys.contains(key)).cloned()
    }

    /// The set-apart part that all of a range lies in. The range is asked for only if anything is set apart.
    pub(crate) fn set_apart_covering(&self, range: impl FnOnce() -> KeyRange) -> Option<Damage> {
        let list = self.lock()?;
        let range = range();
        list.iter().find(|part| part.effect == Effect::SetApart && part.keys.covers(&range)).cloned()
    }

    pub(crate) fn is_set_apart_within(&self, range: &KeyRange) -> bool {
        self.lock()
            .is_some_and(|list| list.iter().any(|part| part.effect == Effect::SetApart && part.keys.overlaps(range)))
    }

    /// Whether a part, set apart or not, overlaps a range.
    pub(crate) fn overlap(&self, range: &KeyRange) -> bool {
        self.lock().is_some_and(|list| list.iter().any(|part| part.keys.overlaps(range)))
    }

    pub(crate) fn all(&self) -> Vec<Damage> {
        self.lock().map(|list| list.clone()).unwrap_or_default()
    }
}
