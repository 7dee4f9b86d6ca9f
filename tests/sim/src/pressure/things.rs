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

/// What is written.
#[derive(Clone, Copy, Debug)]
pub(super) enum Load {
    /// Things of all kinds and sizes.
    Mixed,
    /// Large things of one kind alone: what deletes them is much smaller, and lies in few tables.
    Large(What),
}

impl Load {
    pub(super) const ALL: [Self; 4] =
        [Self::Mixed, Self::Large(What::Cell), Self::Large(What::Record), Self::Large(What::Run)];

    pub(super) fn thing(self, number: u64) -> Thing {
        match self {
            Self::Mixed => mixed(number),
            Self::Large(what) => Thing { what, bytes: 300_000, answered: false },
        }
    }
}

fn mixed(number: u64) -> Thing {
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

/// What is stored in a thing: made from its number, so that any other thing's content is recognised as wrong, and such
/// that nothing makes it smaller.
pub(super) fn content(number: u64, thing: Thing) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let bytes = Random::new(!number).bytes(thing.bytes);
    bytes.into_iter().map(|byte| char::from(LETTERS[usize::from(byte % 64)])).collect()
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
