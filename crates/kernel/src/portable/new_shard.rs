//! A shard that is being built, and what every contract needs to put its things there.

use std::collections::BTreeSet;

use contract::Rejection;
use kv::{KvError, Staging, Store};
use session::{Call, Halt, Pushes, SessionNumber};

use crate::applied::Applied;
use crate::catalogue::Catalogue;
use crate::command::MACHINE;
use crate::context::Applying;
use crate::held::HeldRows;
use crate::keys::sessions::HostedId;
use crate::keys::things::OwnedId;
use crate::keys::{Keys, ThingId};
use crate::machine::Contracts;
use crate::sessions::brought::{Hosted, hosted_id};

/// Why a shard could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] KvError),
    /// Something contradicts what was put before.
    #[error("{0}")]
    Refused(String),
    /// The rows could not be built.
    #[error(transparent)]
    Halt(#[from] Halt),
}

impl From<Rejection> for BuildError {
    fn from(rejection: Rejection) -> Self {
        BuildError::Refused(rejection.to_string())
    }
}

/// A shard that is being built.
pub(crate) struct NewShard<'store> {
    pub(super) store: &'store dyn Store,
    pub(crate) keys: Keys,
    pub(super) applied: Applied,
    pub(crate) contracts: Contracts,
    pub(crate) state: Staging,
    pub(crate) staged_bytes: usize,
    /// Sessions of the original shard. None of them is known here: they have all ended.
    sessions: BTreeSet<(u64, u16)>,
}

impl<'store> NewShard<'store> {
    /// A shard without things.
    pub(super) fn new(
        store: &'store dyn Store,
        keys: Keys,
        catalogue: Catalogue,
        applied: Applied,
    ) -> Result<Self, BuildError> {
        let state = Staging::new(store.view()?);
        let contracts = Contracts::new(catalogue, keys, Hosted::new());
        Ok(Self { store, keys, applied, contracts, state, staged_bytes: 0, sessions: BTreeSet::new() })
    }

    pub(super) fn flush(&mut self) -> Result<(), BuildError> {
        self.contracts.finish_entry(&mut self.state, self.applied.stamp, self.applied.commit)?;
        self.contracts.windows.forget();
        let staged = std::mem::replace(&mut self.state, Staging::new(self.store.view()?));
        self.store.commit(staged.into_batch())?;
        self.state = Staging::new(self.store.view()?);
        self.staged_bytes = 0;
        Ok(())
    }

    /// The place of a thing.
    pub(crate) fn place<'name>(&self, id: &'name OwnedId) -> Result<ThingId<'name>, BuildError> {
        if id.name.is_empty() {
            return Err(BuildError::Refused("something has an empty name".into()));
        }
        Ok(self.contracts.catalogue.thing(id.space, id.branch, id.group.as_deref(), &id.name)?)
    }

    pub(crate) fn hosted<'name>(
        &self,
        space: u32,
        machine: u16,
        group: &'name str,
    ) -> Result<HostedId<'name>, BuildError> {
        if self.contracts.catalogue.machine(machine).is_none() {
            return Err(BuildError::Refused(format!("machine {machine} is not registered")));
        }
        Ok(hosted_id(&self.contracts.catalogue, space, machine, group)?)
    }

    /// Does something as if a command did it, one that appears in no change feed.
    pub(crate) fn applying<T>(
        &mut self,
        work: impl FnOnce(&mut Applying<'_>) -> Result<T, Halt>,
    ) -> Result<T, BuildError> {
        let Applied { stamp, commit, .. } = self.applied;
        let call =
            Call { machine: MACHINE, session: None, sender: None, catalogue_revision: 0, body: b"", stamp, commit };
        let mut pushes = Pushes::default();
        Ok(work(&mut self.contracts.applying(&mut self.state, &call, &mut pushes))?)
    }

    /// Notes that a session of the original shard owned something in a bucket. Its number stays as it was, so it must not be
    /// one that this shard will give to another session.
    pub(crate) fn was_owned_by(&mut self, session: u64, bucket: u16) -> Result<(), BuildError> {
        let number = SessionNumber::from(session);
        if number.home() == self.keys.buckets().first() && number.commit() > self.applied.commit {
            let message = format!("session {session} is above the last commit, {}", self.applied.commit);
            return Err(BuildError::Refused(message));
        }
        self.sessions.insert((session, bucket));
        Ok(())
    }

    /// The sessions that owned something, and in which bucket.
    pub(super) fn take_sessions(&mut self) -> BTreeSet<(u64, u16)> {
        std::mem::take(&mut self.sessions)
    }

    /// The rows of things, to be written.
    pub(crate) fn held(&mut self) -> HeldRows<'_> {
        HeldRows { state: &mut self.state, folded: &mut self.contracts.folded }
    }

    pub(crate) fn absent(&self, key: &[u8], what: &str, name: &str) -> Result<(), BuildError> {
        match self.state.get(key)? {
            None => Ok(()),
            Some(_) => Err(BuildError::Refused(format!("{what} {name:?} is repeated"))),
        }
    }

    pub(crate) fn check_bucket(&self, bucket: u16) -> Result<(), BuildError> {
        let buckets = self.contracts.catalogue.buckets.count();
        match bucket < buckets {
            true => Ok(()),
            false => Err(BuildError::Refused(format!("there is a bucket {bucket}, but only {buckets} exist"))),
        }
    }

    /// The last command that changed something before it was forgotten. If that is not known, it may have been the last
    /// one of all.
    pub(crate) fn changed_by(&self, commit: u64) -> u64 {
        if commit == 0 { self.applied.commit } else { commit }
    }
}
