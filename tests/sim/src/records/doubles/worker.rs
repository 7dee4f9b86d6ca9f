//! Workers: they take jobs in small batches, and die, stall or do what they should.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use contract::records::Claimed;
use contract::{Error, RecordRejection, Rejection};
use statehouse::Statehouse;
use statehouse::records::{ClaimOptions, Put, RecordType};
use testkit::random::Random;

/// The cell that holds a job's effect.
pub(super) const EFFECT: &str = "effect";

/// Jobs that are put before anybody waits for an answer.
const PUTS_AHEAD: u64 = 500;

/// One job in so many is dropped by a worker that dies, and as many by one that stalls.
const DIE_ONE_IN: u64 = 20;
const STALL_ONE_IN: u64 = 40;

const LEASE: Duration = Duration::from_millis(200);

/// How the effect is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// In the commit that completes the job.
    WithCompletion,
    /// In a commit of its own before: completing alone asks for the attempt even without fences.
    Apart,
}

/// What is to be done.
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) workers: u64,
    pub(super) jobs: u64,
    pub(super) length: Duration,
    pub(super) effect: Effect,
}

/// What the workers say.
#[derive(Default)]
pub(super) struct Ran {
    pub(super) fenced: u64,
    pub(super) died: u64,
    pub(super) stalled: u64,
    pub(super) errors: Vec<String>,
}

pub(super) fn group(job: u64) -> String {
    format!("job-{job}")
}

pub(super) fn record(job: u64) -> String {
    format!("work.{job}")
}

/// Declares the type and puts all jobs.
pub(super) fn submit(house: &Statehouse, jobs: u64) -> Result<(), Error> {
    let work = RecordType::task()
        .named("work")
        .lease(LEASE)
        .attempts_max(u32::MAX.into())
        .backoff(Duration::from_millis(1), Duration::from_millis(4));
    house.space(statehouse::DEFAULT_SPACE).declare_type("work.", work)?;
    for first in (0..jobs).step_by(usize::try_from(PUTS_AHEAD).expect("small")) {
        let batch = (first..jobs.min(first + PUTS_AHEAD)).map(|job| {
            let records = house.group(group(job)).records();
            records.put_later(&record(job), [("n", i64::try_from(job).expect("small"))], Put::default())
        });
        for put in batch.collect::<Vec<_>>() {
            put.wait()?;
        }
    }
    Ok(())
}

/// Works until every job is completed, or until time is up.
pub(super) fn run(house: &Statehouse, plan: &Plan) -> Ran {
    let completed = AtomicU64::new(0);
    let deadline = Instant::now() + plan.length;
    let mut ran = Ran::default();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..plan.workers)
            .map(|number| {
                let random = Random::new(plan.seed.wrapping_mul(1_000) + number);
                let name = format!("w{number}");
                let completed = &completed;
                let worker = Worker { house, plan, name, random, completed, ran: Ran::default() };
                scope.spawn(move || worker.run(deadline))
            })
            .collect();
        for thread in threads {
            match thread.join() {
                Err(_) => ran.errors.push("a worker panicked".into()),
                Ok(part) => {
                    ran.fenced += part.fenced;
                    ran.died += part.died;
                    ran.stalled += part.stalled;
                    ran.errors.extend(part.errors);
                }
            }
        }
    });
    ran
}

struct Worker<'run> {
    house: &'run Statehouse,
    plan: &'run Plan,
    name: String,
    random: Random,
    completed: &'run AtomicU64,
    ran: Ran,
}

impl Worker<'_> {
    fn run(mut self, deadline: Instant) -> Ran {
        let records = self.house.records();
        let options = ClaimOptions::worker(self.name.clone());
        while self.completed.load(Ordering::Relaxed) < self.plan.jobs && self.ran.errors.is_empty() {
            if Instant::now() > deadline {
                self.ran.errors.push("time is up".into());
                break;
            }
            let batch = 1 + u32::try_from(self.random.below(8)).expect("small");
            match records.claim_next("work.", batch, &options) {
                Err(error) => self.ran.errors.push(error.to_string()),
                Ok(jobs) if jobs.is_empty() => std::thread::sleep(Duration::from_millis(2 + self.random.below(20))),
                Ok(jobs) => jobs.iter().for_each(|job| self.job(job)),
            }
        }
        self.ran
    }

    fn job(&mut self, job: &Claimed) {
        if self.random.one_in(DIE_ONE_IN) {
            // Whoever comes next does not know of this one any more.
            self.ran.died += 1;
            return;
        }
        if self.random.one_in(STALL_ONE_IN) {
            self.ran.stalled += 1;
            std::thread::sleep(LEASE + Duration::from_millis(self.random.below(60)));
        }
        match self.finish(job) {
            Ok(()) => drop(self.completed.fetch_add(1, Ordering::Relaxed)),
            Err(Error::Rejected(Rejection::Record(RecordRejection::Fenced { .. }))) => self.ran.fenced += 1,
            Err(error) => self.ran.errors.push(error.to_string()),
        }
    }

    fn finish(&self, job: &Claimed) -> Result<(), Error> {
        let group = self.house.group(job.group.clone().expect("a job has a group of its own"));
        let attempt = i64::try_from(job.attempt).expect("small");
        let effect = group.commit().fence(job).set_cell(EFFECT, attempt);
        match self.plan.effect {
            Effect::WithCompletion => effect.complete(job, [("result", "ok")]).run()?,
            Effect::Apart => {
                effect.run()?;
                group.commit().fence(job).complete(job, [("result", "ok")]).run()?
            }
        };
        Ok(())
    }
}
