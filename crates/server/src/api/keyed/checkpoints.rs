//! The calls on checkpoints of a partition: take one, list them, restore one.
//!
//! Keeps: whoever does not own the partition is refused before anything is written; what was begun goes on in a thread of its own
//! when the wait is over, and then its failure is logged.

use std::thread;

use contract::Outcome;
use contract::time::iso;
use statehouse::Space;
use statehouse::keyed::{
    CheckpointChoice, CheckpointError, CheckpointInfo, CheckpointOptions, Checkpoints, FoundCheckpoint,
    ListedCheckpoints, OwnedPartition, Partition,
};
use statehouse::records::ClaimOptions;
use tokio::sync::oneshot;
use wire::keyed::checkpoints::{
    CheckpointList, CheckpointTaken, ListCheckpoints, PartitionRestored, RestorePartition, ShownCheckpoint,
    TakeCheckpoint,
};
use wire::keyed::version::Version;
use wire::operations::NoBody;
use wire::query::NoQuery;
use wire::values::PageCursor;

use super::limits::RESTORE_CHECKED_BYTES_MAX;
use super::operators::{Named, check_writer, named};
use super::server_checkpoints::PartitionName;
use super::{PAGE_ROWS, text_of};
use crate::Server;
use crate::api::refusal::{OwnRefusal, RefusalKind};
use crate::api::scope::{FORCE, RequestScope};
use crate::api::{Answered, Call, Refusal, Reply, page_limit};

pub(super) async fn list(server: Server, call: Call<ListCheckpoints, NoBody>) -> Answered<CheckpointList> {
    let Call { scope, name, rest, query, .. } = call;
    let (Named { operator, partition, .. }, _) = named(name, rest)?;
    let before = query.cursor.map(|cursor| text_of(cursor, |text| text.parse().ok())).transpose()?;
    let limit = page_limit(query.limit, PAGE_ROWS)?;
    let at = server.checkpoints.place()?.clone();
    let memory = server.reserve_page().await?;
    let of = scope.open(&server.house)?.space.keyed(operator.as_str()).partition(partition);
    let choice = chosen(None, query.together);
    let listed = tokio::task::spawn_blocking(move || of.list_checkpoints(&at, &choice, before, limit)).await;
    let listed = listed.map_err(|_| Refusal::Internal("a list of checkpoints did not return"))?;
    let ListedCheckpoints { checkpoints, before, .. } = listed.map_err(not_begun)?;
    let checkpoints = checkpoints.into_iter().map(shown).collect();
    let cursor = before.map(|before| PageCursor(before.to_string().into_bytes()));
    Ok(Reply::page(CheckpointList { operator, partition, checkpoints, cursor }, memory))
}

fn shown(info: CheckpointInfo) -> ShownCheckpoint {
    let CheckpointInfo { number, partitions, keys, bytes, depth, base, commit, made_us, .. } = info;
    ShownCheckpoint { number, partitions, keys, bytes, depth: depth.into(), base, commit, made_at: iso(made_us) }
}

fn chosen(number: Option<u64>, together: Option<bool>) -> CheckpointChoice {
    let choice = number.map_or_else(CheckpointChoice::latest, CheckpointChoice::number);
    if together == Some(true) { choice.together() } else { choice }
}

/// Of what was not begun: nothing was taken, and the partition from nobody.
fn not_begun(error: CheckpointError) -> Refusal {
    let outcome = error.outcome();
    refused(error, outcome)
}

/// Of what was begun: some of it may be there.
fn not_ended(error: CheckpointError) -> Refusal {
    refused(error, Outcome::Unknown)
}

fn refused(error: CheckpointError, outcome: Outcome) -> Refusal {
    let retryable = error.retryable();
    match error {
        CheckpointError::Store(error) => error.into(),
        other => {
            let refusal = OwnRefusal::new(RefusalKind::Unavailable, "SH-2025", other.to_string());
            refusal.retryable(retryable).outcome(outcome).into()
        }
    }
}

/// Of a restore that failed after the partition was taken over.
fn taken_over(error: CheckpointError) -> Refusal {
    let says =
        "; the partition was taken over for this: who owned it is refused, so acquire it, which holds what it held";
    Refusal::Halfway { refusal: Box::new(not_ended(error)), says, member: "taken_over" }
}

/// What a thread tells its request: that it has begun, and how it has ended.
struct Told<B, E> {
    begun: oneshot::Receiver<Result<B, Refusal>>,
    ended: oneshot::Receiver<E>,
}

impl<B, E> Told<B, E> {
    /// Runs a thread; a failure before it has begun ends it.
    fn by(
        name: &str,
        begin_and_end: impl FnOnce(oneshot::Sender<Result<B, Refusal>>, oneshot::Sender<E>) + Send + 'static,
    ) -> Result<Self, Refusal>
    where
        B: Send + 'static,
        E: Send + 'static,
    {
        let ((tell_begun, begun), (tell_ended, ended)) = (oneshot::channel(), oneshot::channel());
        let thread = thread::Builder::new().name(name.to_owned());
        let spawned = thread.spawn(move || begin_and_end(tell_begun, tell_ended));
        spawned.map_err(|_| Refusal::Internal("the system gives no thread for a checkpoint"))?;
        Ok(Self { begun, ended })
    }

    async fn begun(&mut self) -> Result<B, Refusal> {
        (&mut self.begun).await.map_err(|_| DID_NOT_RETURN)?
    }

    /// How it has ended; none if it has not when the wait is over, and goes on.
    async fn ended(mut self, over: impl Future<Output = ()>) -> Result<Option<E>, Refusal> {
        tokio::select! {
            biased;
            ended = &mut self.ended => return ended.map(Some).map_err(|_| DID_NOT_RETURN),
            () = over => {}
        }
        // From here on the thread knows that nobody listens; what it has told until now counts.
        self.ended.close();
        Ok(self.ended.try_recv().ok())
    }
}

const DID_NOT_RETURN: Refusal = Refusal::Internal("the thread of a checkpoint did not return");

pub(super) async fn take(server: Server, call: Call<NoQuery, TakeCheckpoint>) -> Answered<CheckpointTaken> {
    let Call { scope, name, rest, body, wait, .. } = call;
    let (Named { operator, partition, group }, _) = named(name, rest)?;
    let to = server.checkpoints.place()?.clone();
    check_writer(&server, &scope, &group)?;
    let (space, attempt) = writer(&server, scope, &group)?;
    let taking = server.checkpoints.taking(PartitionName::new(&space, &operator, partition))?;
    let by = space.keyed(operator.as_str()).partition(partition);
    let mut options = CheckpointOptions::default();
    if body.full == Some(true) {
        options = options.changes_max(0);
    }
    let mut told = Told::by("checkpoint", move |tell_begun, tell_ended| {
        let started = match attempt {
            Some(attempt) => by.owned(attempt).map_err(Into::into).and_then(|owned| owned.start_checkpoint(&to)),
            None => by.start_checkpoint(&to),
        };
        let started = match started {
            Ok(started) => started,
            Err(error) => {
                // One that the store refuses is none.
                if matches!(error, CheckpointError::Objects(_)) {
                    taking.failed();
                    tracing::warn!(%error, group, "a checkpoint cannot begin");
                }
                // Whoever is refused may try again at once.
                drop(taking);
                return drop(tell_begun.send(Err(not_begun(error))));
            }
        };
        let number = started.number();
        drop(tell_begun.send(Ok(number)));
        let ended = started.finish(&options);
        taking.ended(&ended);
        // Whoever is told may take the next one at once.
        drop(taking);
        if let Ok(CheckpointInfo { not_removed: Some(error), .. }) = &ended {
            tracing::warn!(%error, group, number, "checkpoints that are not needed any more were not removed");
        }
        if let Err(Err(error)) = tell_ended.send(ended) {
            tracing::warn!(%error, group, number, "a checkpoint failed");
        }
    })?;
    let number = told.begun().await?;
    let info = told.ended(server.waited_for_checkpoint(wait)).await?.transpose().map_err(not_ended)?;
    let (keys, bytes) = info.as_ref().map(|info| (info.keys, info.bytes)).unzip();
    let (base, commit) = (info.as_ref().and_then(|info| info.base), info.as_ref().map(|info| info.commit));
    let committed = info.is_some();
    let not_removed = info.and_then(|info| info.not_removed);
    Ok(Reply::new(CheckpointTaken { operator, partition, number, committed, keys, bytes, base, commit, not_removed }))
}

/// The space as the request may write it, and the attempt by which its sender owns the partition, if it shows one.
fn writer(server: &Server, mut scope: RequestScope, group: &str) -> Result<(Space, Option<u64>), Refusal> {
    let owner = scope.owner.take();
    let mut space = scope.open(&server.house)?.allowed().clone();
    if owner.is_some() {
        space = space.pinned()?;
    }
    let attempt = owner.map(|owner| owner.attempt_in(&server.house, &space, Some(group))).transpose()?;
    Ok((space, attempt))
}

/// How a restore has ended. If it failed, with the partition, which nobody needs then.
type Restored = Result<Summary, (CheckpointError, OwnedPartition)>;

/// The number of the next commit, and the seal.
type Summary = (u64, Option<Version>);

pub(super) async fn restore(server: Server, call: Call<NoQuery, RestorePartition>) -> Answered<PartitionRestored> {
    let Call { scope, name, rest, body, wait, .. } = call;
    let (Named { operator, partition, group }, _) = named(name, rest)?;
    if !scope.force {
        let detail = format!(
            "a restore takes the partition over from whoever owns it, and all that was committed since the checkpoint is \
             gone; send {FORCE}: true to do that"
        );
        return Err(Refusal::invalid(FORCE, detail));
    }
    let from = server.checkpoints.place()?.clone();
    let of = scope.open(&server.house)?.space.keyed(operator.as_str()).partition(partition);
    let permit = server.checkpoints.enter()?;
    let choice = chosen(body.checkpoint, body.together);
    let mut options = ClaimOptions::worker(body.worker.unwrap_or_default());
    if let Some(lease) = body.lease {
        options = options.lease(lease.0);
    }
    let named = group.clone();
    let mut told = Told::by("restore", move |tell_begun, tell_ended: oneshot::Sender<Restored>| {
        let _permit = permit;
        let found = match find(&of, &from, &choice) {
            Ok(found) => found,
            Err(error) => return drop(tell_begun.send(Err(not_begun(error)))),
        };
        // Whoever would get the token has gone: the partition stays with its owner.
        if tell_begun.is_closed() {
            return;
        }
        let mut owned = match of.acquire_by_force(&options) {
            Ok(owned) => owned,
            Err(error) => return drop(tell_begun.send(Err(error.into()))),
        };
        let (checkpoint, epoch, token) = (found.number(), owned.epoch(), owned.owned_group().token());
        // Not before it has begun in the store: whoever asks whether it goes on is told so until it has ended.
        let (mut begun, mut is_told) = (Some(tell_begun), false);
        let restored = owned.restore_telling(found, || {
            is_told = begun.take().is_some_and(|tell| tell.send(Ok((checkpoint, token, epoch))).is_ok());
        });
        let summary = restored.and_then(|()| Ok(owned.summary()?));
        let ended = match (summary, begun) {
            (Ok(summary), _) => {
                let next = summary.map_or(0, |summary| summary.last_number) + 1;
                Ok((next, summary.and_then(|summary| summary.seal).map(Version)))
            }
            (Err(error), Some(tell)) => {
                release(owned);
                return drop(tell.send(Err(taken_over(error))));
            }
            (Err(error), None) => Err((error, owned)),
        };
        match tell_ended.send(ended) {
            Ok(()) => return,
            Err(Ok(_)) => tracing::info!(group = named, checkpoint, epoch, "a partition was restored"),
            Err(Err((error, _))) => {
                tracing::warn!(%error, group = named, checkpoint, epoch, "a partition was not restored, and is as it was");
            }
        }
        if !is_told {
            drop(of.owned(epoch).map(release));
        }
    })?;
    let (checkpoint, token, epoch) = told.begun().await?;
    let (restored, next, seal) = match told.ended(server.waited_for_checkpoint(wait)).await? {
        Some(Ok((next, seal))) => (true, Some(next), seal),
        Some(Err((error, owned))) => {
            // The caller gets no token, so the next owner need not wait for the lease.
            if let Err(kept) = owned.owned_group().release_later().await {
                tracing::debug!(error = %kept, group, "not released after a restore that failed");
            }
            return Err(taken_over(error));
        }
        None => (false, None, None),
    };
    let answer = PartitionRestored { operator, partition, group, checkpoint, token, epoch, restored, next, seal };
    Ok(Reply::new(answer))
}

/// Finds the checkpoint: what is missing or damaged costs nobody the partition.
fn find(of: &Partition, from: &Checkpoints, choice: &CheckpointChoice) -> Result<FoundCheckpoint, CheckpointError> {
    let found = of.find_checkpoint(from, choice)?;
    if found.bytes() <= RESTORE_CHECKED_BYTES_MAX {
        found.check()?;
    }
    Ok(found)
}

/// Gives up a partition that nobody has the token of, so that the next owner need not wait for the lease.
fn release(owned: OwnedPartition) {
    if let Err(error) = owned.release() {
        tracing::debug!(%error, "not released after a restore");
    }
}
