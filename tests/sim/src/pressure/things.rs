//! Cells, records and runs that a server under pressure is asked to keep, each made from its number alone.

use testkit::http::Request;
use testkit::random::Random;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Cell,
    Record,
    Run,
}

/// A thing that was written, or may have been.
#[derive(Clone, Copy, Debug)]
pub(super) struct Thing {
    pub(super) what: What,
    pub(super) bytes: usize,
    /// Whether the server has said so.
    pub(super) answered: bool,
}

pub(super) fn thing_of(number: u64) -> Thing {
    let what = match number % 3 {
        0 => What::Cell,
        1 => What::Record,
        _ => What::Run,
    };
    let mut random = Random::new(number);
    let bytes = match random.below(20) {
        0 => 200_000,
        1..=5 => 40_000,
        _ => 4_000,
    };
    Thing { what, bytes, answered: false }
}

/// What is stored in a thing: made from its number, so that any other thing's content is recognised as wrong.
pub(super) fn content(number: u64, thing: Thing) -> String {
    let part = format!("{:016x}.", number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    part.repeat(thing.bytes / part.len() + 1)
}

pub(super) fn path(number: u64, thing: Thing) -> String {
    match thing.what {
        What::Cell => format!("/v1/cells/fill.{number}"),
        What::Record => format!("/v1/records/fill.{number}"),
        What::Run => format!("/v1/runs/fill.{number}"),
    }
}

pub(super) fn put(number: u64, thing: Thing) -> Request {
    let (path, content) = (path(number, thing), content(number, thing));
    match thing.what {
        What::Cell => Request::put(path).body(format!(r#"{{"value":"{content}"}}"#)),
        What::Record => Request::put(path).body(format!(r#"{{"type":"task","fields":{{"content":"{content}"}}}}"#)),
        What::Run => {
            let members = r#""idempotencyKey":"k","emittedAt":"2026-02-11T10:00:00Z""#;
            let event = format!(r#"{{"eventType":"RunStarted","eventData":{{"content":"{content}"}},{members}}}"#);
            Request::post(format!("{path}/events")).body(event)
        }
    }
}

pub(super) fn get(number: u64, thing: Thing) -> Request {
    let path = path(number, thing);
    match thing.what {
        What::Cell | What::Record => Request::get(path),
        What::Run => Request::get(format!("{path}/events")),
    }
}

pub(super) fn delete(number: u64, thing: Thing) -> Request {
    Request::delete(path(number, thing))
}
