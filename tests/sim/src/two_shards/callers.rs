//! Those who write to both shards, and know which of them owns what.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use kernel::Buckets;
use statehouse::records::{ClaimOptions, Put};
use statehouse::runs::NewEvent;
use statehouse::{Error, Json, Rejection, Statehouse};

use super::owner_of;

/// Things of each kind that a caller has.
const THINGS: u64 = 16;
/// One in so many writes is sent to the wrong shard first.
const ASTRAY: u64 = 16;

/// The fields that a job is completed with.
const NOTHING: [(&str, i64); 0] = [];

/// What a caller writes, in turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Cell,
    Counter,
    Run,
    Job,
}

const WHAT: [What; 4] = [What::Cell, What::Counter, What::Run, What::Job];

/// What a caller has been told.
#[derive(Default)]
pub(super) struct Caller {
    number: u64,
    /// How often each of its things was written.
    written: BTreeMap<(What, u64), u64>,
    /// Writes that the wrong shard has refused.
    pub(super) refused: u64,
    /// Anything that should not be.
    pub(super) complaints: Vec<String>,
}

impl Caller {
    pub(super) fn new(number: u64) -> Self {
        Self { number, ..Self::default() }
    }

    /// The number of acknowledged writes.
    pub(super) fn acknowledged(&self) -> u64 {
        self.written.values().sum()
    }

    pub(super) fn run(mut self, houses: &[Statehouse; 2], stop: &AtomicBool) -> Self {
        let mut round = self.number;
        while !stop.load(Ordering::Relaxed) && self.complaints.is_empty() {
            let what = WHAT[usize::try_from(round % 4).expect("small")];
            let thing = (round / 4) % THINGS;
            let name = self.name(what, thing);
            let owner = owner_of(&name, Buckets::default());
            if round.is_multiple_of(ASTRAY) {
                self.send_astray(&houses[1 - owner], what, &name);
            }
            let before = self.written.get(&(what, thing)).copied().unwrap_or(0);
            match write(&houses[owner], what, &name, before) {
                Ok(()) => *self.written.entry((what, thing)).or_default() += 1,
                Err(complaint) => self.complaints.push(format!("{what:?} {name}: {complaint}")),
            }
            round += 1;
        }
        self
    }

    /// The wrong shard has neither the thing nor a right to write it.
    fn send_astray(&mut self, house: &Statehouse, what: What, name: &str) {
        match write(house, what, name, 0) {
            Err(Complaint::Error(Error::Rejected(Rejection::NotHere { .. }))) => self.refused += 1,
            other => self.complaints.push(format!("{what:?} {name} at the wrong shard: {other:?}")),
        }
    }

    fn name(&self, what: What, thing: u64) -> String {
        match what {
            What::Cell => format!("cell-{}-{thing}", self.number),
            What::Counter => format!("counts.{}.{thing}", self.number),
            What::Run => format!("run-{}-{thing}", self.number),
            What::Job => format!("jobs.{}.{thing}.job", self.number),
        }
    }

    /// Compares what the shards have with what was acknowledged.
    pub(super) fn differences(&self, houses: &[Statehouse; 2]) -> Vec<String> {
        let differs = |(&(what, thing), &written): (&(What, u64), &u64)| {
            let name = self.name(what, thing);
            let found = [0, 1].map(|shard| read(&houses[shard], what, &name).unwrap_or(None));
            let mut expected = [None; 2];
            expected[owner_of(&name, Buckets::default())] = Some(written);
            (found != expected).then(|| format!("{name}: {found:?} instead of {expected:?}"))
        };
        self.written.iter().filter_map(differs).chain(self.complaints.iter().cloned()).collect()
    }
}

/// Why a write was not what it should be.
#[derive(Debug)]
enum Complaint {
    Error(Error),
    Wrong(String),
}

impl From<Error> for Complaint {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl std::fmt::Display for Complaint {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Error(error) => error.fmt(formatter),
            Self::Wrong(what) => formatter.write_str(what),
        }
    }
}

/// Writes a thing that was written `before` times, and checks the answer.
fn write(house: &Statehouse, what: What, name: &str, before: u64) -> Result<(), Complaint> {
    let number = before + 1;
    let integer = i64::try_from(number).expect("small");
    let answered = match what {
        What::Cell => house.cells().set(name, integer)?.version,
        What::Counter => house.records().increment(name, "count", 1)?.cast_unsigned(),
        What::Run => {
            let payload = Json::new("{}").expect("JSON");
            let event = NewEvent::new("StepStarted", format!("event-{number}"), "2026-11-18T10:00:00Z", payload);
            house.runs().append(name, &event)?.run_seq
        }
        What::Job => return work_off(house, name, integer),
    };
    match answered == number {
        true => Ok(()),
        false => Err(Complaint::Wrong(format!("answered {answered} instead of {number}"))),
    }
}

/// Puts a job into a queue, claims what is there, and completes it.
fn work_off(house: &Statehouse, name: &str, number: i64) -> Result<(), Complaint> {
    let records = house.records();
    if number > 1 {
        records.delete(name)?;
    }
    records.put(name, [("n", number)], Put::typed("task"))?;
    let queue = name.strip_suffix("job").expect("a job");
    let claimed = records.claim_next(queue, 2, &ClaimOptions::default())?;
    let [job] = claimed.as_slice() else {
        return Err(Complaint::Wrong(format!("{} jobs were claimed", claimed.len())));
    };
    records.complete(job, NOTHING)?;
    Ok(())
}

/// How often a thing was written, as a shard has it; none if it has none.
fn read(house: &Statehouse, what: What, name: &str) -> Result<Option<u64>, Error> {
    let integer = match what {
        What::Cell => house.cells().get(name)?.and_then(|value| value.as_integer()),
        What::Counter | What::Job => {
            let field = if what == What::Job { "n" } else { "count" };
            house.records().get(name)?.and_then(|record| record.fields.get(field)?.value.as_integer())
        }
        What::Run => return Ok(house.runs().snapshot(name)?.map(|snapshot| snapshot.last_event_seq)),
    };
    Ok(integer.map(i64::cast_unsigned))
}
