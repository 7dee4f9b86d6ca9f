//! Every metric that the server has: its name, kind, labels and what it says. `docs/metrics.md` and `monitoring/` name
//! the same ones, and a test holds them together.
//!
//! Never: a label whose values are names of cells, records, runs or sessions. Names of types are bounded, see `labels`.

/// A metric.
#[derive(Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its name as Prometheus stores it; that of a counter ends with `_total`.
    pub name: &'static str,
    /// What kind it is.
    pub kind: Kind,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// What it says.
    pub help: &'static str,
}

/// What kind of metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It only rises, and begins at 0 when the server starts.
    Counter,
    /// It says how much there is now.
    Gauge,
    /// How long things took, in buckets.
    Histogram,
}

const fn counter(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, kind: Kind::Counter, labels, help }
}

const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, kind: Kind::Gauge, labels, help }
}

const fn histogram(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, kind: Kind::Histogram, labels, help }
}

macro_rules! metrics {
    ($($constant:ident = $metric:expr;)*) => {
        $(pub(crate) const $constant: Metric = $metric;)*

        /// All of them.
        pub const METRICS: &[Metric] = &[$($constant),*];
    };
}

metrics! {
    BUILD_INFO = gauge("statehouse_build_info", &["version"], "Always 1; the label says which version it is.");
    READY = gauge("statehouse_ready", &[], "1 while requests are taken, 0 while the server drains or its store has stopped.");
    STORE_STOPPED = gauge("statehouse_store_stopped", &[], "1 once the store has stopped at a failure and has to be opened again.");

    REQUESTS = counter("statehouse_requests_total", &["contract", "op", "code"], "Requests that were answered; code is ok or the code of the error.");
    REQUEST_DURATION = histogram("statehouse_request_duration_seconds", &["contract", "op"], "From a request's head to its answer's head, with what it was asked to wait.");
    CONFLICTS = counter("statehouse_conflicts_total", &["contract", "type"], "Commands that were refused because something was not as they expected.");
    LABEL_VALUES = gauge("statehouse_label_values", &["label"], "Values of a label that users name.");
    LABEL_VALUES_LIMIT = gauge("statehouse_label_values_limit", &["label"], "How many there can be; what comes after is counted as other.");

    COMMIT_INDEX = gauge("statehouse_commit_index", &[], "The number of the last command that was applied.");
    APPLIED_INDEX = gauge("statehouse_applied_index", &[], "The last entry of the journal that was applied.");
    DURABLE_INDEX = gauge("statehouse_durable_index", &[], "The last entry of the journal that is durable.");
    APPLY_LAG = gauge("statehouse_apply_lag_entries", &[], "Entries that are durable and not applied yet.");
    ENTRIES_APPLIED = counter("statehouse_entries_applied_total", &[], "Entries that were applied, without those that were replayed.");
    COMMANDS_APPLIED = counter("statehouse_commands_applied_total", &[], "Commands of those entries.");
    REPLAYED_ENTRIES = gauge("statehouse_replayed_entries", &[], "Entries that were replayed when the store was opened.");
    REPLAY_SECONDS = gauge("statehouse_replay_seconds", &[], "How long that took.");
    JOURNAL_SYNC = histogram("statehouse_journal_sync_duration_seconds", &[], "From handing an entry to the journal's files until it is durable.");
    JOURNAL_QUEUE_BYTES = gauge("statehouse_journal_queue_bytes", &[], "Bytes of the commands that wait to be written to the journal.");
    JOURNAL_QUEUE_LIMIT = gauge("statehouse_journal_queue_limit_bytes", &[], "How many may wait before commands are refused.");
    JOURNAL_QUEUE_COMMANDS = gauge("statehouse_journal_queue_commands", &[], "Commands that wait to be written to the journal.");
    JOURNAL_BYTES = gauge("statehouse_journal_bytes", &[], "Bytes of the journal's files.");
    STORE_BYTES = gauge("statehouse_store_bytes", &[], "Bytes of the store's tables.");
    DISK_USED = gauge("statehouse_disk_used_bytes", &[], "Bytes of the journal and the store together.");
    DISK_FREE = gauge("statehouse_disk_free_bytes", &[], "Bytes that are free on the disk of the directory.");
    DISK_RESERVE = gauge("statehouse_disk_reserve_bytes", &[], "Bytes that are to stay free there; below, what makes the store larger is refused.");
    DISK_LIMIT = gauge("statehouse_disk_limit_bytes", &[], "How many bytes the journal and the store can have before that: what they have, and what is free above the reserve.");
    MEMORY_BUDGET = gauge("statehouse_memory_budget_bytes", &[], "What the process may take, if it was started with a budget.");
    LIMIT_USED = gauge("statehouse_limit_used", &["limit"], "How much of a limit of the server is used now.");
    LIMIT_MAX = gauge("statehouse_limit_max", &["limit"], "The limit.");
    LIMIT_REFUSED = counter("statehouse_limit_refused_total", &["limit"], "How often more was refused.");
    MEMORY = gauge("statehouse_memory_bytes", &["component"], "Bytes of memory that a part of the server holds.");

    RECORDS = gauge("statehouse_records", &["type", "state"], "Records that have a type, of all spaces and branches.");
    OLDEST_READY = gauge("statehouse_oldest_ready_seconds", &["type"], "How long the record that is next has been ready to be claimed, in the queue where that is longest.");
    LEFT_OUT = gauge("statehouse_queues_left_out", &[], "Queues and kinds of runs that were not looked at for the oldest, because there are too many.");
    CLAIMS = counter("statehouse_claims_total", &["type"], "Records that were claimed.");
    CLAIMERS_WAITING = gauge("statehouse_claimers_waiting", &[], "Workers that wait for something to claim.");
    RECORD_CHANGES = counter("statehouse_record_changes_total", &["reason"], "Ends of attempts and of records, by reason.");
    MESSAGES_WAITING = gauge("statehouse_messages_waiting", &["waits_for"], "Messages that wait: to be applied in a group, or to be published.");
    MESSAGES = counter("statehouse_messages_total", &["result"], "Messages that were applied in their group, or refused by it.");
    RUNS = gauge("statehouse_runs", &["type", "status"], "Runs, of all spaces and branches.");
    OLDEST_STALLED = gauge("statehouse_run_oldest_stalled_seconds", &["type"], "How long the run that is running and has been quiet longest has got no event, to within a minute.");
    RUNS_VERIFIED = counter("statehouse_runs_verified_total", &[], "Runs whose projections were compared with their events.");
    RUN_DIFFERENCES = counter("statehouse_run_differences_total", &[], "Those that differed. Any is a defect.");
    IDEMPOTENCY_HITS = counter("statehouse_idempotency_hits_total", &[], "Appends that were answered by an event that was there already.");

    SESSIONS = gauge("statehouse_sessions", &["state"], "Sessions that live.");
    SESSION_REPLAYS = counter("statehouse_session_replays_total", &[], "Requests that got the answer that they had got before.");
    SESSION_EXPIRED = counter("statehouse_session_expired_total", &["reason"], "Sessions that have ended: closed, timeout, or overrun by pushes.");
    PUSH_BACKLOG = gauge("statehouse_push_backlog", &[], "Pushes that wait to be acknowledged.");
    WATCHERS = gauge("statehouse_watchers", &[], "Streams that follow the change feed.");
    WATCH_LAG = gauge("statehouse_watch_lag_revisions", &[], "How many commits the slowest of them is behind.");

    BACKUP_SUCCESS = gauge("statehouse_backup_last_success_timestamp_seconds", &[], "When a backup was last taken whole, seconds since 1970 in UTC; 0 if none ever was. A restart does not change it.");
    BACKUP_VERIFIED = gauge("statehouse_backup_last_verified_timestamp_seconds", &[], "When a backup was last said to be verified; 0 if none ever was.");

    RESIDENT_MEMORY = gauge("process_resident_memory_bytes", &[], "Memory of the process that is in RAM.");
    OPEN_FDS = gauge("process_open_fds", &[], "Open file descriptors of the process.");
    MAX_FDS = gauge("process_max_fds", &[], "How many it may have.");
    CPU_SECONDS = counter("process_cpu_seconds_total", &[], "Processor time of the process.");
    START_TIME = gauge("process_start_time_seconds", &[], "When the server started, seconds since 1970 in UTC.");
}
