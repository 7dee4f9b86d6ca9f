//! Records in a commit: its operations on them, and its conditions.

use std::time::Duration;

use contract::records::{Claimed, Put};
use contract::{Error, Value, names};
use kernel::{Guard, Op, OpOutcome, RecordAct, RecordGuard, ValueRef};

use super::{Records, Ttl, borrowed, check_fields, owned, owned_patches, ttl_argument};
use crate::commit::{Commit, OwnGuard, OwnOp};

pub(super) enum OwnRecordGuard {
    StateIn(String, Vec<String>),
    VersionIs(String, u64),
    Absent(String),
    Exists(String),
    AttemptIs(String, u64),
    UnchangedSince(String, u64),
    FieldIs(String, String, Option<Value>),
}

impl OwnGuard for OwnRecordGuard {
    fn check(&self) -> Result<(), Error> {
        match self {
            Self::FieldIs(record, field, _) => {
                names::check_record(record)?;
                check_fields(std::iter::once(field.as_str()))?;
            }
            Self::StateIn(record, _)
            | Self::VersionIs(record, _)
            | Self::Absent(record)
            | Self::Exists(record)
            | Self::AttemptIs(record, _)
            | Self::UnchangedSince(record, _) => names::check_record(record)?,
        }
        Ok(())
    }

    fn guard(&self) -> Guard<'_> {
        Guard::Record(match self {
            Self::StateIn(record, states) => RecordGuard::StateIn(record, states.iter().map(String::as_str).collect()),
            Self::VersionIs(record, version) => RecordGuard::VersionIs(record, *version),
            Self::Absent(record) => RecordGuard::Absent(record),
            Self::Exists(record) => RecordGuard::Exists(record),
            Self::AttemptIs(record, attempt) => RecordGuard::AttemptIs(record, *attempt),
            Self::UnchangedSince(record, commit) => RecordGuard::UnchangedSince(record, *commit),
            Self::FieldIs(record, field, value) => {
                RecordGuard::FieldIs(record, field, value.as_ref().map(ValueRef::from))
            }
        })
    }
}

pub(super) enum OwnRecordOp {
    Put(String, Vec<(String, Value)>, Put),
    Patch(String, Vec<(String, Option<Value>)>),
    Increment(String, String, i64),
    Complete(String, u64, Vec<(String, Option<Value>)>),
    Release(String, u64),
    Fail(String, u64, Vec<(String, Option<Value>)>),
    Touch(String, Ttl),
    Delete(String),
}

impl OwnOp for OwnRecordOp {
    fn check(&self) -> Result<(), Error> {
        match self {
            Self::Put(record, fields, _) => {
                names::check_record(record)?;
                check_fields(fields.iter().map(|(field, _)| field.as_str()))?;
            }
            Self::Patch(record, fields) | Self::Complete(record, _, fields) | Self::Fail(record, _, fields) => {
                names::check_record(record)?;
                check_fields(fields.iter().map(|(field, _)| field.as_str()))?;
            }
            Self::Increment(record, field, _) => {
                names::check_record(record)?;
                check_fields(std::iter::once(field.as_str()))?;
            }
            Self::Delete(record) | Self::Touch(record, _) | Self::Release(record, _) => names::check_record(record)?,
        }
        Ok(())
    }

    fn op(&self) -> Op<'_> {
        let (record, act) = match self {
            Self::Put(record, fields, put) => {
                let fields = fields.iter().map(|(field, value)| (field.as_str(), ValueRef::from(value))).collect();
                let record_type = put.record_type.as_deref();
                (record, RecordAct::Put { record_type, ttl: ttl_argument(put.ttl), fields })
            }
            Self::Patch(record, fields) => (record, RecordAct::Patch { must_exist: false, fields: borrowed(fields) }),
            Self::Increment(record, field, by) => (record, RecordAct::Increment { field, by: *by }),
            Self::Complete(record, attempt, fields) => {
                (record, RecordAct::Complete { attempt: *attempt, fields: borrowed(fields) })
            }
            Self::Release(record, attempt) => (record, RecordAct::Release { attempt: *attempt }),
            Self::Fail(record, attempt, fields) => {
                (record, RecordAct::Fail { attempt: *attempt, fields: borrowed(fields) })
            }
            Self::Touch(record, ttl) => (record, RecordAct::Touch { ttl: ttl_argument(*ttl) }),
            Self::Delete(record) => (record, RecordAct::Delete),
        };
        Op::Record(record, act)
    }
}

/// The result of an operation on a record, where it is more than a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordDone {
    /// The field was counted.
    Counted {
        /// The record's version.
        version: u64,
        /// The new value of the field.
        value: i64,
    },
    /// The attempt failed, and the record will be tried again.
    Retried {
        /// The record's version.
        version: u64,
        /// After this pause.
        pause: Duration,
    },
    /// The attempt failed, and the record's attempts are used up.
    Exhausted {
        /// The record's version.
        version: u64,
    },
}

impl RecordDone {
    /// The record's version.
    pub fn version(&self) -> Option<u64> {
        let (Self::Counted { version, .. } | Self::Retried { version, .. } | Self::Exhausted { version }) = self;
        Some(*version)
    }
}

/// The result of an operation, if only records have such results.
pub(crate) fn done(outcome: &OpOutcome) -> Option<RecordDone> {
    Some(match *outcome {
        OpOutcome::Counted { version, value } => RecordDone::Counted { version, value },
        OpOutcome::Retried { version, pause_us } => {
            RecordDone::Retried { version, pause: Duration::from_micros(pause_us) }
        }
        OpOutcome::Exhausted { version } => RecordDone::Exhausted { version },
        _ => return None,
    })
}

impl Commit {
    /// Only if this attempt is the live one. The record must be of this group.
    pub fn fence(self, claimed: &Claimed) -> Self {
        self.pinned_to(claimed.place).fenced_by(claimed.name.clone(), claimed.attempt)
    }

    /// Replaces a record.
    pub fn put_record<N: AsRef<str>, V: Into<Value>>(
        self,
        record: &str,
        fields: impl IntoIterator<Item = (N, V)>,
        put: Put,
    ) -> Self {
        self.with_op(OwnRecordOp::Put(record.to_owned(), owned(fields), put))
    }

    /// Writes and removes fields of a record; creates it if needed.
    pub fn set_fields<N: AsRef<str>>(self, record: &str, fields: impl IntoIterator<Item = (N, Option<Value>)>) -> Self {
        self.with_op(OwnRecordOp::Patch(record.to_owned(), owned_patches(fields)))
    }

    /// Adds to an integer field of a record.
    pub fn increment(self, record: &str, field: &str, by: i64) -> Self {
        self.with_op(OwnRecordOp::Increment(record.to_owned(), field.to_owned(), by))
    }

    /// Completes a claimed record.
    pub fn complete<N: AsRef<str>, V: Into<Value>>(
        self,
        claimed: &Claimed,
        fields: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        let fields = owned(fields).into_iter().map(|(field, value)| (field, Some(value))).collect();
        self.pinned_to(claimed.place).with_op(OwnRecordOp::Complete(claimed.name.clone(), claimed.attempt, fields))
    }

    /// Releases a claimed record: it can be claimed at once, and the attempt does not count as failed.
    pub fn release(self, claimed: &Claimed) -> Self {
        self.pinned_to(claimed.place).with_op(OwnRecordOp::Release(claimed.name.clone(), claimed.attempt))
    }

    /// Says that the attempt of a record failed: it will be tried again after a pause, or its budget is used up.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
    /// use statehouse::Done;
    /// use statehouse::records::{ClaimOptions, Put, RecordDone};
    /// let order = house.group("order-7");
    /// order.records().put("jobs.charge.7", [("eur", 10)], Put::typed("task"))?;
    /// let job = house.records().claim_next("jobs.charge.", 1, &ClaimOptions::worker("w1"))?.remove(0);
    /// let (_, done) = order.commit().set_cell("declined", true).fail(&job, "declined").run_each_later().wait()?;
    /// assert!(matches!(done[1], Done::Record(RecordDone::Retried { version: 3, .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fail(self, claimed: &Claimed, error: &str) -> Self {
        let fields = owned_patches([("error", Some(Value::from(error)))]);
        self.pinned_to(claimed.place).with_op(OwnRecordOp::Fail(claimed.name.clone(), claimed.attempt, fields))
    }

    /// Sets how long a record will exist.
    pub fn set_ttl(self, record: &str, ttl: Ttl) -> Self {
        self.with_op(OwnRecordOp::Touch(record.to_owned(), ttl))
    }

    /// Deletes a record.
    pub fn delete_record(self, record: &str) -> Self {
        self.with_op(OwnRecordOp::Delete(record.to_owned()))
    }

    /// Only if the record is in one of these states.
    pub fn if_state_in(self, record: &str, states: &[&str]) -> Self {
        let states = states.iter().map(|state| (*state).to_owned()).collect();
        self.with_guard(OwnRecordGuard::StateIn(record.to_owned(), states))
    }

    /// Only if the record is at this version.
    pub fn if_record_version(self, record: &str, version: u64) -> Self {
        self.with_guard(OwnRecordGuard::VersionIs(record.to_owned(), version))
    }

    /// Only if the record does not exist.
    pub fn if_record_absent(self, record: &str) -> Self {
        self.with_guard(OwnRecordGuard::Absent(record.to_owned()))
    }

    /// Only if the record exists.
    pub fn if_record_exists(self, record: &str) -> Self {
        self.with_guard(OwnRecordGuard::Exists(record.to_owned()))
    }

    /// Only if the record is at this attempt, whether that is live or over.
    pub fn if_record_attempt(self, record: &str, attempt: u64) -> Self {
        self.with_guard(OwnRecordGuard::AttemptIs(record.to_owned(), attempt))
    }

    /// Only if no commit after this one has written the record.
    pub fn if_record_unchanged_since(self, record: &str, commit: u64) -> Self {
        self.with_guard(OwnRecordGuard::UnchangedSince(record.to_owned(), commit))
    }

    /// Only if the field of the record holds this value; none expects that the field does not exist.
    pub fn if_field(self, record: &str, field: &str, value: Option<Value>) -> Self {
        self.with_guard(OwnRecordGuard::FieldIs(record.to_owned(), field.to_owned(), value))
    }
}

impl Records {
    /// Starts a commit in the group of these records. Records without a group form one each, so the commit can concern
    /// only one of them.
    pub fn commit(&self) -> Commit {
        Commit::new(self.scope.clone(), self.group.as_deref().map(str::to_owned))
    }
}
