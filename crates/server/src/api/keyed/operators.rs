//! The calls on operators: who owns a partition, its commits, and what it holds.
//!
//! Keeps: a partition is a map with the operator's name in a guarded group, `OPERATOR/NUMBER`; whoever acquires it guards the group.

use contract::{Error, NameInGroup, Rejection};
use statehouse::Group;
use statehouse::keyed::check_operator;
use statehouse::records::{ClaimOptions, Holder as StoredHolder};
use wire::contracts::{Done, Operation};
use wire::keyed::operations::{MapCommit, MapOperation};
use wire::keyed::operators::{
    AcquirePartition, CommitPartition, ListOperators, ListPartitions, OperatorList, PartitionAcquired,
    PartitionCommitted, PartitionList, PartitionRead,
};
use wire::keyed::version::Version;
use wire::keyed::{KeyEntry, KeyPage, MapUpdated, Positions, ReadPositions, ScanKeys};
use wire::operations::NoBody;
use wire::owners::Holder;
use wire::query::NoQuery;
use wire::values::{PageCursor, SessionId};

use super::{PAGE_ROWS, forms, keys, positions_of, text_of};
use crate::Server;
use crate::api::scope::{Handles, RequestScope};
use crate::api::{Answered, Call, Refusal, Reply, page_limit, transactions};
use crate::dates::ms_from_now;

/// The partition that a path names.
pub(super) struct Named {
    pub(super) operator: String,
    pub(super) partition: u32,
    pub(super) group: String,
}

/// Reads the path of a partition. Returns what is behind it in the path, too.
pub(super) fn named(operator: String, rest: Vec<Vec<u8>>) -> Result<(Named, Vec<u8>), Refusal> {
    check_operator(&operator).map_err(Error::from)?;
    let mut rest = rest.into_iter();
    let number = rest.next().unwrap_or_default();
    let text = String::from_utf8_lossy(&number);
    // Another spelling would be another group.
    let partition = text.parse().ok().filter(|parsed: &u32| parsed.to_string() == text);
    let Some(partition) = partition else {
        let detail = format!("{text:?} is not the number of a partition: 0, 1, 2, ... below 4294967296");
        return Err(Refusal::invalid("partition", detail));
    };
    let group = format!("{operator}/{partition}");
    Ok((Named { operator, partition, group }, rest.next().unwrap_or_default()))
}

pub(super) async fn list(server: Server, call: Call<ListOperators, NoBody>) -> Answered<OperatorList> {
    let Call { scope, query, .. } = call;
    let after = query.cursor.map(|cursor| text_of(cursor, NameInGroup::from_cursor)).transpose()?;
    let prefix = query.prefix.unwrap_or_default();
    let limit = page_limit(query.limit, PAGE_ROWS)?;
    let memory = server.reserve_page().await?;
    let space = scope.open(&server.house)?.space;
    let found = server.call(move |_| space.operators(&prefix, after.as_ref(), limit)).await?;
    let cursor = found.next_after.map(|after| PageCursor(after.to_cursor().into_bytes()));
    Ok(Reply::page(OperatorList { operators: found.operators, cursor }, memory))
}

pub(super) async fn partitions(server: Server, call: Call<ListPartitions, NoBody>) -> Answered<PartitionList> {
    let Call { scope, name: operator, query, .. } = call;
    let of_group = |text: &str| text.starts_with(&format!("{operator}/")).then(|| text.to_owned());
    let after = query.cursor.map(|cursor| text_of(cursor, of_group)).transpose()?;
    let limit = page_limit(query.limit, PAGE_ROWS)?;
    let memory = server.reserve_page().await?;
    let of = scope.open(&server.house)?.space.keyed(operator.as_str());
    let found = server.call(move |_| of.partitions(after.as_deref(), limit)).await?;
    let shown = |(number, summary)| forms::partition(number, format!("{operator}/{number}"), &summary);
    let partitions = found.partitions.into_iter().map(shown).collect();
    let cursor = found.next_after.map(|group| PageCursor(group.into_bytes()));
    Ok(Reply::page(PartitionList { operator, partitions, cursor }, memory))
}

pub(super) async fn read(server: Server, call: Call<NoQuery, NoBody>) -> Answered<PartitionRead> {
    let (Named { operator, partition, group }, _) = named(call.name, call.rest)?;
    let (handles, of_group) = call.scope.open_group(&server.house, &group)?;
    let (guard, holder) = (of_group.guard()?.map(|(prefix, _)| prefix), of_group.owner()?.map(shown_holder));
    let map = of_group.maps().summary(&operator)?;
    let map = map.map(|summary| forms::map(NameInGroup::new(operator.as_str(), None), &summary));
    let restoring = handles.space.keyed(operator.as_str()).partition(partition).is_restoring()?;
    Ok(Reply::new(PartitionRead { operator, partition, group, guard, holder, map, restoring }))
}

fn shown_holder(stored: StoredHolder) -> Holder {
    let lease_ms = contract::time::millis(stored.lease_left);
    Holder { worker: stored.worker, session: stored.session.map(SessionId), lease_ms }
}

pub(super) async fn acquire(server: Server, call: Call<NoQuery, AcquirePartition>) -> Answered<PartitionAcquired> {
    let Call { scope, name, rest, body, wait, .. } = call;
    let (Named { operator, partition, group }, _) = named(name, rest)?;
    let mut options = ClaimOptions::worker(body.worker.unwrap_or_default());
    if let Some(lease) = body.lease {
        options = options.lease(lease.0);
    }
    // The guard is no request of the session: that is the claim.
    let outside = RequestScope { session: None, secret: None, ..scope.clone() };
    let guarded = outside.open(&server.house)?.space.keyed(operator.as_str()).partition(partition);
    let (handles, of_group) = scope.open_group(&server.house, &group)?;
    let of = guarded.clone();
    server.call(move |_| guarded.guard()).await?;
    let owned = of_group.own_until(&options, server.waited(wait)).await?;
    let (map, replayed) = (operator.clone(), handles.replayed());
    let (owned, summary) = server
        .call(move |_| {
            // If it was answered before, then perhaps to an owner that is replaced by now.
            let given_up = if replayed { Ok(()) } else { of.give_up_restore(&owned) };
            match given_up.and_then(|()| owned.maps().summary(&map)) {
                Ok(summary) => Ok((owned, summary)),
                Err(error) => {
                    // Nobody gets the token, so the next owner need not wait for the lease.
                    drop(of.group().owned(owned.attempt()).release());
                    Err(error)
                }
            }
        })
        .await?;
    let answer = PartitionAcquired {
        operator,
        partition,
        group,
        token: owned.token(),
        epoch: owned.attempt(),
        next: summary.map_or(0, |summary| summary.last_number) + 1,
        seal: summary.and_then(|summary| summary.seal).map(Version),
    };
    Ok(Reply::new(answer).replayed(replayed))
}

/// Refuses a write of a partition that shows no token of its owner and is not forced. The guard of its group would refuse it too, but there
/// is none before somebody has acquired a partition of the operator.
pub(super) fn check_writer(server: &Server, scope: &RequestScope, group: &str) -> Result<(), Refusal> {
    if scope.owner.is_some() || scope.force {
        return Ok(());
    }
    // It is opened as the request will be: whoever shows no secret of the session is refused for that.
    let (_, of_group) = scope.clone().open_group(&server.house, group)?;
    let (holder, until_ms) = match of_group.owner()? {
        Some(owner) => (owner.worker, Some(ms_from_now(owner.lease_left))),
        None => (None, None),
    };
    let refused = Rejection::Unfenced { what: "partition", name: group.to_owned(), holder, until_ms };
    Err(Error::from(refused).into())
}

/// A commit is a transaction in the partition's group, whose last operation has the number.
pub(super) async fn commit(server: Server, call: Call<NoQuery, CommitPartition>) -> Answered<PartitionCommitted> {
    let Call { scope, name, rest, body, .. } = call;
    let (Named { operator, group, .. }, _) = named(name, rest)?;
    check_writer(&server, &scope, &group)?;
    let CommitPartition { number, updates, positions, seal, guards, operations } = body;
    let mut operations = operations.unwrap_or_default();
    let of_map = MapCommit { name: operator, number, updates, positions, seal };
    operations.push(Operation::Map(MapOperation::Commit(of_map)));
    let committed = transactions::commit_in(&server, scope, &group, guards, None, operations);
    let (commit, mut done, replayed) = committed.await?;
    let Some(Done::Updated(MapUpdated { updates, applied, not_applied })) = done.pop() else {
        return Err(Refusal::Internal("a commit of a partition was answered by something else"));
    };
    Ok(Reply::new(PartitionCommitted { commit, number, updates, applied, not_applied, done }).replayed(replayed))
}

/// The group of a partition, for reading.
fn opened(server: &Server, scope: RequestScope, named: &Named) -> Result<Group, Refusal> {
    let (_, group): (Handles, Group) = scope.open_group(&server.house, &named.group)?;
    Ok(group)
}

pub(super) async fn key(server: Server, call: Call<NoQuery, NoBody>) -> Answered<KeyEntry> {
    let (named, key) = named(call.name, call.rest)?;
    let maps = opened(&server, call.scope, &named)?.maps();
    keys::read_of(&maps, named.operator, Some(named.group), key)
}

pub(super) async fn scan(server: Server, call: Call<ScanKeys, NoBody>) -> Answered<KeyPage> {
    let (named, _) = named(call.name, call.rest)?;
    let maps = opened(&server, call.scope, &named)?.maps();
    keys::scan_of(server, maps, named.operator, call.query).await
}

pub(super) async fn positions(server: Server, call: Call<ReadPositions, NoBody>) -> Answered<Positions> {
    let (named, _) = named(call.name, call.rest)?;
    let maps = opened(&server, call.scope, &named)?.maps();
    positions_of(server, maps, named.operator, call.query).await
}
