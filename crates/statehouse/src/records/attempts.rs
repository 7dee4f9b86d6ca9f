//! Attempts: claiming records, working on them, and ending the attempt.

use std::time::Duration;

use contract::limits::WORKER_BYTES_MAX;
use contract::records::{Claimed, Retry};
use contract::{Error, Rejection, Value, Written, names};
use kernel::catalogue::types::micros;
use kernel::keys::ThingId;
use kernel::records::get::whole_record;
use kernel::records::schedule::SEPARATORS;
use kernel::{Answer, Body, Catalogue, ClaimNext, ClaimedOutcome, Fence, OpOutcome, RecordAct};

use super::waiters::Wanted;
use super::{Records, borrowed, owned, owned_patches};
use crate::cells::{outcome, written};
use crate::error::from_halt;
use crate::pending::Pending;
use crate::shard::keys;

/// How records are claimed.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ClaimOptions {
    /// The worker's own name, shown to whoever asks; may be empty.
    pub worker: String,
    /// For how long, if not as the record's type says.
    pub lease: Option<Duration>,
    /// How long to wait for a record if none is ready.
    pub wait: Duration,
}

impl ClaimOptions {
    /// A claim by a worker with a name.
    pub fn worker(worker: impl Into<String>) -> Self {
        Self { worker: worker.into(), ..Self::default() }
    }

    /// The same with another lease.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = Some(lease);
        self
    }

    /// The same, but waiting for a record if none is ready.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    fn lease_us(&self) -> Option<u64> {
        self.lease.map(micros)
    }
}

impl Records {
    /// Takes a record that is ready, for one attempt.
    pub fn claim(&self, record: &str, options: &ClaimOptions) -> Result<Claimed, Error> {
        check_worker(&options.worker)?;
        let act = RecordAct::Claim { worker: &options.worker, lease_us: options.lease_us() };
        let claimed = self.propose(record, [].into_iter(), None, act, |answer| match outcome(answer)? {
            (_, OpOutcome::Claimed(claimed)) => Ok(*claimed),
            other => unreachable!("a claim does not give {other:?}"),
        });
        let catalogue = self.scope.shard.shared.catalogue();
        from_outcome(claimed.wait()?, &catalogue)
    }

    /// Takes up to `records_max` records of the queues whose names begin with `prefix`, those first that have been
    /// ready longest. A queue is what comes before the last `.`, `:` or `/` of its records' names, so a prefix ends
    /// with one of these, or is empty for all queues. Records of all groups are found.
    pub fn claim_next(&self, prefix: &str, records_max: u32, options: &ClaimOptions) -> Result<Vec<Claimed>, Error> {
        let mut claimed = self.claim_next_later(prefix, records_max, options).wait()?;
        if claimed.is_empty() && !options.wait.is_zero() && records_max > 0 {
            claimed = self.wait_for_claim(prefix, records_max, options)?;
        }
        let catalogue = self.scope.shard.shared.catalogue();
        claimed.into_iter().map(|claimed| from_outcome(claimed, &catalogue)).collect()
    }

    fn wait_for_claim(
        &self,
        prefix: &str,
        records_max: u32,
        options: &ClaimOptions,
    ) -> Result<Vec<ClaimedOutcome>, Error> {
        let shard = &self.scope.shard;
        let (_, ids) = self.scope.current()?;
        let until_us = shard.clock().monotonic_us().saturating_add(micros(options.wait));
        let now = || shard.now();
        let session = self.scope.session.as_ref().map(|session| session.session);
        let _alive = session.map(|session| shard.keeper.wait_in(session, &now));
        loop {
            let wanted = Wanted { space: ids.space, branch: ids.branch, prefix: prefix.to_owned() };
            let place = shard.waiters.join(wanted);
            let claimed = self.claim_next_later(prefix, records_max, options).wait()?;
            let left_us = until_us.saturating_sub(shard.clock().monotonic_us());
            let (Some(place), true, true) = (place, claimed.is_empty(), left_us > 0) else {
                return Ok(claimed);
            };
            if !place.wait(Duration::from_micros(left_us)) {
                // It may have been chosen just now: what is ready is not left behind for nobody.
                drop(place);
                return self.claim_next_later(prefix, records_max, options).wait();
            }
        }
    }

    fn claim_next_later(&self, prefix: &str, records_max: u32, options: &ClaimOptions) -> Pending<Vec<ClaimedOutcome>> {
        let prepare = || {
            check_queue_prefix(prefix)?;
            check_worker(&options.worker)?;
            self.scope.current()
        };
        let (catalogue, ids) = match prepare() {
            Ok(prepared) => prepared,
            Err(error) => return Pending::refused(error),
        };
        let claim = ClaimNext {
            space: ids.space,
            branch: ids.branch,
            prefix,
            records_max,
            worker: &options.worker,
            lease_us: options.lease_us(),
        };
        self.scope.propose(&catalogue, &Body::ClaimNext(claim), |answer| match answer {
            Answer::Rejected(rejection) => Err(rejection.into()),
            Answer::Done { outcomes, .. } => {
                let claimed = outcomes.into_iter().map(|outcome| match outcome {
                    OpOutcome::Claimed(claimed) => *claimed,
                    other => unreachable!("a claim does not give {other:?}"),
                });
                Ok(claimed.collect())
            }
        })
    }

    /// Writes fields, if the attempt is the live one. A new state among them moves the record.
    pub fn step<N: AsRef<str>, V: Into<Value>>(
        &self,
        claimed: &Claimed,
        fields: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Written, Error> {
        let fields = fields.into_iter().map(|(field, value)| (field, Some(value.into())));
        self.of(claimed).patch(&claimed.name, fields, true, Some(fence(claimed))).wait()
    }

    /// Holds the record for so long from now, or as long as its type says.
    pub fn extend(&self, claimed: &Claimed, lease: Option<Duration>) -> Result<Written, Error> {
        let act = RecordAct::Extend { attempt: claimed.attempt, lease_us: lease.map(micros) };
        self.of(claimed).propose(&claimed.name, [].into_iter(), None, act, written).wait()
    }

    /// Gives the record back: it can be claimed at once, and the attempt does not count as failed.
    pub fn release(&self, claimed: &Claimed) -> Result<Written, Error> {
        let act = RecordAct::Release { attempt: claimed.attempt };
        self.of(claimed).propose(&claimed.name, [].into_iter(), None, act, written).wait()
    }

    /// Finishes the record, with fields that are written in the same commit.
    pub fn complete<N: AsRef<str>, V: Into<Value>>(
        &self,
        claimed: &Claimed,
        fields: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Written, Error> {
        let fields: Vec<_> = owned(fields).into_iter().map(|(field, value)| (field, Some(value))).collect();
        let act = RecordAct::Complete { attempt: claimed.attempt, fields: borrowed(&fields) };
        let names = fields.iter().map(|(field, _)| field.as_str());
        self.of(claimed).propose(&claimed.name, names, None, act, written).wait()
    }

    /// Says that the attempt failed: the record will be tried again after a pause, or its budget is used up.
    pub fn fail(&self, claimed: &Claimed, error: &str) -> Result<Retry, Error> {
        let fields = owned_patches([("error", Some(Value::from(error)))]);
        let act = RecordAct::Fail { attempt: claimed.attempt, fields: borrowed(&fields) };
        let answer =
            self.of(claimed).propose(&claimed.name, [].into_iter(), None, act, |answer| match outcome(answer)? {
                (_, OpOutcome::Retried { pause_us, .. }) => Ok(Retry::After(Duration::from_micros(pause_us))),
                (_, OpOutcome::Exhausted { .. }) => Ok(Retry::Exhausted),
                other => unreachable!("a failed attempt does not give {other:?}"),
            });
        answer.wait()
    }

    /// The records of a claimed record's group.
    fn of(&self, claimed: &Claimed) -> Self {
        Self { scope: self.scope.clone(), group: claimed.group.as_deref().map(Into::into) }
    }
}

/// The fence of a claimed record.
pub(crate) fn fence(claimed: &Claimed) -> Fence<'_> {
    Fence { record: &claimed.name, attempt: claimed.attempt }
}

fn check_worker(worker: &str) -> Result<(), Rejection> {
    Rejection::check_limit("worker_bytes_max", WORKER_BYTES_MAX, worker.len())
}

fn check_queue_prefix(prefix: &str) -> Result<(), Rejection> {
    if prefix.is_empty() {
        return Ok(());
    }
    if !prefix.ends_with(SEPARATORS) {
        let reason = "it does not end with '.', ':' or '/', as the names of queues do";
        return Err(Rejection::InvalidName { what: "a prefix of queues", reason });
    }
    names::check_record(prefix)
}

fn from_outcome(claimed: ClaimedOutcome, catalogue: &Catalogue) -> Result<Claimed, Error> {
    let ClaimedOutcome { name, group, space, stamp, row } = claimed;
    let id = ThingId { bucket: 0, space, branch: 0, group: group.as_deref(), name: &name };
    let record = whole_record(&row, &id, catalogue, keys(), stamp).map_err(|halt| from_halt(&halt))?;
    let lease = record.holder.as_ref().map_or(Duration::ZERO, |holder| holder.lease_left);
    Ok(Claimed::new(name, group, lease, record))
}
