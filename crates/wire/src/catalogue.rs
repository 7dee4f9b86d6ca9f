//! Spaces, branches and limits.

use crate::schema::object;
use crate::values::DurationText;

object! {
    /// The spaces.
    answer SpaceList {
        /// Their names.
        spaces: Vec<String>,
    }

    /// A created space.
    answer SpaceMade {
        /// Its name.
        space: String,
    }

    /// Sets how much history the cells of a space keep.
    request SetRetention {
        /// Number of versions; null for all of them.
        versions: Option<u64>,
        /// Maximum age; null for no maximum.
        age: Option<DurationText>,
        /// The maximum age in ms, as answers show it.
        age_ms: Option<u64>,
    }

    /// How much history the cells of a space keep.
    answer Retention {
        /// Number of versions; null for all of them.
        versions: Option<u64>,
        /// Maximum age in ms; null for no maximum.
        age_ms: Option<u64>,
    }

    /// What the things of a contract take in a space.
    answer ContractUsage {
        /// The contract: `cells`, `records` or `runs`.
        contract: String,
        /// Things that exist.
        things: u64,
        /// Bytes of the keys and values of the rows that hold them, and of what is remembered of deleted ones.
        bytes: u64,
    }

    /// What the things of a space take, in all its branches.
    answer UsageAnswer {
        /// All contracts.
        contracts: Vec<ContractUsage>,
        /// Things of all contracts.
        things: u64,
        /// Bytes of all contracts.
        bytes: u64,
    }

    /// The branches of a space.
    answer BranchList {
        /// Their names.
        branches: Vec<String>,
    }

    /// A created branch.
    answer BranchMade {
        /// Its name.
        branch: String,
    }

    /// The limits in force.
    answer LimitsAnswer {
        /// Bytes of one value.
        value_bytes_max: u32,
        /// Operations in one transaction.
        transaction_ops_max: u32,
        /// Bytes of one transaction.
        transaction_bytes_max: u32,
        /// Old versions that one write removes beyond the one it displaces.
        write_trim_rows_max: u32,
        /// Spaces in a store.
        spaces_max: u32,
        /// Branches in a space.
        branches_per_space_max: u32,
        /// Commits that the change feed reaches back.
        changes_commits_max: u64,
        /// Maximum age of a change in the feed, in µs.
        changes_age_us_max: u64,
        /// Fields of a record.
        record_fields_max: u32,
        /// Bytes of a record.
        record_bytes_max: u32,
        /// Records that one call claims.
        claim_records_max: u32,
        /// Bytes of records after which one call claims no more.
        claim_bytes_max: u32,
        /// Due steps that one tick executes.
        tick_steps_max: u32,
        /// How long the row of a deleted record is kept, in µs.
        tombstone_age_us: u64,
        /// Sessions that exist at a time.
        sessions_max: u32,
        /// Stored answers of a session.
        session_answers_max: u32,
        /// Bytes of stored answers after which a session can send no new request.
        session_answer_bytes_max: u32,
        /// Unacknowledged pushes of a session.
        session_pushes_max: u32,
        /// Bytes of unacknowledged pushes of a session.
        session_push_bytes_max: u32,
        /// Messages that wait: for their time, to be applied in a group, or to be published.
        messages_waiting_max: u32,
    }
}
