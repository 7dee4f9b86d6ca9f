//! The whole library as a subject: durable commands from one thread, many under way at once.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use statehouse::records::{ClaimOptions, Claimed, Put, Record, RecordType};
use statehouse::runs::AppendOptions;
use statehouse::{Options, Pending, Statehouse};
use testkit::arguments::Arguments;
use testkit::random::Random;

use super::population::{Names, QUEUE, RECORDS_PER_RUN, event, parameters, run_name};
use super::subject::{IN_FLIGHT, Space, Subject};
use crate::resources::directory_bytes;

/// Puts under way while the store is filled.
const LOAD_IN_FLIGHT: u64 = 1_000;

/// Longer than any measurement: no lease ends.
const LEASE: Duration = Duration::from_secs(24 * 3_600);

/// A house, and what its worker holds.
pub struct House {
    path: PathBuf,
    house: Statehouse,
    names: Names,
    claimed: Vec<Claimed>,
    records: u64,
    events: u64,
    random: Random,
}

impl House {
    /// A new directory, whose records will have such names. `--memory MIB` gives the store another cache, and as much for
    /// what waits.
    pub fn create(path: &Path, names: Names, arguments: &Arguments) -> Self {
        let mut options = Options::default();
        if let Some(mib) = arguments.text("memory") {
            options = options.memory_bytes(mib.parse::<usize>().expect("--memory takes MiB") << 20);
        }
        let house = options.open(path).expect("a house");
        let random = Random::new(1);
        Self { path: path.to_owned(), house, names, claimed: Vec::new(), records: 0, events: 0, random }
    }

    /// Claims so many records, one by one, with so many claims under way from this thread, and keeps them.
    pub(super) fn claim_many(&mut self, count: u64, in_flight: u64, latency_ns: &mut Histogram<u64>) {
        let handle = self.house.records();
        let options = ClaimOptions::worker("worker-1").lease(LEASE);
        let claim = |_| handle.claim_next_later(QUEUE, 1, &options);
        pipeline(count, in_flight, latency_ns, claim, |mut answer| {
            let mut claimed = answer.pop().expect("a record is ready");
            // Only the identity is needed from here on; hundreds of thousands may be kept.
            claimed.record = Record::empty(0, 0, 0, 0);
            self.claimed.push(claimed);
        });
    }

    fn append_to(&mut self, run: u64) -> Pending<statehouse::runs::AppendResult> {
        self.events += 1;
        self.house.runs().append_later(&run_name(run), &event(self.events), &AppendOptions::default())
    }
}

impl Subject for House {
    fn load(&mut self, records: Range<u64>) {
        let handle = self.house.records();
        let task = RecordType::task().name;
        let mut latency_ns = crate::latency::histogram();
        self.records = records.end;
        let names = self.names;
        let count = records.end - records.start;
        let put = |offset: u64| {
            let number = records.start + offset;
            let parameters = parameters(number);
            let fields = [("to", "someone@example.org"), ("params", parameters.as_str())];
            handle.put_later(&names.of_record(number), fields, Put::typed(&task))
        };
        pipeline(count, LOAD_IN_FLIGHT, &mut latency_ns, put, |_| {});
        let runs = records.start / RECORDS_PER_RUN..records.end / RECORDS_PER_RUN;
        let first = runs.start;
        pipeline(
            runs.end - runs.start,
            LOAD_IN_FLIGHT,
            &mut latency_ns,
            |offset| self.append_to(first + offset),
            |_| {},
        );
    }

    fn claim(&mut self, count: u64, latency_ns: &mut Histogram<u64>) {
        self.claim_many(count, IN_FLIGHT, latency_ns);
    }

    fn release(&mut self, latency_ns: &mut Histogram<u64>) -> u64 {
        let handle = self.house.records();
        let claimed = std::mem::take(&mut self.claimed);
        let release = |place| handle.release_later(&claimed[index(place)]);
        pipeline(claimed.len() as u64, IN_FLIGHT, latency_ns, release, |_| {});
        claimed.len() as u64
    }

    fn step(&mut self, count: u64, latency_ns: &mut Histogram<u64>) {
        let handle = self.house.records();
        let step = |number: u64| {
            let claimed = self.random.choose(&self.claimed);
            let progress = number.to_string();
            let fields = [("state", "running"), ("progress", progress.as_str()), ("stage", "sending")];
            handle.step_later(claimed, fields)
        };
        pipeline(count, IN_FLIGHT, latency_ns, step, |_| {});
    }

    fn append(&mut self, count: u64, latency_ns: &mut Histogram<u64>) {
        let runs = self.records / RECORDS_PER_RUN;
        let append = |_| {
            let run = self.random.below(runs);
            self.append_to(run)
        };
        pipeline(count, IN_FLIGHT, latency_ns, append, |appended| assert!(appended.persisted));
    }

    fn get(&mut self, count: u64, latency_ns: &mut Histogram<u64>) {
        let handle = self.house.records();
        for _ in 0..count {
            let name = self.names.of_record(self.random.below(self.records));
            let started = Instant::now();
            assert!(handle.get(&name).expect("a get").is_some());
            crate::latency::record(latency_ns, started.elapsed());
        }
    }

    fn settle(&mut self) {
        self.house.flush().expect("a flush");
        self.house.settle().expect("it settles");
    }

    fn space(&mut self) -> Space {
        let mut live = ByteCount(0);
        self.house.write_image(&mut live).expect("an image");
        let store = directory_bytes(&self.path.join("store"));
        Space { files: directory_bytes(&self.path), store, live: live.0 }
    }
}

/// Counts what is written to it.
struct ByteCount(u64);

impl io::Write for ByteCount {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn index(number: u64) -> usize {
    usize::try_from(number).expect("an index")
}

/// Submits `count` commands, at most `in_flight` under way, and records how long each took to be answered.
fn pipeline<T>(
    count: u64,
    in_flight: u64,
    latency_ns: &mut Histogram<u64>,
    mut submit: impl FnMut(u64) -> Pending<T>,
    mut answered: impl FnMut(T),
) {
    let mut under_way: VecDeque<(Instant, Pending<T>)> = VecDeque::new();
    let mut wait = |(started, pending): (Instant, Pending<T>)| {
        let answer = pending.wait().expect("an answer");
        crate::latency::record(latency_ns, started.elapsed());
        answered(answer);
    };
    for number in 0..count {
        if under_way.len() as u64 >= in_flight {
            wait(under_way.pop_front().expect("one is under way"));
        }
        under_way.push_back((Instant::now(), submit(number)));
    }
    under_way.into_iter().for_each(wait);
}
