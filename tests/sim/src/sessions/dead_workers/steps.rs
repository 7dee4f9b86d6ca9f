//! The workers that live: they write steps of their jobs, and how long each took is noted.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use testkit::random::Random;

use super::scene::Scene;

/// One step.
pub(super) struct Step {
    /// Since the steps began.
    pub(super) began: Duration,
    pub(super) took: Duration,
}

impl Step {
    pub(super) fn ended(&self) -> Duration {
        self.began + self.took
    }
}

/// What one thread did.
#[derive(Default)]
pub(super) struct Steps {
    pub(super) taken: Vec<Step>,
    pub(super) errors: Vec<String>,
}

/// Writes steps of random jobs of those who live, one after the other, until it is over.
pub(super) fn write(scene: &Scene, seed: u64, epoch: Instant) -> Steps {
    let mut random = Random::new(seed);
    let mut steps = Steps::default();
    while !scene.stepped.load(Ordering::SeqCst) {
        let worker = random.choose(scene.living());
        let job = random.choose(&worker.claims);
        let progress = random.below(100).to_string();
        let fields = [("state", "running"), ("progress", progress.as_str())];
        let before = Instant::now();
        if let Err(error) = worker.session.records().step(job, fields) {
            steps.errors.push(format!("a step of {} by {}: {error}", job.name, worker.name));
            break;
        }
        steps.taken.push(Step { began: before.duration_since(epoch), took: before.elapsed() });
    }
    steps
}

/// A quantile of times; zero if there are none.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index below the length")]
pub(super) fn quantile(mut times: Vec<Duration>, quantile: f64) -> Duration {
    times.sort_unstable();
    let place = (times.len() as f64 * quantile) as usize;
    times.get(place.min(times.len().saturating_sub(1))).copied().unwrap_or_default()
}
