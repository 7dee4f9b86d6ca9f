//! Every limit by name. A request that exceeds one is rejected with that name.
//!
//! The limits in [`Limits`] change how a command is applied, so they are catalogue state: two releases can never
//! disagree on them. The constants limit what is admitted at all. A contract can have constants of its own, in the
//! `limits.rs` of its folder.

use std::time::Duration;

/// Bytes of a name: cell, group, space or branch.
pub const NAME_BYTES_MAX: usize = 1024;

/// Bytes of a worker's name.
pub const WORKER_BYTES_MAX: usize = 256;

/// How deep queues are nested. The rest of a longer name starts no further queue, so a prefix cannot be deeper either.
pub const QUEUE_DEPTH_MAX: usize = 8;

/// Bytes of the name of a record's field.
pub const FIELD_NAME_BYTES_MAX: usize = 256;

/// Records that one page of a scan examines.
pub const SCAN_ROWS_MAX: usize = 10_000;

/// Rows in one page of a list or a history.
pub const PAGE_ROWS_MAX: usize = 1000;

/// Bytes of values in one page of a list, a history, a scan or a run's events. A page ends with the row that reaches
/// the limit, and says where the next one starts.
pub const PAGE_BYTES_MAX: usize = 4 << 20;

/// How deep arrays and objects may be nested in stored JSON. Common readers give up at 128 levels (serde_json) or at
/// 100 (Ruby), and an answer adds a few levels: one value that could be written but not read would make every list that
/// holds it unreadable.
pub const JSON_DEPTH_MAX: usize = 96;

/// Bytes of the idempotency key of an event.
pub const EVENT_KEY_BYTES_MAX: usize = 256;

/// Bytes of each of an event's texts: its type, its step, its attempts.
pub const EVENT_TEXT_BYTES_MAX: usize = 256;

/// Bytes of the members of an event that the contract does not define, together.
pub const EVENT_EXTRA_BYTES_MAX: usize = 16 << 10;

/// Steps in the projection of a run. Events of further steps are only counted.
pub const RUN_STEPS_MAX: usize = 10_000;

/// Artifacts in the projection of a run, or of one of its steps. Further ones are in the events only.
pub const RUN_ARTIFACTS_MAX: usize = 64;

/// Bytes of artifacts in the projection of a run, or of one of its steps. Those that do not fit are in the events only.
pub const RUN_ARTIFACT_BYTES_MAX: usize = 64 << 10;

/// Bytes of the code, and of the message, of a step's error in the projection. The event has the whole text.
pub const STEP_ERROR_BYTES_MAX: usize = 4096;

/// Bytes of a run's kind.
pub const RUN_TYPE_BYTES_MAX: usize = 256;

/// Waiting updates that the commands of one journal entry apply when they seal ordered maps. Ticks apply the rest.
pub const SEALED_UPDATES_MAX: usize = 10_000;

/// Bytes of the rows that seals and sweeps of maps read in one journal entry. The row that exceeds them is the last.
pub const SEALED_BYTES_MAX: usize = 4 << 20;

/// Messages that were refused and are kept in a shard. One more is lost.
pub const DEAD_LETTERS_MAX: u32 = 100_000;

/// Messages to the groups of a space that were refused and are kept in a shard, so that one space leaves room for the others.
/// One more is lost.
pub const DEAD_LETTERS_OF_SPACE_MAX: u32 = 20_000;

/// How long a message that was refused is kept: a week.
pub const DEAD_LETTER_AGE_US: u64 = 7 * 24 * 3_600 * 1_000_000;

/// Guards of one space.
pub const GUARDS_MAX: usize = 256;

/// Open names of one guard.
pub const GUARD_OPEN_NAMES_MAX: usize = 64;

/// Principals of a store.
pub const PRINCIPALS_MAX: usize = 10_000;

/// Bytes of a principal's name.
pub const PRINCIPAL_NAME_BYTES_MAX: usize = 128;

/// Grants of a principal.
pub const GRANTS_MAX: usize = 64;

/// Identities of a principal besides its tokens.
pub const IDENTITIES_MAX: usize = 16;

/// Tokens of a principal that are good at the same time: an old one and the one that replaces it.
pub const TOKENS_LIVE_MAX: usize = 2;

/// How long a token is good at most: 90 days.
pub const TOKEN_AGE_MAX: Duration = Duration::from_secs(90 * 24 * 60 * 60);

/// How long a token is good at least.
pub const TOKEN_AGE_MIN: Duration = Duration::from_secs(60);

/// How deep transactions may be nested that are sent as messages.
pub const MESSAGE_DEPTH_MAX: usize = 8;

/// Bytes of a session's capabilities, names and values together.
pub const CAPABILITY_BYTES_MAX: usize = 4096;

/// The last commit of a shard that can create a session: its number is part of the session's.
pub const SESSION_COMMIT_MAX: u64 = (1 << 48) - 1;

/// The shortest timeout of a session.
pub const SESSION_TIMEOUT_MIN: Duration = Duration::from_millis(100);
/// The longest timeout of a session.
pub const SESSION_TIMEOUT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// How long an interactive transaction may take from start to commit.
pub const TRANSACTION_AGE_MAX: Duration = Duration::from_secs(60);

/// Cells, records and runs that an interactive transaction may read, by name or in ranges.
pub const TRANSACTION_READS_MAX: usize = 10_000;

/// Cells that the guards on ranges look at, all those of a transaction together: twice what an interactive one may read,
/// since others may have added some.
pub const TRANSACTION_RANGE_CELLS_MAX: usize = 20_000;

/// Guards of a transaction. In an interactive one, each name and each range that it reads becomes one.
pub const TRANSACTION_GUARDS_MAX: usize = 1_000;

/// Limits that are catalogue state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of one value.
    pub value_bytes_max: u32,
    /// Operations in one transaction.
    pub transaction_ops_max: u32,
    /// Bytes of one transaction: names, values and guards.
    pub transaction_bytes_max: u32,
    /// Old versions that one write removes beyond the one it displaces; a later walk removes the rest.
    pub write_trim_rows_max: u32,
    /// Spaces in a store.
    pub spaces_max: u32,
    /// Branches in a space, not counting deleted ones.
    pub branches_per_space_max: u32,
    /// Commits that the change feed reaches back; older ones are removed as new ones are added.
    pub changes_commits_max: u64,
    /// Maximum age of a change in the feed, in µs; older ones are removed as new ones are added.
    pub changes_age_us_max: u64,
    /// Fields of a record.
    pub record_fields_max: u32,
    /// Bytes of a record: the names and values of all its fields.
    pub record_bytes_max: u32,
    /// Records that one call claims.
    pub claim_records_max: u32,
    /// Bytes of records after which one call claims no more.
    pub claim_bytes_max: u32,
    /// Due steps that one tick executes; the rest waits for the next tick.
    pub tick_steps_max: u32,
    /// How long the row of a deleted record is kept, in µs.
    pub tombstone_age_us: u64,
    /// Sessions that exist at a time.
    pub sessions_max: u32,
    /// Stored answers of a session.
    pub session_answers_max: u32,
    /// Bytes of stored answers after which a session can send no new request.
    pub session_answer_bytes_max: u32,
    /// Unacknowledged pushes of a session. A session with more is ended.
    pub session_pushes_max: u32,
    /// Bytes of unacknowledged pushes. A session with more is ended.
    pub session_push_bytes_max: u32,
    /// Messages that wait: for their time, to be applied in a group, or to be published.
    pub messages_waiting_max: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            value_bytes_max: 1 << 20,
            transaction_ops_max: 128,
            transaction_bytes_max: 2 << 20,
            write_trim_rows_max: 4,
            spaces_max: 10_000,
            branches_per_space_max: 1_000,
            changes_commits_max: 1_000_000,
            changes_age_us_max: 60 * 60 * 1_000_000,
            record_fields_max: 256,
            record_bytes_max: 2 << 20,
            claim_records_max: 256,
            claim_bytes_max: 4 << 20,
            tick_steps_max: 256,
            tombstone_age_us: 24 * 60 * 60 * 1_000_000,
            sessions_max: 100_000,
            session_answers_max: 256,
            session_answer_bytes_max: 1 << 20,
            session_pushes_max: 1_024,
            session_push_bytes_max: 4 << 20,
            messages_waiting_max: 10_000_000,
        }
    }
}
