//! Keyed state: maps whose updates count once, and partitions of operators.

use std::ops::Deref;

use contract::Value;
use wire::keyed::checkpoints::{
    CheckpointList, CheckpointTaken, ListCheckpoints, PartitionRestored, RestorePartition, TakeCheckpoint,
};
use wire::keyed::operators::{
    AcquirePartition, CommitPartition, ListOperators, ListPartitions, OperatorList, PartitionAcquired,
    PartitionCommitted, PartitionList, PartitionRead,
};
use wire::keyed::updates::KeyUpdate;
use wire::keyed::version::{Version, VersionText};
use wire::keyed::{
    CommitMap, CreateMap, CreatedMap, DeletedMap, KeyEntry, KeyPage, KeyWritten, ListMaps, MapCommitted, MapList,
    MapUpdated, Positions, ReadPositions, ScanKeys, SealMap, SealedMap, ShownMap, UpdateMap, WriteKey,
};
use wire::routes::{
    KEYED_ACQUIRE, KEYED_CHECKPOINT, KEYED_CHECKPOINTS, KEYED_COMMIT, KEYED_KEY, KEYED_LIST, KEYED_PARTITIONS,
    KEYED_POSITIONS, KEYED_READ, KEYED_RESTORE, KEYED_SCAN, MAPS_COMMIT, MAPS_CREATE, MAPS_DELETE, MAPS_DELETE_KEY,
    MAPS_KEY, MAPS_LIST, MAPS_POSITIONS, MAPS_PUT_KEY, MAPS_READ, MAPS_SCAN, MAPS_SEAL, MAPS_UPDATE, Route,
};
use wire::values::UserJson;

pub use contract::keyed::{LogicalTime, Merge, Policy};

use crate::call::Call;
use crate::client::Client;
use crate::error::Error;
use crate::groups::OwnedGroup;

/// The maps of a client's place.
#[derive(Clone)]
pub struct Maps<'client> {
    client: &'client Client,
}

impl Client {
    /// The maps here.
    pub fn maps(&self) -> Maps<'_> {
        Maps { client: self }
    }

    /// The operators of the client's branch; see [`ListOperators`].
    pub async fn operators(&self, query: &ListOperators) -> Result<OperatorList, Error> {
        self.call(KEYED_LIST, &[]).query(query).read().await
    }

    /// The partitions of an operator that hold something.
    pub async fn partitions(&self, operator: &str, query: &ListPartitions) -> Result<PartitionList, Error> {
        self.call(KEYED_PARTITIONS, &[operator]).query(query).read().await
    }

    /// A partition of an operator, which need not exist yet.
    pub fn partition(&self, operator: impl Into<String>, number: u32) -> Partition {
        Partition { client: self.clone(), operator: operator.into(), number: number.to_string() }
    }
}

impl Maps<'_> {
    fn call(&self, route: Route, map: &str) -> Call {
        self.client.call(route, &[map])
    }

    fn of_key(&self, route: Route, map: &str, key: impl AsRef<[u8]>) -> Call {
        self.client.call_at(route, route.at_key(&[map], key.as_ref()))
    }

    /// A key with its value; none if it does not exist.
    pub async fn get(&self, map: &str, key: impl AsRef<[u8]>) -> Result<Option<KeyEntry>, Error> {
        self.of_key(MAPS_KEY, map, key).find().await
    }

    /// Keys in the order of their bytes; see [`ScanKeys`]. A map that does not exist is refused.
    pub async fn scan(&self, map: &str, query: &ScanKeys) -> Result<KeyPage, Error> {
        self.call(MAPS_SCAN, map).query(query).read().await
    }

    /// Puts a value, if the version is newer than that of the key.
    pub async fn put(
        &self,
        map: &str,
        key: impl AsRef<[u8]>,
        value: impl Into<Value>,
        version: impl Into<LogicalTime>,
    ) -> Result<KeyWritten, Error> {
        let call = self.of_key(MAPS_PUT_KEY, map, key).query(&written_at(version));
        call.json(&UserJson(value.into())).read().await
    }

    /// Deletes a key, if the version is newer than that of the key.
    pub async fn delete(
        &self,
        map: &str,
        key: impl AsRef<[u8]>,
        version: impl Into<LogicalTime>,
    ) -> Result<KeyWritten, Error> {
        self.of_key(MAPS_DELETE_KEY, map, key).query(&written_at(version)).read().await
    }

    /// Applies several updates in one commit: each is applied, or the answer says why it was not.
    pub async fn update(&self, map: &str, updates: Vec<KeyUpdate>) -> Result<MapUpdated, Error> {
        self.call(MAPS_UPDATE, map).json(&UpdateMap { updates }).read().await
    }

    /// Commits updates, positions of inputs and a seal under a number; sent again, it gets its first answer.
    pub async fn commit(&self, map: &str, commit: &CommitMap) -> Result<MapCommitted, Error> {
        self.call(MAPS_COMMIT, map).json(commit).read().await
    }

    /// Raises the seal: an update that arrives later with a version at or below it changes nothing.
    pub async fn seal(&self, map: &str, version: impl Into<LogicalTime>) -> Result<SealedMap, Error> {
        self.call(MAPS_SEAL, map).json(&SealMap { version: Version(version.into()) }).read().await
    }

    /// Creates a map with a policy, unless it exists with it.
    pub async fn create(&self, map: &str, policy: Policy) -> Result<CreatedMap, Error> {
        self.call(MAPS_CREATE, map).json(&CreateMap { policy: Some(policy.into()) }).read().await
    }

    /// Deletes a map with all that it holds; none if it does not exist.
    pub async fn delete_map(&self, map: &str) -> Result<Option<DeletedMap>, Error> {
        self.call(MAPS_DELETE, map).find().await
    }

    /// How far the inputs of a map were read. A map that does not exist is refused.
    pub async fn positions(&self, map: &str, query: &ReadPositions) -> Result<Positions, Error> {
        self.call(MAPS_POSITIONS, map).query(query).read().await
    }

    /// A map as a whole; none if it does not exist.
    pub async fn summary(&self, map: &str) -> Result<Option<ShownMap>, Error> {
        self.call(MAPS_READ, map).find().await
    }

    /// Maps by name; see [`ListMaps`].
    pub async fn list(&self, query: &ListMaps) -> Result<MapList, Error> {
        self.client.call(MAPS_LIST, &[]).query(query).read().await
    }
}

fn written_at(version: impl Into<LogicalTime>) -> WriteKey {
    WriteKey { version: VersionText(version.into()) }
}

/// A partition of an operator, for whoever reads it or wants to own it.
#[derive(Clone)]
pub struct Partition {
    client: Client,
    operator: String,
    number: String,
}

impl Partition {
    fn call(&self, route: Route) -> Call {
        self.client.call(route, &[&self.operator, &self.number])
    }

    /// Owns the partition; with [`AcquirePartition::wait`], waits for it. Whoever owned it before is refused from then on.
    ///
    /// ```no_run
    /// # async fn example(client: statehouse_client::Client) -> Result<(), statehouse_client::Error> {
    /// use statehouse_client::keyed::Merge;
    /// use statehouse_client::wire::keyed::operators::{AcquirePartition, CommitPartition};
    /// use statehouse_client::wire::keyed::updates::KeyUpdate;
    /// let owned = client.partition("wordcount", 3).acquire(&AcquirePartition::by("w1")).await?;
    /// let counted = CommitPartition::numbered(owned.next()).update(KeyUpdate::merge("hello", Merge::Add, 2));
    /// owned.commit(&counted.advance("topic-a", 7)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn acquire(&self, acquire: &AcquirePartition) -> Result<OwnedPartition, Error> {
        let call = self.call(KEYED_ACQUIRE).json(acquire).waiting(acquire.wait.map(|wait| wait.0));
        let acquired: PartitionAcquired = call.read().await?;
        let group = self.client.owned(&acquired.token)?;
        Ok(OwnedPartition { partition: self.clone(), group, acquired })
    }

    /// Its committed checkpoints, from the last to the first.
    pub async fn checkpoints(&self, query: &ListCheckpoints) -> Result<CheckpointList, Error> {
        self.call(KEYED_CHECKPOINTS).query(query).read().await
    }

    /// Takes the partition over from whoever owns it, and restores it from a checkpoint; with [`RestorePartition::wait`], waits for
    /// that. If it goes on after the wait, [`PartitionRestored::restored`] is false, and [`read`](Self::read) says when it has ended.
    ///
    /// ```no_run
    /// # async fn example(client: statehouse_client::Client) -> Result<(), statehouse_client::Error> {
    /// use std::time::Duration;
    ///
    /// use statehouse_client::wire::keyed::checkpoints::{ListCheckpoints, RestorePartition, TakeCheckpoint};
    /// use statehouse_client::wire::keyed::operators::AcquirePartition;
    /// use statehouse_client::wire::values::DurationText;
    /// let wait = Some(DurationText(Duration::from_secs(30)));
    /// let owned = client.partition("wordcount", 3).acquire(&AcquirePartition::by("w1")).await?;
    /// owned.checkpoint(&TakeCheckpoint { wait, ..TakeCheckpoint::default() }).await?;
    /// let partition = client.partition("wordcount", 3);
    /// let first = partition.checkpoints(&ListCheckpoints::default()).await?.checkpoints.pop();
    /// let checkpoint = first.map(|info| info.number);
    /// let (owned, restored) = partition.restore(&RestorePartition { checkpoint, wait, ..RestorePartition::by("w2") }).await?;
    /// assert!(restored.restored && owned.epoch() == restored.epoch);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn restore(&self, restore: &RestorePartition) -> Result<(OwnedPartition, PartitionRestored), Error> {
        let Self { client, operator, number } = self;
        let call = client.clone().forced().call(KEYED_RESTORE, &[operator, number]).json(restore);
        let restored: PartitionRestored = call.waiting(restore.wait.map(|wait| wait.0)).read().await?;
        let group = client.owned(&restored.token)?;
        let PartitionRestored { operator, partition, group: name, token, epoch, next, seal, .. } = restored.clone();
        let next = next.unwrap_or_default();
        let acquired = PartitionAcquired { operator, partition, group: name, token, epoch, next, seal };
        Ok((OwnedPartition { partition: self.clone(), group, acquired }, restored))
    }

    /// The partition as a whole, and who owns it.
    pub async fn read(&self) -> Result<PartitionRead, Error> {
        self.call(KEYED_READ).read().await
    }

    /// A key with its value; none if it does not exist.
    pub async fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<KeyEntry>, Error> {
        let target = KEYED_KEY.at_key(&[&self.operator, &self.number], key.as_ref());
        self.client.call_at(KEYED_KEY, target).find().await
    }

    /// Keys in the order of their bytes; see [`ScanKeys`].
    pub async fn scan(&self, query: &ScanKeys) -> Result<KeyPage, Error> {
        self.call(KEYED_SCAN).query(query).read().await
    }

    /// How far its inputs were read: where to resume.
    pub async fn positions(&self, query: &ReadPositions) -> Result<Positions, Error> {
        self.call(KEYED_POSITIONS).query(query).read().await
    }
}

/// A partition that this client owns, until it is released or lost.
#[derive(Clone)]
pub struct OwnedPartition {
    partition: Partition,
    group: OwnedGroup,
    acquired: PartitionAcquired,
}

/// For reading.
impl Deref for OwnedPartition {
    type Target = Partition;

    fn deref(&self) -> &Partition {
        &self.partition
    }
}

impl OwnedPartition {
    /// The attempt by which it is owned. It only rises.
    pub fn epoch(&self) -> u64 {
        self.acquired.epoch
    }

    /// The number of the next commit, when it was acquired; 0 of one that is still being restored.
    pub fn next(&self) -> u64 {
        self.acquired.next
    }

    /// The group that it is, as its owner: to extend and to release it, and for things of the other contracts beside its keys.
    pub fn owned_group(&self) -> &OwnedGroup {
        &self.group
    }

    /// Commits. Sent again, by whoever owns the partition then, the same commit gets its first answer.
    pub async fn commit(&self, commit: &CommitPartition) -> Result<PartitionCommitted, Error> {
        let Partition { operator, number, .. } = &self.partition;
        self.group.call(KEYED_COMMIT, &[operator, number]).json(commit).read().await
    }

    /// Takes a checkpoint, and with [`TakeCheckpoint::wait`] waits until it is committed. Commits go on meanwhile.
    pub async fn checkpoint(&self, take: &TakeCheckpoint) -> Result<CheckpointTaken, Error> {
        let Partition { operator, number, .. } = &self.partition;
        let call = self.group.call(KEYED_CHECKPOINT, &[operator, number]).json(take);
        call.waiting(take.wait.map(|wait| wait.0)).read().await
    }

    /// Gives the partition up: the next one can own it at once.
    pub async fn release(self) -> Result<(), Error> {
        self.group.release().await
    }
}
