//! Transactions: operations of any contract in one commit, all or nothing.
//!
//! Keeps: every condition of a guard or an operation is part of the commit. A fence or guard that does not hold refuses
//! all of it, with the current state.

use contract::limits::MESSAGE_DEPTH_MAX;
use contract::time::millis;
use statehouse::records::Claimed;
use statehouse::runs::AppendOptions;
use statehouse::{Commit, Done as StoreDone, Space};
use wire::guards::{CellRange, Guard, GuardMembers};
use wire::query::NoQuery;
use wire::records::PatchRecord;
use wire::transactions::{
    Committed, Done, FailedOperation, Fence, NothingDone, Operation, Sent, Transaction, WrittenOperation,
};

use super::records::{counted_values, fields, patched, put_options};
use super::runs::{appended, event_of};
use super::{Answered, Call, Refusal, Reply};
use crate::Server;

pub(crate) async fn commit(server: Server, call: Call<NoQuery, Transaction>) -> Answered<Committed> {
    let Call { scope, name: group, body, .. } = call;
    let handles = scope.open(&server.house);
    let mut building = Building::new(&server, &handles.space, &group, 0)?;
    building.add(body.guards, body.fence, body.operations)?;
    let Building { commit, shapes, .. } = building;
    let (committed, done) = commit.run_each_later().await?;
    let done = shapes_of(shapes, &done);
    Ok(Reply::new(Committed { commit: committed.commit, done }).replayed(handles.replayed()))
}

/// A commit under construction.
struct Building<'space> {
    server: &'space Server,
    space: &'space Space,
    group: &'space str,
    commit: Commit,
    /// The attempt that fences all of it.
    fence: Option<(String, u64)>,
    /// How many operations of the commit each operation of the request became.
    shapes: Vec<Shape>,
    depth: usize,
}

/// The operations that an operation of the request became.
struct Shape {
    operations: usize,
    /// The fields that a patch increments.
    counted: Vec<String>,
    is_patch: bool,
}

impl<'space> Building<'space> {
    fn new(server: &'space Server, space: &'space Space, group: &'space str, depth: usize) -> Result<Self, Refusal> {
        if depth > MESSAGE_DEPTH_MAX {
            return Err(Refusal::invalid("do", format!("do sends transactions more than {MESSAGE_DEPTH_MAX} deep")));
        }
        let commit = space.group(group).commit();
        Ok(Self { server, space, group, commit, fence: None, shapes: Vec::new(), depth })
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
        for Guard(guard) in guards.unwrap_or_default() {
            self.guard(guard);
        }
        operations.into_iter().try_for_each(|operation| self.operation(operation))
    }

    fn change(&mut self, change: impl FnOnce(Commit) -> Commit) {
        let nothing = self.space.group(self.group).commit();
        self.commit = change(std::mem::replace(&mut self.commit, nothing));
    }

    fn claimed(&self, record: &str, attempt: u64) -> Claimed {
        Claimed::of_attempt(record, Some(self.group), attempt)
    }

    /// A commit has one fence.
    fn fence_by(&mut self, record: String, attempt: u64) -> Result<(), Refusal> {
        match &self.fence {
            Some(fence) if *fence == (record.clone(), attempt) => Ok(()),
            Some((other, _)) => {
                let detail = format!("a transaction is fenced by one attempt: this one by {other:?} and by {record:?}");
                Err(Refusal::invalid("fence", detail))
            }
            None => {
                let claimed = self.claimed(&record, attempt);
                self.change(|commit| commit.fence(&claimed));
                self.fence = Some((record, attempt));
                Ok(())
            }
        }
    }

    /// All conditions of a guard; the reader has refused contradictions.
    fn guard(&mut self, guard: GuardMembers) {
        let GuardMembers { cell, cells, record, version, version_below, absent, exists, .. } = guard;
        let GuardMembers { unchanged_since, state_in, attempt, field, is, run, last, .. } = guard;
        let (absent, exists) = (absent == Some(true), exists == Some(true));
        if let Some(cell) = cell {
            self.change(|mut commit| {
                if absent {
                    commit = commit.if_cell_absent(&cell);
                }
                if exists {
                    commit = commit.if_cell_exists(&cell);
                }
                if let Some(version) = version {
                    commit = commit.if_cell_version(&cell, version);
                }
                if let Some(version) = version_below {
                    commit = commit.if_cell_version_below(&cell, version);
                }
                if let Some(since) = unchanged_since {
                    commit = commit.if_cell_unchanged_since(&cell, since);
                }
                commit
            });
        }
        if let (Some(CellRange { from, before }), Some(since)) = (cells, unchanged_since) {
            self.change(|commit| commit.if_cells_unchanged_since(&from, before.as_deref(), since));
        }
        if let (Some(run), Some(last)) = (run, last) {
            self.change(|commit| commit.if_run_last(&run, last));
        }
        let Some(record) = record else {
            return;
        };
        self.change(|mut commit| {
            if absent {
                commit = commit.if_record_absent(&record);
            }
            if exists {
                commit = commit.if_record_exists(&record);
            }
            if let Some(since) = unchanged_since {
                commit = commit.if_record_unchanged_since(&record, since);
            }
            if let Some(attempt) = attempt {
                commit = commit.if_record_attempt(&record, attempt);
            }
            if let Some(version) = version {
                commit = commit.if_record_version(&record, version);
            }
            if let Some(states) = state_in {
                let states: Vec<_> = states.iter().map(String::as_str).collect();
                commit = commit.if_state_in(&record, &states);
            }
            if let Some(field) = field {
                commit = commit.if_field(&record, &field, is.map(|is| is.0));
            }
            commit
        });
    }

    fn operation(&mut self, operation: Operation) -> Result<(), Refusal> {
        let mut shape = Shape { operations: 1, counted: Vec::new(), is_patch: false };
        match operation {
            Operation::CellSet(of) => self.change(|commit| commit.set_cell(&of.name, of.value.0)),
            Operation::CellInit(of) => self.change(|commit| commit.init_cell(&of.name, of.value.0)),
            Operation::CellDelete(of) => self.change(|commit| commit.delete_cell(&of.name)),
            Operation::RecordPut(of) => {
                let put = put_options(of.record_type, of.ttl);
                self.change(|commit| commit.put_record(&of.name, fields(of.fields), put));
            }
            Operation::RecordPatch(of) => {
                let patch = PatchRecord { set: of.set, unset: of.unset, incr: of.incr, expect: of.expect, ttl: of.ttl };
                let writes = patch.set.as_ref().is_some_and(|set| !set.is_empty())
                    || patch.unset.as_ref().is_some_and(|unset| !unset.is_empty());
                let touches = patch.ttl.is_some();
                let nothing = self.space.group(self.group).commit();
                let (commit, counted) = patched(std::mem::replace(&mut self.commit, nothing), &of.name, patch)?;
                self.commit = commit;
                shape.operations = counted.len() + usize::from(writes) + usize::from(touches);
                (shape.counted, shape.is_patch) = (counted, true);
            }
            Operation::RecordIncrement(of) => {
                self.change(|commit| commit.increment(&of.name, &of.field, of.by.unwrap_or(1)));
            }
            Operation::RecordStep(of) => {
                if of.fields.is_empty() {
                    return Err(Refusal::invalid("fields", "fields is empty; a step writes at least one field"));
                }
                self.fence_by(of.name.clone(), of.attempt)?;
                let patches = fields(of.fields).map(|(field, value)| (field, Some(value)));
                self.change(|commit| commit.set_fields(&of.name, patches));
            }
            Operation::RecordRelease(of) => {
                let claimed = self.claimed(&of.name, of.attempt);
                self.change(|commit| commit.release(&claimed));
            }
            Operation::RecordComplete(of) => {
                let claimed = self.claimed(&of.name, of.attempt);
                self.change(|commit| commit.complete(&claimed, fields(of.fields.unwrap_or_default())));
            }
            Operation::RecordFail(of) => {
                let claimed = self.claimed(&of.name, of.attempt);
                self.change(|commit| commit.fail(&claimed, of.error.as_deref().unwrap_or_default()));
            }
            Operation::RecordDelete(of) => self.change(|commit| commit.delete_record(&of.name)),
            Operation::RunAppend(of) => {
                let event = event_of(&of.run, &of.event.0, None)?;
                let mut options = AppendOptions::run_type(of.run_type.unwrap_or_default());
                if let Some(last) = of.expect {
                    options = options.expecting(last);
                }
                self.change(|commit| commit.append(&of.run, &event, options));
            }
            Operation::Publish(of) => {
                self.server.expect_broker(|| format!("a message to {:?}", of.topic))?;
                self.change(|commit| match of.after {
                    Some(after) => commit.publish_after(after.0, &of.topic, of.payload.0),
                    None => commit.publish(&of.topic, of.payload.0),
                });
            }
            Operation::Push(of) => self.change(|commit| commit.push(of.session.0, of.payload.0)),
            Operation::Send(of) => {
                let mut sent = Building::new(self.server, self.space, &of.group, self.depth + 1)?;
                sent.add(of.guards, of.fence, of.operations)?;
                let sent = sent.commit;
                self.change(|commit| match of.after {
                    Some(after) => commit.send_after(after.0, sent),
                    None => commit.send(sent),
                });
            }
        }
        self.shapes.push(shape);
        Ok(())
    }
}

/// The result of each operation of a request, from the results of its commit.
fn shapes_of(shapes: Vec<Shape>, mut done: &[StoreDone]) -> Vec<Done> {
    let mut shown = Vec::with_capacity(shapes.len());
    for Shape { operations, counted, is_patch } in shapes {
        let (of, rest) = done.split_at(operations.min(done.len()));
        done = rest;
        shown.push(match (is_patch, of) {
            (false, [one]) => one_done(one),
            _ => Done::Written(WrittenOperation {
                version: version_of(of).unwrap_or_default(),
                existing: None,
                value: None,
                values: Some(counted_values(counted, of)).filter(|values| !values.is_empty()),
            }),
        });
    }
    shown
}

fn one_done(done: &StoreDone) -> Done {
    let written = |version, existing, value| Done::Written(WrittenOperation { version, existing, value, values: None });
    match done {
        StoreDone::Written { version } => written(*version, None, None),
        StoreDone::Existing { version } => written(*version, Some(true), None),
        StoreDone::Counted { version, value } => written(*version, None, Some(*value)),
        StoreDone::Appended(result) => Done::Appended(appended(*result, None)),
        StoreDone::Nothing => Done::Nothing(NothingDone { nothing: true }),
        StoreDone::Retried { pause, .. } => {
            Done::Failed(FailedOperation { retry_in_ms: Some(millis(*pause)), exhausted: false })
        }
        StoreDone::Exhausted { .. } => Done::Failed(FailedOperation { retry_in_ms: None, exhausted: true }),
        _ => Done::Sent(Sent { sent: true }),
    }
}

/// The version after the last of several operations on one thing.
pub(crate) fn version_of(done: &[StoreDone]) -> Option<u64> {
    done.iter().rev().find_map(|done| match done {
        StoreDone::Written { version } | StoreDone::Existing { version } | StoreDone::Counted { version, .. } => {
            Some(*version)
        }
        _ => None,
    })
}
