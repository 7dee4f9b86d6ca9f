//! Records on the status page: how many there are, and queues in which nobody claims them.

use std::time::Duration;

use contract::shell::Suggested;
use serde_json::{Value as JsonValue, json};
use statehouse::records::RecordsOverview;
use statehouse::{Counters, OldestReady, Overview};

use crate::status::trouble::{Severity, Trouble, in_place};

/// A record that has been ready this long, while none of its type is claimed, gets a note; nothing is wrong yet.
const UNCLAIMED: Duration = Duration::from_secs(10);

/// A record that has been ready this long is a problem: nobody claims its type, or others are claimed instead.
const READY_LONG: Duration = Duration::from_secs(300);

/// At most this many queues are named.
const QUEUES_NAMED_MAX: usize = 5;

pub(in crate::api) fn members(records: &RecordsOverview) -> Vec<(&'static str, JsonValue)> {
    let counts = records.by_state.iter();
    let counts =
        counts.map(|((record_type, state), count)| json!({ "type": record_type, "state": state, "count": count }));
    vec![("records", counts.collect())]
}

pub(in crate::api) fn lines(records: &RecordsOverview) -> Vec<String> {
    records.by_state.iter().map(|((record_type, state), count)| format!("{count} {record_type} {state}")).collect()
}

/// Queues with unclaimed records, the longest wait first.
pub(in crate::api) fn problems(counters: &Counters, overview: &Overview) -> Vec<Trouble> {
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

/// The `why` command for a record, with the flags that select its place.
fn why(oldest: &OldestReady) -> Suggested {
    let mut command = in_place(Suggested::new(["statehouse", "why", "job"]), &oldest.space, &oldest.branch);
    if let Some(group) = &oldest.group {
        command = command.flag("--group", group);
    }
    command.name(&oldest.record)
}
