//! Metrics of the store: its progress, its size, its content, its activity.
//!
//! Once the store is closed, metrics that need a view are left out; the counters stay.

use std::collections::BTreeMap;
use std::time::Duration;

use statehouse::counters::OTHER_TYPES;
use statehouse::sessions::EndedSessions;
use statehouse::{Counters, DamageEffect, Overview, Statehouse, Status};

use super::Metrics;
use super::labels::TYPE_VALUES_MAX;
use super::list::{
    APPLIED_INDEX, APPLY_LAG, CLAIMERS_WAITING, CLAIMS, COMMANDS_APPLIED, COMMIT_INDEX, CONFLICTS, DAMAGED,
    DEAD_LETTERS, DISK_FREE, DISK_LIMIT, DISK_RESERVE, DISK_USED, DURABLE_INDEX, ENTRIES_APPLIED, IDEMPOTENCY_HITS,
    JOURNAL_BYTES, JOURNAL_QUEUE_BYTES, JOURNAL_QUEUE_COMMANDS, JOURNAL_QUEUE_LIMIT, JOURNAL_SYNC, LABEL_VALUES,
    LABEL_VALUES_LIMIT, LEFT_OUT, MEMORY, MESSAGES, MESSAGES_WAITING, OLDEST_READY, OLDEST_STALLED, PARTITION_SILENT,
    PROJECTOR_LAG, PUSH_BACKLOG, RECORD_CHANGES, RECORDS, REPLAY_SECONDS, REPLAYED_ENTRIES, RUN_DIFFERENCES, RUNS,
    RUNS_VERIFIED, SCRUBBED, SESSION_EXPIRED, SESSION_REPLAYS, SESSIONS, STORE_BYTES, STORE_STOPPED, THING_BYTES,
    THINGS, UPDATES_NOT_APPLIED, WATCH_LAG, WATCHERS,
};
use super::text::Scrape;

pub(crate) fn write(metrics: &Metrics, house: &Statehouse, scrape: &mut Scrape) {
    let counters = house.counters();
    scrape.whole(&STORE_STOPPED, &[], house.failure().is_some().into());
    journal(&counters, scrape);
    work_done(metrics, &counters, scrape);
    if let Ok(status) = house.status() {
        sizes(metrics, house, &status, scrape);
    }
    if let Ok(overview) = house.overview() {
        there_now(metrics, &overview, scrape);
    }
    if let Ok(usage) = house.usage() {
        for (contract, usage) in &usage.by_contract {
            scrape.whole(&THINGS, &[contract], usage.things);
            scrape.whole(&THING_BYTES, &[contract], usage.bytes);
        }
    }
    scrape.whole(&LABEL_VALUES, &["type"], metrics.types.count() as u64);
    scrape.whole(&LABEL_VALUES_LIMIT, &["type"], TYPE_VALUES_MAX as u64);
}

fn journal(counters: &Counters, scrape: &mut Scrape) {
    let journal = &counters.journal;
    scrape.whole(&APPLIED_INDEX, &[], counters.applied_index);
    scrape.whole(&DURABLE_INDEX, &[], journal.durable_index);
    scrape.whole(&APPLY_LAG, &[], journal.durable_index.saturating_sub(counters.applied_index));
    scrape.whole(&ENTRIES_APPLIED, &[], counters.entries_applied);
    scrape.whole(&COMMANDS_APPLIED, &[], counters.commands_applied);
    scrape.whole(&REPLAYED_ENTRIES, &[], counters.replayed_entries);
    scrape.real(&REPLAY_SECONDS, &[], counters.replay_took.as_secs_f64());
    scrape.durations(&JOURNAL_SYNC, &[], journal.syncs);
    scrape.whole(&JOURNAL_QUEUE_BYTES, &[], journal.queue_bytes as u64);
    scrape.whole(&JOURNAL_QUEUE_LIMIT, &[], journal.queue_bytes_max as u64);
    scrape.whole(&JOURNAL_QUEUE_COMMANDS, &[], journal.queue_commands as u64);
    scrape.whole(&MEMORY, &["journal_queue"], journal.queue_bytes as u64);
}

fn work_done(metrics: &Metrics, counters: &Counters, scrape: &mut Scrape) {
    let mut claims: BTreeMap<String, u64> = BTreeMap::new();
    for (record_type, claimed) in &counters.claims {
        *claims.entry(metrics.types.shown(record_type)).or_default() += claimed.count;
    }
    for (record_type, count) in claims {
        scrape.whole(&CLAIMS, &[&record_type], count);
    }
    let mut conflicts: BTreeMap<(&str, String), u64> = BTreeMap::new();
    for ((contract, type_name), count) in &counters.conflicts {
        *conflicts.entry((contract, metrics.types.shown(type_name))).or_default() += count;
    }
    for ((contract, type_name), count) in conflicts {
        scrape.whole(&CONFLICTS, &[contract, &type_name], count);
    }
    let changes = [
        ("released", counters.records_released),
        ("failed", counters.records_failed),
        ("finished", counters.records_finished),
        ("rescued", counters.records_rescued),
        ("exhausted", counters.records_exhausted),
        ("expired", counters.records_expired),
        ("session_ended", counters.records_session_ended),
    ];
    for (reason, count) in changes {
        scrape.whole(&RECORD_CHANGES, &[reason], count);
    }
    scrape.whole(&MESSAGES, &["delivered"], counters.messages_delivered);
    scrape.whole(&MESSAGES, &["refused"], counters.messages_refused);
    scrape.whole(&MESSAGES, &["dropped"], counters.messages_dropped);
    scrape.whole(&MESSAGES, &["lost"], counters.messages_lost);
    scrape.whole(&IDEMPOTENCY_HITS, &[], counters.repeated_appends);
    for (outcome, count) in counters.updates_not_applied {
        scrape.whole(&UPDATES_NOT_APPLIED, &[outcome], count);
    }
    scrape.whole(&SESSION_REPLAYS, &[], counters.session_replays);
    let EndedSessions { closed, timed_out, overrun, .. } = counters.sessions_ended;
    for (reason, count) in [("closed", closed), ("timeout", timed_out), ("overrun", overrun)] {
        scrape.whole(&SESSION_EXPIRED, &[reason], count);
    }
}

fn sizes(metrics: &Metrics, house: &Statehouse, status: &Status, scrape: &mut Scrape) {
    scrape.whole(&COMMIT_INDEX, &[], status.commit);
    scrape.whole(&JOURNAL_BYTES, &[], status.journal_bytes);
    scrape.whole(&STORE_BYTES, &[], status.store_bytes);
    let used = status.journal_bytes + status.store_bytes;
    scrape.whole(&DISK_USED, &[], used);
    if let Some(disk) = house.disk() {
        scrape.whole(&DISK_FREE, &[], disk.free_bytes);
        scrape.whole(&DISK_RESERVE, &[], disk.reserve_bytes);
        scrape.whole(&DISK_LIMIT, &[], used + disk.free_bytes.saturating_sub(disk.reserve_bytes));
    }
    let damage = house.damage().unwrap_or_default();
    for effect in [DamageEffect::Lost, DamageEffect::Healed, DamageEffect::Unused] {
        let count = damage.iter().filter(|damage| damage.effect == effect).count();
        scrape.whole(&DAMAGED, &[effect.name()], count as u64);
    }
    scrape.whole(&SCRUBBED, &[], house.scrub().bytes);
    scrape.whole(&MEMORY, &["unflushed"], status.memory_bytes as u64);
    scrape.whole(&RUNS_VERIFIED, &[], status.runs_verified);
    scrape.whole(&RUN_DIFFERENCES, &[], status.run_differences);
    let (watchers, lag) = metrics.watchers.lag(status.commit);
    scrape.whole(&WATCHERS, &[], watchers as u64);
    scrape.whole(&WATCH_LAG, &[], lag);
}

fn there_now(metrics: &Metrics, overview: &Overview, scrape: &mut Scrape) {
    let mut records: BTreeMap<(String, &str), u64> = BTreeMap::new();
    for ((record_type, state), count) in &overview.records.by_state {
        let shown = metrics.types.shown(record_type);
        // Users also name states; states of types that are not shown by name are not shown either.
        let state = if shown == OTHER_TYPES { OTHER_TYPES } else { state };
        *records.entry((shown, state)).or_default() += count;
    }
    for ((record_type, state), count) in records {
        scrape.whole(&RECORDS, &[&record_type, state], count);
    }
    let mut runs: BTreeMap<(String, &str), u64> = BTreeMap::new();
    for ((run_type, status), count) in &overview.runs.by_status {
        *runs.entry((metrics.types.shown(run_type), status.name())).or_default() += count;
    }
    for ((run_type, status), count) in runs {
        scrape.whole(&RUNS, &[&run_type, status], count);
    }
    let mut oldest: BTreeMap<String, Duration> = BTreeMap::new();
    for (ready, age) in &overview.records.oldest_ready {
        let longest = oldest.entry(metrics.types.shown(&ready.record_type)).or_default();
        *longest = (*longest).max(*age);
    }
    for (record_type, age) in oldest {
        scrape.real(&OLDEST_READY, &[&record_type], age.as_secs_f64());
    }
    let mut quietest: BTreeMap<String, Duration> = BTreeMap::new();
    for (run, quiet_for) in &overview.runs.quietest {
        let longest = quietest.entry(metrics.types.shown(&run.run_type)).or_default();
        *longest = (*longest).max(*quiet_for);
    }
    for (run_type, quiet_for) in quietest {
        scrape.real(&OLDEST_STALLED, &[&run_type], quiet_for.as_secs_f64());
    }
    for projector in &overview.runs.projectors {
        scrape.real(&PROJECTOR_LAG, &[&projector.name], projector.lag.as_secs_f64());
    }
    if let Some(silent) = &overview.keyed.silent {
        scrape.real(&PARTITION_SILENT, &[], silent.silent_for.as_secs_f64());
    }
    scrape.whole(&LEFT_OUT, &[], overview.left_out as u64);
    scrape.whole(&CLAIMERS_WAITING, &[], overview.claimers_waiting as u64);
    for (waits_for, count) in overview.messages.by_word() {
        scrape.whole(&MESSAGES_WAITING, &[waits_for], count);
    }
    scrape.whole(&DEAD_LETTERS, &[], u64::try_from(overview.messages.dead).unwrap_or(0));
    let sessions = overview.sessions;
    let states =
        [("pending", sessions.pending), ("connected", sessions.connected), ("disconnected", sessions.disconnected)];
    for (state, count) in states {
        scrape.whole(&SESSIONS, &[state], count);
    }
    scrape.whole(&PUSH_BACKLOG, &[], sessions.pushes_waiting);
}
