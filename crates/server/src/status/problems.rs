//! Current problems: each names the object, the measured number, the threshold and one safe command.
//!
//! The alerts in `monitoring/alerts.yml` report the same over time, with the same thresholds where possible. Each contract finds
//! those with its things, in the `status.rs` of its folder.

use std::time::Duration;

use contract::Error;
use contract::shell::Suggested;
use statehouse::{Counters, DamageEffect, DiskSpace, FoundDamage, Status, StoreWait, WaitingWork};

use super::transport::problems as problems_of_transport;
use super::trouble::{Severity, Trouble, long_time, number};
use super::{Now, letters};
use crate::api::contract_problems;

/// A sync that takes longer counts as slow.
pub(crate) const SYNC_SLOW: Duration = Duration::from_millis(100);

/// Times of entries that are further ahead of the machine's clock are a problem. A clock that was set back by less is
/// caught up with unnoticed.
pub(crate) const STAMPS_AHEAD: Duration = Duration::from_secs(60);

/// The journal's queue counts as long above this percentage of its limit.
pub(crate) const QUEUE_PERCENT: usize = 50;

/// At most this many damaged parts are named.
const DAMAGE_NAMED_MAX: usize = 20;

/// All problems, in no order.
pub(crate) fn find(failure: Option<&Error>, now: &Now) -> Vec<Trouble> {
    let Now { counters, status, overview, disk, waits, used_up, damage, transport, .. } = now;
    let mut found: Vec<Trouble> = Vec::new();
    found.extend(failure.map(stopped));
    found.extend(status.as_ref().and_then(differences));
    found.extend(damage.iter().take(DAMAGE_NAMED_MAX).map(damaged));
    found.extend(disk.as_ref().filter(|disk| disk.is_low()).map(disk_low));
    found.extend(waits.iter().map(store_waits));
    found.extend(full_journal(counters));
    found.extend(slow_syncs(counters));
    found.extend(long_queue(counters));
    found.extend(clock_behind(counters));
    found.extend(used_up.iter().map(|(limit, max)| limit_reached(limit, *max)));
    found.extend(problems_of_transport(transport));
    found.extend(letters::refused_messages(overview));
    found.extend(letters::full(overview));
    found.extend(contract_problems(counters, overview));
    found
}

fn stopped(error: &Error) -> Trouble {
    Trouble {
        problem: "store_stopped",
        severity: Severity::Critical,
        object: "store".into(),
        text: format!("it has stopped and accepts no writes until the server is restarted: {error}"),
        number: 1.0,
        threshold: 0.0,
        unit: "failures",
        command: Suggested::new(["sh", "-c", "dmesg --level=err,warn | tail"]),
    }
}

fn damaged(damage: &FoundDamage) -> Trouble {
    let FoundDamage { file, offset, reason, from, to, .. } = damage;
    let (severity, text) = match damage.effect {
        DamageEffect::Lost => {
            let acknowledged = match (damage.in_replay, damage.from_entry) {
                (true, Some(entry)) => {
                    format!(
                        "; commands from entry {entry} on that needed them may have been acknowledged, and have no effect"
                    )
                }
                _ => String::new(),
            };
            let text = format!(
                "what lies between {from} and {to} cannot be read or changed: {reason} at byte {offset}{acknowledged}"
            );
            (Severity::Critical, text)
        }
        DamageEffect::Unused => (Severity::Note, format!("{reason} at byte {offset}; the bytes are not in use")),
        _ => (Severity::Warning, format!("{reason} at byte {offset}; nothing is lost, but check the disk")),
    };
    Trouble {
        problem: "damaged",
        severity,
        object: file.clone(),
        text,
        number: 1.0,
        threshold: 0.0,
        unit: "damaged parts",
        command: Suggested::new(["statehouse", "explain", "SH-2023"]),
    }
}

/// Once an entry has a time, no later entry has an earlier one, whatever the clock says.
fn clock_behind(counters: &Counters) -> Option<Trouble> {
    let ahead = counters.stamps_ahead;
    (ahead > STAMPS_AHEAD).then(|| Trouble {
        problem: "clock_behind",
        severity: Severity::Warning,
        object: "clock".into(),
        text: format!(
            "the times of entries are {} ahead of this machine's clock: one of them was or is wrong, and until the clock has \
             caught up TTLs and timers count from that later time",
            long_time(ahead)
        ),
        number: ahead.as_secs_f64(),
        threshold: STAMPS_AHEAD.as_secs_f64(),
        unit: "seconds",
        command: Suggested::new(["date", "-u"]),
    })
}

fn differences(status: &Status) -> Option<Trouble> {
    let count = status.run_differences;
    (count > 0).then(|| Trouble {
        problem: "run_differences",
        severity: Severity::Critical,
        object: "runs".into(),
        text: format!("{count} of {} projections differ from their events: a bug", status.runs_verified),
        number: number(count),
        threshold: 0.0,
        unit: "runs",
        command: Suggested::new(["statehouse", "backup", "create", "differing.backup"]),
    })
}

fn full_journal(counters: &Counters) -> Option<Trouble> {
    counters.journal.files_full.then(|| Trouble {
        problem: "journal_full",
        severity: Severity::Critical,
        object: "journal".into(),
        text: "its files are at their limit; commands are refused until the store has caught up".into(),
        number: 1.0,
        threshold: 0.0,
        unit: "bounds",
        command: Suggested::new(["iostat", "-x", "1", "5"]),
    })
}

fn disk_low(disk: &DiskSpace) -> Trouble {
    let DiskSpace { free_bytes, reserve_bytes, .. } = *disk;
    Trouble {
        problem: "disk_low",
        severity: Severity::Critical,
        object: "disk".into(),
        text: format!(
            "{free_bytes} bytes are free, and {reserve_bytes} are reserved: only what frees space is accepted"
        ),
        number: number(free_bytes),
        threshold: number(reserve_bytes),
        unit: "bytes",
        command: Suggested::new(["df", "-h"]),
    }
}

fn store_waits(wait: &StoreWait) -> Trouble {
    let StoreWait { bytes_needed, reason, .. } = wait;
    let (severity, object, waits) = match wait.work {
        WaitingWork::Flush => (Severity::Critical, "flush", "what is in memory cannot be written to the store now"),
        _ => (Severity::Warning, "merge", "tables cannot be merged now, so what is deleted still takes space"),
    };
    Trouble {
        problem: "store_waits",
        severity,
        object: object.into(),
        text: format!("{waits}; it is tried again: {reason}"),
        number: number(*bytes_needed),
        threshold: 0.0,
        unit: "bytes needed",
        command: Suggested::new(["df", "-h"]),
    }
}

fn limit_reached(limit: &str, max: usize) -> Trouble {
    Trouble {
        problem: "limit_reached",
        severity: Severity::Warning,
        object: limit.into(),
        text: format!("all {max} are in use; more are refused"),
        number: number(max as u64),
        threshold: number(max as u64),
        unit: "of them",
        command: Suggested::new(["statehouse", "config", "show", "--origins"]),
    }
}

fn slow_syncs(counters: &Counters) -> Option<Trouble> {
    let slowest = counters.journal.slowest_recent_sync;
    (slowest > SYNC_SLOW).then(|| Trouble {
        problem: "journal_sync_slow",
        severity: Severity::Warning,
        object: "journal".into(),
        text: format!("its slowest sync of the last seconds took {} ms", slowest.as_millis()),
        number: slowest.as_secs_f64() * 1e3,
        threshold: SYNC_SLOW.as_secs_f64() * 1e3,
        unit: "ms",
        command: Suggested::new(["iostat", "-x", "1", "5"]),
    })
}

fn long_queue(counters: &Counters) -> Option<Trouble> {
    let (bytes, max) = (counters.journal.queue_bytes, counters.journal.queue_bytes_max.max(1));
    let threshold = max / 100 * QUEUE_PERCENT;
    (bytes > threshold).then(|| Trouble {
        problem: "journal_queue_long",
        severity: Severity::Warning,
        object: "journal".into(),
        text: format!("{bytes} bytes of commands are queued, {} % of its limit", bytes.saturating_mul(100) / max),
        number: number(bytes as u64),
        threshold: number(threshold as u64),
        unit: "bytes",
        command: Suggested::new(["iostat", "-x", "1", "5"]),
    })
}
