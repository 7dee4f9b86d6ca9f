//! Operations and conditions on records in a transaction, and the results that only they have.

use super::TtlText;
use crate::contracts::Done;
use crate::error::DecodeError;
use crate::schema::object;
use crate::transactions::guards::{guards, only_true};
use crate::transactions::operation::operations;
use crate::values::{Members, UserJson};

object! {
    /// Replaces a record.
    request RecordPut {
        /// The record.
        name: String,
        /// Its fields: these and no others.
        fields: Members<UserJson>,
        /// Its type.
        "type" record_type: Option<String>,
        /// Its time to live.
        ttl: Option<TtlText>,
    }

    /// Changes a record.
    request RecordPatch {
        /// The record.
        name: String,
        /// Fields to write.
        set: Option<Members<UserJson>>,
        /// Fields to remove.
        unset: Option<Vec<String>>,
        /// Integer fields to increment.
        incr: Option<Members<i64>>,
        /// Fields and their expected values; null expects that the field does not exist.
        expect: Option<Members<UserJson>>,
        /// Its time to live.
        ttl: Option<TtlText>,
    }

    /// Adds to an integer field of a record.
    request RecordIncrement {
        /// The record.
        name: String,
        /// The field.
        field: String,
        /// The amount; 1 by default.
        by: Option<i64>,
    }

    /// Writes fields of a record, as its live attempt.
    request RecordStep {
        /// The record.
        name: String,
        /// Its attempt.
        attempt: u64,
        /// Fields to write.
        fields: Members<UserJson>,
    }

    /// Releases a record.
    request RecordRelease {
        /// The record.
        name: String,
        /// Its attempt.
        attempt: u64,
    }

    /// Completes a record.
    request RecordComplete {
        /// The record.
        name: String,
        /// Its attempt.
        attempt: u64,
        /// Fields to write with it.
        fields: Option<Members<UserJson>>,
    }

    /// Ends the attempt of a record as failed.
    request RecordFail {
        /// The record.
        name: String,
        /// Its attempt.
        attempt: u64,
        /// The reason.
        error: Option<String>,
    }

    /// Deletes a record.
    request RecordDelete {
        /// The record.
        name: String,
    }

    /// The fate of a record whose attempt failed.
    answer FailedOperation {
        /// The time until it is retried, if it is.
        retry_in_ms: Option<u64>,
        /// Whether its attempts are used up.
        exhausted: bool,
    }
}

operations! {
    /// An operation on a record.
    RecordOperation {
        /// Replaces a record.
        Put(RecordPut) = "record.put",
        /// Changes a record.
        Patch(RecordPatch) = "record.patch",
        /// Adds to an integer field of a record.
        Increment(RecordIncrement) = "record.incr",
        /// Writes fields of a record, as its live attempt.
        Step(RecordStep) = "record.step",
        /// Releases a record.
        Release(RecordRelease) = "record.release",
        /// Completes a record.
        Complete(RecordComplete) = "record.complete",
        /// Ends the attempt of a record as failed.
        Fail(RecordFail) = "record.fail",
        /// Deletes a record.
        Delete(RecordDelete) = "record.delete",
    }
}

guards! {
    /// The conditions on a record. All of them must hold.
    RecordGuard about {
        /// The record.
        record: String = "a record", if version | absent | exists | unchanged_since | state_in | attempt | field;
    } conditions {
        /// Its version.
        version: u64;
        /// `true`: it does not exist.
        absent: bool;
        /// `true`: it exists.
        exists: bool;
        /// No commit after this one has written it.
        unchanged_since: u64;
        /// The states that the record may be in.
        state_in: Vec<String>;
        /// The record's attempt, live or not.
        attempt: u64;
        /// A field of the record.
        field: String, with {
            /// The expected value of the field; null expects that it does not exist.
            is: UserJson
        };
    }
}

impl RecordGuard {
    fn could_hold(&self) -> Result<(), DecodeError> {
        only_true(&[("absent", self.absent), ("exists", self.exists)])?;
        match &self.state_in {
            Some(states) if states.is_empty() => {
                Err(DecodeError::wrong_value("state_in is empty, so it could never hold"))
            }
            _ => Ok(()),
        }
    }
}

impl Done {
    /// An attempt failed: the record is retried after this time, or its attempts are used up.
    pub fn failed(retry_in_ms: Option<u64>) -> Self {
        Self::Failed(FailedOperation { retry_in_ms, exhausted: retry_in_ms.is_none() })
    }
}
