//! Spaces, branches, record types and limits.

use crate::schema::{object, words};
use crate::values::{DurationText, Members};

object! {
    /// The spaces.
    answer SpaceList {
        /// Their names.
        spaces: Vec<String>,
    }

    /// A space that was made.
    answer SpaceMade {
        /// Its name.
        space: String,
    }

    /// How much history the cells of a space are to keep.
    request SetRetention {
        /// How many versions; null for all of them.
        versions: Option<u64>,
        /// For how long; null for ever.
        age: Option<DurationText>,
        /// The same in ms, as it is shown.
        age_ms: Option<u64>,
    }

    /// How much history the cells of a space keep.
    answer Retention {
        /// How many versions; null for all of them.
        versions: Option<u64>,
        /// For how long; null for ever.
        age_ms: Option<u64>,
    }

    /// The branches of a space.
    answer BranchList {
        /// Their names.
        branches: Vec<String>,
    }

    /// A branch that was made.
    answer BranchMade {
        /// Its name.
        branch: String,
    }

    /// A state of a type.
    request StateText {
        /// Its name.
        name: String,
        /// What it means to the store.
        kind: StateKindText,
    }

    /// How long a record that failed waits.
    request BackoffText {
        /// After the first attempt.
        first: Option<DurationText>,
        /// At most.
        max: Option<DurationText>,
        /// The first in ms, as it is shown.
        first_ms: Option<u64>,
        /// The most in ms, as it is shown.
        max_ms: Option<u64>,
    }

    /// A type that is declared; what is left out is as the type `task` has it. What is shown can be declared.
    request DeclareType {
        /// Its name.
        name: String,
        /// Prefixes, as they are shown; the one that is declared is among them.
        prefixes: Option<Vec<String>>,
        /// The field that shows the state.
        state_field: Option<String>,
        /// The states; the first is that of a new record.
        states: Option<Vec<StateText>>,
        /// The terminal state of a record that was completed.
        completed: Option<String>,
        /// The terminal state of a record whose attempts are used up.
        failed: Option<String>,
        /// Fields that a scan can find records by, and what they hold.
        indexes: Option<Members<IndexKindText>>,
        /// How long a record exists that is put without a time to live.
        default_ttl: Option<DurationText>,
        /// The same in ms, as it is shown.
        default_ttl_ms: Option<u64>,
        /// How long a record exists after it has reached a terminal state.
        terminal_ttl: Option<DurationText>,
        /// The same in ms, as it is shown.
        terminal_ttl_ms: Option<u64>,
        /// How long a claim holds a record.
        lease: Option<DurationText>,
        /// The same in ms, as it is shown.
        lease_ms: Option<u64>,
        /// How often a record is tried.
        attempts_max: Option<u64>,
        /// How long it waits between tries.
        backoff: Option<BackoffText>,
        /// The field whose smallest integer is claimed first.
        ready_order: Option<String>,
        /// Where a message goes when a record was rescued.
        rescued_to: Option<String>,
        /// Where a message goes when a record's attempts are used up.
        exhausted_to: Option<String>,
    }

    /// How long a record that failed waits.
    answer ShownBackoff {
        /// After the first attempt.
        first_ms: u64,
        /// At most.
        max_ms: u64,
    }

    /// A type.
    answer ShownType {
        /// Its name.
        name: String,
        /// The prefixes that it is declared for.
        prefixes: Vec<String>,
        /// The field that shows the state.
        state_field: String,
        /// The states; the first is that of a new record.
        states: Vec<StateText>,
        /// The terminal state of a record that was completed.
        completed: String,
        /// The terminal state of a record whose attempts are used up.
        failed: String,
        /// Fields that a scan can find records by, and what they hold.
        indexes: Members<IndexKindText>,
        /// How long a record exists that is put without a time to live.
        default_ttl_ms: Option<u64>,
        /// How long a record exists after it has reached a terminal state.
        terminal_ttl_ms: Option<u64>,
        /// How long a claim holds a record.
        lease_ms: u64,
        /// How often a record is tried.
        attempts_max: u64,
        /// How long it waits between tries.
        backoff: ShownBackoff,
        /// The field whose smallest integer is claimed first; null for those that have been ready longest.
        ready_order: Option<String>,
        /// Where a message goes when a record was rescued.
        rescued_to: Option<String>,
        /// Where a message goes when a record's attempts are used up.
        exhausted_to: Option<String>,
    }

    /// The types of a space.
    answer TypeList {
        /// The types.
        types: Vec<ShownType>,
    }

    /// The limits that are in force.
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
        /// Commits that the change feed goes back.
        changes_commits_max: u64,
        /// How old a change may become in the feed, in µs.
        changes_age_us_max: u64,
        /// Fields of a record.
        record_fields_max: u32,
        /// Bytes of a record.
        record_bytes_max: u32,
        /// Records that one call claims.
        claim_records_max: u32,
        /// Bytes of records after which one call claims no more.
        claim_bytes_max: u32,
        /// Things that are due which one tick does.
        tick_steps_max: u32,
        /// How long the row of a deleted record is kept, in µs.
        tombstone_age_us: u64,
        /// Sessions that exist at a time.
        sessions_max: u32,
        /// Stored answers of a session.
        session_answers_max: u32,
        /// Bytes of stored answers after which a session can send no new request.
        session_answer_bytes_max: u32,
        /// Pushes that a session has not acknowledged.
        session_pushes_max: u32,
        /// Bytes of such pushes.
        session_push_bytes_max: u32,
    }
}

words! {
    /// What a state means to the store.
    StateKindText {
        /// Waits to be claimed.
        Ready = "ready",
        /// Held by a worker.
        Held = "held",
        /// Finished.
        Terminal = "terminal",
    }

    /// What an indexed field holds.
    IndexKindText {
        /// Bytes.
        Bytes = "bytes",
        /// An integer that is not negative.
        Unsigned = "unsigned",
        /// An integer.
        Signed = "signed",
        /// Text.
        Text = "text",
        /// A time in ms since 1970 in UTC.
        Time = "time",
    }
}
