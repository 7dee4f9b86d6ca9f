//! The types of records: how a space declares them, and how it shows them.

use crate::schema::{object, words};
use crate::values::{DurationText, Members};

object! {
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
        /// Whether a held record takes writes only with the fence of its attempt; false by default.
        guarded: Option<bool>,
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
        /// Whether a held record takes writes only with the fence of its attempt.
        guarded: bool,
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
