//! Transactions: operations of any contract in one commit, all or nothing.
//!
//! Keeps: every condition of a guard or an operation is part of the commit. A fence or guard that does not hold refuses
//! all of it, with the current state.
//!
//! [`needs`]: what a transaction needs.

pub(crate) mod needs;

use contract::limits::MESSAGE_DEPTH_MAX;
use statehouse::{Commit, Done as StoredDone, Group, Space};
use wire::contracts::{Done, Guard, Operation};
use wire::query::NoQuery;
use wire::transactions::messages::{MessageOperation, Sent};
use wire::transactions::{Committed, Fence, NothingDone, Transaction, WrittenOperation};

use super::scope::{OWNER, RequestScope, ShownToken};
use super::{Answered, Call, Refusal, Reply, add_guard, add_operation, contract_done};
use crate::Server;

pub(crate) async fn commit(server: Server, call: Call<NoQuery, Transaction>) -> Answered<Committed> {
    let Call { scope, name: group, body, .. } = call;
    let Transaction { guards, fence, owner, force, operations } = body;
    let owner = owner.map(|token| ShownToken { token, member: "owner" });
    if owner.is_some() && scope.owner.is_some() {
        return Err(Refusal::invalid("owner", format!("owner repeats the header {OWNER}: send one of them")));
    }
    let (owner, force) = (owner.or(scope.owner.clone()), scope.force || force == Some(true));
    let scope = RequestScope { owner, force, ..scope };
    let (commit, done, replayed) = commit_in(&server, scope, &group, guards, fence, operations).await?;
    Ok(Reply::new(Committed { commit, done }).replayed(replayed))
}

/// Commits in a group. Returns the commit, the result of each operation, and whether they were stored by an earlier sending.
pub(super) async fn commit_in(
    server: &Server,
    scope: RequestScope,
    group: &str,
    guards: Option<Vec<Guard>>,
    fence: Option<Fence>,
    operations: Vec<Operation>,
) -> Result<(u64, Vec<Done>, bool), Refusal> {
    let (handles, group) = scope.open_group(&server.house, group)?;
    let mut builder = CommitBuilder::new(server, &handles.space, group, 0)?;
    builder.add(guards, fence, operations)?;
    let CommitBuilder { commit, parts, .. } = builder;
    let (committed, done) = commit.run_each_later().await?;
    Ok((committed.commit, all_done(parts, &done), handles.replayed()))
}

/// A commit under construction.
pub(super) struct CommitBuilder<'space> {
    server: &'space Server,
    space: &'space Space,
    pub(super) group: Group,
    commit: Commit,
    /// The attempt that fences all of it.
    pub(super) fence: Option<(String, u64)>,
    /// What each operation of the request became.
    parts: Vec<Parts>,
    depth: usize,
}

/// The operations of a commit that one operation of a request became.
pub(super) struct Parts {
    /// How many there are.
    pub(super) count: usize,
    /// How their results are shown as one; by default as the result of the only one.
    pub(super) shown: Option<Shown>,
}

/// Shows the results of several operations of a commit as one.
type Shown = Box<dyn FnOnce(&[StoredDone]) -> Done + Send>;

impl Parts {
    /// One operation.
    pub(super) const ONE: Self = Self { count: 1, shown: None };
}

impl<'space> CommitBuilder<'space> {
    fn new(server: &'space Server, space: &'space Space, group: Group, depth: usize) -> Result<Self, Refusal> {
        if depth > MESSAGE_DEPTH_MAX {
            return Err(Refusal::invalid("do", format!("do sends transactions more than {MESSAGE_DEPTH_MAX} deep")));
        }
        let commit = group.commit();
        Ok(Self { server, space, group, commit, fence: None, parts: Vec::new(), depth })
    }

    fn add(
        &mut self,
        guards: Option<Vec<Guard>>,
        fence: Option<Fence>,
        operations: Vec<Operation>,
    ) -> Result<(), Refusal> {
        if operations.is_empty() {
            return Err(Refusal::invalid("do", "do is empty: there is nothing to commit"));
        }
        if let Some(Fence { record, attempt }) = fence {
            self.fence_by(record, attempt)?;
        }
        // The reader has refused contradictions.
        for guard in guards.unwrap_or_default() {
            self.change(|commit| add_guard(commit, guard));
        }
        for operation in operations {
            let parts = add_operation(self, operation)?;
            self.parts.push(parts);
        }
        Ok(())
    }

    /// Adds to the commit.
    pub(super) fn change(&mut self, change: impl FnOnce(Commit) -> Commit) {
        let nothing = self.group.commit();
        self.commit = change(std::mem::replace(&mut self.commit, nothing));
    }

    /// Adds to the commit, or refuses the whole transaction.
    pub(super) fn try_change<T>(
        &mut self,
        change: impl FnOnce(Commit) -> Result<(Commit, T), Refusal>,
    ) -> Result<T, Refusal> {
        let nothing = self.group.commit();
        let (commit, changed) = change(std::mem::replace(&mut self.commit, nothing))?;
        self.commit = commit;
        Ok(changed)
    }

    /// Adds an operation that sends something.
    pub(super) fn send(&mut self, operation: MessageOperation) -> Result<(), Refusal> {
        match operation {
            MessageOperation::Publish(of) => {
                self.server.expect_broker(|| format!("a message to {:?}", of.topic))?;
                self.change(|commit| match of.after {
                    Some(after) => commit.publish_after(after.0, &of.topic, of.payload.0),
                    None => commit.publish(&of.topic, of.payload.0),
                });
            }
            MessageOperation::Push(of) => self.change(|commit| commit.push(of.session.0, of.payload.0)),
            MessageOperation::Send(of) => {
                let space = if of.force == Some(true) { self.space.forced() } else { self.space.clone() };
                let group = match of.owner {
                    None => space.group(&of.group),
                    Some(token) => {
                        let (shown, space) = (ShownToken { token, member: "owner" }, space.pinned()?);
                        let attempt = shown.attempt_in(&self.server.house, &space, Some(&of.group))?;
                        Group::clone(&space.group(&of.group).owned(attempt))
                    }
                };
                let mut sent = CommitBuilder::new(self.server, self.space, group, self.depth + 1)?;
                sent.add(of.guards, of.fence, of.operations)?;
                let sent = sent.commit;
                self.change(|commit| match of.after {
                    Some(after) => commit.send_after(after.0, sent),
                    None => commit.send(sent),
                });
            }
        }
        Ok(())
    }
}

/// The result of each operation of a request, from the results of its commit.
fn all_done(parts: Vec<Parts>, mut done: &[StoredDone]) -> Vec<Done> {
    let mut all = Vec::with_capacity(parts.len());
    for Parts { count, shown } in parts {
        let (of, rest) = done.split_at(count.min(done.len()));
        done = rest;
        all.push(match (shown, of) {
            (Some(shown), of) => shown(of),
            (None, [one]) => one_done(one),
            (None, of) => Done::Written(WrittenOperation::at(version_of(of).unwrap_or_default())),
        });
    }
    all
}

fn one_done(done: &StoredDone) -> Done {
    match done {
        StoredDone::Written { version } => Done::Written(WrittenOperation::at(*version)),
        StoredDone::Nothing => Done::Nothing(NothingDone { nothing: true }),
        StoredDone::Sent => Done::Sent(Sent { sent: true }),
        other => contract_done(other),
    }
}

/// The version after the last of several operations on one thing.
pub(super) fn version_of(done: &[StoredDone]) -> Option<u64> {
    done.iter().rev().find_map(StoredDone::version)
}
