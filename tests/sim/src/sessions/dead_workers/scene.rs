//! The sessions and what they hold, and the thread that keeps them alive.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use contract::records::Claimed;
use statehouse::records::{ClaimOptions, Put, RecordType};
use statehouse::sessions::SessionOptions;
use statehouse::{Error, Session, Statehouse};

use super::Plan;

/// The queue of all jobs.
pub(super) const QUEUE: &str = "jobs.";

/// Far longer than the test: what comes back in time does not come back by its lease.
const LEASE: Duration = Duration::from_secs(3_600);

/// The pause of a job that came back.
const PAUSE: Duration = Duration::from_millis(500);

/// Puts that are under way at a time.
const PUTS_AHEAD: usize = 1_000;

/// How often signs of life are given.
const KEPT_EVERY: Duration = Duration::from_millis(100);

/// A session with its jobs.
pub(super) struct Worker {
    pub(super) session: Session,
    /// The worker's name in its claims.
    pub(super) name: String,
    pub(super) claims: Vec<Claimed>,
}

pub(super) struct Scene {
    /// The dead first.
    pub(super) workers: Vec<Worker>,
    pub(super) dead: usize,
    /// From now on the dead give no sign.
    pub(super) dying: AtomicBool,
    /// No more steps are written.
    pub(super) stepped: AtomicBool,
    /// Nobody is kept alive any more.
    pub(super) stop: AtomicBool,
    last_sign: Mutex<Option<Instant>>,
}

impl Scene {
    /// Puts the jobs, opens the sessions and lets each claim its share.
    pub(super) fn set(house: &Statehouse, plan: &Plan) -> Result<Self, Error> {
        let job = RecordType::task().named("job").lease(LEASE).backoff(PAUSE, PAUSE);
        house.space(statehouse::DEFAULT_SPACE).declare_type(QUEUE, job)?;
        let jobs = plan.sessions * plan.claims as usize;
        let mut under_way = VecDeque::new();
        for number in 0..jobs {
            let fields = [("to", "someone@example.org")];
            under_way.push_back(house.records().put_later(&format!("{QUEUE}{number:06}"), fields, Put::default()));
            if under_way.len() > PUTS_AHEAD {
                under_way.pop_front().expect("one").wait()?;
            }
        }
        for put in under_way {
            put.wait()?;
        }
        let mut workers: Vec<Worker> = Vec::new();
        let mut kept = Instant::now();
        for number in 0..plan.sessions {
            let session = house.sessions().open_with(SessionOptions::default().timeout(plan.time))?;
            let name = format!("w{number}");
            let claims = session.records().claim_next(QUEUE, plan.claims, &ClaimOptions::worker(name.clone()))?;
            workers.push(Worker { session, name, claims });
            if kept.elapsed() > KEPT_EVERY {
                kept = Instant::now();
                for worker in &workers {
                    worker.session.keep_alive()?;
                }
            }
        }
        Ok(Self {
            workers,
            dead: plan.dead,
            dying: AtomicBool::new(false),
            stepped: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            last_sign: Mutex::new(None),
        })
    }

    /// Those who die.
    pub(super) fn dead(&self) -> &[Worker] {
        &self.workers[..self.dead]
    }

    /// Those who live.
    pub(super) fn living(&self) -> &[Worker] {
        &self.workers[self.dead..]
    }

    /// When the dead were last heard of: before the first of them gave its last sign.
    pub(super) fn last_sign(&self) -> Option<Instant> {
        *self.last_sign.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives signs of life for all, and for those who live until it is over. Ends with the first that is refused.
    pub(super) fn keep_alive(&self) -> Result<(), Error> {
        while !self.stop.load(Ordering::SeqCst) {
            if !self.dying.load(Ordering::SeqCst) {
                *self.last_sign.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
                self.dead().iter().try_for_each(|worker| worker.session.keep_alive())?;
            }
            self.living().iter().try_for_each(|worker| worker.session.keep_alive())?;
            std::thread::sleep(KEPT_EVERY);
        }
        Ok(())
    }
}
