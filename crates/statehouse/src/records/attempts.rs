//! Attempts: claiming records, working on them, and ending the attempt.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use contract::limits::{QUEUE_DEPTH_MAX, WORKER_BYTES_MAX};
use contract::records::{Claimed, Retry};
use contract::{AttemptPlace, Error, RecordRejection, Rejection, Subject, Value, Written, names};
use kernel::catalogue::types::micros;
use kernel::keys::ThingId;
use kernel::keys::queues::QueueId;
use kernel::records::get::whole_record;
use kernel::records::lanes::may_be_ready;
use kernel::records::queue::{SEPARATORS, depth, queue_of};
use kernel::{Answer, Body, Catalogue, ClaimNext, ClaimedOutcome, Fence, OpOutcome, RecordAct};
use node::arrivals::Topic;
use node::error::{from_halt, unexpected_answer};
use node::pending::{Decode, Pending};
use node::sessions::requests::InSession;
use waiting::{Place, Waited, Wanted};

use super::time_over::{TimeOver, block_for};
use super::{Records, borrowed, owned, owned_patches};
use crate::admission::{NO_BRANCH, Scope};
use crate::commit::{outcome, written};

/// Options of a claim.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ClaimOptions {
    /// The worker's own name, shown to anyone who asks; may be empty.
    pub worker: String,
    /// The lease, if it differs from the type's.
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
    /// Claims a ready record, for one attempt.
    pub fn claim(&self, record: &str, options: &ClaimOptions) -> Result<Claimed, Error> {
        self.claim_later(record, options).wait()
    }

    /// [`claim`](Self::claim), answered later.
    pub fn claim_later(&self, record: &str, options: &ClaimOptions) -> Pending<Claimed> {
        if let Err(rejection) = check_worker(&options.worker) {
            return Pending::refused(rejection);
        }
        let pinned = match self.scope.pinned() {
            Ok(scope) => Self { scope, group: self.group.clone() },
            Err(error) => return Pending::refused(error),
        };
        let act = RecordAct::Claim { worker: &options.worker, lease_us: options.lease_us() };
        pinned.propose_read_by(record, [].into_iter(), None, act, decode_claim(&pinned.scope))
    }

    /// [`claim`](Self::claim), which waits until `time_over` for a record that does not exist yet, is held or pauses;
    /// for any runtime. A numbered request of a session, which is executed once, waits before it is executed.
    pub async fn claim_until(
        &self,
        record: &str,
        options: &ClaimOptions,
        time_over: impl Future<Output = ()>,
    ) -> Result<Claimed, Error> {
        let shard = &self.scope.shard;
        let in_session = self.scope.session.as_ref().and_then(InSession::request).is_some();
        let mut time_over = pin!(time_over);
        loop {
            let listener = shard.shared.arrivals.listen(self.topics(record)?);
            let free = self.get(record)?.is_some_and(|found| found.holder.is_none() && found.ready_in.is_none());
            if free {
                match self.claim_later(record, options).await {
                    // Another worker was faster.
                    Err(Error::Rejected(Rejection::Record(RecordRejection::Held { .. }))) if !in_session => {}
                    other => return other,
                }
            }
            let mut arrived = pin!(listener.heard());
            let waited = poll_fn(|context| match arrived.as_mut().poll(context) {
                Poll::Ready(waited) => Poll::Ready(Some(waited)),
                Poll::Pending => time_over.as_mut().poll(context).map(|()| None),
            });
            match waited.await {
                Some(Waited::Stopped) => return Err(shard.why_stopped()),
                Some(_) => {}
                None => return self.claim_later(record, options).await,
            }
        }
    }

    /// What must happen before a record can be claimed: it changes, or its pause is over.
    fn topics(&self, record: &str) -> Result<Vec<Topic>, Error> {
        let (_, ids) = self.scope.current()?;
        let place = (ids.space, ids.branch);
        let changes = Topic::thing(Subject::Record, place, self.group.as_deref(), record);
        Ok(vec![changes, Topic::queue(place, queue_of(record))])
    }

    /// Claims up to `records_max` records of the queues whose names start with `prefix`, the longest ready first. A
    /// queue is the part of its records' names up to the last `.`, `:` or `/`, at most the eighth, so a prefix ends with
    /// one of these, or is empty for all queues. Finds records of all groups.
    pub fn claim_next(&self, prefix: &str, records_max: u32, options: &ClaimOptions) -> Result<Vec<Claimed>, Error> {
        if options.wait.is_zero() {
            return self.claim_next_later(prefix, records_max, options).wait();
        }
        let claim = async |over: TimeOver<'_>| self.claim_next_until(prefix, records_max, options, over).await;
        block_for(self.scope.shard.clock(), options.wait, claim)
    }

    /// The same without blocking, for any runtime. If no record is ready it waits for one until `time_over`, whatever
    /// `options` say. In a numbered request of a session, a claim that waited and ends empty stores no answer: the same
    /// number can be used to ask again.
    pub async fn claim_next_until(
        &self,
        prefix: &str,
        records_max: u32,
        options: &ClaimOptions,
        time_over: impl Future<Output = ()>,
    ) -> Result<Vec<Claimed>, Error> {
        let claim = || self.propose_claim(prefix, records_max, options, true);
        let request = self.scope.session.as_ref().and_then(InSession::request);
        if records_max == 0 {
            return self.claim_next_later(prefix, records_max, options).await;
        }
        if request.is_none() {
            let claimed = claim().await?;
            if !claimed.is_empty() {
                return Ok(claimed);
            }
        }
        let shard = &self.scope.shard;
        let (_, ids) = self.scope.current()?;
        let now = || shard.now();
        let session = self.scope.session.as_ref().map(|session| session.session);
        let _alive = session.map(|session| shard.keeper.wait_in(session, &now));
        let mut time_over = pin!(time_over);
        let mut chosen: Option<Place<'_>> = None;
        loop {
            // It joins before it checks, so that nothing becomes ready unseen in between.
            let place = shard.waiters.join(Wanted { scope: (ids.space, ids.branch), prefix: prefix.to_owned() });
            // A request of a session enters the journal only if there is something; an empty result stores no answer.
            let is_worth_executing = match request {
                Some((session, request)) => self.is_worth_executing(prefix, session, request)?,
                None => true,
            };
            if is_worth_executing {
                match claim().await {
                    Ok(claimed) if claimed.is_empty() => {}
                    Ok(claimed) => return Ok(claimed),
                    Err(error) => {
                        if let Some(chosen) = chosen {
                            chosen.pass_on();
                        }
                        return Err(error);
                    }
                }
            }
            let Some(mut place) = place else {
                return claim().await;
            };
            if !place.turn(time_over.as_mut()).await {
                // It may just have been chosen: a ready record must not be left waiting.
                drop(place);
                return claim().await;
            }
            chosen = Some(place);
        }
    }

    /// Whether there may be a record for a claim that is executed once, or its answer is already settled.
    fn is_worth_executing(&self, prefix: &str, session: u64, request: u64) -> Result<bool, Error> {
        let (view, _, ids) = self.scope.view()?;
        let keys = self.scope.shard.keys();
        let read = || {
            let settled = session::status::is_settled(&*view, &keys.sessions(), session, request)?;
            let queue = QueueId { space: ids.space, branch: ids.branch, name: prefix };
            Ok(settled || may_be_ready(&*view, &keys, queue)?)
        };
        read().map_err(|halt| from_halt(&halt))
    }

    /// [`claim_next`](Self::claim_next), answered later, without waiting for a record.
    pub fn claim_next_later(&self, prefix: &str, records_max: u32, options: &ClaimOptions) -> Pending<Vec<Claimed>> {
        self.propose_claim(prefix, records_max, options, false)
    }

    fn propose_claim(
        &self,
        prefix: &str,
        records_max: u32,
        options: &ClaimOptions,
        waits: bool,
    ) -> Pending<Vec<Claimed>> {
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
            waits,
        };
        let again = {
            let (records, prefix, options) = (self.clone(), prefix.to_owned(), options.clone());
            move || records.propose_claim(&prefix, records_max, &options, waits)
        };
        let place = self.scope.attempt_place(ids.branch);
        let read = move |answer, catalogue: &Catalogue| read_claimed(answer, catalogue, place);
        let decode = Decode::InSteps(self.scope.shard.shared.clone(), Box::new(read), Box::new(again));
        self.scope.propose_read_by(&catalogue, &Body::ClaimNext(claim), decode)
    }

    /// Writes fields, if the attempt is the live one. A new state among them moves the record.
    pub fn step<N: AsRef<str>, V: Into<Value>>(
        &self,
        claimed: &Claimed,
        fields: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Written, Error> {
        self.step_later(claimed, fields).wait()
    }

    /// [`step`](Self::step), answered later.
    pub fn step_later<N: AsRef<str>, V: Into<Value>>(
        &self,
        claimed: &Claimed,
        fields: impl IntoIterator<Item = (N, V)>,
    ) -> Pending<Written> {
        let fields = fields.into_iter().map(|(field, value)| (field, Some(value.into())));
        self.of(claimed).patch(&claimed.name, fields, true, Some(fence(claimed)))
    }

    /// Restarts the lease from now, with the given or the type's duration.
    pub fn extend(&self, claimed: &Claimed, lease: Option<Duration>) -> Result<Written, Error> {
        self.extend_later(claimed, lease).wait()
    }

    /// [`extend`](Self::extend), answered later.
    pub fn extend_later(&self, claimed: &Claimed, lease: Option<Duration>) -> Pending<Written> {
        let act = RecordAct::Extend { attempt: claimed.attempt, lease_us: lease.map(micros) };
        self.of(claimed).propose(&claimed.name, [].into_iter(), None, act, written)
    }

    /// Releases the record: it can be claimed at once, and the attempt does not count as failed.
    pub fn release(&self, claimed: &Claimed) -> Result<Written, Error> {
        self.release_later(claimed).wait()
    }

    /// [`release`](Self::release), answered later.
    pub fn release_later(&self, claimed: &Claimed) -> Pending<Written> {
        let act = RecordAct::Release { attempt: claimed.attempt };
        self.of(claimed).propose(&claimed.name, [].into_iter(), None, act, written)
    }

    /// Completes the record, with fields written in the same commit.
    pub fn complete<N: AsRef<str>, V: Into<Value>>(
        &self,
        claimed: &Claimed,
        fields: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Written, Error> {
        self.complete_later(claimed, fields).wait()
    }

    /// [`complete`](Self::complete), answered later.
    pub fn complete_later<N: AsRef<str>, V: Into<Value>>(
        &self,
        claimed: &Claimed,
        fields: impl IntoIterator<Item = (N, V)>,
    ) -> Pending<Written> {
        let fields: Vec<_> = owned(fields).into_iter().map(|(field, value)| (field, Some(value))).collect();
        let act = RecordAct::Complete { attempt: claimed.attempt, fields: borrowed(&fields) };
        let names = fields.iter().map(|(field, _)| field.as_str());
        self.of(claimed).propose(&claimed.name, names, None, act, written)
    }

    /// Says that the attempt failed: the record will be tried again after a pause, or its budget is used up.
    pub fn fail(&self, claimed: &Claimed, error: &str) -> Result<Retry, Error> {
        self.fail_later(claimed, error).wait()
    }

    /// [`fail`](Self::fail), answered later.
    pub fn fail_later(&self, claimed: &Claimed, error: &str) -> Pending<Retry> {
        let fields = owned_patches([("error", Some(Value::from(error)))]);
        let act = RecordAct::Fail { attempt: claimed.attempt, fields: borrowed(&fields) };
        self.of(claimed).propose(&claimed.name, [].into_iter(), None, act, |answer| retry(outcome(answer)?.1))
    }

    /// The records of a claimed record's group, in the branch of the claim.
    fn of(&self, claimed: &Claimed) -> Self {
        let mut scope = self.scope.clone();
        scope.pin_to(claimed.place);
        Self { scope, group: claimed.group.as_deref().map(Into::into) }
    }
}

/// The fence of a claimed record.
pub(crate) fn fence(claimed: &Claimed) -> Fence<'_> {
    Fence { record: &claimed.name, attempt: claimed.attempt }
}

pub(super) fn check_worker(worker: &str) -> Result<(), Rejection> {
    Rejection::check_limit("worker_bytes_max", WORKER_BYTES_MAX, worker.len())
}

/// A prefix of queues is the name of a queue, or empty for all of them.
pub(super) fn check_queue_prefix(prefix: &str) -> Result<(), Rejection> {
    if prefix.is_empty() {
        return Ok(());
    }
    if !prefix.ends_with(SEPARATORS) {
        let reason = "it does not end with '.', ':' or '/', like the names of queues";
        return Err(Rejection::InvalidName { what: "a prefix of queues", reason });
    }
    Rejection::check_limit("queue_depth_max", QUEUE_DEPTH_MAX, depth(prefix))?;
    names::check_record(prefix)
}

/// The claimed records; none if the claim must be repeated before it has found any.
fn read_claimed(answer: Answer, catalogue: &Catalogue, place: AttemptPlace) -> Result<Option<Vec<Claimed>>, Error> {
    match answer {
        Answer::Rejected(rejection) => Err(rejection.into()),
        Answer::Done { outcomes, .. } if outcomes.as_slice() == [OpOutcome::Unfinished] => Ok(None),
        Answer::Done { outcomes, .. } => {
            let claimed = outcomes.into_iter().map(|outcome| match outcome {
                OpOutcome::Claimed(claimed) => from_outcome(*claimed, catalogue, place),
                other => Err(unexpected_answer("a claim", &other)),
            });
            claimed.collect::<Result<_, _>>().map(Some)
        }
    }
}

/// Decodes the claim of one thing, in the branch that its scope is pinned to.
pub(super) fn decode_claim(scope: &Scope) -> Decode<Claimed> {
    let place = scope.attempt_place(scope.pinned.unwrap_or(NO_BRANCH));
    scope.with_catalogue(move |answer, catalogue| match outcome(answer)? {
        (_, OpOutcome::Claimed(claimed)) => from_outcome(*claimed, catalogue, place),
        other => Err(unexpected_answer("a claim", &other)),
    })
}

fn from_outcome(claimed: ClaimedOutcome, catalogue: &Catalogue, place: AttemptPlace) -> Result<Claimed, Error> {
    let ClaimedOutcome { name, group, space, stamp, row } = claimed;
    let id = ThingId { bucket: 0, space, branch: 0, group: group.as_deref(), name: &name };
    let record = whole_record(&row, &id, catalogue, stamp).map_err(|halt| from_halt(&halt))?;
    let lease = record.holder.as_ref().map_or(Duration::ZERO, |holder| holder.lease_left);
    Ok(Claimed::new(name, group, lease, record, place))
}

/// What follows a failed attempt.
pub(super) fn retry(outcome: OpOutcome) -> Result<Retry, Error> {
    match outcome {
        OpOutcome::Retried { pause_us, .. } => Ok(Retry::After(Duration::from_micros(pause_us))),
        OpOutcome::Exhausted { .. } => Ok(Retry::Exhausted),
        other => Err(unexpected_answer("the failure of an attempt", &other)),
    }
}
