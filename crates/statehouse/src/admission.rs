//! Where commands and reads begin: a branch of a space by name, resolved with the currently published catalogue.

use std::sync::Arc;

use contract::{AttemptPlace, Error, Rejection};
use kernel::command::MACHINE;
use kernel::{Answer, Body, BranchId, Catalogue, DeadLetterCommand, Keys, SpaceId};
use kv::View;
use session::Envelope;

use node::pending::{Decode, Pending};
use node::sessions::requests::{InSession, Request};
use node::shard::Shard;

use crate::Authority;
use crate::sender::Sender;

/// The number of a branch that does not exist, and of none that ever will.
pub(crate) const NO_BRANCH: BranchId = 0;

/// Which branch of which space, by name.
#[derive(Clone)]
pub(crate) struct Scope {
    pub(crate) shard: Arc<Shard>,
    pub(crate) space: Arc<str>,
    pub(crate) branch: Arc<str>,
    /// The branch's number, if the handle means this branch and no later one of the same name.
    pub(crate) pinned: Option<BranchId>,
    /// The session that commands are sent in, if in one.
    pub(crate) session: Option<InSession>,
    /// What its writes may do besides what anybody may.
    pub(crate) authority: Authority,
    /// Who sends its commands, if it is known.
    pub(crate) sender: Option<Sender>,
}

/// The same, by number, as the published catalogue has it.
#[derive(Clone, Copy)]
pub(crate) struct ScopeIds {
    pub(crate) space: SpaceId,
    pub(crate) branch: BranchId,
    /// The keys of the shard.
    pub(crate) keys: Keys,
}

/// The inputs of a read: a view, the catalogue published with it, and the scope's numbers in it.
type ScopeView = (Arc<dyn View>, Arc<Catalogue>, ScopeIds);

impl Scope {
    /// The currently published catalogue, and the scope's numbers in it.
    pub(crate) fn current(&self) -> Result<(Arc<Catalogue>, ScopeIds), Error> {
        let catalogue = self.shard.shared.catalogue();
        let ids = self.resolve(&catalogue)?;
        Ok((catalogue, ids))
    }

    /// A view of everything acknowledged so far, with the catalogue and the scope's numbers in it.
    pub(crate) fn view(&self) -> Result<ScopeView, Error> {
        let (view, catalogue) = self.shard.view()?;
        let ids = self.resolve(&catalogue)?;
        Ok((view, catalogue, ids))
    }

    /// Proposes a command, in the session if there is one.
    pub(crate) fn propose<T>(
        &self,
        catalogue: &Catalogue,
        body: &Body<'_>,
        decode: fn(Answer) -> Result<T, Error>,
    ) -> Pending<T> {
        self.propose_read_by(catalogue, body, Decode::Contracts(decode))
    }

    /// [`propose`](Self::propose), with a custom decoder for the answer.
    pub(crate) fn propose_read_by<T>(&self, catalogue: &Catalogue, body: &Body<'_>, decode: Decode<T>) -> Pending<T> {
        let with_authority = match body {
            Body::Transact(transact) if !self.authority.is_none() => {
                if let Err(error) = self.authority.check(self) {
                    return Pending::refused(error);
                }
                Some(Body::Transact(self.authority.added_to(transact.clone())))
            }
            Body::DeadLetter(letter) if !self.authority.is_none() => {
                if let Err(error) = self.authority.check(self) {
                    return Pending::refused(error);
                }
                let (fences, force) = (self.authority.fences(Some(letter.group)).collect(), self.authority.force);
                Some(Body::DeadLetter(DeadLetterCommand { fences, force, ..letter.clone() }))
            }
            _ => None,
        };
        let body = with_authority.as_ref().unwrap_or(body);
        let (envelope, request) = self.begin(MACHINE, catalogue.revision);
        self.shard.access.propose_in(envelope, catalogue, body, decode).of_request(request)
    }

    /// Decodes an answer with the catalogue published at that time.
    pub(crate) fn with_catalogue<T>(
        &self,
        decode: impl Fn(Answer, &Catalogue) -> Result<T, Error> + Send + Sync + 'static,
    ) -> Decode<T> {
        Decode::WithCatalogue(self.shard.shared.clone(), Box::new(decode))
    }

    /// Where the number of an attempt in a branch of this store means that attempt.
    pub(crate) fn attempt_place(&self, branch: BranchId) -> AttemptPlace {
        AttemptPlace { history: self.shard.history(), branch }
    }

    /// Stays in the branch of an attempt. Whatever concerns attempts in two branches is in none.
    pub(crate) fn pin_to(&mut self, place: Option<AttemptPlace>) {
        // In another history its branch had another number. An import can leave claims to those who had them.
        if let Some(place) = place.filter(|place| place.history == self.shard.history()) {
            let is_here = self.pinned.is_none_or(|pinned| pinned == place.branch);
            self.pinned = Some(if is_here { place.branch } else { NO_BRANCH });
        }
    }

    /// The envelope of a command to a machine, without the body; and the request that it is, if it is sent in a session.
    pub(crate) fn begin(&self, machine: u32, catalogue_revision: u64) -> (Envelope<'_>, Option<Request>) {
        let request = self.session.as_ref().map(|session| {
            self.shard.keeper.contact(session.session, self.shard.now());
            session.begin()
        });
        let envelope = match &request {
            Some(request) => request.envelope(machine, catalogue_revision),
            None => Envelope::without_session(machine, catalogue_revision, b""),
        };
        (Envelope { sender: self.sender.as_ref().map(Sender::in_envelope), ..envelope }, request)
    }

    /// The same on the branch that has the name now, and on no later one.
    pub(crate) fn pinned(&self) -> Result<Self, Error> {
        let (_, ids) = self.current()?;
        Ok(Self { pinned: Some(ids.branch), ..self.clone() })
    }

    pub(crate) fn resolve(&self, catalogue: &Catalogue) -> Result<ScopeIds, Rejection> {
        let space = catalogue.space_named(&self.space)?;
        let branch = catalogue.space(space)?.branch_named(&self.branch)?;
        if let Some(pinned) = self.pinned.filter(|pinned| *pinned != branch) {
            return Err(Rejection::NoSuchBranch { branch: format!("{}#{pinned}", self.branch) });
        }
        Ok(ScopeIds { space, branch, keys: self.shard.keys() })
    }
}
