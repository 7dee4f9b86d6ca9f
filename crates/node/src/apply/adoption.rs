//! Sets damaged parts apart, between two entries, so that every replay gives the same answers; 0010 of `docs/adr`.
//!
//! Touches: the quarantine list; rows that have a second copy, if they are damaged. Keeps: what an entry finds damaged depends
//! on the list alone. Everything before the entry is in tables before the list says that it begins there, so no replay
//! applies an earlier entry without the part; and the kernel is loaded again, so that nothing in memory knows more than
//! a replay would.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use contract::Error;
use kernel::{Buckets, Hosted, Kernel, Keys};
use kv::{KeyRange, KvError, Overlay, Store};
use storage::{Effect, TreeStore};

use crate::apply::copies::{load_kernel, rows_again};
use crate::apply::quarantine::{Apart, Quarantine};
use crate::error::{from_halt, from_kv};

/// The pause between two attempts to write, if the disk is full.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

/// What the apply loop needs to set parts apart.
pub(crate) struct Adoption {
    pub(crate) tree: Arc<TreeStore>,
    pub(crate) quarantine: Arc<Quarantine>,
    pub(crate) keys: Keys,
    pub(crate) buckets: Buckets,
    pub(crate) hosted: Hosted,
    /// The damage that was looked at.
    seen: AtomicU64,
}

impl Adoption {
    /// Sets apart again what is in the list.
    pub(crate) fn begin(
        tree: Arc<TreeStore>,
        quarantine: Arc<Quarantine>,
        keys: Keys,
        buckets: Buckets,
        hosted: Hosted,
    ) -> Result<Self, Error> {
        let parts = quarantine.list();
        for part in &parts {
            // A part whose table is gone has no meaning any more.
            tree.set_apart(part.table, part.offset, &part.keys);
        }
        let adoption = Self { tree, quarantine, keys, buckets, hosted, seen: AtomicU64::new(0) };
        if !parts.is_empty() {
            // A crash may have come before they were written when the part was found.
            adoption.write_again(parts.into_iter().map(|part| part.keys).collect(), || true)?;
        }
        Ok(adoption)
    }

    /// Writes the rows that damaged ranges had one copy of. It changes no content, only where it is.
    fn write_again(&self, damaged: Vec<KeyRange>, may_wait: impl Fn() -> bool) -> Result<(), Error> {
        let view = self.tree.view().map_err(|error| from_kv(&error))?;
        let rows = rows_again(&*view, &self.keys, self.buckets, &damaged).map_err(|error| from_kv(&error))?;
        if !rows.is_empty() {
            once_there_is_space(may_wait, || self.tree.commit(rows.clone()))?;
        }
        Ok(())
    }

    /// Whether any part is set apart.
    pub(crate) fn has_parts(&self) -> bool {
        !self.quarantine.list().is_empty()
    }

    /// Whether damage was found that was not looked at yet.
    pub(crate) fn has_news(&self) -> bool {
        self.tree.noticed_count() != self.seen.load(Ordering::Acquire)
    }

    /// Sets apart what was found, from the entry after `applied` on. Returns the kernel to go on with, if there was
    /// anything.
    pub(crate) fn adopt(&self, store: &Overlay, applied: u64, in_replay: bool) -> Result<Option<Kernel>, Error> {
        self.seen.store(self.tree.noticed_count(), Ordering::Release);
        let lost: Vec<_> = self.tree.noticed().into_iter().filter(|damage| damage.effect == Effect::Lost).collect();
        if lost.is_empty() {
            return Ok(None);
        }
        // A store that closes does not wait: whatever is not set apart yet is found again.
        let may_wait = || store.retries();
        once_there_is_space(may_wait, || store.persist())?;
        let mut list = self.quarantine.list();
        for damage in &lost {
            tracing::error!(file = damage.file, offset = damage.offset, applied, "a damaged part is set apart");
            list.push(Apart {
                table: damage.table,
                offset: damage.offset,
                keys: damage.keys.clone(),
                from_entry: applied + 1,
                in_replay,
            });
        }
        once_there_is_space(may_wait, || self.quarantine.replace(&list))?;
        for damage in &lost {
            self.tree.set_apart(damage.table, damage.offset, &damage.keys);
        }
        self.seen.store(self.tree.noticed_count(), Ordering::Release);
        // Nothing is in memory above the tree now.
        self.write_again(lost.into_iter().map(|damage| damage.keys).collect(), may_wait)?;
        store.refresh().map_err(|error| from_kv(&error))?;
        let view = self.tree.view().map_err(|error| from_kv(&error))?;
        load_kernel(&*view, &self.keys, self.hosted.clone()).map_err(|halt| from_halt(&halt))
    }
}

/// Does something, again and again while the disk is full and it may wait.
fn once_there_is_space<T>(
    may_wait: impl Fn() -> bool,
    mut attempt: impl FnMut() -> Result<T, KvError>,
) -> Result<T, Error> {
    let mut waits = false;
    loop {
        match attempt() {
            Err(error) if error.may_retry() && may_wait() => {
                if !waits {
                    tracing::warn!(%error, "no entry is applied until a damaged part is set apart; make room on the disk");
                    waits = true;
                }
                std::thread::sleep(AGAIN_AFTER);
            }
            done => return done.map_err(|error| from_kv(&error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn no_space() -> KvError {
        KvError::NoSpace { action: "test", bytes_needed: 1, reason: "full".into() }
    }

    #[test]
    fn it_waits_for_space_and_for_nothing_else() {
        let mut answers = vec![Ok(7), Err(no_space()), Err(no_space())];
        assert_eq!(once_there_is_space(|| true, || answers.pop().expect("no more attempts")).ok(), Some(7));
        let mut attempts = 0;
        let failing = |error: KvError, attempts: &mut u32| {
            *attempts += 1;
            Err::<(), _>(error)
        };
        assert!(once_there_is_space(|| false, || failing(no_space(), &mut attempts)).is_err(), "the store closes");
        let final_error = || KvError::Poisoned { first: "a sync failed".into() };
        assert!(once_there_is_space(|| true, || failing(final_error(), &mut attempts)).is_err());
        assert_eq!(attempts, 2);
    }
}
