//! The aftermath: jobs of the dead, jobs of the living, and late writes of the dead.

use std::time::Duration;

use contract::records::Claimed;
use contract::{Error, RecordRejection, Rejection, SessionRejection};
use statehouse::Statehouse;
use statehouse::records::{ClaimOptions, Record};
use statehouse::sessions::LifeState;

use super::Plan;
use super::followed::Followed;
use super::scene::{QUEUE, Scene, Worker};

/// Jobs of each dead session that its worker goes on with when it wakes up.
const WOKEN_CLAIMS: usize = 5;

/// Jobs that are claimed again at a time.
const CLAIMED_AT_ONCE: u32 = 100;

/// How long it is waited for the pause of a job to end.
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// The findings after some sessions died.
#[derive(Default)]
pub(super) struct Findings {
    pub(super) not_pending: usize,
    /// Jobs of the living as they were.
    pub(super) untouched: usize,
    /// Calls of the dead that were refused as they should be.
    pub(super) refused: usize,
    pub(super) second_attempts: usize,
    pub(super) wrong: Vec<String>,
}

impl std::fmt::Display for Findings {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { not_pending, untouched, refused, second_attempts, wrong } = self;
        write!(formatter, "{not_pending} not pending, {untouched} of others untouched, {refused} calls refused, ")?;
        write!(formatter, "{second_attempts} claimed again, {} wrong", wrong.len())
    }
}

pub(super) fn look(house: &Statehouse, scene: &Scene, plan: &Plan, followed: &Followed) -> Result<Findings, Error> {
    let mut findings = Findings::default();
    let claimed: usize = scene.workers.iter().map(|worker| worker.claims.len()).sum();
    if claimed != plan.sessions * plan.claims as usize {
        findings.wrong.push(format!("{claimed} jobs were claimed"));
    }
    for worker in scene.dead() {
        findings.look_at_dead(house, worker, followed)?;
    }
    let told = followed.jobs.len();
    if told != plan.dead_jobs() {
        findings.wrong.push(format!("{told} jobs are said to have come back"));
    }
    for worker in scene.living() {
        findings.look_at_living(house, worker)?;
    }
    findings.claim_again(house, plan.dead_jobs())?;
    Ok(findings)
}

impl Findings {
    fn look_at_dead(&mut self, house: &Statehouse, worker: &Worker, followed: &Followed) -> Result<(), Error> {
        if house.sessions().state(worker.session.id()) != LifeState::Expired {
            self.wrong.push(format!("the session of {} is not over", worker.name));
        }
        for job in &worker.claims {
            match house.records().get(&job.name)? {
                Some(record) if record.holder.is_none() && state(&record) == "pending" && record.attempt == 1 => {}
                other => {
                    self.not_pending += 1;
                    self.wrong.push(format!("{} of {} is {other:?}", job.name, worker.name));
                }
            }
            if followed.jobs.get(&job.name) != Some(&1) {
                let times = followed.jobs.get(&job.name);
                self.wrong.push(format!("{} of {} was given back {times:?} times", job.name, worker.name));
            }
        }
        for job in worker.claims.iter().take(WOKEN_CLAIMS) {
            self.wake_up(house, worker, job);
        }
        Ok(())
    }

    /// A worker that was away goes on with its job, in its session and, where it does not know of it, without.
    fn wake_up(&mut self, house: &Statehouse, worker: &Worker, job: &Claimed) {
        let late = [("progress", "late")];
        let calls = [
            (worker.session.records().step(job, late), "in its session"),
            (worker.session.records().complete(job, late), "in its session"),
            (house.records().step(job, late), "without"),
            (house.records().complete(job, late), "without"),
        ];
        for (answer, how) in calls {
            match (answer, how) {
                (Err(Error::Rejected(Rejection::Session(SessionRejection::Expired))), "in its session")
                | (Err(Error::Rejected(Rejection::Record(RecordRejection::Fenced { .. }))), "without") => {
                    self.refused += 1
                }
                (answer, how) => {
                    self.wrong.push(format!("{} woke up with {}, {how}: {answer:?}", worker.name, job.name));
                }
            }
        }
    }

    fn look_at_living(&mut self, house: &Statehouse, worker: &Worker) -> Result<(), Error> {
        for job in &worker.claims {
            let record = house.records().get(&job.name)?;
            let holds = |record: &Record| {
                let holder = record.holder.as_ref().and_then(|holder| holder.worker.as_deref());
                holder == Some(&worker.name) && record.attempt == job.attempt && record.attempt == 1
            };
            if record.as_ref().is_some_and(holds) {
                self.untouched += 1;
            } else {
                self.wrong.push(format!("{} of {}, which lives, is {record:?}", job.name, worker.name));
            }
        }
        Ok(())
    }

    /// Claims everything that came back.
    fn claim_again(&mut self, house: &Statehouse, jobs: usize) -> Result<(), Error> {
        let options = ClaimOptions::worker("heir").wait(PAUSE_MAX);
        while self.second_attempts < jobs {
            let claimed = house.records().claim_next(QUEUE, CLAIMED_AT_ONCE, &options)?;
            if claimed.is_empty() {
                self.wrong.push(format!("{} jobs are not to be had again", jobs - self.second_attempts));
                break;
            }
            for job in claimed {
                if job.attempt == 2 {
                    self.second_attempts += 1;
                } else {
                    self.wrong.push(format!("{} was claimed for attempt {}", job.name, job.attempt));
                }
            }
        }
        Ok(())
    }
}

fn state(record: &Record) -> &str {
    record.value("state").and_then(|state| state.as_text()).unwrap_or("none")
}
