//! What the writes of a handle may do besides what anybody may: those of the owner of a group, and forced ones.

use contract::guards::OWNER_RECORD;
use contract::records::types::GONE;
use contract::{Error, RecordRejection};
use kernel::records::row::Row;
use kernel::{Catalogue, Fence, Transact};
use kv::View;
use node::error::from_halt;
use std::sync::Arc;

use crate::admission::{Scope, ScopeIds};

/// What writes may do besides what anybody may.
#[derive(Clone, Default)]
pub(crate) struct Authority {
    /// The group that the handle owns, and the attempt by which it does.
    pub(crate) owner: Option<(Arc<str>, u64)>,
    /// Whether it writes what only the holder of an attempt may write.
    pub(crate) force: bool,
}

impl Authority {
    pub(crate) fn is_none(&self) -> bool {
        self.owner.is_none() && !self.force
    }

    /// The transaction with what this adds to it.
    pub(crate) fn added_to<'own>(&self, mut transact: Transact<'own>) -> Transact<'own> {
        // An operation of an interactive transaction has it already.
        if transact.fences.iter().all(|fence| fence.record != OWNER_RECORD) {
            transact.fences.extend(self.fences(transact.group));
        }
        transact.force |= self.force;
        transact
    }

    /// The fence of the group that the handle owns, for a write in this group. In another group its attempt means nothing.
    pub(crate) fn fences<'own>(&self, group: Option<&str>) -> impl Iterator<Item = Fence<'own>> {
        let owner = self.owner.as_ref().filter(|(owned, _)| Some(&**owned) == group);
        owner.map(|(_, attempt)| Fence { record: OWNER_RECORD, attempt: *attempt }).into_iter()
    }

    /// Refuses at once what the store would refuse: the group has another owner, or none. It stays so: attempts only rise. A
    /// numbered request may have been executed before that, so the store answers it.
    pub(crate) fn check(&self, scope: &Scope) -> Result<(), Error> {
        #[cfg(feature = "canary")]
        if crate::canary::early_checks_are_skipped() {
            return Ok(());
        }
        let numbered = scope.session.as_ref().is_some_and(|session| session.request().is_some());
        if numbered { Ok(()) } else { self.check_owner(scope) }
    }

    /// Refuses if the group has another owner, or none.
    pub(crate) fn check_owner(&self, scope: &Scope) -> Result<(), Error> {
        let (view, catalogue, ids) = scope.view()?;
        self.check_owner_in(&*view, &catalogue, &ids)
    }

    /// Refuses if the group has another owner in a view, or none.
    pub(crate) fn check_owner_in(&self, view: &dyn View, catalogue: &Catalogue, ids: &ScopeIds) -> Result<(), Error> {
        #[cfg(feature = "canary")]
        if crate::canary::owner_checks_are_skipped() {
            return Ok(());
        }
        let Some((group, given)) = &self.owner else {
            return Ok(());
        };
        let owner = catalogue.thing(ids.space, ids.branch, Some(group), OWNER_RECORD)?;
        let bytes = view.get(&ids.keys.record(&owner)).map_err(|error| node::error::from_kv(&error))?;
        let read = |bytes: &[u8]| Row::decode(bytes).map(|row| (row.numbers, row.worker.map(str::to_owned)));
        let found = bytes.map(|bytes| read(&bytes)).transpose().map_err(|halt| from_halt(&halt))?;
        let (attempt, state, holder) = match found {
            Some((numbers, _)) if numbers.attempt == *given && numbers.is_held() && !numbers.deleted => return Ok(()),
            Some((numbers, holder)) => {
                let declared = catalogue.record_type(ids.space, numbers.record_type);
                let state = declared.map_or(GONE, |declared| declared.state_name(numbers.state));
                (numbers.attempt, state.to_owned(), holder.filter(|_| numbers.is_held()))
            }
            None => (0, GONE.to_owned(), None),
        };
        let record = OWNER_RECORD.to_owned();
        Err(RecordRejection::Fenced { record, given: *given, attempt, state, holder }.into())
    }
}
