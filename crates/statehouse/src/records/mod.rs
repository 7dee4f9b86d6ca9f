//! Records: the handle on job state, and each of its operations.

mod attempts;
pub(crate) mod authority;
pub(crate) mod commit;
pub(crate) mod export;
mod handles;
pub(crate) mod import;
mod overview;
pub(crate) mod owned_group;
mod portable;
mod reads;
mod time_over;
mod transaction;
mod types;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use contract::limits::FIELD_NAME_BYTES_MAX;
use contract::{Deleted, Error, RecordRejection, Rejection, Value, Written, names};
use kernel::catalogue::types::micros;
use kernel::{Answer, Body, Catalogue, Fence, Op, OpOutcome, RecordAct, Transact, TtlArgument, ValueRef};
use node::error::unexpected_answer;
use node::pending::{Decode, Pending};

pub use attempts::ClaimOptions;
pub use commit::RecordDone;
pub use contract::AttemptPlace;
pub use contract::records::filter::{Filter, Test};
pub use contract::records::state_store::{Comparison, PortableRecord, PortableScan, ScanFilter, StateStore};
pub use contract::records::types::{Backoff, IndexKind, ReadyOrder, RecordType, State, StateKind};
pub use contract::records::{
    AttemptToken, Claimed, Counts, Field, FieldSwapped, Holder, Put, Record, Retry, Scanned, Ttl,
};
pub use overview::RecordsOverview;
pub use portable::PortableRecords;
pub use reads::ScanOptions;
pub(crate) use reads::scan_view;
pub use transaction::TransactionRecords;

use crate::admission::{Scope, ScopeIds};
use crate::commit::{outcome, written};

/// Records of a branch, or of a group in it. Each call is atomic and durable when it returns.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
/// use statehouse::records::{ClaimOptions, Put};
/// let records = house.records();
/// records.put("jobs.email.42", [("to", "a@b.c")], Put::typed("task"))?;
/// let job = records.claim_next("jobs.email.", 1, &ClaimOptions::worker("w1"))?.remove(0);
/// assert_eq!((job.attempt, job.token.as_str()), (1, format!("jobs.email.42#1#h{:016x}", house.id()).as_str()));
/// records.step(&job, [("state", "running")])?;
/// records.complete(&job, [("result", "sent")])?;
/// let error = records.complete(&job, [("result", "twice")]).expect_err("the attempt is over");
/// assert_eq!(error.code(), "SH-4002");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Records {
    pub(crate) scope: Scope,
    pub(crate) group: Option<Arc<str>>,
}

impl Records {
    pub(crate) fn new(scope: Scope, group: Option<Arc<str>>) -> Self {
        Self { scope, group }
    }

    /// Replaces the record: it holds these fields and no others.
    pub fn put<N: AsRef<str>, V: Into<Value>>(
        &self,
        record: &str,
        fields: impl IntoIterator<Item = (N, V)>,
        put: Put,
    ) -> Result<Written, Error> {
        self.put_later(record, fields, put).wait()
    }

    /// [`put`](Self::put), answered later.
    pub fn put_later<N: AsRef<str>, V: Into<Value>>(
        &self,
        record: &str,
        fields: impl IntoIterator<Item = (N, V)>,
        put: Put,
    ) -> Pending<Written> {
        let fields = owned(fields);
        let act = RecordAct::Put {
            record_type: put.record_type.as_deref(),
            ttl: ttl_argument(put.ttl),
            fields: fields.iter().map(|(field, value)| (field.as_str(), ValueRef::from(value))).collect(),
        };
        self.propose(record, fields.iter().map(|(field, _)| field.as_str()), None, act, written)
    }

    /// Writes a field; creates the record if needed. Its TTL stays unchanged.
    pub fn set_field(&self, record: &str, field: &str, value: impl Into<Value>) -> Result<Written, Error> {
        self.set_fields(record, [(field, Some(value.into()))])
    }

    /// Writes fields, all or none; a value of none removes the field. Creates the record if needed.
    pub fn set_fields<N: AsRef<str>>(
        &self,
        record: &str,
        fields: impl IntoIterator<Item = (N, Option<Value>)>,
    ) -> Result<Written, Error> {
        self.patch(record, fields, false, None).wait()
    }

    /// Writes fields of a record that exists; refused if it does not.
    pub fn update_fields<N: AsRef<str>>(
        &self,
        record: &str,
        fields: impl IntoIterator<Item = (N, Option<Value>)>,
    ) -> Result<Written, Error> {
        self.patch(record, fields, true, None).wait()
    }

    fn patch<N: AsRef<str>>(
        &self,
        record: &str,
        fields: impl IntoIterator<Item = (N, Option<Value>)>,
        must_exist: bool,
        fence: Option<Fence<'_>>,
    ) -> Pending<Written> {
        let fields = owned_patches(fields);
        let act = RecordAct::Patch { must_exist, fields: borrowed(&fields) };
        self.propose(record, fields.iter().map(|(field, _)| field.as_str()), fence, act, written)
    }

    /// Writes a field if it holds the expected value; none expects that the field does not exist.
    pub fn compare_and_swap(
        &self,
        record: &str,
        field: &str,
        expected: Option<Value>,
        new: Option<Value>,
    ) -> Result<FieldSwapped, Error> {
        self.compare_and_swap_later(record, field, expected, new).wait()
    }

    /// [`compare_and_swap`](Self::compare_and_swap), answered later.
    pub fn compare_and_swap_later(
        &self,
        record: &str,
        field: &str,
        expected: Option<Value>,
        new: Option<Value>,
    ) -> Pending<FieldSwapped> {
        let act = RecordAct::Swap {
            field,
            expected: expected.as_ref().map(ValueRef::from),
            new: new.as_ref().map(ValueRef::from),
        };
        self.propose(record, [field].into_iter(), None, act, |answer| match answer {
            Answer::Rejected(Rejection::Record(RecordRejection::FieldConflict { current, .. })) => {
                Ok(FieldSwapped::Conflict { current })
            }
            other => written(other).map(FieldSwapped::Written),
        })
    }

    /// Adds to an integer field and returns its new value; a missing field counts as 0.
    pub fn increment(&self, record: &str, field: &str, by: i64) -> Result<i64, Error> {
        self.increment_later(record, field, by).wait()
    }

    /// [`increment`](Self::increment), answered later.
    pub fn increment_later(&self, record: &str, field: &str, by: i64) -> Pending<i64> {
        let act = RecordAct::Increment { field, by };
        self.propose(record, [field].into_iter(), None, act, |answer| match outcome(answer)? {
            (_, OpOutcome::Counted { value, .. }) => Ok(value),
            other => Err(unexpected_answer("an increment", &other)),
        })
    }

    /// Deletes the record, if it exists. Its version continues if it is written again.
    pub fn delete(&self, record: &str) -> Result<Deleted, Error> {
        self.delete_later(record).wait()
    }

    /// [`delete`](Self::delete), answered later.
    pub fn delete_later(&self, record: &str) -> Pending<Deleted> {
        self.propose(record, [].into_iter(), None, RecordAct::Delete, |answer| match outcome(answer)? {
            (_, OpOutcome::Written(version)) => Ok(Deleted { version: Some(version) }),
            (_, OpOutcome::Nothing) => Ok(Deleted { version: None }),
            other => Err(unexpected_answer("a deletion", &other)),
        })
    }

    /// Sets the time to live of the record, counted from now.
    pub fn touch(&self, record: &str, ttl: Duration) -> Result<Written, Error> {
        let act = RecordAct::Touch { ttl: ttl_argument(Ttl::After(ttl)) };
        self.propose(record, [].into_iter(), None, act, written).wait()
    }

    /// The record will exist until it is deleted.
    pub fn persist(&self, record: &str) -> Result<Written, Error> {
        let act = RecordAct::Touch { ttl: TtlArgument::Persist };
        self.propose(record, [].into_iter(), None, act, written).wait()
    }

    fn propose<'field, T>(
        &self,
        record: &str,
        fields: impl Iterator<Item = &'field str>,
        fence: Option<Fence<'_>>,
        act: RecordAct<'_>,
        decode: fn(Answer) -> Result<T, Error>,
    ) -> Pending<T> {
        self.propose_read_by(record, fields, fence, act, Decode::Contracts(decode))
    }

    fn propose_read_by<'field, T>(
        &self,
        record: &str,
        fields: impl Iterator<Item = &'field str>,
        fence: Option<Fence<'_>>,
        act: RecordAct<'_>,
        decode: Decode<T>,
    ) -> Pending<T> {
        let prepared = check_fields(fields).map_err(Error::from).and_then(|()| self.prepare(record));
        let (catalogue, ids) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => return Pending::refused(error),
        };
        let transact = Transact {
            fences: fence.into_iter().collect(),
            ..Transact::new(ids.space, ids.branch, self.group.as_deref(), vec![Op::Record(record, act)])
        };
        self.scope.propose_read_by(&catalogue, &Body::Transact(transact), decode)
    }

    fn prepare(&self, record: &str) -> Result<(Arc<Catalogue>, ScopeIds), Error> {
        self.check_names(record)?;
        self.scope.current()
    }

    fn check_names(&self, record: &str) -> Result<(), Error> {
        if let Some(group) = &self.group {
            names::check_group(group)?;
        }
        names::check_record(record)?;
        Ok(())
    }
}

pub(crate) fn check_fields<'field>(fields: impl Iterator<Item = &'field str>) -> Result<(), Rejection> {
    for field in fields {
        if field.is_empty() {
            return Err(Rejection::InvalidName { what: "a field's name", reason: "it is empty" });
        }
        Rejection::check_limit("field_name_bytes_max", FIELD_NAME_BYTES_MAX, field.len())?;
    }
    Ok(())
}

pub(crate) fn owned<N: AsRef<str>, V: Into<Value>>(fields: impl IntoIterator<Item = (N, V)>) -> Vec<(String, Value)> {
    fields.into_iter().map(|(field, value)| (field.as_ref().to_owned(), value.into())).collect()
}

pub(crate) fn owned_patches<N: AsRef<str>>(
    fields: impl IntoIterator<Item = (N, Option<Value>)>,
) -> Vec<(String, Option<Value>)> {
    fields.into_iter().map(|(field, value)| (field.as_ref().to_owned(), value)).collect()
}

pub(crate) fn borrowed(fields: &[(String, Option<Value>)]) -> Vec<(&str, Option<ValueRef<'_>>)> {
    fields.iter().map(|(field, value)| (field.as_str(), value.as_ref().map(ValueRef::from))).collect()
}

pub(crate) fn ttl_argument(ttl: Ttl) -> TtlArgument {
    match ttl {
        Ttl::Persist => TtlArgument::Persist,
        Ttl::Keep => TtlArgument::Keep,
        Ttl::After(ttl) => TtlArgument::After(micros(ttl)),
        Ttl::WithSession => TtlArgument::WithSession,
    }
}
