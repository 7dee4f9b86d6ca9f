//! Spaces, branches, record types and limits.

use crate::schema::{object, words};
use crate::values::{DurationText, Members};

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

    /// A state of a type.
    request StateText {
        /// Its name.
        name: String,
        /// Its meaning to the store.
        kind: StateKindText,
    }

    /// The pause after a failed attempt.
    request BackoffText {
        /// Pause after the first attempt.
        first: Option<DurationText>,
        /// Longest pause.
        max: Option<DurationText>,
        /// Pause after the first attempt in ms, as answers show it.
        first_ms: Option<u64>,
        /// Longest pause in ms, as answers show it.
        max_ms: Option<u64>,
    }

    /// Declares a type; omitted members default to those of the type `task`. A type can be declared as it is shown.
    request DeclareType {
        /// Its name.
        name: String,
        /// Prefixes, as answers show them; the declared prefix must be among them.
        prefixes: Option<Vec<String>>,
        /// The field that holds the state.
        state_field: Option<String>,
        /// The states; a new record is in the first.
        states: Option<Vec<StateText>>,
        /// The terminal state of a completed record.
        completed: Option<String>,
        /// The terminal state of a record whose attempts are used up.
        failed: Option<String>,
        /// The indexed fields, and their kinds.
        indexes: Option<Members<IndexKindText>>,
        /// Time to live of a record put without one.
        default_ttl: Option<DurationText>,
        /// The same in ms, as answers show it.
        default_ttl_ms: Option<u64>,
        /// Time to live of a record after it has reached a terminal state; a week if it is left out.
        terminal_ttl: Option<DurationText>,
        /// The same in ms, as answers show it.
        terminal_ttl_ms: Option<u64>,
        /// Whether a record that has reached a terminal state lives on as before.
        keep_finished: Option<bool>,
        /// The default lease of a claim.
        lease: Option<DurationText>,
        /// The same in ms, as answers show it.
        lease_ms: Option<u64>,
        /// Maximum number of attempts.
        attempts_max: Option<u64>,
        /// The pause between attempts.
        backoff: Option<BackoffText>,
        /// The field that orders claims: the smallest integer comes first.
        ready_order: Option<String>,
        /// The queue that gets a message when a record was rescued.
        rescued_to: Option<String>,
        /// The queue that gets a message when a record's attempts are used up.
        exhausted_to: Option<String>,
    }

    /// The pause after a failed attempt.
    answer ShownBackoff {
        /// Pause after the first attempt.
        first_ms: u64,
        /// Longest pause.
        max_ms: u64,
    }

    /// A type.
    answer ShownType {
        /// Its name.
        name: String,
        /// The prefixes it is declared for.
        prefixes: Vec<String>,
        /// The field that holds the state.
        state_field: String,
        /// The states; a new record is in the first.
        states: Vec<StateText>,
        /// The terminal state of a completed record.
        completed: String,
        /// The terminal state of a record whose attempts are used up.
        failed: String,
        /// The indexed fields, and their kinds.
        indexes: Members<IndexKindText>,
        /// Time to live of a record put without one.
        default_ttl_ms: Option<u64>,
        /// Time to live of a record after it has reached a terminal state.
        terminal_ttl_ms: Option<u64>,
        /// Whether a record that has reached a terminal state lives on as before.
        keep_finished: bool,
        /// The default lease of a claim.
        lease_ms: u64,
        /// Maximum number of attempts.
        attempts_max: u64,
        /// The pause between attempts.
        backoff: ShownBackoff,
        /// The field that orders claims: the smallest integer comes first; null to claim the longest ready first.
        ready_order: Option<String>,
        /// The queue that gets a message when a record was rescued.
        rescued_to: Option<String>,
        /// The queue that gets a message when a record's attempts are used up.
        exhausted_to: Option<String>,
    }

    /// The types of a space.
    answer TypeList {
        /// The types.
        types: Vec<ShownType>,
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

words! {
    /// The meaning of a state to the store.
    StateKindText {
        /// Ready to be claimed.
        Ready = "ready",
        /// Held by a worker.
        Held = "held",
        /// Finished.
        Terminal = "terminal",
    }

    /// The kind of an indexed field.
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
