//! The calls on checkpoints of a partition: take one, list them, restore one.
//!
//! Keeps: whoever does not own the partition is refused before anything is written; what was begun goes on in a thread of its own
//! when the wait is over, and then its failure is logged.

use std::thread;

use contract::time::iso;
use statehouse::Space;
use statehouse::keyed::{
    CheckpointChoice, CheckpointError, CheckpointInfo, CheckpointOptions, Checkpoints, OwnedPartition, Partition,
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

use super::operators::{Named, check_writer, named};
use super::server_checkpoints::PartitionName;
use crate::Server;
use crate::api::scope::{FORCE, RequestScope};
use crate::api::{Answered, Call, Refusal, Reply};

pub(super) async fn list(server: Server, call: Call<ListCheckpoints, NoBody>) -> Answered<CheckpointList> {
    let Call { scope, name, rest, query, .. } = call;
    let (Named { operator, partition, .. }, _) = named(name, rest)?;
    let at = server.checkpoints.place()?.clone();
    let of = scope.open(&server.house)?.space.keyed(operator.as_str()).partition(partition);
    let choice = chosen(None, query.together);
    let listed = tokio::task::spawn_blocking(move || of.checkpoints(&at, &choice)).await;
    let listed = listed.map_err(|_| Refusal::Internal("a list of checkpoints did not return"))?;
    let checkpoints = listed.map_err(|error| refused(error, false))?.into_iter().map(shown).collect();
    Ok(Reply::new(CheckpointList { operator, partition, checkpoints }))
}

fn shown(info: CheckpointInfo) -> ShownCheckpoint {
    let CheckpointInfo { number, partitions, keys, bytes, depth, base, commit, made_us, .. } = info;
    ShownCheckpoint { number, partitions, keys, bytes, depth: depth.into(), base, commit, made_at: iso(made_us) }
}

fn chosen(number: Option<u64>, together: Option<bool>) -> CheckpointChoice {
    let choice = number.map_or_else(CheckpointChoice::latest, CheckpointChoice::number);
    if together == Some(true) { choice.together() } else { choice }
}

fn refused(error: CheckpointError, is_write: bool) -> Refusal {
    match error {
        CheckpointError::Store(error) => error.into(),
        other => Refusal::CheckpointPlace { detail: other.to_string(), is_write },
    }
}

/// What a thread tells its request: that it has begun, and how it has ended.
struct Told<B, E> {
    begun: oneshot::Receiver<Result<B, CheckpointError>>,
    ended: oneshot::Receiver<E>,
}

impl<B, E> Told<B, E> {
    /// Runs a thread; a failure before it has begun ends it.
    fn by(
        name: &str,
        begin_and_end: impl FnOnce(oneshot::Sender<Result<B, CheckpointError>>, oneshot::Sender<E>) + Send + 'static,
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
        let begun = (&mut self.begun).await.map_err(|_| DID_NOT_RETURN)?;
        begun.map_err(|error| refused(error, true))
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
                // Whoever is refused may try again at once.
                drop(taking);
                return drop(tell_begun.send(Err(error)));
            }
        };
        let number = started.number();
        drop(tell_begun.send(Ok(number)));
        let ended = started.finish(&options);
        taking.ended(&ended);
        // Whoever is told may take the next one at once.
        drop(taking);
        if let Err(Err(error)) = tell_ended.send(ended) {
            tracing::warn!(%error, group, number, "a checkpoint failed");
        }
    })?;
    let number = told.begun().await?;
    let info = told.ended(server.waited(wait)).await?.transpose().map_err(|error| refused(error, true))?;
    let (keys, bytes) = info.as_ref().map(|info| (info.keys, info.bytes)).unzip();
    let (base, commit) = (info.as_ref().and_then(|info| info.base), info.as_ref().map(|info| info.commit));
    let committed = info.is_some();
    Ok(Reply::new(CheckpointTaken { operator, partition, number, committed, keys, bytes, base, commit }))
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
        let (checkpoint, mut owned, found) = match begin_restore(&of, &from, &choice, &options) {
            Ok(begun) => begun,
            Err(error) => return drop(tell_begun.send(Err(error))),
        };
        let epoch = owned.epoch();
        // Not before it has begun in the store: whoever asks whether it goes on is told so until it has ended.
        let (mut begun, token) = (Some(tell_begun), owned.owned_group().token());
        let restored = owned.restore_telling(found, || {
            drop(begun.take().map(|tell| tell.send(Ok((checkpoint, token, epoch)))));
        });
        let ended = match (restored.and_then(|()| Ok(owned.summary()?)), begun) {
            (Ok(summary), _) => Ok((
                summary.map_or(0, |summary| summary.last_number) + 1,
                summary.and_then(|summary| summary.seal).map(Version),
            )),
            (Err(error), Some(tell)) => return drop(tell.send(Err(error))),
            (Err(error), None) => Err((error, owned)),
        };
        match tell_ended.send(ended) {
            Ok(()) => {}
            Err(Ok(_)) => tracing::info!(group = named, checkpoint, epoch, "a partition was restored"),
            Err(Err((error, _))) => {
                tracing::warn!(%error, group = named, checkpoint, epoch, "a partition was not restored, and is as it was");
            }
        }
    })?;
    let (checkpoint, token, epoch) = told.begun().await?;
    let (restored, next, seal) = match told.ended(server.waited(wait)).await? {
        Some(Ok((next, seal))) => (true, Some(next), seal),
        Some(Err((error, owned))) => {
            // The caller gets no token, so the next owner need not wait for the lease.
            if let Err(kept) = owned.owned_group().release_later().await {
                tracing::debug!(error = %kept, group, "not released after a restore that failed");
            }
            return Err(refused(error, true));
        }
        None => (false, None, None),
    };
    let answer = PartitionRestored { operator, partition, group, checkpoint, token, epoch, restored, next, seal };
    Ok(Reply::new(answer))
}

type BegunRestore = (u64, OwnedPartition, statehouse::keyed::FoundCheckpoint);

/// Finds the checkpoint first: what is missing or damaged costs nobody the partition.
fn begin_restore(
    of: &Partition,
    from: &Checkpoints,
    choice: &CheckpointChoice,
    options: &ClaimOptions,
) -> Result<BegunRestore, CheckpointError> {
    let found = of.find_checkpoint(from, choice)?;
    Ok((found.number(), of.acquire_by_force(options)?, found))
}
