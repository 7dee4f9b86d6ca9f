//! Claims: `records.claim`.

use crate::owners::Holder;
use crate::schema::{left_out, object};
use crate::values::{DurationText, Members, UserJson};

object! {
    /// Selects records to claim.
    request Claim {
        /// A prefix of queues: ends with `.`, `:` or `/`; empty for all queues. Required, unless `name` is given.
        prefix: Option<String>,
        /// One record, instead of a prefix.
        name: Option<String>,
        /// Maximum number of records; 1 by default.
        n: Option<u32>,
        /// The worker's own name, shown by `why` and in answers.
        worker: Option<String>,
        /// The lease; by default that of the record's type.
        lease: Option<DurationText>,
        /// How long to wait for a record if none is ready; at most a minute.
        wait: Option<DurationText>,
    }

    /// A claimed record.
    answer ClaimedRecord {
        /// Its name.
        record: String,
        /// Its group; left out if it has none.
        group["Option::is_none"]: Option<String>,
        /// The attempt's token: keep it, and send it back unchanged. Unique per attempt.
        token: String,
        /// The lease.
        lease_ms: u64,
        /// Its type, if it has one.
        "type" record_type: Option<String>,
        /// Its fields.
        fields: Members<UserJson>,
        /// The version at which each field was last written.
        field_versions: Members<u64>,
        /// Counts its writes.
        version: u64,
        /// The commit of its last write.
        commit: u64,
        /// When it was created.
        created_at: String,
        /// When it was last written.
        updated_at: String,
        /// Its remaining time to live, if it has one.
        ttl_ms: Option<u64>,
        /// The number of claims.
        attempt: u64,
        /// The number of failed attempts.
        failures: u64,
        /// The remaining pause before it can be claimed.
        ready_in_ms: Option<u64>,
        /// Its holder.
        holder: Option<Holder>,
    }

    /// The result of a claim.
    answer ClaimAnswer {
        /// The records; empty if none was ready.
        claimed: Vec<ClaimedRecord>,
    }
}

left_out! {
    Claim { prefix, name, n, worker, lease, wait }
}

impl Claim {
    /// Claims the next record of the queues with a prefix; `""` means all queues.
    pub fn of_queue(prefix: impl Into<String>) -> Self {
        Self { prefix: Some(prefix.into()), ..Self::default() }
    }

    /// Claims the record with this name.
    pub fn of_record(name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..Self::default() }
    }
}
