//! One commit of several operations of any contract in a group, put together before it is sent.
//!
//! The conditions and operations of a contract lie with it, in its `commit.rs`; those that concern no contract are here.
//! [`parts`]: what they are made of. [`results`]: the result of each operation.

mod parts;
mod results;

use std::sync::Arc;
use std::time::Duration;

use contract::{AttemptPlace, Error, RefusalReason, Rejection, names};
use kernel::{Answer, Body, Catalogue, Fence, Transact};
use kv::Writer;

pub(crate) use self::parts::{OwnGuard, OwnOp};
use self::parts::{OwnPublish, OwnPush, Part};
pub use self::results::{Committed, Done};
pub(crate) use self::results::{committed, only, outcome, written};
use crate::admission::Scope;
use node::pending::Pending;

/// Operations of one commit in one group, all or nothing; created by [`Group::commit`](crate::Group::commit).
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
/// use statehouse::records::{ClaimOptions, Put};
/// let order = house.group("order-7");
/// order.records().put("jobs.charge.7", [("eur", 10)], Put::typed("task"))?;
/// let job = house.records().claim_next("jobs.charge.", 1, &ClaimOptions::worker("w1"))?.remove(0);
/// // The charge is counted, the job finished and the mail sent in one commit, and only by the live attempt.
/// order
///     .commit()
///     .fence(&job)
///     .set_cell("charged", 10)
///     .complete(&job, [("result", "ok")])
///     .publish("mails", "order 7 is paid")
///     .run()?;
/// assert!(order.commit().fence(&job).set_cell("charged", 20).run().is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "nothing is done before `run`"]
pub struct Commit {
    scope: Scope,
    /// None if it concerns one thing without a group.
    group: Option<String>,
    fence: Option<(String, u64)>,
    guards: Vec<Box<dyn OwnGuard>>,
    parts: Vec<Part>,
}

impl Commit {
    pub(crate) fn new(scope: Scope, group: Option<String>) -> Self {
        Self { scope, group, fence: None, guards: Vec::new(), parts: Vec::new() }
    }

    /// Does nothing outside of the branch of an attempt.
    pub(crate) fn pinned_to(mut self, place: Option<AttemptPlace>) -> Self {
        self.scope.pin_to(place);
        self
    }

    /// Does nothing unless this attempt is the live one.
    pub(crate) fn fenced_by(mut self, record: String, attempt: u64) -> Self {
        self.fence = Some((record, attempt));
        self
    }

    pub(crate) fn with_guard(mut self, guard: impl OwnGuard + 'static) -> Self {
        self.guards.push(Box::new(guard));
        self
    }

    pub(crate) fn with_op(mut self, op: impl OwnOp + 'static) -> Self {
        self.parts.push(Part::Op(Box::new(op)));
        self
    }

    /// Sends a message to a queue of a broker, with this commit.
    pub fn publish(self, topic: &str, payload: impl Into<Vec<u8>>) -> Self {
        self.with_op(OwnPublish { topic: topic.to_owned(), payload: payload.into(), after: None })
    }

    /// Sends a message to a queue of a broker, after a delay that counts from this commit.
    pub fn publish_after(self, after: Duration, topic: &str, payload: impl Into<Vec<u8>>) -> Self {
        self.with_op(OwnPublish { topic: topic.to_owned(), payload: payload.into(), after: Some(after) })
    }

    /// Sends another commit to its group, this one's or another: it is applied once, shortly after this commit. If it
    /// is refused then, it becomes a [dead letter](crate::Group::dead_letters) of its group, and the change feed says so.
    pub fn send(mut self, commit: Commit) -> Self {
        self.parts.push(Part::Send { commit: Box::new(commit), after: None });
        self
    }

    /// [`send`](Self::send) with a delay that counts from this commit: a timer.
    pub fn send_after(mut self, after: Duration, commit: Commit) -> Self {
        self.parts.push(Part::Send { commit: Box::new(commit), after: Some(after) });
        self
    }

    /// Pushes bytes to a session with this commit. If the session no longer exists, they are dropped.
    pub fn push(self, session: u64, payload: impl Into<Vec<u8>>) -> Self {
        self.with_op(OwnPush { session, payload: payload.into() })
    }

    /// Commits, durably.
    pub fn run(self) -> Result<Committed, Error> {
        self.run_later().wait()
    }

    /// [`run`](Self::run), answered later.
    pub fn run_later(self) -> Pending<Committed> {
        self.propose(results::committed)
    }

    /// [`run_later`](Self::run_later), which also returns the result of each operation.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
    /// use statehouse::Done;
    /// use statehouse::records::RecordDone;
    /// let done = house.group("order-7").commit().set_cell("paid", true).increment("totals", "eur", 10).run_each_later();
    /// let (_, each) = done.wait()?;
    /// assert_eq!(each, [Done::Written { version: 1 }, Done::Record(RecordDone::Counted { version: 1, value: 10 })]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn run_each_later(self) -> Pending<(Committed, Vec<Done>)> {
        self.propose(results::each)
    }

    fn propose<T>(self, decode: fn(Answer) -> Result<T, Error>) -> Pending<T> {
        let catalogue = self.scope.shard.shared.catalogue();
        let propose = || {
            let mut messages = Vec::new();
            self.encode_messages(&catalogue, &mut messages)?;
            let body = Body::Transact(self.transact(&catalogue, &messages)?);
            Ok::<_, Error>(self.scope.propose(&catalogue, &body, decode))
        };
        propose().unwrap_or_else(Pending::refused)
    }

    /// The bodies of the transactions that this one sends, in order.
    fn encode_messages(&self, catalogue: &Catalogue, messages: &mut Vec<Vec<u8>>) -> Result<(), Error> {
        for part in &self.parts {
            if let Part::Send { commit, .. } = part {
                if !Arc::ptr_eq(&commit.scope.shard, &self.scope.shard) {
                    let reason = RefusalReason::OtherStore;
                    return Err(Rejection::InvalidDeclaration { what: "a message".to_owned(), reason }.into());
                }
                let mut inner = Vec::new();
                commit.encode_messages(catalogue, &mut inner)?;
                let mut writer = Writer::new();
                let transact = commit.scope.authority.added_to(commit.transact(catalogue, &inner)?);
                Body::Transact(transact).encode(&mut writer);
                messages.push(writer.finish());
            }
        }
        Ok(())
    }

    fn transact<'commit>(
        &'commit self,
        catalogue: &Catalogue,
        messages: &'commit [Vec<u8>],
    ) -> Result<Transact<'commit>, Error> {
        if let Some(group) = &self.group {
            names::check_group(group)?;
        }
        if let Some((record, _)) = &self.fence {
            // The attempt of a group's owner comes from its handle alone, which knows the branch and the history of it.
            names::check_record(record)?;
        }
        self.guards.iter().try_for_each(|guard| guard.check())?;
        let ids = self.scope.resolve(catalogue)?;
        let mut messages = messages.iter();
        let mut ops = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            part.check()?;
            ops.push(part.op(&mut messages));
        }
        Ok(Transact {
            fences: self.fence.iter().map(|(record, attempt)| Fence { record, attempt: *attempt }).collect(),
            guards: self.guards.iter().map(|guard| guard.guard()).collect(),
            ..Transact::new(ids.space, ids.branch, self.group.as_deref(), ops)
        })
    }
}
