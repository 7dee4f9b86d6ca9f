//! Records: read, put, patch, delete, scan, count.
//!
//! - [`attempts`]: the calls of an attempt. [`claims`]: how it begins. [`types`]: record types. [`owners`]: who owns a group.
//! - [`operations`]: operations and conditions in a transaction. `forms`: records as answers.
//! - [`routes`]: how the calls are reached. [`status`]: records on the status page.

mod attempts;
mod claims;
mod forms;
pub(super) mod metrics;
pub(super) mod operations;
mod owners;
pub(super) mod routes;
pub(super) mod status;
mod types;

use contract::{Error, Expected, NameInGroup, RecordRejection, Rejection, Value};
use statehouse::records::{FieldSwapped, Filter, Put, RecordDone, ScanOptions, Ttl};
use statehouse::{Commit, Done, Group, Records, Space};
use wire::operations::NoBody;
use wire::query::NoQuery;
use wire::records::{
    CountRecords, PatchRecord, Patched, PutRecord, ReadRecord, Record, RecordCounts, RecordPage, ScanRecords,
    StateCount, TtlText,
};
use wire::values::{Members, PageCursor, UserJson};
use wire::written::{Deleted, Written};

use super::scope::Handles;
use super::transactions::version_of;
use super::{Answered, Call, Refusal, Reply, page_limit};
use crate::Server;

/// The default number of records in a page.
const PAGE_ROWS: usize = 100;

impl Handles {
    /// The records of the scope.
    pub(crate) fn records(&self) -> Records {
        self.of(Group::records, Space::records)
    }
}

async fn read(server: Server, call: Call<ReadRecord, NoBody>) -> Answered<Record> {
    let records = call.scope.open(&server.house)?.records();
    let found = match &call.query.field {
        None => records.get(&call.name)?,
        Some(field) => records.get_only(&call.name, field)?,
    };
    match found {
        None => Err(Refusal::not_found("record", call.name)),
        Some(record) => {
            let version = record.version;
            Ok(Reply::new(forms::record(NameInGroup::new(call.name, None), record)).version(version))
        }
    }
}

/// Fields in the library's form.
fn fields(members: Members<UserJson>) -> impl Iterator<Item = (String, Value)> {
    members.0.into_iter().map(|(name, value)| (name, value.0))
}

/// Options of a put in the library's form.
fn put_options(record_type: Option<String>, ttl: Option<TtlText>) -> Put {
    Put { ttl: ttl.map_or(Ttl::Persist, |ttl| ttl.0), record_type }
}

/// The expected value of a field; null expects that it does not exist.
fn expected_value(value: UserJson) -> Option<Value> {
    Some(value.0).filter(|value| *value != Value::Null)
}

async fn put(server: Server, call: Call<NoQuery, PutRecord>) -> Answered<Written> {
    let Call { scope, name, body, expected, .. } = call;
    let handles = scope.open(&server.house)?;
    let commit = expecting(handles.records().commit(), &name, expected);
    let commit = commit.put_record(&name, fields(body.fields), put_options(body.record_type, body.ttl));
    let (committed, done) = commit.run_each_later().await.map_err(Refusal::Unexpected)?;
    let (version, commit) = (version_of(&done).unwrap_or_default(), committed.commit);
    let reply = Reply::new(Written { name, version, commit }).version(version).created(version == 1);
    Ok(reply.replayed(handles.replayed()))
}

fn expecting(commit: Commit, name: &str, expected: Option<Expected>) -> Commit {
    match expected {
        None => commit,
        Some(Expected::Absent) => commit.if_record_absent(name),
        Some(Expected::Version(version)) => commit.if_record_version(name, version),
    }
}

/// Adds a patch to a commit: its conditions, then its increments, writes and removals. Returns the incremented fields.
fn patched(mut commit: Commit, name: &str, patch: PatchRecord) -> Result<(Commit, Vec<String>), Refusal> {
    let PatchRecord { set, unset, incr, expect, ttl } = patch;
    for (field, value) in expect.unwrap_or_default().0 {
        commit = commit.if_field(name, &field, expected_value(value));
    }
    let mut counted = Vec::new();
    for (field, by) in incr.unwrap_or_default().0 {
        commit = commit.increment(name, &field, by);
        counted.push(field);
    }
    let mut patches: Vec<_> = fields(set.unwrap_or_default()).map(|(field, value)| (field, Some(value))).collect();
    for field in unset.unwrap_or_default() {
        if patches.iter().any(|(known, _)| *known == field) {
            return Err(Refusal::invalid("unset", format!("the field {field:?} is both written and removed")));
        }
        patches.push((field, None));
    }
    if let Some(field) = counted.iter().find(|field| patches.iter().any(|(known, _)| known == *field)) {
        return Err(Refusal::invalid(
            "incr",
            format!("the field {field:?} is both incremented and written or removed"),
        ));
    }
    if patches.is_empty() && counted.is_empty() && ttl.is_none() {
        let detail = "there is nothing to do: set, unset, incr and ttl are all missing".to_owned();
        return Err(Refusal::Invalid { member: None, detail });
    }
    if !patches.is_empty() {
        commit = commit.set_fields(name, patches);
    }
    if let Some(ttl) = ttl {
        commit = commit.set_ttl(name, ttl.0);
    }
    Ok((commit, counted))
}

/// The new values of incremented fields, from the results of their patch.
fn counted_values(counted: Vec<String>, done: &[Done]) -> Members<i64> {
    let values = done.iter().filter_map(|done| match done {
        Done::Record(RecordDone::Counted { value, .. }) => Some(*value),
        _ => None,
    });
    counted.into_iter().zip(values).collect()
}

/// Whether a patch only swaps one field. A record can also be claimed by a swap of its state.
fn is_swap(patch: &PatchRecord) -> bool {
    let one = |members: &Option<Members<UserJson>>| match members.as_ref().map(|members| &members.0[..]) {
        Some([(field, _)]) => Some(field.clone()),
        _ => None,
    };
    let alone = patch.unset.is_none() && patch.incr.is_none() && patch.ttl.is_none();
    alone && one(&patch.set).is_some() && one(&patch.set) == one(&patch.expect)
}

async fn patch(server: Server, call: Call<NoQuery, PatchRecord>) -> Answered<Patched> {
    let Call { scope, name, body, expected, .. } = call;
    let handles = scope.open(&server.house)?;
    if expected.is_none() && is_swap(&body) {
        let (set, expect) = (body.set.unwrap_or_default().0.pop(), body.expect.unwrap_or_default().0.pop());
        let (Some((field, new)), Some((_, value))) = (set, expect) else {
            return Err(Refusal::Internal("a swap has a field"));
        };
        let value = expected_value(value);
        return match handles.records().compare_and_swap_later(&name, &field, value, Some(new.0)).await? {
            FieldSwapped::Written(written) => {
                let (version, commit) = (written.version, written.commit);
                let patched = Patched { name, version, commit, values: None };
                Ok(Reply::new(patched).version(version).replayed(handles.replayed()))
            }
            FieldSwapped::Conflict { current } => {
                Err(Error::from(Rejection::Record(RecordRejection::FieldConflict { record: name, field, current }))
                    .into())
            }
        };
    }
    let commit = expecting(handles.records().commit(), &name, expected);
    let (commit, counted) = patched(commit, &name, body)?;
    let (committed, done) = commit.run_each_later().await.map_err(Refusal::Unexpected)?;
    let version = version_of(&done).unwrap_or_default();
    let values = Some(counted_values(counted, &done)).filter(|values| !values.is_empty());
    let patched = Patched { name, version, commit: committed.commit, values };
    Ok(Reply::new(patched).version(version).replayed(handles.replayed()))
}

async fn delete(server: Server, call: Call<NoQuery, NoBody>) -> Answered<Deleted> {
    let Call { scope, name, expected, .. } = call;
    let handles = scope.open(&server.house)?;
    let commit = expecting(handles.records().commit(), &name, expected).delete_record(&name);
    let (_, done) = commit.run_each_later().await.map_err(Refusal::Unexpected)?;
    match version_of(&done) {
        Some(version) => Ok(Reply::new(Deleted { name, version }).replayed(handles.replayed())),
        None => Err(Refusal::not_found("record", name)),
    }
}

async fn scan(server: Server, call: Call<ScanRecords, NoBody>) -> Answered<RecordPage> {
    let Call { scope, query, .. } = call;
    let prefix = query.prefix.unwrap_or_default();
    let filter = query.filter.map_or_else(Filter::all, |filter| filter.0);
    let mut options = ScanOptions::default().limit(page_limit(query.limit, PAGE_ROWS)?);
    options.record_type = query.record_type;
    options.cursor = query.cursor.map(|cursor| cursor.0);
    let memory = server.reserve_page().await?;
    let records = scope.open(&server.house)?.records();
    let found = server.call(move |_| records.scan(&prefix, &filter, &options)).await?;
    let records = found.records.into_iter().map(|(name, record)| forms::record(name, record)).collect();
    let cursor = found.cursor.map(PageCursor);
    Ok(Reply::page(RecordPage { records, cursor, looked_at: found.looked_at as u64 }, memory))
}

async fn counts(server: Server, call: Call<CountRecords, NoBody>) -> Answered<RecordCounts> {
    let Call { scope, query, .. } = call;
    let prefix = query.prefix.unwrap_or_default();
    let records = scope.open(&server.house)?.records();
    let counts = server.call(move |_| records.counts(&prefix)).await?;
    let counts = counts.by_state.into_iter();
    let counts = counts.map(|((record_type, state), count)| StateCount { record_type, state, count }).collect();
    Ok(Reply::new(RecordCounts { counts }))
}
