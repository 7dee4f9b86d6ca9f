//! Interactive transactions: read from a view, buffer writes, commit as one command guarded by everything that was
//! read.
//!
//! What a transaction does with each contract lies with that contract, in its `transaction.rs`.
//!
//! Keeps: T1 (serialisable: whatever a transaction read, by name or in a range, is unchanged when it commits, or it
//! changes nothing and what differs is named). One attempt; `Group::transact` tries again.

mod touched;

use std::sync::Arc;

use contract::limits::TRANSACTION_AGE_MAX;
use contract::{AttemptPlace, Error, Rejection, Subject, names};
use kernel::keys::ThingId;
use kernel::{Body, Catalogue, Draft, Fence, Op, OpOutcome, Transact};
use kv::View;
use node::error::from_halt;
use session::Stamp;

use crate::admission::{Scope, ScopeIds};
use crate::commit::{Committed, OwnGuard, OwnOp, committed, only};
use touched::Touched;

/// What a transaction may miss of concurrent changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Isolation {
    /// Nothing: it is as if it had run alone. Everything that it read is guarded.
    #[default]
    Serialisable,
    /// It reads one moment and does not overwrite others' writes, but what it only read may have changed.
    Snapshot,
}

/// An open transaction in one group. Dropping it rolls it back.
///
/// Its own methods are those of cells; [`records`](Self::records) and [`runs`](Self::runs) have those of the others. All of
/// it is one commit.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
/// let order = house.group("order-7");
/// let mut first = order.begin()?;
/// let mut second = order.begin()?;
/// assert_eq!(first.get("owner")?, None);
/// assert_eq!(second.get("owner")?, None);
/// first.set("owner", "ann")?;
/// second.set("owner", "bob")?;
/// first.commit()?;
/// let error = second.commit().expect_err("ann was first");
/// assert!(error.retryable() && error.to_string().contains("owner"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Transaction {
    scope: Scope,
    group: Option<String>,
    isolation: Isolation,
    fence: Option<(String, u64)>,
    /// What it reads, with what it has written.
    draft: Draft,
    catalogue: Arc<Catalogue>,
    ids: ScopeIds,
    /// The commit number of the view.
    commit: u64,
    started_us: u64,
    touched: Touched,
    ops: Vec<Box<dyn OwnOp>>,
}

/// A place to read from: what a transaction sees, and where its things are.
pub(crate) struct Seen<'transaction> {
    pub(crate) view: &'transaction dyn View,
    pub(crate) catalogue: &'transaction Catalogue,
    pub(crate) ids: ScopeIds,
    pub(crate) group: Option<&'transaction str>,
    /// Now, for what has a time.
    pub(crate) stamp: Stamp,
}

impl<'transaction> Seen<'transaction> {
    pub(crate) fn thing(&self, name: &'transaction str) -> Result<ThingId<'transaction>, Rejection> {
        self.catalogue.thing(self.ids.space, self.ids.branch, self.group, name)
    }
}

impl Transaction {
    pub(crate) fn begin(scope: Scope, group: Option<String>, isolation: Isolation) -> Result<Self, Error> {
        let (view, catalogue) = scope.shard.view()?;
        let ids = scope.resolve(&catalogue)?;
        let applied = node::image::applied(&*view, &scope.shard.keys())?;
        let now = scope.shard.now();
        let stamp = Stamp { wall_us: now.wall_us.max(applied.stamp.wall_us + 1), ..now };
        let session = scope.session.as_ref().map(|session| session.session);
        Ok(Self {
            group,
            isolation,
            fence: None,
            draft: Draft::new(view, catalogue.clone(), scope.shard.keys(), session, stamp, scope.shard.history()),
            catalogue,
            ids,
            commit: applied.commit,
            started_us: scope.shard.clock().monotonic_us(),
            touched: Touched::default(),
            ops: Vec::new(),
            scope,
        })
    }

    /// Refuses an attempt of another branch than this transaction's.
    pub(crate) fn check_place(&self, place: Option<AttemptPlace>) -> Result<(), Rejection> {
        let mut scope = self.scope.clone();
        scope.pin_to(place);
        scope.resolve(&self.catalogue).map(drop)
    }

    /// Does nothing unless this attempt is the live one, now and when it commits.
    pub(crate) fn fence_by(&mut self, record: String, attempt: u64) -> Result<(), Error> {
        self.check_age()?;
        names::check_record(&record)?;
        if self.fence.is_some() || !self.ops.is_empty() {
            let reason = "a transaction is fenced once, before its first operation";
            return Err(Rejection::TransactionState { reason }.into());
        }
        let fence = (record, attempt);
        let transact = transact(self.ids, self.group.as_deref(), Some(&fence), Vec::new());
        self.draft.check_fence(&transact).map_err(|halt| from_halt(&halt))??;
        self.fence = Some(fence);
        Ok(())
    }

    /// Commits everything, or changes nothing and names the conflict.
    pub fn commit(self) -> Result<Committed, Error> {
        self.check_age()?;
        if self.ops.is_empty() {
            // A transaction that only read has read one consistent view.
            return Ok(Committed { commit: self.commit });
        }
        let guards = match self.isolation {
            Isolation::Serialisable => self.touched.of_reads(),
            Isolation::Snapshot => self.touched.of_writes(),
        };
        let ops = self.ops.iter().map(|op| op.op()).collect();
        let transact = transact(self.ids, self.group.as_deref(), self.fence.as_ref(), ops);
        let transact = Transact { guards, ..transact };
        self.scope.propose(&self.catalogue, &Body::Transact(transact), committed).wait()
    }

    /// Rolls the transaction back. Dropping it does the same.
    pub fn rollback(self) {}

    /// The commit number of what it reads.
    pub(crate) fn seen_commit(&self) -> u64 {
        self.commit
    }

    pub(crate) fn group(&self) -> Option<&str> {
        self.group.as_deref()
    }

    /// What it sees, its own writes included.
    pub(crate) fn seen(&self) -> Seen<'_> {
        Seen {
            view: self.draft.view(),
            catalogue: &self.catalogue,
            ids: self.ids,
            group: self.group.as_deref(),
            stamp: self.draft.stamp(),
        }
    }

    /// Notes that a thing was read; `unchanged` guards it.
    pub(crate) fn read(
        &mut self,
        subject: Subject,
        name: &str,
        unchanged: impl OwnGuard + 'static,
    ) -> Result<(), Error> {
        self.touch(name, &unchanged)?;
        Ok(self.touched.read(subject, name, unchanged)?)
    }

    /// Notes that a range was read, in which so many things were found.
    pub(crate) fn read_range(&mut self, things: usize, unchanged: impl OwnGuard + 'static) -> Result<(), Error> {
        self.check_age()?;
        self.touched.count(things)?;
        Ok(self.touched.read_range(unchanged)?)
    }

    /// Does something to a thing, as far as this transaction sees it; `unchanged` guards the thing. If it is refused, the
    /// transaction can go on without it.
    pub(crate) fn write(
        &mut self,
        subject: Subject,
        name: &str,
        unchanged: impl OwnGuard + 'static,
        op: impl OwnOp + 'static,
    ) -> Result<OpOutcome, Error> {
        self.touch(name, &unchanged)?;
        op.check()?;
        let ops_max = self.catalogue.limits.transaction_ops_max as usize;
        Rejection::check_limit("transaction_ops_max", ops_max, self.ops.len() + 1)?;
        let transact = transact(self.ids, self.group.as_deref(), self.fence.as_ref(), vec![op.op()]);
        let transact = self.scope.authority.added_to(transact);
        let outcome = only(self.draft.apply(&transact).map_err(|halt| from_halt(&halt))??)?;
        self.touched.write(subject, name, unchanged);
        self.ops.push(Box::new(op));
        Ok(outcome)
    }

    /// Checks a name, and that it is in this transaction's group.
    fn touch(&self, name: &str, unchanged: &impl OwnGuard) -> Result<(), Error> {
        self.check_age()?;
        unchanged.check()?;
        let only = self.touched.names().next();
        if let (None, Some(only)) = (&self.group, only.filter(|only| *only != name)) {
            return Err(Rejection::TwoGroups { group: only.to_owned(), other: name.to_owned() }.into());
        }
        Ok(())
    }

    pub(crate) fn check_age(&self) -> Result<(), Rejection> {
        let age_us = self.scope.shard.clock().monotonic_us().saturating_sub(self.started_us);
        if u128::from(age_us) > TRANSACTION_AGE_MAX.as_micros() {
            return Err(Rejection::TransactionLost { reason: "it was open for longer than transaction_age_max" });
        }
        Ok(())
    }
}

fn transact<'own>(
    ids: ScopeIds,
    group: Option<&'own str>,
    fence: Option<&'own (String, u64)>,
    ops: Vec<Op<'own>>,
) -> Transact<'own> {
    let fences = fence.into_iter().map(|(record, attempt)| Fence { record, attempt: *attempt }).collect();
    Transact { fences, ..Transact::new(ids.space, ids.branch, group, ops) }
}
