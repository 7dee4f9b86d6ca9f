//! Closing, deleting and forking runs.

use contract::Error;
use kernel::{Answer, Op, OpOutcome, RunAct};
use node::error::unexpected_answer;
use node::pending::Pending;

use super::Runs;
use crate::commit::outcome;

impl Runs {
    /// Closes a run to further events. Repeated appends are still answered. Returns its last sequence.
    pub fn close(&self, run: &str) -> Result<u64, Error> {
        self.close_later(run).wait()
    }

    /// [`close`](Self::close), answered later.
    pub fn close_later(&self, run: &str) -> Pending<u64> {
        self.act(run, RunAct::Close)
    }

    /// Deletes a run as a whole. Its name is never reused: late appends are answered `RunArchived`. Returns its last
    /// sequence.
    pub fn delete(&self, run: &str) -> Result<u64, Error> {
        self.delete_later(run).wait()
    }

    /// [`delete`](Self::delete), answered later.
    pub fn delete_later(&self, run: &str) -> Pending<u64> {
        self.act(run, RunAct::Delete)
    }

    fn act(&self, run: &str, act: RunAct<'_>) -> Pending<u64> {
        let (catalogue, ids) = match self.prepare(run) {
            Ok(prepared) => prepared,
            Err(error) => return Pending::refused(error),
        };
        self.transact(&catalogue, ids, self.group.as_deref(), vec![Op::Run(run, act)], written_seq)
    }

    /// Creates the run `fork`, which shares the events of `run` up to the sequence `at`, without copying them, and
    /// continues separately. It is in the same group, which is named `run` if that run has no group:
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
    /// # use statehouse::{Json, runs::NewEvent};
    /// let event = |key: &str| NewEvent::new("Note", key, "2026-02-11T10:00:00Z", Json::new("{}").unwrap());
    /// for key in ["a", "b", "c"] {
    ///     house.runs().append("run-1", &event(key))?;
    /// }
    /// house.runs().fork("run-1", 2, "run-1-again")?;
    /// let forks = house.group("run-1").runs();
    /// assert_eq!(forks.append("run-1-again", &event("d"))?.run_seq, 3);
    /// let keys: Vec<_> = forks.fetch("run-1-again", 0, 10)?.events.into_iter().map(|e| e.event.idempotency_key).collect();
    /// assert_eq!(keys, ["a", "b", "d"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fork(&self, run: &str, at: u64, fork: &str) -> Result<u64, Error> {
        self.fork_later(run, at, fork).wait()
    }

    /// [`fork`](Self::fork), answered later.
    pub fn fork_later(&self, run: &str, at: u64, fork: &str) -> Pending<u64> {
        let (catalogue, ids) = match self.prepare(run).and_then(|_| self.prepare(fork)) {
            Ok(prepared) => prepared,
            Err(error) => return Pending::refused(error),
        };
        let group = self.group.as_deref().unwrap_or(run);
        let op = Op::Run(fork, RunAct::Fork { from: run, at });
        self.transact(&catalogue, ids, Some(group), vec![op], written_seq)
    }
}

fn written_seq(answer: Answer) -> Result<u64, Error> {
    match outcome(answer)? {
        (_, OpOutcome::Written(seq)) => Ok(seq),
        other => Err(unexpected_answer("the end or fork of a run", &other)),
    }
}
