//! The words of records.
//!
//! ```text
//! put a [as TYPE] [ttl 10s, ttl keep, ttl session] f=1 g=text     patch a f=1 g=none       update a f=1 (must exist)
//! swap a FIELD OLD NEW (none: absent)     incr a FIELD 2          touch a 10s, touch a forever, touch a keep
//! delete record a   claim a [by WORKER] [for 10s]                 next PREFIX [2] [by WORKER] [for 10s] (*: all queues)
//! own [by WORKER] [for 10s], keep-owning #1 [for 10s], disown #1 (the group that it is in)
//! extend a #1 [for 10s]     step a #1 f=1     release a #1        complete a #1 f=1        fail a #1 f=1
//! read a            field a FIELD             oldest 5
//! scan PREFIX [of TYPE] [where f = 1 and g in 1|2 and h exists] [limit 2] [examine 3] [more], scan g/PREFIX
//! count records PREFIX, count records g/PREFIX [examine 3]
//! guards: record a absent, record a exists, record a is v1, record a FIELD = 1, record a FIELD = none,
//!         record a in pending|claimed, record a at #1, record a unchanged since c3
//! ```

mod reads;

use contract::guards::OWNER_RECORD;

use super::Stage;
use super::words::{fields, number, option, optional_value, time_us};
use crate::command::{Body, ClaimNext, Guard, Op, RecordAct, RecordGuard};
use crate::records::command::TtlArgument;

pub(super) fn op<'text>(words: &[&'text str]) -> Option<Op<'text>> {
    let (name, act) = match words {
        ["own", rest @ ..] => return op(&[&["claim", OWNER_RECORD], rest].concat()),
        ["keep-owning", rest @ ..] => return op(&[&["extend", OWNER_RECORD], rest].concat()),
        ["disown", attempt] => return op(&["release", OWNER_RECORD, attempt]),
        ["put", name, rest @ ..] => {
            let fields = fields(rest).into_iter().map(|(field, value)| (field, value.unwrap())).collect();
            let ttl = option(rest, "ttl").map_or(TtlArgument::Persist, ttl);
            (name, RecordAct::Put { record_type: option(rest, "as"), ttl, fields })
        }
        ["patch", name, rest @ ..] => (name, RecordAct::Patch { must_exist: false, fields: fields(rest) }),
        ["update", name, rest @ ..] => return Some(update(name, rest)),
        ["swap", name, field, expected, new] => {
            (name, RecordAct::Swap { field, expected: optional_value(expected), new: optional_value(new) })
        }
        ["incr", name, field, by] => (name, RecordAct::Increment { field, by: by.parse().unwrap() }),
        ["delete", "record", name] => (name, RecordAct::Delete),
        ["touch", name, time] => (name, RecordAct::Touch { ttl: ttl(time) }),
        ["claim", name, rest @ ..] => {
            let worker = option(rest, "by").unwrap_or_default();
            (name, RecordAct::Claim { worker, lease_us: option(rest, "for").map(time_us) })
        }
        ["extend", name, attempt, rest @ ..] => {
            (name, RecordAct::Extend { attempt: number(attempt), lease_us: option(rest, "for").map(time_us) })
        }
        ["release", name, attempt] => (name, RecordAct::Release { attempt: number(attempt) }),
        ["complete", name, attempt, rest @ ..] => {
            (name, RecordAct::Complete { attempt: number(attempt), fields: fields(rest) })
        }
        ["fail", name, attempt, rest @ ..] => {
            (name, RecordAct::Fail { attempt: number(attempt), fields: fields(rest) })
        }
        _ => return None,
    };
    Some(Op::Record(name, act))
}

/// Writes fields of a record that must exist.
pub(super) fn update<'text>(name: &'text str, words: &[&'text str]) -> Op<'text> {
    Op::Record(name, RecordAct::Patch { must_exist: true, fields: fields(words) })
}

fn ttl(text: &str) -> TtlArgument {
    match text {
        "forever" => TtlArgument::Persist,
        "keep" => TtlArgument::Keep,
        "session" => TtlArgument::WithSession,
        time => TtlArgument::After(time_us(time)),
    }
}

pub(super) fn guard<'text>(words: &[&'text str]) -> Option<Guard<'text>> {
    let ["record", name, rest @ ..] = words else {
        return None;
    };
    Some(match rest {
        ["absent"] => Guard::Record(RecordGuard::Absent(name)),
        ["exists"] => Guard::Record(RecordGuard::Exists(name)),
        ["is", version] => Guard::Record(RecordGuard::VersionIs(name, number(version))),
        [field, "=", value] => Guard::Record(RecordGuard::FieldIs(name, field, optional_value(value))),
        ["in", states] => Guard::Record(RecordGuard::StateIn(name, states.split('|').collect())),
        ["at", attempt] => Guard::Record(RecordGuard::AttemptIs(name, number(attempt))),
        ["unchanged", "since", commit] => Guard::Record(RecordGuard::UnchangedSince(name, number(commit))),
        _ => return None,
    })
}

impl Stage {
    /// Claims the next records of a queue.
    pub(super) fn next(&mut self, prefix: &str, options: &[&str]) -> String {
        let Self { space, branch, .. } = *self;
        let records_max = options.first().and_then(|word| word.parse().ok()).unwrap_or(1);
        let claim = ClaimNext {
            space,
            branch,
            prefix: if prefix == "*" { "" } else { prefix },
            records_max,
            worker: option(options, "by").unwrap_or_default(),
            lease_us: option(options, "for").map(time_us),
            waits: false,
        };
        self.propose(&Body::ClaimNext(claim))
    }
}
