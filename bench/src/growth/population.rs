//! The records and runs that a store is filled with: their names and contents, made from their numbers.
//!
//! Keeps: unless asked otherwise, names are spread over the whole key space, in an order that has nothing to do with the
//! order of arrival. That is what many identifiers of jobs look like, and the hardest case for a store that sorts: every
//! flush touches all of it.

use statehouse::Json;
use statehouse::runs::NewEvent;
use testkit::random::Random;

/// The queue of all records; they are tasks.
pub const QUEUE: &str = "jobs.work.";

/// Bytes of the parameters of a task: with the other field and the name, a record has about 250.
const PARAMETER_BYTES: usize = 200;

/// Bytes of an event's content.
const EVENT_BYTES: usize = 250;

/// There is one run for so many records.
pub const RECORDS_PER_RUN: u64 = 100;

/// The name of a record.
pub fn record_name(number: u64) -> String {
    Names::Scattered.of_record(number)
}

/// How the names of records follow from their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// In no order, as random identifiers.
    Scattered,
    /// In the order of arrival, as identifiers that count or start with a time.
    Ordered,
}

impl Names {
    /// The name of a record.
    pub fn of_record(self, number: u64) -> String {
        match self {
            Names::Scattered => format!("{QUEUE}{:016x}", Random::new(number).next()),
            Names::Ordered => format!("{QUEUE}{number:016x}"),
        }
    }
}

/// The name of a run.
pub fn run_name(number: u64) -> String {
    format!("run-{:016x}", Random::new(number).next())
}

/// The parameters of a task. They do not compress, so that what is written can be compared with what was given.
pub fn parameters(number: u64) -> String {
    text(number, PARAMETER_BYTES)
}

/// An event that no run has had.
pub fn event(number: u64) -> NewEvent {
    let data = Json::new(format!("{{\"n\":\"{}\"}}", text(number, EVENT_BYTES - 8))).expect("JSON");
    NewEvent::new("Progress", format!("key-{number:016}"), "2026-02-11T10:00:00Z", data)
}

/// Base 64 without its padding, of random bytes.
fn text(seed: u64, length: usize) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let bytes = Random::new(!seed).bytes(length);
    bytes.iter().map(|byte| char::from(DIGITS[usize::from(byte % 64)])).collect()
}
