//! Checkpoints of several partitions together (D5), of which not all take part each time, or not all are whole.

#![allow(clippy::unwrap_used)]

mod checkpoint_place;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use statehouse::keyed::{
    CheckpointChoice, CheckpointError, CheckpointInfo, CheckpointOptions, JointCheckpoint, OwnedPartition,
};
use statehouse::records::ClaimOptions;

use checkpoint_place::Place;

impl Place {
    fn begin(&self, partitions: &[u32]) -> JointCheckpoint {
        self.house.keyed("words").begin_checkpoint(&self.to, partitions).unwrap()
    }

    /// Writes a value to partitions, and takes a checkpoint of them.
    fn take(&self, owned: &mut [OwnedPartition], value: i64) -> CheckpointInfo {
        let begun = self.begin(&owned.iter().map(|owned| owned.number()).collect::<Vec<_>>());
        for owned in owned {
            self.join(owned, &begun, value);
        }
        commit(begun).unwrap()
    }

    fn join(&self, owned: &mut OwnedPartition, begun: &JointCheckpoint, value: i64) {
        owned.commit().put(b"k", value, value.unsigned_abs()).run().unwrap();
        owned.join_checkpoint(&self.to, begun.number(), &CheckpointOptions::default()).unwrap();
    }

    fn restored(&self, partition: u32) -> i64 {
        let restored = self.partition(partition).restore(&self.to, &together(), &ClaimOptions::worker("r")).unwrap();
        restored.get(b"k").unwrap().unwrap().value.as_integer().unwrap()
    }

    fn numbers(&self, partition: u32) -> Vec<u64> {
        let listed = self.partition(partition).checkpoints(&self.to, &together()).unwrap();
        listed.iter().map(|info| info.number).collect()
    }

    fn file(&self, number: u64, name: &str) -> PathBuf {
        let folder = self.directory.path().join("checkpoints/default/main/words/together");
        folder.join(format!("{number:020}/{name}"))
    }
}

fn together() -> CheckpointChoice {
    CheckpointChoice::latest().together()
}

fn commit(begun: JointCheckpoint) -> Result<CheckpointInfo, CheckpointError> {
    begun.commit(Duration::from_secs(10), &CheckpointOptions::default())
}

fn code<T>(result: Result<T, CheckpointError>) -> Option<&'static str> {
    result.err().unwrap().code()
}

#[test]
fn a_compaction_puts_no_partition_back() {
    let place = Place::new();
    let mut owned = [place.own(0), place.own(1)];
    place.take(&mut owned, 1);
    place.take(&mut owned, 2);
    let alone = place.take(&mut owned[1..], 3);
    assert_eq!(alone.partitions, [1]);
    let options = CheckpointOptions::default().keep(1);
    let compact = |partition| place.partition(partition).compact_checkpoints(&place.to, &together(), &options);
    assert_eq!(code(compact(0)), Some("SH-8017"), "partition 1 has a later state");
    assert_eq!(compact(1).unwrap().depth, 0);
    assert_eq!((place.restored(0), place.restored(1)), (2, 3));
    let mut owned = [place.own(0), place.own(1)];
    place.take(&mut owned, 4);
    place.take(&mut owned, 5);
    let compacted = compact(0).unwrap();
    assert_eq!((compacted.depth, compacted.keys), (0, 2));
    assert_eq!((place.restored(0), place.restored(1)), (5, 5));
    assert_eq!(place.numbers(0), [compacted.number]);
}

#[test]
fn an_earlier_state_is_not_committed_behind_a_later_one() {
    let place = Place::new();
    let mut owned = [place.own(0)];
    let (first, second) = (place.begin(&[0]), place.begin(&[0]));
    // The second one takes its view first, and is slow to end.
    place.join(&mut owned[0], &second, 1);
    place.join(&mut owned[0], &first, 2);
    assert_eq!(commit(first).unwrap().number, 1);
    assert_eq!(code(commit(second)), Some("SH-8017"));
    assert_eq!((place.restored(0), place.numbers(0)), (2, vec![1]));
}

#[test]
fn one_that_was_removed_meanwhile_is_not_committed() {
    let place = Place::new();
    let mut owned = [place.own(0)];
    let late = place.begin(&[0]);
    place.join(&mut owned[0], &late, 1);
    // It is given up by the first, and removed by the second.
    place.take(&mut owned, 2);
    assert!(place.file(1, "marker").exists() && !place.file(1, "part-0").exists());
    place.take(&mut owned, 3);
    assert!(!place.file(1, "begun").exists());
    let late = late.commit(Duration::from_millis(10), &CheckpointOptions::default());
    assert_eq!((code(late), place.numbers(0)), (Some("SH-8017"), vec![3, 2]));
    place.take(&mut owned, 4);
    assert!(!place.file(1, "marker").exists(), "nothing of it stays");
    assert_eq!(place.restored(0), 4);
}

#[test]
fn a_partition_needs_no_manifest_of_the_others() {
    let place = Place::new();
    let mut owned = [place.own(0), place.own(1), place.own(2)];
    place.take(&mut owned, 1);
    place.take(&mut owned, 2);
    for number in [1, 2] {
        fs::write(place.file(number, "part-2"), b"damaged").unwrap();
    }
    assert_eq!((place.restored(0), place.restored(1)), (2, 2));
    let refused = place.partition(2).restore(&place.to, &together(), &ClaimOptions::worker("r"));
    assert_eq!(code(refused), Some("SH-8015"));
    // The next one builds on what is whole, and has all of the rest.
    let mut owned = [place.own(0), place.own(1), place.own(2)];
    assert_eq!(place.take(&mut owned, 3).number, 3);
    assert_eq!((place.restored(0), place.restored(2)), (3, 3));
}

#[test]
fn what_is_missing_is_not_kept_instead_of_what_can_be_restored() {
    let place = Place::new();
    let mut owned = [place.own(0), place.own(1)];
    for value in 1..=3 {
        place.take(&mut owned, value);
    }
    let options = CheckpointOptions::default().changes_max(0).keep(1);
    fs::remove_file(place.file(3, "part-1")).unwrap();
    let begun = place.begin(&[0]);
    owned[0].join_checkpoint(&place.to, begun.number(), &options).unwrap();
    begun.commit(Duration::from_secs(10), &options).unwrap();
    assert_eq!(
        place.numbers(1),
        [3, 2, 1],
        "the second, on the first, is the last that partition 1 can be restored from"
    );
    let second = CheckpointChoice::number(2).together();
    place.partition(1).restore(&place.to, &second, &ClaimOptions::worker("r")).unwrap();
}

#[test]
fn too_many_partitions_are_refused_by_name() {
    let place = Place::new();
    let many: Vec<u32> = (0..=65_536).collect();
    let refused = place.house.keyed("words").begin_checkpoint(&place.to, &many).err().unwrap();
    assert_eq!(refused.code(), Some("SH-1002"));
    assert!(refused.to_string().contains("joint_partitions_max = 65536"), "{refused}");
}
