//! A transaction in preparation: its operations are applied above a view, as they will be in its commit, so that it reads
//! what it has written. Nothing is stored.
//!
//! Keeps: what an operation does here is what it does in the commit, as long as nothing that the transaction touches has
//! changed, for which there are guards, and neither has the catalogue. Times and the ids that follow from them are others.

use std::sync::Arc;

use contract::Rejection;
use kv::{Staging, View};
use session::{Call, Halt, Pushes, Stamp};

use crate::LEVEL_OF_EPOCHS;
use crate::answer::OpOutcome;
use crate::applied::Applied;
use crate::catalogue::Catalogue;
use crate::command::{MACHINE, Transact};
use crate::context::Applying;
use crate::entry_budget::EntryBudget;
use crate::folded::Folded;
use crate::keys::Keys;
use crate::schedule::windows::Windows;
use crate::sessions::brought::Hosted;
use crate::transact::try_transact;

/// The commit number of what is not committed.
const NOT_COMMITTED: u64 = 0;

/// A view with the operations of a transaction above it.
pub struct Draft {
    state: Staging,
    catalogue: Arc<Catalogue>,
    keys: Keys,
    folded: Folded,
    windows: Windows,
    session: Option<u64>,
    stamp: Stamp,
    history: u64,
}

impl Draft {
    /// No operations above `view`, in a session or in none. `stamp` is when they are done, for now, and `history` is that of the
    /// next entry.
    pub fn new(
        view: Arc<dyn View>,
        catalogue: Arc<Catalogue>,
        keys: Keys,
        session: Option<u64>,
        stamp: Stamp,
        history: u64,
    ) -> Self {
        let (folded, windows) = (Folded::default(), Windows::default());
        Self { state: Staging::new(view), catalogue, keys, folded, windows, session, stamp, history }
    }

    /// Checks the fence of a transaction, before its operations.
    pub fn check_fence(&mut self, transact: &Transact<'_>) -> Result<Result<(), Rejection>, Halt> {
        let fence_only = Transact { fences: transact.fences.clone(), guards: Vec::new(), ops: Vec::new(), ..*transact };
        Ok(self.apply_with(&fence_only, false)?.map(drop))
    }

    /// Applies what a transaction does, or nothing of it. Its fence is not checked again: its operations may have ended the
    /// attempt.
    pub fn apply(&mut self, transact: &Transact<'_>) -> Result<Result<Vec<OpOutcome>, Rejection>, Halt> {
        self.apply_with(transact, true)
    }

    fn apply_with(
        &mut self,
        transact: &Transact<'_>,
        fence_holds: bool,
    ) -> Result<Result<Vec<OpOutcome>, Rejection>, Halt> {
        let attempts_above = self.attempts_above()?;
        let Self { state, catalogue, keys, folded, windows, session, stamp, .. } = self;
        let call = Call {
            machine: MACHINE,
            sender: None,
            session: *session,
            catalogue_revision: catalogue.revision,
            body: b"",
            stamp: *stamp,
            commit: NOT_COMMITTED,
        };
        let (mut pushes, hosted) = (Pushes::default(), Hosted::new());
        let mut budget = EntryBudget::WHOLE;
        let mut applying = Applying {
            state,
            folded,
            catalogue,
            keys: *keys,
            windows,
            call: &call,
            fence_holds,
            fenced_row: None,
            pushes: &mut pushes,
            pushes_at_savepoint: 0,
            hosted: &hosted,
            owned: Vec::new(),
            expects_damage: false,
            delivers: false,
            from_its_own_group: false,
            budget: &mut budget,
            attempts_above,
        };
        applying.savepoint();
        let done = try_transact(&mut applying, transact, 0);
        if !matches!(done, Ok(Ok(_))) {
            applying.undo();
        }
        Ok(done?.map(|done| done.outcomes))
    }

    /// As in the entry that the commit will be in.
    fn attempts_above(&self) -> Result<u64, Halt> {
        let applied = self.state.get(&self.keys.applied())?.map(|row| Applied::decode(&row)).transpose()?;
        let has_epochs = self.catalogue.level >= LEVEL_OF_EPOCHS;
        Ok(applied.map_or(0, |applied| applied.in_history(self.history, has_epochs).attempts_above()))
    }

    /// The view with everything that was applied. What was written here has commit number 0.
    pub fn view(&self) -> &dyn View {
        &self.state
    }

    /// When operations are done, for now.
    pub fn stamp(&self) -> Stamp {
        self.stamp
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use kv::{Batch, MemoryStore, Store};

    use super::*;
    use crate::{BucketRange, Buckets, Kernel};

    #[test]
    fn before_the_first_entry_of_another_history_attempts_are_above_those_of_the_one_before() {
        let (store, keys) = (MemoryStore::new(), Keys::new(1, BucketRange::ALL));
        store.commit(Kernel::genesis(store.view().unwrap(), keys, Buckets::default())).unwrap();
        let catalogue = Arc::new(Catalogue::load(&*store.view().unwrap(), &keys).unwrap());
        for (commit, history, above) in [(0, 8, 0), (1, 7, 0), (1, 8, 1 << 40)] {
            let applied = Applied { commit, history: 7, ..Applied::default() };
            store.commit(Batch::new().put(keys.applied(), applied.encode())).unwrap();
            let (view, stamp) = (store.view().unwrap(), Stamp::default());
            let draft = Draft::new(view, catalogue.clone(), keys, None, stamp, history);
            assert_eq!(draft.attempts_above().unwrap(), above, "commit {commit}, then history {history}");
        }
    }
}
