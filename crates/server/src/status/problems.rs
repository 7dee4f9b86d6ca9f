//! Current problems: each names the object, the measured number, the threshold and one safe command.
//!
//! The alerts in `monitoring/alerts.yml` report the same over time, with the same thresholds where possible.
//! `operators`: those of operators.

mod operators;

use std::time::Duration;

use contract::Error;
use contract::catalogue::{DEFAULT_SPACE, MAIN_BRANCH};
use contract::shell::Suggested;
use serde_json::{Value as JsonValue, json};
use statehouse::{
    Counters, DamageEffect, DiskSpace, FoundDamage, OldestReady, Overview, Status, StoreWait, WaitingWork,
};

use super::{Now, letters};

/// A sync that takes longer counts as slow.
pub(crate) const SYNC_SLOW: Duration = Duration::from_millis(100);

/// A record that has been ready this long, while none of its type is claimed, gets a note; nothing is wrong yet.
pub(crate) const UNCLAIMED: Duration = Duration::from_secs(10);

/// A record that has been ready this long is a problem: nobody claims its type, or others are claimed instead.
pub(crate) const READY_LONG: Duration = Duration::from_secs(300);

/// Times of entries that are further ahead of the machine's clock are a problem. A clock that was set back by less is
/// caught up with unnoticed.
pub(crate) const STAMPS_AHEAD: Duration = Duration::from_secs(60);

/// The journal's queue counts as long above this percentage of its limit.
pub(crate) const QUEUE_PERCENT: usize = 50;

/// At most this many damaged parts are named.
const DAMAGE_NAMED_MAX: usize = 20;

/// At most this many queues are named.
const QUEUES_NAMED_MAX: usize = 5;

/// The severity of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Severity {
    /// Something is broken, or will be.
    Critical,
    /// Something needs attention.
    Warning,
    /// Nothing is wrong, but somebody may want to know: the status stays `ok`.
    Note,
}

impl Severity {
    fn name(self) -> &'static str {
        match self {
            Severity::Critical => "critical",
            Severity::Warning => "warning",
            Severity::Note => "note",
        }
    }
}

/// A problem or a note.
#[derive(Debug, PartialEq)]
pub(crate) struct Trouble {
    /// The kind of problem, for programs.
    pub(crate) problem: &'static str,
    pub(crate) severity: Severity,
    /// The thing it concerns.
    pub(crate) object: String,
    /// The finding, in a sentence.
    pub(crate) text: String,
    /// The measured number.
    pub(crate) number: f64,
    /// Above or below this it is a problem.
    pub(crate) threshold: f64,
    /// The unit of both.
    pub(crate) unit: &'static str,
    /// A command that shows more and changes nothing.
    pub(crate) command: Suggested,
}

impl Trouble {
    pub(crate) fn json(&self) -> JsonValue {
        json!({
            "problem": self.problem,
            "severity": self.severity.name(),
            "object": self.object,
            "text": self.text,
            "number": self.number,
            "threshold": self.threshold,
            "unit": self.unit,
            "command": self.command,
        })
    }
}

/// All problems, critical ones first, notes last.
pub(crate) fn find(failure: Option<&Error>, now: &Now) -> Vec<Trouble> {
    let Now { counters, status, overview, disk, waits, used_up, damage, .. } = now;
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
    found.extend(letters::refused_messages(overview));
    found.extend(letters::full(overview));
    found.extend(unclaimed(counters, overview));
    found.extend(operators::silent(overview));
    found.sort_by_key(|trouble| trouble.severity);
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

/// A duration in the largest unit that makes sense to a person.
fn long_time(time: Duration) -> String {
    const DAY: u64 = 24 * 60 * 60;
    match time.as_secs() {
        seconds if seconds < 2 * 60 * 60 => format!("{} minutes", seconds / 60),
        seconds if seconds < 2 * DAY => format!("{} hours", seconds / 3_600),
        seconds => format!("{} days", seconds / DAY),
    }
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

/// Queues with unclaimed records, the longest wait first.
fn unclaimed(counters: &Counters, overview: &Overview) -> Vec<Trouble> {
    let mut waiting: Vec<_> = overview.records.oldest_ready.iter().filter(|(_, age)| *age > UNCLAIMED).collect();
    waiting.sort_by_key(|(_, age)| std::cmp::Reverse(*age));
    let troubles = waiting.into_iter().filter_map(|(oldest, age)| {
        let claims = counters.claims.get(&oldest.record_type);
        match claims {
            Some(claims) if claims.last_ago <= UNCLAIMED => (*age > READY_LONG).then(|| waits_long(oldest, *age)),
            _ => Some(nobody_claims(oldest, *age, claims.map(|claims| claims.last_ago))),
        }
    });
    troubles.take(QUEUES_NAMED_MAX).collect()
}

fn nobody_claims(oldest: &OldestReady, age: Duration, last_ago: Option<Duration>) -> Trouble {
    let OldestReady { queue, record, record_type, .. } = oldest;
    let last = match last_ago {
        Some(ago) => format!("the last {record_type} was claimed {} s ago", ago.as_secs()),
        None => format!("no {record_type} has been claimed since the server started"),
    };
    let late = age > READY_LONG && last_ago.is_none_or(|ago| ago > READY_LONG);
    let (severity, threshold) = match late {
        true => (Severity::Warning, READY_LONG),
        false => (Severity::Note, UNCLAIMED),
    };
    Trouble {
        problem: "nobody_claims",
        severity,
        object: format!("queue {queue}"),
        text: format!("{record} has been ready for {} s and nobody claims it; {last}", age.as_secs()),
        number: age.as_secs_f64(),
        threshold: threshold.as_secs_f64(),
        unit: "s",
        command: why(oldest),
    }
}

fn waits_long(oldest: &OldestReady, age: Duration) -> Trouble {
    let OldestReady { queue, record, .. } = oldest;
    Trouble {
        problem: "ready_long",
        severity: Severity::Warning,
        object: format!("queue {queue}"),
        text: format!("{record} has been ready for {} s while others are claimed", age.as_secs()),
        number: age.as_secs_f64(),
        threshold: READY_LONG.as_secs_f64(),
        unit: "s",
        command: why(oldest),
    }
}

/// A command with the flags that select a space and a branch.
fn in_place(mut command: Suggested, space: &str, branch: &str) -> Suggested {
    if space != DEFAULT_SPACE {
        command = command.flag("--space", space);
    }
    if branch != MAIN_BRANCH {
        command = command.flag("--branch", branch);
    }
    command
}

/// The `why` command for a record, with the flags that select its place.
fn why(oldest: &OldestReady) -> Suggested {
    let mut command = in_place(Suggested::new(["statehouse", "why", "job"]), &oldest.space, &oldest.branch);
    if let Some(group) = &oldest.group {
        command = command.flag("--group", group);
    }
    command.name(&oldest.record)
}

#[allow(clippy::cast_precision_loss, reason = "it is shown")]
pub(super) fn number(count: u64) -> f64 {
    count as f64
}
