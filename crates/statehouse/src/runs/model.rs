//! A custom read model in the same commit as the event.

use contract::Error;
use contract::runs::{AppendResult, NewEvent};
use contract::{Rejection, RunRejection};

use super::AppendOptions;
use crate::commit::Commit;
use crate::group::Group;

impl Group {
    /// Appends an event to a run of this group, with what `model` adds to the commit: a read model that is never behind
    /// and never ahead. `model` reads what it needs, and is called again if the run got another event meanwhile. A
    /// repeated event is answered as such, and the model stays unchanged.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
    /// # use statehouse::{Json, runs::NewEvent};
    /// let order = house.group("order-7");
    /// let paid = NewEvent::new("Paid", "payment-1", "2026-02-11T10:00:00Z", Json::new("10")?);
    /// for _ in 0..2 { // a retry does no harm
    ///     order.append_with_model("order-7", &paid, |commit| {
    ///         let total = order.cells().get("paid")?.and_then(|paid| paid.as_integer()).unwrap_or(0);
    ///         Ok(commit.set_cell("paid", total + 10))
    ///     })?;
    /// }
    /// assert_eq!(order.cells().get("paid")?, Some(10.into()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn append_with_model(
        &self,
        run: &str,
        event: &NewEvent,
        mut model: impl FnMut(Commit) -> Result<Commit, Error>,
    ) -> Result<AppendResult, Error> {
        loop {
            // Before the model reads: if it reads something newer, the sequence is newer too and the commit is refused.
            let last = match self.runs().fetch(run, u64::MAX, 1) {
                Ok(fetched) => fetched.stable_seq,
                Err(Error::Rejected(Rejection::Run(RunRejection::NoSuchRun { .. }))) => 0,
                Err(error) => return Err(error),
            };
            let options = AppendOptions::default().expecting(last);
            match model(self.commit().append(run, event, options))?.run() {
                Ok(_) => {
                    let run_seq = last + 1;
                    return Ok(AppendResult { run_seq, idempotent: false, persisted: true, payload_mismatch: false });
                }
                Err(Error::Rejected(Rejection::Run(RunRejection::KeyReused { .. }))) => {
                    return self.runs().append(run, event);
                }
                Err(Error::Rejected(Rejection::Run(RunRejection::SequenceConflict { .. }))) => {}
                Err(error) => return Err(error),
            }
        }
    }
}
