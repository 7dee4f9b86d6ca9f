//! The words of runs.
//!
//! ```text
//! append r KEY TYPE [kind K] [expect 2] [strict, once] [step S] [logical 1] [engine 1] [id ID] [data JSON]
//!     [extra JSON] [emitted 10s]    strict: refused if the known event differs; once: refused if it is known;
//!     the id made(r,10s+3,2) is that which event 2 of a run r, created 3 µs after 10s, gets if it comes without one
//! close r           delete run r      fork r2 from r at 3
//! in g if run r at 3: …               the last event has this sequence; 0: there is no run
//! events r [after 2] [limit 3]        event r 2       before r 10s      snapshot r      quietest KIND
//! runs PREFIX [status RUNNING|PAUSED] [kind K] [idle 10s] [limit 2] [examine 3] [more], runs g/PREFIX
//! count runs        count runs g/ [examine 3]         all runs [limit 2]
//! ```

mod reads;

use contract::Json;
use contract::runs::{NewEvent, StoredEvent};
use contract::time::iso;

use super::words::{number, option, time_us};
use crate::command::{Guard, Op, RunAct, RunGuard};
use crate::runs::command::{Append, Duplicates, EventRef};

pub(super) fn op<'text>(words: &[&'text str]) -> Option<Op<'text>> {
    let (name, act) = match words {
        ["append", name, key, event_type, options @ ..] => {
            (name, RunAct::Append(Box::new(append(key, event_type, options))))
        }
        ["close", name] => (name, RunAct::Close),
        ["delete", "run", name] => (name, RunAct::Delete),
        ["fork", name, "from", from, "at", at] => (name, RunAct::Fork { from, at: number(at) }),
        _ => return None,
    };
    Some(Op::Run(name, act))
}

pub(super) fn guard<'text>(words: &[&'text str]) -> Option<Guard<'text>> {
    match words {
        ["run", name, "at", seq] => Some(Guard::Run(RunGuard::LastIs(name, number(seq)))),
        _ => None,
    }
}

fn append<'text>(key: &'text str, event_type: &'text str, options: &[&'text str]) -> Append<'text> {
    let json = |name| {
        let text = option(options, name)?;
        Json::new(text).unwrap();
        Some(text)
    };
    let event = EventRef {
        event_type,
        data: json("data").unwrap_or("null"),
        idempotency_key: key,
        event_id: option(options, "id").map(id),
        step_id: option(options, "step"),
        engine_attempt_id: option(options, "engine"),
        logical_attempt_id: option(options, "logical"),
        emitted_at: option(options, "emitted").map(|time| &*iso(time_us(time)).leak()),
        adapter_version: option(options, "adapter"),
        engine_run_ref: json("ref"),
        caused_by_signal_id: option(options, "signal"),
        parent_event_id: option(options, "parent"),
        extra: json("extra"),
    };
    let duplicates = match () {
        () if options.contains(&"strict") => Duplicates::RefuseOthers,
        () if options.contains(&"once") => Duplicates::Refuse,
        () => Duplicates::Answer,
    };
    let run_type = option(options, "kind").unwrap_or_default();
    Append { expected_last: option(options, "expect").map(number), duplicates, run_type, event }
}

fn id(text: &str) -> &str {
    let Some(made) = text.strip_prefix("made(").and_then(|rest| rest.strip_suffix(')')) else {
        return text;
    };
    let [run, created, seq] = made.split(',').collect::<Vec<_>>()[..] else {
        panic!("{text}: made(RUN,CREATED[+US],SEQ)")
    };
    let event = NewEvent::new("", "", "", Json::from_checked("null".into()));
    let seq = number(seq);
    let (created, later) = created.split_once('+').unwrap_or((created, "0"));
    StoredEvent::new(run.to_owned(), time_us(created) + number(later), seq, seq - 1, 0, 0, event).event_id.leak()
}
