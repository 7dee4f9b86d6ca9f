//! Claims: `records.claim`.

use crate::records::Holder;
use crate::schema::object;
use crate::values::{DurationText, Members, UserJson};

object! {
    /// Which records are claimed, and how.
    request Claim {
        /// Of queues: ends with `.`, `:` or `/`; empty for all queues. Required, unless `name` is there.
        prefix: Option<String>,
        /// One record, instead of a prefix.
        name: Option<String>,
        /// How many at most; 1 if it is left out.
        n: Option<u32>,
        /// The worker's own name, shown to whoever asks.
        worker: Option<String>,
        /// For how long; left out, as the record's type says.
        lease: Option<DurationText>,
        /// How long to wait for a record if none is ready; at most a minute.
        wait: Option<DurationText>,
    }

    /// A record that was claimed, with what its worker needs.
    answer ClaimedRecord {
        /// Its name.
        record: String,
        /// Its group, or null if that is its name.
        group: Option<String>,
        /// The attempt: keep it, and hand it back as it is. Unique for each attempt.
        token: String,
        /// How long the record is held.
        lease_ms: u64,
        /// Its type, if it has one.
        "type" record_type: Option<String>,
        /// What it holds.
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
        /// How long it will still exist, if that is bounded.
        ttl_ms: Option<u64>,
        /// How often it was claimed.
        attempt: u64,
        /// How many of its attempts have failed.
        failures: u64,
        /// How long it cannot be claimed yet.
        ready_in_ms: Option<u64>,
        /// Who holds it.
        holder: Option<Holder>,
    }

    /// What was claimed.
    answer ClaimAnswer {
        /// The records; none if none was ready.
        claimed: Vec<ClaimedRecord>,
    }
}
