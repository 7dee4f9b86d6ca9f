//! What the workers left: every job, and its effect.

use std::fmt;

use statehouse::{Error, Statehouse};

use super::worker::{EFFECT, Ran, group, record};

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) jobs: u64,
    /// Jobs that are completed.
    completed: u64,
    /// Attempts of all jobs.
    pub(super) attempts: u64,
    /// Writes that were refused because their attempt was over.
    pub(super) fenced: u64,
    /// Effects beyond the first of a job.
    pub(super) doubles: u64,
    /// Completed jobs without an effect.
    pub(super) lost: u64,
    /// Jobs whose effect is of another attempt than the one that completed them.
    foreign: u64,
    died: u64,
    stalled: u64,
    pub(super) errors: Vec<String>,
}

impl Findings {
    /// The run itself failed.
    pub(super) fn failed(error: String) -> Self {
        Self { errors: vec![error], ..Self::default() }
    }

    /// Looks at every job.
    pub(super) fn look(house: &Statehouse, jobs: u64, ran: Ran) -> Result<Self, Error> {
        let Ran { fenced, died, stalled, errors } = ran;
        let mut findings = Self { jobs, fenced, died, stalled, errors, ..Self::default() };
        for job in 0..jobs {
            let group = house.group(group(job));
            let Some(found) = group.records().get(&record(job))? else {
                findings.errors.push(format!("job {job} is gone"));
                continue;
            };
            findings.attempts += found.attempt;
            if found.value("state") == Some(&"completed".into()) {
                findings.completed += 1;
            }
            match group.cells().get_versioned(EFFECT)? {
                None => findings.lost += 1,
                Some(effect) => {
                    findings.doubles += effect.version - 1;
                    let attempt = i64::try_from(found.attempt).expect("small");
                    findings.foreign += u64::from(effect.value != attempt.into());
                }
            }
        }
        let counted = house.records().counts("work.")?.of("completed");
        if counted != findings.completed {
            findings.errors.push(format!("{} jobs are completed, {counted} are counted", findings.completed));
        }
        Ok(findings)
    }

    /// Attempts that ended without completing their job: nobody gives up on his own.
    pub(super) fn rescues(&self) -> u64 {
        self.attempts.saturating_sub(self.completed)
    }

    /// Every job is completed, with one effect, of the attempt that completed it.
    pub(super) fn is_sound(&self, jobs: u64) -> bool {
        let wrong = [self.doubles, self.lost, self.foreign, self.errors.len() as u64];
        self.completed == jobs && wrong == [0; 4]
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} of {} jobs completed, {} attempts, ", self.completed, self.jobs, self.attempts)?;
        write!(out, "{} rescues, {} fenced writes, ", self.rescues(), self.fenced)?;
        write!(out, "{} workers died, {} stalled, ", self.died, self.stalled)?;
        write!(out, "{} doubles, {} lost, {} by another attempt", self.doubles, self.lost, self.foreign)?;
        match self.errors.first() {
            None => Ok(()),
            Some(first) => write!(out, ", {} errors: {first}", self.errors.len()),
        }
    }
}
