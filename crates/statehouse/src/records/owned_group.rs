//! Owning a group: one writer at a time, and a handle whose every write proves that it is the one.

use std::future::Future;
use std::ops::Deref;
use std::pin::pin;
use std::time::Duration;

use contract::guards::{GroupGuard, OWNER_RECORD, OwnerToken};
use contract::records::{Claimed, Holder};
use contract::{Error, RecordRejection, Rejection, Subject, Written, names};
use kernel::catalogue::types::micros;
use kernel::records::get::ViewRecords;
use kernel::{Body, FreedThing, Op, RecordAct, Transact};
use kv::View;
use node::error::from_halt;
use node::pending::{Decode, Pending};
use waiting::{Place, Wanted};

use crate::Authority;
use crate::admission::{NO_BRANCH, Scope};
use crate::commit::written;
use crate::group::Group;
use crate::house::Space;

use super::attempts::{ClaimOptions, check_worker, decode_claim};
use super::time_over::block_for;

/// A group that this handle owns, until it is released or lost.
///
/// Whatever is written through it carries the fence of its attempt, so it changes nothing once another has the group. In a
/// [guarded](crate::Space::set_guard) group nobody else can write at all.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
/// use statehouse::guards::GroupGuard;
/// use statehouse::records::ClaimOptions;
/// house.space("default").set_guard("agents.", GroupGuard::new().open("inbox"))?;
/// let agent = house.group("agents.7");
/// let owned = agent.own(&ClaimOptions::worker("w1"))?;
/// owned.cells().set("step", 1)?;
/// // Whoever forgot to own it, and whoever lost it, is refused.
/// assert_eq!(agent.cells().set("step", 2).unwrap_err().code(), "SH-4003");
/// let next = agent.forced().own(&ClaimOptions::worker("w2"))?;
/// assert_eq!(owned.cells().set("step", 2).unwrap_err().code(), "SH-4002");
/// assert!(owned.is_lost()? && !next.is_lost()?);
/// next.cells().set("step", 2)?;
/// // What the guard opens takes new things from anybody.
/// agent.cells().set("inbox.1", "hello")?;
/// next.release()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct OwnedGroup {
    group: Group,
    attempt: u64,
}

/// The group, whose writes through this handle carry the fence.
impl Deref for OwnedGroup {
    type Target = Group;

    fn deref(&self) -> &Group {
        &self.group
    }
}

impl OwnedGroup {
    /// The attempt by which it is owned. It only rises: whoever has a higher one owned the group later.
    pub fn attempt(&self) -> u64 {
        self.attempt
    }

    /// Group, attempt, history of the store, space and branch as one text, by which other processes own the group too: over HTTP it is sent
    /// as `Statehouse-Owner`.
    pub fn token(&self) -> String {
        let scope = &self.group.scope;
        let (branch, number) = (&scope.branch, scope.pinned.unwrap_or(NO_BRANCH));
        OwnerToken::new(&scope.space, branch, number, &self.group.name, self.attempt, scope.shard.history()).to_string()
    }

    /// Whether another owns the group now, or nobody does, because its branch was deleted for example.
    pub fn is_lost(&self) -> Result<bool, Error> {
        match self.check_owned() {
            Ok(()) => Ok(false),
            Err(Error::Rejected(Rejection::Record(RecordRejection::Fenced { .. }))) => Ok(true),
            Err(Error::Rejected(Rejection::NoSuchBranch { .. })) => Ok(true),
            Err(other) => Err(other),
        }
    }

    /// Refuses if it is lost now.
    pub(crate) fn check_owned(&self) -> Result<(), Error> {
        let scope = &self.group.scope;
        scope.authority.check_owner(scope)
    }

    /// Refuses if it is lost in a view.
    pub(crate) fn check_owned_in(&self, view: &dyn View) -> Result<(), Error> {
        let scope = &self.group.scope;
        let (catalogue, ids) = scope.current()?;
        scope.authority.check_owner_in(view, &catalogue, &ids)
    }

    /// Owns the group for at least so long from now on, if what is left of its lease is less.
    pub(crate) fn extend_to(&self, least: Duration) -> Result<(), Error> {
        match self.attempt > 0 && self.group.owner()?.is_some_and(|holder| holder.lease_left < least) {
            true => self.extend(Some(least)),
            false => Ok(()),
        }
    }

    /// Owns the group for so long from now on, or for the lease of 30 s.
    pub fn extend(&self, lease: Option<Duration>) -> Result<(), Error> {
        self.extend_later(lease).wait().map(drop)
    }

    /// [`extend`](Self::extend), answered later.
    pub fn extend_later(&self, lease: Option<Duration>) -> Pending<Written> {
        let act = RecordAct::Extend { attempt: self.attempt, lease_us: lease.map(micros) };
        self.group.of_owner(act, Decode::Contracts(written))
    }

    /// Gives the group up: the next one can own it at once.
    pub fn release(self) -> Result<(), Error> {
        self.release_later().wait().map(drop)
    }

    /// [`release`](Self::release), answered later.
    pub fn release_later(&self) -> Pending<Written> {
        let act = RecordAct::Release { attempt: self.attempt };
        self.group.of_owner(act, Decode::Contracts(written))
    }
}

impl Space {
    /// The space, whose writes through this handle are forced; see [`Group::forced`].
    pub fn forced(&self) -> Space {
        let authority = Authority { owner: None, force: true };
        Space { scope: Scope { authority, ..self.scope.clone() } }
    }
}

impl Group {
    /// Owns the group: one claim at a time does. If another has it, waits as long as `options` say, and is refused
    /// with [`RecordRejection::Held`] after that. Those who wait get it one after the other.
    pub fn own(&self, options: &ClaimOptions) -> Result<OwnedGroup, Error> {
        block_for(self.scope.shard.clock(), options.wait, async |over| self.own_until(options, over).await)
    }

    /// [`own`](Self::own) without blocking, for any runtime: waits until `time_over`, whatever `options` say.
    pub async fn own_until(
        &self,
        options: &ClaimOptions,
        time_over: impl Future<Output = ()>,
    ) -> Result<OwnedGroup, Error> {
        check_worker(&options.worker)?;
        // A branch that is deleted and created again meanwhile is another one.
        let group = Group { scope: self.scope.pinned()?, name: self.name.clone() };
        group.own_pinned(options, time_over).await
    }

    async fn own_pinned(
        &self,
        options: &ClaimOptions,
        time_over: impl Future<Output = ()>,
    ) -> Result<OwnedGroup, Error> {
        let shard = &self.scope.shard;
        let wanted = self.waited_for()?;
        let (session, request) = match &self.scope.session {
            Some(in_session) => (Some(in_session.session), in_session.request()),
            None => (None, None),
        };
        let now = || shard.now();
        let _alive = session.map(|session| shard.keeper.wait_in(session, &now));
        let mut time_over = pin!(time_over);
        let mut chosen: Option<Place<'_>> = None;
        loop {
            // It joins before it looks, so that the group does not become free unseen in between.
            let Some(mut place) = shard.named_waiters.join(wanted.clone()) else {
                return self.claim_owner(options).await.map(|claimed| self.owned_by(&claimed));
            };
            // What is held in the view is not asked for: a thousand that wait would be a thousand commands.
            if self.is_worth_claiming(request)? {
                match self.claim_owner(options).await {
                    // A numbered request is executed once: what it was answered stays its answer.
                    Err(Error::Rejected(Rejection::Record(RecordRejection::Held { .. }))) if request.is_none() => {}
                    Ok(claimed) => return Ok(self.owned_by(&claimed)),
                    Err(error) => {
                        if let Some(chosen) = chosen {
                            chosen.pass_on();
                        }
                        return Err(error);
                    }
                }
            }
            if !place.turn(time_over.as_mut()).await {
                // It may just have been chosen: a free group must not be left lying.
                drop(place);
                return self.claim_owner(options).await.map(|claimed| self.owned_by(&claimed));
            }
            chosen = Some(place);
        }
    }

    /// Whether the group is free as far as this node knows, or the answer of a numbered request is already settled.
    fn is_worth_claiming(&self, request: Option<(u64, u64)>) -> Result<bool, Error> {
        if let Some((session, request)) = request {
            let (view, _, ids) = self.scope.view()?;
            let settled = session::status::is_settled(&*view, &ids.keys.sessions(), session, request);
            if settled.map_err(|halt| from_halt(&halt))? {
                return Ok(true);
            }
        }
        Ok(self.scope.authority.force || self.owner()?.is_none())
    }

    /// Who owns the group now, if anybody does.
    pub fn owner(&self) -> Result<Option<Holder>, Error> {
        names::check_group(&self.name)?;
        let (view, catalogue, ids) = self.scope.view()?;
        let owner = catalogue.thing(ids.space, ids.branch, Some(&self.name), OWNER_RECORD)?;
        let read = || ViewRecords::new(&*view, ids.keys, &catalogue)?.get(&owner);
        Ok(read().map_err(|halt| from_halt(&halt))?.and_then(|record| record.holder))
    }

    /// The group, whose writes through this handle are forced: they need no fence where a group or a type is guarded, and
    /// [`own`](Self::own) takes the group from whoever has it.
    pub fn forced(&self) -> Group {
        let authority = Authority { owner: None, force: true };
        Group { scope: Scope { authority, ..self.scope.clone() }, name: self.name.clone() }
    }

    /// The group as this attempt owns it: one that [`own`](Self::own) has returned, here or in another process, in the branch
    /// that has the name now. Nothing is checked until something is written.
    pub fn owned(&self, attempt: u64) -> OwnedGroup {
        let authority = Authority { owner: Some((self.name.clone(), attempt)), force: self.scope.authority.force };
        let number = || self.scope.current().map_or(NO_BRANCH, |(_, ids)| ids.branch);
        let pinned = self.scope.pinned.or_else(|| Some(number()));
        let group = Group { scope: Scope { pinned, authority, ..self.scope.clone() }, name: self.name.clone() };
        OwnedGroup { group, attempt }
    }

    /// The group as nobody owns it: what is written carries no fence, and is for whoever this handle belongs to.
    pub(crate) fn unowned(&self) -> OwnedGroup {
        OwnedGroup { group: self.clone(), attempt: 0 }
    }

    /// The prefix and the guard that decide about this group, if it is guarded.
    pub fn guard(&self) -> Result<Option<(String, GroupGuard)>, Error> {
        names::check_group(&self.name)?;
        let (catalogue, ids) = self.scope.current()?;
        let found = catalogue.space(ids.space)?.guards.deciding(&self.name);
        Ok(found.map(|(prefix, guard)| (prefix.to_owned(), guard.clone())))
    }

    fn owned_by(&self, claimed: &Claimed) -> OwnedGroup {
        // The force was for the claim alone, and so was a number that the client chose.
        let authority = Authority::default();
        let session = self.scope.session.clone().filter(|session| session.request().is_none());
        let group = Group { scope: Scope { authority, session, ..self.scope.clone() }, name: self.name.clone() };
        group.owned(claimed.attempt)
    }

    fn waited_for(&self) -> Result<Wanted, Error> {
        names::check_group(&self.name)?;
        let (catalogue, ids) = self.scope.current()?;
        let owner = catalogue.thing(ids.space, ids.branch, Some(&self.name), OWNER_RECORD)?;
        Ok(Wanted { scope: (ids.space, ids.branch), prefix: FreedThing::of(Subject::Record, &owner).waited_for() })
    }

    fn claim_owner(&self, options: &ClaimOptions) -> Pending<Claimed> {
        let act = RecordAct::Claim { worker: &options.worker, lease_us: options.lease.map(micros) };
        self.of_owner(act, decode_claim(&self.scope))
    }

    /// Does something to the owner of the group.
    fn of_owner<T>(&self, act: RecordAct<'_>, decode: Decode<T>) -> Pending<T> {
        let (catalogue, ids) = match self.scope.current() {
            Ok(current) => current,
            Err(error) => return Pending::refused(error),
        };
        let ops = vec![Op::Record(OWNER_RECORD, act)];
        let transact = Transact::new(ids.space, ids.branch, Some(&self.name), ops);
        self.scope.propose_read_by(&catalogue, &Body::Transact(transact), decode)
    }
}
