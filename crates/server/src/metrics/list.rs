//! Every metric that is of no contract: its name, kind, labels and help text. A contract has its own in the `metrics.rs` of its
//! folder. A test keeps `docs/metrics.md` and `monitoring/` consistent with all of them.
//!
//! Never: uses names of cells, records, runs or sessions as labels. Names of types are limited, see `labels`.

/// A metric.
#[derive(Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its name as Prometheus stores it; a counter's ends with `_total`.
    pub name: &'static str,
    /// Its kind.
    pub kind: Kind,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// Its help text.
    pub help: &'static str,
}

/// The kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only rises, and starts at 0 when the server starts.
    Counter,
    /// A current amount.
    Gauge,
    /// Durations, in buckets.
    Histogram,
}

pub(crate) const fn counter(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, kind: Kind::Counter, labels, help }
}

pub(crate) const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, kind: Kind::Gauge, labels, help }
}

const fn histogram(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, kind: Kind::Histogram, labels, help }
}

/// Makes constants of metrics, and `LIST`, which has all of them.
macro_rules! metrics {
    ($($constant:ident = $metric:expr;)*) => {
        $(pub(crate) const $constant: $crate::metrics::list::Metric = $metric;)*

        /// All of them.
        pub(crate) const LIST: &[$crate::metrics::list::Metric] = &[$($constant),*];
    };
}

pub(crate) use metrics;

metrics! {
    BUILD_INFO = gauge("statehouse_build_info", &["version"], "Always 1; the label gives the version.");
    READY = gauge("statehouse_ready", &[], "1 while the server accepts requests; 0 while it drains or after its store has stopped.");
    STORE_STOPPED = gauge("statehouse_store_stopped", &[], "1 once the store has stopped at a failure and must be reopened.");

    REQUESTS = counter("statehouse_requests_total", &["contract", "op", "code"], "Answered requests; code is ok or the code of the error.");
    REQUEST_DURATION = histogram("statehouse_request_duration_seconds", &["contract", "op"], "Time from the head of a request to the head of its answer, including any requested wait.");
    CONFLICTS = counter("statehouse_conflicts_total", &["contract", "type"], "Commands refused because something was not as they expected.");
    LABEL_VALUES = gauge("statehouse_label_values", &["label"], "Distinct values of a label that users choose.");
    LABEL_VALUES_LIMIT = gauge("statehouse_label_values_limit", &["label"], "Maximum number of distinct values; further ones are counted as other.");

    COMMIT_INDEX = gauge("statehouse_commit_index", &[], "Number of the last applied command.");
    APPLIED_INDEX = gauge("statehouse_applied_index", &[], "Last applied entry of the journal.");
    DURABLE_INDEX = gauge("statehouse_durable_index", &[], "Last durable entry of the journal.");
    APPLY_LAG = gauge("statehouse_apply_lag_entries", &[], "Entries that are durable but not yet applied.");
    ENTRIES_APPLIED = counter("statehouse_entries_applied_total", &[], "Applied entries, without replayed ones.");
    COMMANDS_APPLIED = counter("statehouse_commands_applied_total", &[], "Commands in those entries.");
    REPLAYED_ENTRIES = gauge("statehouse_replayed_entries", &[], "Entries replayed when the store was opened.");
    REPLAY_SECONDS = gauge("statehouse_replay_seconds", &[], "Duration of that replay.");
    REPLAY_PROGRESS = gauge("statehouse_replay_progress_ratio", &[], "Part of the journal that the starting server has replayed, by bytes: 0 to 1, and 1 once it has started.");
    JOURNAL_SYNC = histogram("statehouse_journal_sync_duration_seconds", &[], "Time from handing an entry to the journal files until it is durable.");
    JOURNAL_QUEUE_BYTES = gauge("statehouse_journal_queue_bytes", &[], "Bytes of the commands waiting to be written to the journal.");
    JOURNAL_QUEUE_LIMIT = gauge("statehouse_journal_queue_limit_bytes", &[], "Bytes that may wait before commands are refused.");
    JOURNAL_QUEUE_COMMANDS = gauge("statehouse_journal_queue_commands", &[], "Commands waiting to be written to the journal.");
    JOURNAL_BYTES = gauge("statehouse_journal_bytes", &[], "Bytes of the journal files.");
    STORE_BYTES = gauge("statehouse_store_bytes", &[], "Bytes of the store tables.");
    DISK_USED = gauge("statehouse_disk_used_bytes", &[], "Bytes of the journal and the store together.");
    DISK_FREE = gauge("statehouse_disk_free_bytes", &[], "Free bytes on the disk of the directory.");
    DISK_RESERVE = gauge("statehouse_disk_reserve_bytes", &[], "Bytes kept free on that disk; below it, writes that make the store larger are refused.");
    DISK_LIMIT = gauge("statehouse_disk_limit_bytes", &[], "Bytes that the journal and the store can reach before that: their size plus the free space above the reserve.");
    DAMAGED = gauge("statehouse_damaged_parts", &["effect"], "Damaged parts of the store files: lost, healed, or unused.");
    SCRUBBED = counter("statehouse_scrubbed_bytes_total", &[], "Bytes of the store that the scrub has read.");
    MEMORY_BUDGET = gauge("statehouse_memory_budget_bytes", &[], "Memory budget of the process, if it was started with one.");
    RELOADS = counter("statehouse_reloads_total", &["result"], "Times that the settings were read again: taken, or refused because of a mistake.");
    LIMIT_USED = gauge("statehouse_limit_used", &["limit"], "Current use of a limit of the server.");
    LIMIT_MAX = gauge("statehouse_limit_max", &["limit"], "Value of that limit.");
    LIMIT_REFUSED = counter("statehouse_limit_refused_total", &["limit"], "Refusals because of that limit.");
    MEMORY = gauge("statehouse_memory_bytes", &["component"], "Bytes of memory held by a component of the server.");

    INSECURE = gauge("statehouse_insecure", &[], "1 if other machines can reach the server without TLS or without tokens.");
    TLS_NOT_AFTER = gauge("statehouse_tls_certificate_not_after_timestamp_seconds", &[], "Until when the certificate in use is valid, in seconds since 1970 UTC; 0 without TLS.");
    TLS_RELOADS = counter("statehouse_tls_reloads_total", &["result"], "Times that the files of the certificate were read again: done, or failed because they cannot be used.");
    TLS_UNUSABLE = gauge("statehouse_tls_files_unusable", &[], "1 while the files of the certificate cannot be used, and older ones stay in use.");
    TLS_HANDSHAKES_FAILED = counter("statehouse_tls_handshakes_failed_total", &["cause"], "TLS handshakes that failed.");

    THINGS = gauge("statehouse_things", &["contract"], "Things that exist, across all spaces and branches.");
    THING_BYTES = gauge("statehouse_thing_bytes", &["contract"], "Bytes of the rows that hold things, across all spaces and branches; without indexes.");
    LEFT_OUT = gauge("statehouse_queues_left_out", &[], "Queues, kinds of runs, and branches with further partitions not examined for the oldest, because there are too many.");
    MESSAGES_WAITING = gauge("statehouse_messages_waiting", &["waits_for"], "Messages waiting to be applied in a group, to be published, or for another shard.");
    MESSAGES = counter("statehouse_messages_total", &["result"], "Messages applied in their group (delivered), refused by it (refused), dropped later (dropped), or refused and not kept, because there are too many dead letters or something is damaged (lost).");
    DEAD_LETTERS = gauge("statehouse_dead_letters", &[], "Messages that were refused and are kept, until they are sent again or dropped.");

    SESSIONS = gauge("statehouse_sessions", &["state"], "Live sessions.");
    SESSION_REPLAYS = counter("statehouse_session_replays_total", &[], "Repeated requests that got their stored answer.");
    SESSION_EXPIRED = counter("statehouse_session_expired_total", &["reason"], "Ended sessions: closed, timeout, or overrun by pushes.");
    PUSH_BACKLOG = gauge("statehouse_push_backlog", &[], "Unacknowledged pushes.");
    WATCHERS = gauge("statehouse_watchers", &[], "Streams following the change feed.");
    WATCH_LAG = gauge("statehouse_watch_lag_revisions", &[], "Commits that the slowest of them is behind.");

    BACKUP_SUCCESS = gauge("statehouse_backup_last_success_timestamp_seconds", &[], "When the last complete backup was taken, in seconds since 1970 UTC; 0 if never. A restart does not change it.");
    BACKUP_VERIFIED = gauge("statehouse_backup_last_verified_timestamp_seconds", &[], "When a backup was last reported as verified; 0 if never.");

    RESIDENT_MEMORY = gauge("process_resident_memory_bytes", &[], "Resident memory of the process.");
    OPEN_FDS = gauge("process_open_fds", &[], "Open file descriptors of the process.");
    MAX_FDS = gauge("process_max_fds", &[], "Maximum number of open file descriptors.");
    CPU_SECONDS = counter("process_cpu_seconds_total", &[], "CPU time of the process.");
    START_TIME = gauge("process_start_time_seconds", &[], "When the server started, in seconds since 1970 UTC.");
}
