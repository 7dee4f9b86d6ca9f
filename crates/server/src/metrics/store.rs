//! Metrics of the store as a whole: its progress, its size, its activity.
//!
//! Once the store is closed, metrics that need a view are left out; the counters stay.

use std::collections::BTreeMap;

use statehouse::sessions::EndedSessions;
use statehouse::{Counters, DamageEffect, Overview, Statehouse, Status};

use super::Metrics;
use super::list::{
    APPLIED_INDEX, APPLY_LAG, COMMANDS_APPLIED, COMMIT_INDEX, CONFLICTS, DAMAGED, DEAD_LETTERS, DISK_FREE, DISK_LIMIT,
    DISK_RESERVE, DISK_USED, DURABLE_INDEX, ENTRIES_APPLIED, JOURNAL_BYTES, JOURNAL_QUEUE_BYTES,
    JOURNAL_QUEUE_COMMANDS, JOURNAL_QUEUE_LIMIT, JOURNAL_SYNC, LEFT_OUT, MEMORY, MESSAGES, MESSAGES_WAITING,
    PUSH_BACKLOG, REPLAY_SECONDS, REPLAYED_ENTRIES, SCRUBBED, SESSION_EXPIRED, SESSION_REPLAYS, SESSIONS, STORE_BYTES,
    STORE_STOPPED, THING_BYTES, THINGS, WATCH_LAG, WATCHERS,
};
use super::readings::Readings;
use super::text::Scrape;

pub(crate) fn write(metrics: &Metrics, readings: &Readings<'_>, scrape: &mut Scrape) {
    let house = &readings.server.house;
    scrape.whole(&STORE_STOPPED, &[], house.failure().is_some().into());
    journal(&readings.counters, scrape);
    work_done(readings, scrape);
    if let Some(status) = &readings.status {
        sizes(metrics, house, status, scrape);
    }
    if let Some(overview) = &readings.overview {
        there_now(overview, scrape);
    }
    if let Ok(usage) = house.usage() {
        for (contract, usage) in &usage.by_contract {
            scrape.whole(&THINGS, &[contract], usage.things);
            scrape.whole(&THING_BYTES, &[contract], usage.bytes);
        }
    }
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

fn work_done(readings: &Readings<'_>, scrape: &mut Scrape) {
    let counters = &readings.counters;
    let mut conflicts: BTreeMap<(&str, String), u64> = BTreeMap::new();
    for ((contract, type_name), count) in &counters.conflicts {
        *conflicts.entry((contract, readings.type_label(type_name))).or_default() += count;
    }
    for ((contract, type_name), count) in conflicts {
        scrape.whole(&CONFLICTS, &[contract, &type_name], count);
    }
    scrape.whole(&MESSAGES, &["delivered"], counters.messages_delivered);
    scrape.whole(&MESSAGES, &["refused"], counters.messages_refused);
    scrape.whole(&MESSAGES, &["dropped"], counters.messages_dropped);
    scrape.whole(&MESSAGES, &["lost"], counters.messages_lost);
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
    let (watchers, lag) = metrics.watchers.lag(status.commit);
    scrape.whole(&WATCHERS, &[], watchers as u64);
    scrape.whole(&WATCH_LAG, &[], lag);
}

fn there_now(overview: &Overview, scrape: &mut Scrape) {
    scrape.whole(&LEFT_OUT, &[], overview.left_out as u64);
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
