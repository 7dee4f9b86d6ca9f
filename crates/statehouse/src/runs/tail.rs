//! Following a run: events arrive as they are appended, without polling.
//!
//! Keeps: L1 for readers: a tail returns every event once, in order, from its cursor on.

use std::time::Duration;

use contract::runs::Fetched;
use contract::{Error, Rejection, RunRejection, Subject};
use node::arrivals::Topic;
use waiting::Waited;

use super::Runs;

/// A reader of a run, by a cursor. A run that does not exist yet is waited for. Waiting with a cursor beyond the run's end
/// is refused with [`RunRejection::SequenceConflict`]: it is from another history, and what comes next would be missed.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
/// # use std::time::Duration;
/// # use statehouse::{Json, runs::NewEvent};
/// let mut tail = house.runs().tail("run-1", 0);
/// let reader = std::thread::spawn(move || tail.next(100, Duration::from_secs(10)));
/// let event = NewEvent::new("RunStarted", "k", "2026-02-11T10:00:00Z", Json::new("{}")?);
/// house.runs().append("run-1", &event)?;
/// assert_eq!(reader.join().unwrap()?.events[0].run_seq, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Tail {
    runs: Runs,
    run: String,
    cursor: u64,
}

impl Runs {
    /// Follows a run after a sequence.
    pub fn tail(&self, run: &str, after: u64) -> Tail {
        Tail { runs: self.clone(), run: run.to_owned(), cursor: after }
    }
}

impl Tail {
    /// The last sequence returned.
    pub fn cursor(&self) -> u64 {
        self.cursor
    }

    /// The events already there, at most `limit`; the cursor advances past them.
    pub fn read(&mut self, limit: usize) -> Result<Fetched, Error> {
        let fetched = match self.runs.fetch(&self.run, self.cursor, limit) {
            Err(Error::Rejected(Rejection::Run(RunRejection::NoSuchRun { .. }))) => {
                Fetched { events: Vec::new(), stable_seq: 0 }
            }
            other => other?,
        };
        if let Some(last) = fetched.events.last() {
            self.cursor = last.run_seq;
        }
        Ok(fetched)
    }

    /// Refuses to wait behind the end of the run.
    pub fn check_cursor(&self) -> Result<(), Error> {
        let mut at_cursor = self.clone();
        let stable_seq = at_cursor.read(0)?.stable_seq;
        self.refuse_beyond(stable_seq)
    }

    fn refuse_beyond(&self, last: u64) -> Result<(), Error> {
        match last {
            // A run that does not exist yet is waited for, wherever the cursor is.
            0 => Ok(()),
            last if last < self.cursor => Err(Rejection::Run(RunRejection::SequenceConflict {
                run: self.run.clone(),
                expected: self.cursor,
                last,
            })
            .into()),
            _ => Ok(()),
        }
    }

    /// What must change before there can be something new.
    fn topic(&self) -> Result<Topic, Error> {
        let (_, ids) = self.runs.scope.current()?;
        Ok(Topic::thing(Subject::Run, (ids.space, ids.branch), self.runs.group.as_deref(), &self.run))
    }

    /// The next events, at most `limit`, as soon as there is one; empty if none arrives in time.
    pub fn next(&mut self, limit: usize, timeout: Duration) -> Result<Fetched, Error> {
        let shard = self.runs.scope.shard.clone();
        let began_us = shard.clock().monotonic_us();
        loop {
            let listener = shard.shared.arrivals.listen(vec![self.topic()?]);
            let fetched = self.read(limit)?;
            let passed = Duration::from_micros(shard.clock().monotonic_us().saturating_sub(began_us));
            let left = timeout.saturating_sub(passed);
            if !fetched.events.is_empty() || left.is_zero() {
                return Ok(fetched);
            }
            self.refuse_beyond(fetched.stable_seq)?;
            if listener.wait(left) == Waited::Stopped {
                return Err(shard.why_stopped());
            }
        }
    }

    /// The next events, at most `limit`, as soon as there is one; for any runtime.
    pub async fn next_async(&mut self, limit: usize) -> Result<Fetched, Error> {
        let shard = self.runs.scope.shard.clone();
        loop {
            let listener = shard.shared.arrivals.listen(vec![self.topic()?]);
            let fetched = self.read(limit)?;
            if !fetched.events.is_empty() {
                return Ok(fetched);
            }
            self.refuse_beyond(fetched.stable_seq)?;
            if listener.heard().await == Waited::Stopped {
                return Err(shard.why_stopped());
            }
        }
    }
}
