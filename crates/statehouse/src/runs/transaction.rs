//! Runs in an interactive transaction.

use contract::runs::{AppendResult, Fetched, NewEvent, RunSnapshot};
use contract::{Error, Rejection, RunRejection, Subject, names};
use kernel::runs::read;
use kernel::runs::row::RunHead;
use node::error::from_halt;

use super::AppendOptions;
use super::commit::{OwnAppend, OwnRunGuard, append_result};
use crate::paging::check_page;
use crate::transaction::Transaction;

/// The runs of a transaction's group, with its own events. Made by [`Transaction::runs`].
///
/// Every method reads the run that it concerns: if it gets another event before the transaction commits, nothing of it is
/// done (with [`Isolation::Snapshot`](crate::Isolation), only if the transaction appends to it too). Times of its own events
/// are those of its beginning, until it is committed; so are ids that the store gives.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
/// # use statehouse::{Json, runs::NewEvent};
/// let order = house.group("order-7");
/// let paid = |key: &str| Ok::<_, statehouse::InvalidJson>(NewEvent::new("Paid", key, "2026-02-11T10:00:00Z", Json::new("10")?));
/// let (first, second) = (paid("payment-1")?, paid("payment-2")?);
/// order.runs().append("log", &first)?;
/// order.transact(|transaction| {
///     let last = transaction.runs().append("log", &second, Default::default())?.run_seq;
///     transaction.set("paid", format!("{last} times"))
/// })?;
/// assert_eq!(order.cells().get("paid")?, Some("2 times".into()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TransactionRuns<'transaction> {
    transaction: &'transaction mut Transaction,
}

impl Transaction {
    /// The runs of this transaction's group.
    pub fn runs(&mut self) -> TransactionRuns<'_> {
        TransactionRuns { transaction: self }
    }
}

impl TransactionRuns<'_> {
    /// The last sequence of a run; 0 if it does not exist.
    pub fn last(&mut self, run: &str) -> Result<u64, Error> {
        Ok(self.head(run)?.map_or(0, |head| head.last_seq))
    }

    /// The events after a sequence, ascending, at most `limit` (1 to 1,000), with the run's last sequence.
    pub fn fetch(&mut self, run: &str, after: u64, limit: usize) -> Result<Fetched, Error> {
        check_page(limit)?;
        let head = self.head(run)?.ok_or_else(|| Rejection::Run(RunRejection::NoSuchRun { run: run.to_owned() }))?;
        let seen = self.transaction.seen();
        let fetched = read::fetch(seen.view, &seen.ids.keys, &seen.thing(run)?, &head, after, limit);
        fetched.map_err(|halt| from_halt(&halt))
    }

    /// The projection; none if the run does not exist.
    pub fn snapshot(&mut self, run: &str) -> Result<Option<RunSnapshot>, Error> {
        let Some(head) = self.head(run)? else { return Ok(None) };
        let seen = self.transaction.seen();
        read::snapshot(seen.view, &seen.ids.keys, &seen.thing(run)?, &head).map(Some).map_err(|halt| from_halt(&halt))
    }

    /// Appends an event; a run that does not exist is created. If the event is already there, it is refused as `KeyReused`,
    /// and the transaction can go on without it.
    pub fn append(&mut self, run: &str, event: &NewEvent, options: AppendOptions) -> Result<AppendResult, Error> {
        let unchanged = unchanged(run, self.head(run)?.as_ref());
        let op = OwnAppend { run: run.to_owned(), event: event.clone(), options };
        append_result(&self.transaction.write(Subject::Run, run, unchanged, op)?)
    }

    /// The head of a run as the transaction sees it, remembered as read; none if there is no such run.
    fn head(&mut self, run: &str) -> Result<Option<RunHead>, Error> {
        names::check_run(run)?;
        let head = self.seen_head(run)?;
        self.transaction.read(Subject::Run, run, unchanged(run, head.as_ref()))?;
        Ok(head)
    }

    fn seen_head(&self, run: &str) -> Result<Option<RunHead>, Error> {
        let seen = self.transaction.seen();
        match read::head(seen.view, &seen.ids.keys, &seen.thing(run)?).map_err(|halt| from_halt(&halt))? {
            Ok(head) => Ok(Some(head)),
            Err(Rejection::Run(RunRejection::NoSuchRun { .. })) => Ok(None),
            Err(rejection) => Err(rejection.into()),
        }
    }
}

/// The guard that a run is as it is now. The first one of a run counts: it is from before the transaction's own events.
fn unchanged(run: &str, head: Option<&RunHead>) -> OwnRunGuard {
    OwnRunGuard::LastIs(run.to_owned(), head.map_or(0, |head| head.last_seq))
}
