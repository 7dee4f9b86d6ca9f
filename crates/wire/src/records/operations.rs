//! Operations on records in a transaction, and the results that only they have.

use super::TtlText;
use crate::schema::object;
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
