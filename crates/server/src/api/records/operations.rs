//! Records in a transaction: operations on them, conditions on them, and the attempt that fences all of it.

use contract::access::{Area, Verb};
use contract::time::millis;
use statehouse::records::{Claimed, RecordDone};
use statehouse::{Commit, Done as StoredDone};
use wire::contracts::Done;
use wire::records::PatchRecord;
use wire::records::operations::{
    RecordComplete, RecordDelete, RecordFail, RecordGuard, RecordIncrement, RecordOperation, RecordPatch, RecordPut,
    RecordRelease, RecordStep,
};
use wire::transactions::WrittenOperation;
use wire::values::{Members, UserJson};

use super::{counted_values, fields, patched, put_options};
use crate::access::Needs;
use crate::api::Refusal;
use crate::api::transactions::{CommitBuilder, Parts, version_of};

impl CommitBuilder<'_> {
    /// Fences the commit by an attempt. A commit has one fence.
    pub(in crate::api) fn fence_by(&mut self, record: String, attempt: u64) -> Result<(), Refusal> {
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

    fn claimed(&self, record: &str, attempt: u64) -> Claimed {
        Claimed::of_attempt(record, Some(self.group.name()), attempt)
    }
}

/// Adds an operation on a record to a commit. Returns the operations of the commit that it became.
pub(in crate::api) fn add_operation(
    builder: &mut CommitBuilder<'_>,
    operation: RecordOperation,
) -> Result<Parts, Refusal> {
    match operation {
        RecordOperation::Put(of) => {
            let put = put_options(of.record_type, of.ttl);
            builder.change(|commit| commit.put_record(&of.name, fields(of.fields), put));
        }
        RecordOperation::Patch(of) => return add_patch(builder, of),
        RecordOperation::Increment(of) => {
            builder.change(|commit| commit.increment(&of.name, &of.field, of.by.unwrap_or(1)));
        }
        RecordOperation::Step(of) => {
            if of.fields.is_empty() {
                return Err(Refusal::invalid("fields", "fields is empty; a step writes at least one field"));
            }
            builder.fence_by(of.name.clone(), of.attempt)?;
            let patches = fields(of.fields).map(|(field, value)| (field, Some(value)));
            builder.change(|commit| commit.set_fields(&of.name, patches));
        }
        RecordOperation::Release(of) => {
            let claimed = builder.claimed(&of.name, of.attempt);
            builder.change(|commit| commit.release(&claimed));
        }
        RecordOperation::Complete(of) => {
            let claimed = builder.claimed(&of.name, of.attempt);
            builder.change(|commit| commit.complete(&claimed, fields(of.fields.unwrap_or_default())));
        }
        RecordOperation::Fail(of) => {
            let claimed = builder.claimed(&of.name, of.attempt);
            builder.change(|commit| commit.fail(&claimed, of.error.as_deref().unwrap_or_default()));
        }
        RecordOperation::Delete(of) => builder.change(|commit| commit.delete_record(&of.name)),
    }
    Ok(Parts::ONE)
}

/// A patch becomes an operation for each incremented field, one for the written and removed fields, and one for its time
/// to live. Their results are shown as one.
fn add_patch(builder: &mut CommitBuilder<'_>, of: RecordPatch) -> Result<Parts, Refusal> {
    let patch = PatchRecord { set: of.set, unset: of.unset, incr: of.incr, expect: of.expect, ttl: of.ttl };
    let writes = patch.set.as_ref().is_some_and(|set| !set.is_empty())
        || patch.unset.as_ref().is_some_and(|unset| !unset.is_empty());
    let touches = patch.ttl.is_some();
    let counted = builder.try_change(|commit| patched(commit, &of.name, patch))?;
    let count = counted.len() + usize::from(writes) + usize::from(touches);
    let shown = move |done: &[StoredDone]| {
        let values = Some(counted_values(counted, done)).filter(|values| !values.is_empty());
        Done::Written(WrittenOperation { values, ..WrittenOperation::at(version_of(done).unwrap_or_default()) })
    };
    Ok(Parts { count, shown: Some(Box::new(shown)) })
}

/// Shows a result that only operations on records have.
pub(in crate::api) fn done(done: &RecordDone) -> Done {
    let written = WrittenOperation::at(done.version().unwrap_or_default());
    match done {
        RecordDone::Counted { value, .. } => Done::Written(WrittenOperation { value: Some(*value), ..written }),
        RecordDone::Retried { pause, .. } => Done::failed(Some(millis(*pause))),
        RecordDone::Exhausted { .. } => Done::failed(None),
        _ => Done::Written(written),
    }
}

/// Adds the conditions on a record.
pub(in crate::api) fn add_guard(mut commit: Commit, guard: RecordGuard) -> Commit {
    let RecordGuard { record, version, absent, exists, unchanged_since, state_in, attempt, field, is } = guard;
    let Some(record) = &record else {
        return commit;
    };
    if absent == Some(true) {
        commit = commit.if_record_absent(record);
    }
    if exists == Some(true) {
        commit = commit.if_record_exists(record);
    }
    if let Some(since) = unchanged_since {
        commit = commit.if_record_unchanged_since(record, since);
    }
    if let Some(attempt) = attempt {
        commit = commit.if_record_attempt(record, attempt);
    }
    if let Some(version) = version {
        commit = commit.if_record_version(record, version);
    }
    if let Some(states) = &state_in {
        let states: Vec<_> = states.iter().map(String::as_str).collect();
        commit = commit.if_state_in(record, &states);
    }
    if let Some(field) = &field {
        commit = commit.if_field(record, field, is.map(|is| is.0));
    }
    commit
}

impl<'request> Needs<'request> {
    /// A fence by a record of a group: who has it acts as the worker that holds the record.
    pub(in crate::api) fn fence(&mut self, group: &'request str, record: &'request str) {
        self.thing(Verb::Claim, Area::Record, Some(group), record);
    }
}

/// Collects what an operation on a record of a group needs.
pub(in crate::api) fn operation_needs<'request>(
    operation: &'request RecordOperation,
    group: &'request str,
    needs: &mut Needs<'request>,
) {
    let (verbs, name): (&[Verb], _) = match operation {
        RecordOperation::Put(RecordPut { name, fields: _, record_type: _, ttl: _ })
        | RecordOperation::Delete(RecordDelete { name }) => (&[Verb::Write], name),
        RecordOperation::Patch(RecordPatch { name, set: _, unset: _, incr, expect, ttl: _ }) => {
            (patch_verbs(false, incr.as_ref(), expect.as_ref()), name)
        }
        RecordOperation::Increment(RecordIncrement { name, field: _, by: _ }) => (INCREMENT, name),
        RecordOperation::Step(RecordStep { name, attempt: _, fields: _ })
        | RecordOperation::Release(RecordRelease { name, attempt: _ })
        | RecordOperation::Complete(RecordComplete { name, attempt: _, fields: _ })
        | RecordOperation::Fail(RecordFail { name, attempt: _, error: _ }) => (&[Verb::Claim], name),
    };
    for verb in verbs {
        needs.thing(*verb, Area::Record, Some(group), name);
    }
}

/// An increment is answered with the new value.
const INCREMENT: &[Verb] = &[Verb::Write, Verb::Read];

/// What a patch does with its record. Values that it expects are a condition, whose refusal tells the value that is there.
pub(super) fn patch_verbs(
    is_conditional: bool,
    incr: Option<&Members<i64>>,
    expect: Option<&Members<UserJson>>,
) -> &'static [Verb] {
    let increments = incr.is_some_and(|incr| !incr.is_empty());
    let expects = expect.is_some_and(|expect| !expect.is_empty());
    match (is_conditional || expects, increments || expects) {
        (true, true) => &[Verb::Cas, Verb::Read],
        (true, false) => &[Verb::Cas],
        (false, true) => INCREMENT,
        (false, false) => &[Verb::Write],
    }
}

/// Collects what the conditions on a record of a group need.
pub(in crate::api) fn guard_needs<'request>(
    guard: &'request RecordGuard,
    group: &'request str,
    needs: &mut Needs<'request>,
) {
    let RecordGuard {
        record,
        version: _,
        absent: _,
        exists: _,
        unchanged_since: _,
        state_in: _,
        attempt: _,
        field: _,
        is: _,
    } = guard;
    if let Some(record) = record {
        needs.thing(Verb::Read, Area::Record, Some(group), record);
    }
}
