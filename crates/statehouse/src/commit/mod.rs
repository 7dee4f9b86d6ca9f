//! One commit of several operations of any contract in a group, put together before it is sent.
//!
//! [`parts`]: its guards and operations. [`results`]: the result of each operation.

mod guards;
mod parts;
mod results;

use std::sync::Arc;
use std::time::Duration;

use contract::records::{Claimed, Put};
use contract::{Error, RefusalReason, Rejection, Value, names};
use kernel::{Answer, Body, Catalogue, Fence, Transact};
use kv::Writer;

use self::parts::{OwnGuard, OwnOp};
pub use self::results::Done;
use crate::admission::Scope;
use crate::cells::Cells;
use crate::pending::Pending;
use crate::records::{Records, Ttl, owned, owned_patches};
use crate::runs::{AppendOptions, NewEvent};
use crate::transaction::Committed;

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
    guards: Vec<OwnGuard>,
    ops: Vec<OwnOp>,
}

impl Commit {
    pub(crate) fn new(scope: Scope, group: Option<String>) -> Self {
        Self { scope, group, fence: None, guards: Vec::new(), ops: Vec::new() }
    }

    /// Only if this attempt is the live one. The record must be of this group.
    pub fn fence(mut self, claimed: &Claimed) -> Self {
        self.fence = Some((claimed.name.clone(), claimed.attempt));
        self
    }

    /// Writes a cell.
    pub fn set_cell(mut self, cell: &str, value: impl Into<Value>) -> Self {
        self.ops.push(OwnOp::SetCell(cell.to_owned(), value.into()));
        self
    }

    /// Creates a cell if it does not exist; an existing one stays unchanged.
    pub fn init_cell(mut self, cell: &str, value: impl Into<Value>) -> Self {
        self.ops.push(OwnOp::InitCell(cell.to_owned(), value.into()));
        self
    }

    /// Deletes a cell.
    pub fn delete_cell(mut self, cell: &str) -> Self {
        self.ops.push(OwnOp::DeleteCell(cell.to_owned()));
        self
    }

    /// Replaces a record.
    pub fn put_record<N: AsRef<str>, V: Into<Value>>(
        mut self,
        record: &str,
        fields: impl IntoIterator<Item = (N, V)>,
        put: Put,
    ) -> Self {
        self.ops.push(OwnOp::PutRecord(record.to_owned(), owned(fields), put));
        self
    }

    /// Writes and removes fields of a record; creates it if needed.
    pub fn set_fields<N: AsRef<str>>(
        mut self,
        record: &str,
        fields: impl IntoIterator<Item = (N, Option<Value>)>,
    ) -> Self {
        self.ops.push(OwnOp::Patch(record.to_owned(), owned_patches(fields)));
        self
    }

    /// Adds to an integer field of a record.
    pub fn increment(mut self, record: &str, field: &str, by: i64) -> Self {
        self.ops.push(OwnOp::Increment(record.to_owned(), field.to_owned(), by));
        self
    }

    /// Completes a claimed record.
    pub fn complete<N: AsRef<str>, V: Into<Value>>(
        mut self,
        claimed: &Claimed,
        fields: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        let fields = owned(fields).into_iter().map(|(field, value)| (field, Some(value))).collect();
        self.ops.push(OwnOp::Complete(claimed.name.clone(), claimed.attempt, fields));
        self
    }

    /// Releases a claimed record: it can be claimed at once, and the attempt does not count as failed.
    pub fn release(mut self, claimed: &Claimed) -> Self {
        self.ops.push(OwnOp::Release(claimed.name.clone(), claimed.attempt));
        self
    }

    /// Says that the attempt of a record failed: it will be tried again after a pause, or its budget is used up.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
    /// use statehouse::Done;
    /// use statehouse::records::{ClaimOptions, Put};
    /// let order = house.group("order-7");
    /// order.records().put("jobs.charge.7", [("eur", 10)], Put::typed("task"))?;
    /// let job = house.records().claim_next("jobs.charge.", 1, &ClaimOptions::worker("w1"))?.remove(0);
    /// let (_, done) = order.commit().set_cell("declined", true).fail(&job, "declined").run_each_later().wait()?;
    /// assert!(matches!(done[1], Done::Retried { version: 3, .. }));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fail(mut self, claimed: &Claimed, error: &str) -> Self {
        let fields = owned_patches([("error", Some(Value::from(error)))]);
        self.ops.push(OwnOp::Fail(claimed.name.clone(), claimed.attempt, fields));
        self
    }

    /// Sets how long a record will exist.
    pub fn set_ttl(mut self, record: &str, ttl: Ttl) -> Self {
        self.ops.push(OwnOp::Touch(record.to_owned(), ttl));
        self
    }

    /// Deletes a record.
    pub fn delete_record(mut self, record: &str) -> Self {
        self.ops.push(OwnOp::DeleteRecord(record.to_owned()));
        self
    }

    /// Sends a message to a queue of a broker, with this commit.
    pub fn publish(mut self, topic: &str, payload: impl Into<Vec<u8>>) -> Self {
        self.ops.push(OwnOp::Publish { topic: topic.to_owned(), payload: payload.into(), after: None });
        self
    }

    /// Sends a message to a queue of a broker, after a delay that counts from this commit.
    pub fn publish_after(mut self, after: Duration, topic: &str, payload: impl Into<Vec<u8>>) -> Self {
        self.ops.push(OwnOp::Publish { topic: topic.to_owned(), payload: payload.into(), after: Some(after) });
        self
    }

    /// Sends another commit to its group, this one's or another: it is applied once, shortly after this commit. If it
    /// is refused then, it is dropped, and the change feed says so.
    pub fn send(mut self, commit: Commit) -> Self {
        self.ops.push(OwnOp::Send { commit: Box::new(commit), after: None });
        self
    }

    /// [`send`](Self::send) with a delay that counts from this commit: a timer.
    pub fn send_after(mut self, after: Duration, commit: Commit) -> Self {
        self.ops.push(OwnOp::Send { commit: Box::new(commit), after: Some(after) });
        self
    }

    /// Appends an event to a run of this group; with [`AppendOptions::expecting`], only if the run is at that sequence.
    /// A read model written in the same commit is therefore never behind, and never ahead. If the event is already
    /// there, the whole commit is refused as `KeyReused`: it was done before, and is not done a second time.
    pub fn append(mut self, run: &str, event: &NewEvent, options: AppendOptions) -> Self {
        self.ops.push(OwnOp::Append { run: run.to_owned(), event: Box::new(event.clone()), options });
        self
    }

    /// Pushes bytes to a session with this commit. If the session no longer exists, they are dropped.
    pub fn push(mut self, session: u64, payload: impl Into<Vec<u8>>) -> Self {
        self.ops.push(OwnOp::Push(session, payload.into()));
        self
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
    /// let done = house.group("order-7").commit().set_cell("paid", true).increment("totals", "eur", 10).run_each_later();
    /// let (_, each) = done.wait()?;
    /// assert_eq!(each, [Done::Written { version: 1 }, Done::Counted { version: 1, value: 10 }]);
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
        for op in &self.ops {
            if let OwnOp::Send { commit, .. } = op {
                if !Arc::ptr_eq(&commit.scope.shard, &self.scope.shard) {
                    let reason = RefusalReason::OtherStore;
                    return Err(Rejection::InvalidDeclaration { what: "a message".to_owned(), reason }.into());
                }
                let mut inner = Vec::new();
                commit.encode_messages(catalogue, &mut inner)?;
                let mut writer = Writer::new();
                Body::Transact(commit.transact(catalogue, &inner)?).encode(&mut writer);
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
        self.guards.iter().try_for_each(OwnGuard::check)?;
        let ids = self.scope.resolve(catalogue)?;
        let mut messages = messages.iter();
        let mut ops = Vec::with_capacity(self.ops.len());
        for op in &self.ops {
            op.check()?;
            ops.push(op.op(&mut messages));
        }
        Ok(Transact {
            space: ids.space,
            branch: ids.branch,
            group: self.group.as_deref(),
            fence: self.fence.as_ref().map(|(record, attempt)| Fence { record, attempt: *attempt }),
            guards: self.guards.iter().map(OwnGuard::guard).collect(),
            ops,
        })
    }
}

impl Records {
    /// Starts a commit in the group of these records. Records without a group form one each, so the commit can concern
    /// only one of them.
    pub fn commit(&self) -> Commit {
        Commit::new(self.scope.clone(), self.group.as_deref().map(str::to_owned))
    }
}

impl Cells {
    /// Starts a commit in the group of these cells. Cells without a group form one each, so the commit can concern only
    /// one of them.
    pub fn commit(&self) -> Commit {
        Commit::new(self.scope.clone(), self.group.as_deref().map(str::to_owned))
    }
}
