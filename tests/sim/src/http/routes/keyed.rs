//! The tour of keyed state: maps, partitions of operators, and their checkpoints.

use std::time::Duration;

use client::Error;
use client::keyed::{Merge, Policy};
use wire::keyed::checkpoints::{ListCheckpoints, RestorePartition, TakeCheckpoint};
use wire::keyed::operators::{AcquirePartition, CommitPartition, ListOperators, ListPartitions};
use wire::keyed::updates::KeyUpdate;
use wire::keyed::{CommitMap, ListMaps, ReadPositions, ScanKeys};
use wire::values::DurationText;

use super::Tour;

impl Tour<'_> {
    /// Keys that are put, scanned and deleted; a commit; a seal.
    pub(super) async fn maps(&self) -> Result<(), Error> {
        let maps = self.typed.maps();
        assert!(maps.create("tour", Policy::Monotonic).await?.created);
        maps.put("tour", "a", 1, 1).await?;
        let updated = maps.update("tour", vec![KeyUpdate::put("b", 2, 1), KeyUpdate::put("a", 2, 1)]).await?;
        assert_eq!((updated.updates, updated.applied), (2, 1));
        assert_eq!(maps.get("tour", "a").await?.map(|entry| entry.value.0), Some(1.into()));
        assert_eq!(maps.scan("tour", &ScanKeys::default()).await?.keys.len(), 2);
        maps.delete("tour", "a", 2).await?;
        assert_eq!(maps.get("tour", "a").await?, None);
        let commit = CommitMap::numbered(1).update(KeyUpdate::merge("n", Merge::Add, 5)).advance("topic", 7);
        assert_eq!(maps.commit("tour", &commit).await?.applied, 1);
        assert_eq!(maps.positions("tour", &ReadPositions::default()).await?.positions[0].position, 7);
        assert!(maps.seal("tour", 2).await?.raised);
        assert_eq!(maps.summary("tour").await?.map(|map| (map.keys, map.last_number)), Some((2, 1)));
        let listed = maps.list(&ListMaps { prefix: Some("tour".into()), ..ListMaps::default() }).await?;
        assert_eq!(listed.maps[0].name, "tour");
        maps.create("tour.gone", Policy::Ordered).await?;
        assert!(maps.delete_map("tour.gone").await?.is_some());
        Ok(())
    }

    /// A partition that is owned, committed, taken as a checkpoint and restored from it.
    pub(super) async fn partitions(&self) -> Result<(), Error> {
        let partition = self.typed.partition("tour", 3);
        let owned = partition.acquire(&AcquirePartition::by("w1")).await?;
        let count = |number: u64| {
            CommitPartition::numbered(number).update(KeyUpdate::merge("hello", Merge::Add, 2)).advance("topic", number)
        };
        owned.commit(&count(owned.next())).await?;
        let value = async || Ok::<_, Error>(partition.get("hello").await?.map(|entry| entry.value.0));
        assert_eq!(value().await?, Some(2.into()));
        assert_eq!(partition.scan(&ScanKeys::default()).await?.keys.len(), 1);
        assert_eq!(partition.positions(&ReadPositions::default()).await?.positions[0].position, 1);
        let wait = Some(DurationText(Duration::from_secs(30)));
        let taken = owned.checkpoint(&TakeCheckpoint { wait, ..TakeCheckpoint::default() }).await?;
        assert_eq!((taken.committed, taken.keys, taken.base), (true, Some(1), None));
        owned.commit(&count(2)).await?;
        let listed = partition.checkpoints(&ListCheckpoints::default()).await?.checkpoints;
        assert_eq!((listed[0].number, listed[0].depth, listed[0].keys), (taken.number, 0, 1));
        let (restored, answer) = partition.restore(&RestorePartition { wait, ..RestorePartition::by("w2") }).await?;
        assert!(answer.restored && restored.epoch() > owned.epoch(), "{answer:?}");
        assert_eq!(value().await?, Some(2.into()), "what came after it is gone");
        let zombie = owned.commit(&count(2)).await.expect_err("it was taken over");
        assert_eq!(zombie.code(), Some("SH-4002"));
        restored.commit(&count(restored.next())).await?;
        let read = partition.read().await?;
        assert_eq!((read.holder.and_then(|holder| holder.worker), read.restoring), (Some("w2".to_owned()), false));
        assert_eq!(self.typed.operators(&ListOperators::default()).await?.operators.len(), 2, "codes has one, too");
        assert_eq!(self.typed.partitions("tour", &ListPartitions::default()).await?.partitions[0].partition, 3);
        restored.release().await
    }
}
