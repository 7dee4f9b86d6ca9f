//! One worker: works until it is told to stop, and records the answers.

use std::sync::atomic::Ordering;
use std::time::Duration;

use client::{Client, ClientOptions, Error, Outcome, Value};
use serde_json::json;
use testkit::http::block_on;
use testkit::random::Random;
use wire::records::claims::Claim;
use wire::records::{PatchRecord, PutRecord};
use wire::values::{DurationText, Members};

use super::line::Line;
use super::{Answered, SHARED, Scene, Way};

/// Longer than any test run: a session that ends is a finding.
const SESSION_TIMEOUT: Duration = Duration::from_secs(600);
const LEASE: Duration = Duration::from_secs(600);
/// Pause between two attempts of a call with an unknown outcome.
const PAUSE: Duration = Duration::from_millis(20);

/// Runs one worker until it is told to stop.
pub(super) fn work(scene: &Scene, way: Way, number: u64, seed: u64) -> Answered {
    let mut random = Random::new(seed);
    let line = Line::new(scene.client.transport().clone(), random.next());
    // Wait for a killed server as long as it takes.
    let options = ClientOptions::default().session_timeout(SESSION_TIMEOUT).deadline(SESSION_TIMEOUT);
    let mut worker = Worker {
        scene,
        way,
        number,
        random,
        client: options.clone().over(line.clone()),
        plain: options.without_sessions().over(line.clone()),
        answered: Answered::default(),
        done: 0,
        held: Vec::new(),
    };
    while !scene.over.load(Ordering::Acquire) {
        worker.step();
    }
    // Complete the claimed jobs, and take those that are left.
    while worker.complete() || worker.claim() {}
    let mut answered = worker.answered;
    answered.pains = line.pains();
    if answered.pains.sessions > 1 {
        answered.wrong.push(format!("client {number} needed {} sessions", answered.pains.sessions));
    }
    answered
}

struct Worker<'scene> {
    scene: &'scene Scene,
    way: Way,
    number: u64,
    random: Random,
    /// Writes in a session, and retries unanswered calls by itself.
    client: Client,
    /// Writes without a session.
    plain: Client,
    answered: Answered,
    /// Counts its operations, for unique names.
    done: u64,
    /// Jobs claimed and not completed yet, with their tokens.
    held: Vec<(String, String)>,
}

/// Repeats a call until its outcome is known.
fn insist<A>(call: impl Fn() -> Result<A, Error>) -> Result<A, Error> {
    loop {
        match call() {
            Err(error) if matches!(error.outcome(), Outcome::Unknown) => std::thread::sleep(PAUSE),
            answered => return answered,
        }
    }
}

impl Worker<'_> {
    fn step(&mut self) {
        self.done += 1;
        match self.random.below(7) {
            0 | 1 => self.count(),
            2 => self.write_cell(),
            3 => self.append(),
            4 => self.put_job(),
            5 => drop(self.claim()),
            _ => drop(self.complete()),
        }
    }

    /// Expects a call to succeed.
    fn expect<A>(&mut self, answered: Result<A, Error>) -> Option<A> {
        self.scene.answers.fetch_add(1, Ordering::AcqRel);
        answered
            .inspect_err(|error| self.answered.wrong.push(format!("client {} was refused: {error}", self.number)))
            .ok()
    }

    fn count(&mut self) {
        let counter = format!("counter.{}", self.random.below(SHARED));
        let patch = PatchRecord { incr: Some(Members(vec![("n".to_owned(), 1)])), ..PatchRecord::default() };
        let add = |client: &Client| block_on(client.records().patch(&counter, &patch, None));
        let answered = match self.way {
            Way::InSessions => add(&self.client),
            Way::Plain => insist(|| add(&self.plain)),
        };
        let values = self.expect(answered).and_then(|patched| patched.values);
        if let Some(value) = values.as_ref().and_then(|values| values.get("n")) {
            self.answered.counted.entry(counter).or_default().push(*value);
        }
    }

    /// Nobody else writes this cell, so a read must return the last acknowledged write.
    fn write_cell(&mut self) {
        let cell = format!("cell.{}", self.number);
        let value = self.answered.cells.get(&cell).copied().unwrap_or(0) + 1;
        let written = block_on(self.client.cells().set(&cell, Value::Integer(value.cast_signed())));
        let version = self.expect(written).map(|written| written.version);
        if version != Some(value) {
            self.answered.wrong.push(format!("{cell} was answered version {version:?} for write {value}"));
        }
        self.answered.cells.insert(cell.clone(), value);
        let read = block_on(self.client.cells().get(&cell));
        let found = self.expect(read).flatten().map(|found| (found.value.0, found.version));
        if found != Some((Value::Integer(value.cast_signed()), value)) {
            self.answered.wrong.push(format!("{cell} was written {value} times and read {found:?}"));
        }
    }

    /// Sent outside of the session: the key is enough.
    fn append(&mut self) {
        let run = format!("run.{}", self.random.below(SHARED));
        let key = format!("{}-{}", self.number, self.done);
        let event = json!({
            "eventType": "Progress",
            "idempotencyKey": key,
            "emittedAt": "2026-02-11T10:00:00Z",
            "eventData": { "by": self.number },
        });
        let appended = insist(|| block_on(self.plain.runs().append(&run, event.to_string(), None)));
        if let Some(appended) = self.expect(appended) {
            self.answered.appended.entry(run).or_default().insert(key, appended.run_seq);
        }
    }

    fn put_job(&mut self) {
        let job = format!("jobs.{}.{}-{}", self.random.below(SHARED), self.number, self.done);
        let put = PutRecord { record_type: Some("task".to_owned()), ..PutRecord::of(Members::default()) };
        let answered = block_on(self.client.records().put(&job, &put, None));
        self.expect(answered);
        self.answered.jobs_put.insert(job);
    }

    /// Claims a job; false if there is none.
    fn claim(&mut self) -> bool {
        let worker = Some(format!("w{}", self.number));
        let claim = Claim { n: Some(1), worker, lease: Some(DurationText(LEASE)), ..Claim::of_queue("jobs.") };
        let answered = block_on(self.client.records().claim(&claim));
        let claimed = self.expect(answered).unwrap_or_default();
        let any = !claimed.is_empty();
        for claimed in claimed {
            self.answered.jobs_claimed.push(claimed.record.clone());
            self.held.push((claimed.record, claimed.token));
        }
        any
    }

    /// Completes a job that it holds; false if it holds none.
    fn complete(&mut self) -> bool {
        let Some((job, token)) = self.held.pop() else {
            return false;
        };
        let by = [("by", Value::Integer(self.number.cast_signed()))];
        let answered = block_on(self.client.records().complete(&token, by));
        self.expect(answered);
        self.answered.jobs_completed.push(job);
        true
    }
}
