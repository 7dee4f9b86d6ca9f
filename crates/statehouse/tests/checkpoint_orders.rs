//! Checkpoints of partitions (D5) that meet others, in orders that nobody plans: taken at once, compacted meanwhile, by owners that
//! were replaced, on what is damaged.

#![allow(clippy::unwrap_used)]

mod checkpoint_place;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use statehouse::keyed::{CheckpointChoice, CheckpointError, CheckpointOptions, OwnedPartition, Partition};
use statehouse::records::ClaimOptions;

use checkpoint_place::Place;

impl Place {
    /// What a restore of the last one gives.
    fn restored(&self) -> i64 {
        value(&self.partition(0).restore(&self.to, &CheckpointChoice::latest(), &worker("r")).unwrap())
    }

    /// The object of a checkpoint whose name begins so.
    fn object(&self, series: &str, number: u64, begins: &str) -> PathBuf {
        let folder = self.directory.path().join(format!("checkpoints/default/main/words/{series}/{number:020}"));
        let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        files.into_iter().find(|file| file.file_name().unwrap().to_str().unwrap().starts_with(begins)).unwrap()
    }
}

fn worker(name: &str) -> ClaimOptions {
    ClaimOptions::worker(name)
}

fn set(owned: &mut OwnedPartition, version: i64) {
    owned.commit().put(b"k", version, version.unsigned_abs()).run().unwrap();
}

fn value(partition: &Partition) -> i64 {
    partition.get(b"k").unwrap().unwrap().value.as_integer().unwrap()
}

fn options() -> CheckpointOptions {
    CheckpointOptions::default()
}

fn code<T>(result: Result<T, CheckpointError>) -> Option<&'static str> {
    result.err().unwrap().code()
}

fn flip(file: &Path) {
    let mut bytes = fs::read(file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(file, bytes).unwrap();
}

#[test]
fn the_last_one_alone_is_compacted_and_none_while_another_is_taken() {
    let place = Place::new();
    let mut owned = place.own(0);
    for version in 1..=3 {
        set(&mut owned, version);
        owned.checkpoint(&place.to, &options()).unwrap();
    }
    let compact = |choice| place.partition(0).compact_checkpoints(&place.to, &choice, &options().keep(1));
    assert_eq!(code(compact(CheckpointChoice::number(2))), Some("SH-8017"), "an earlier state would be the last one");
    set(&mut owned, 4);
    let started = owned.start_checkpoint(&place.to).unwrap();
    assert_eq!(code(compact(CheckpointChoice::latest())), Some("SH-8017"));
    started.finish(&options()).unwrap();
    assert_eq!(place.restored(), 4);
    assert_eq!(compact(CheckpointChoice::latest()).unwrap().depth, 0);
    assert_eq!(place.restored(), 4);
}

#[test]
fn of_two_that_are_taken_at_once_the_later_one_counts() {
    let place = Place::new();
    let mut owned = place.own(0);
    set(&mut owned, 1);
    let (first, second) = (owned.start_checkpoint(&place.to).unwrap(), owned.start_checkpoint(&place.to).unwrap());
    second.finish(&options()).unwrap();
    set(&mut owned, 2);
    assert_eq!(code(first.finish(&options())), Some("SH-8017"), "it would be behind the last one, and later");
    assert_eq!(place.restored(), 1);
    let listed = place.partition(0).checkpoints(&place.to, &CheckpointChoice::latest()).unwrap();
    assert_eq!(listed.iter().map(|info| info.number).collect::<Vec<_>>(), [2]);
    let third = place.own(0).checkpoint(&place.to, &options()).unwrap();
    assert_eq!(third.number, 3);
}

#[test]
fn what_one_builds_on_stays_until_it_has_ended() {
    let place = Place::new();
    let mut owned = place.own(0);
    set(&mut owned, 1);
    owned.checkpoint(&place.to, &options()).unwrap();
    set(&mut owned, 2);
    owned.checkpoint(&place.to, &options()).unwrap();
    // A third one of another owner stands still while a fourth is committed and removes what is not kept.
    let still = owned.start_checkpoint(&place.to).unwrap();
    set(&mut owned, 3);
    owned.checkpoint(&place.to, &options().changes_max(0).keep(1)).unwrap();
    assert_eq!(code(still.finish(&options())), Some("SH-8017"));
    assert_eq!(place.restored(), 3);
}

#[test]
fn nothing_builds_on_what_is_damaged() {
    let place = Place::new();
    let mut owned = place.own(0);
    for version in 1..=3 {
        set(&mut owned, version);
        assert_eq!(owned.checkpoint(&place.to, &options()).unwrap().depth, u32::try_from(version - 1).unwrap());
    }
    flip(&place.object("0", 1, "marker"));
    set(&mut owned, 4);
    assert_eq!(owned.checkpoint(&place.to, &options()).unwrap().depth, 0, "the oldest of the chain is damaged");
    assert_eq!(place.restored(), 4);
}

#[test]
fn what_was_replaced_while_it_was_written_is_not_committed() {
    let place = Place::new();
    let mut first = place.own(0);
    let mut commit = first.commit();
    for key in 0..4_000_u64 {
        commit = commit.put(&key.to_be_bytes(), "x".repeat(100), 1);
    }
    commit.run().unwrap();
    let started = first.start_checkpoint(&place.to).unwrap();
    // It writes for two seconds.
    let slow = options().bytes_per_second(200_000);
    let taken = std::thread::spawn(move || started.finish(&slow));
    std::thread::sleep(Duration::from_millis(300));
    drop(place.own(0));
    assert_eq!(code(taken.join().unwrap()), Some("SH-4002"));
    assert_eq!(place.partition(0).checkpoints(&place.to, &CheckpointChoice::latest()).unwrap(), []);
}

#[test]
fn what_cannot_be_read_of_a_crashed_attempt_stops_nothing() {
    let place = Place::new();
    let mut owned = place.own(0);
    set(&mut owned, 1);
    owned.checkpoint(&place.to, &options()).unwrap();
    set(&mut owned, 2);
    owned.checkpoint(&place.to, &options()).unwrap();
    let crashed = owned.start_checkpoint(&place.to).unwrap();
    flip(&place.object("0", crashed.number(), "begun"));
    let compact = || place.partition(0).compact_checkpoints(&place.to, &CheckpointChoice::latest(), &options().keep(1));
    let compacted = compact().unwrap();
    assert_eq!((compacted.number, compacted.depth, compacted.not_removed), (4, 0, None));
    let listed = place.partition(0).checkpoints(&place.to, &CheckpointChoice::latest()).unwrap();
    assert_eq!(listed.iter().map(|info| info.number).collect::<Vec<_>>(), [4], "others are removed all the same");
    assert_eq!(place.restored(), 2);
}

#[test]
fn whoever_was_replaced_does_not_write_what_the_next_owner_has_done() {
    let place = Place::new();
    let mut first = place.own(0);
    set(&mut first, 1);
    let started = first.start_checkpoint(&place.to).unwrap();
    set(&mut place.own(0), 2);
    assert_eq!(code(started.finish(&options())), Some("SH-4002"));
}

#[test]
fn a_damaged_joint_one_does_not_stop_the_next_and_others_do_not_push_it_out() {
    let place = Place::new();
    let words = place.house.keyed("words");
    let mut owned: Vec<_> = (0..4).map(|number| place.own(number)).collect();
    let mut take = |partitions: &[u32], version| {
        let begun = words.begin_checkpoint(&place.to, partitions).unwrap();
        for number in partitions {
            set(&mut owned[*number as usize], version);
            owned[*number as usize].join_checkpoint(&place.to, begun.number(), &options()).unwrap();
        }
        begun.commit(Duration::from_secs(10), &options()).unwrap().number
    };
    let first = take(&[0, 1], 1);
    for version in 2..6 {
        take(&[2, 3], version);
    }
    let together = CheckpointChoice::latest().together();
    let restored = place.partition(0).restore(&place.to, &together, &worker("r")).unwrap();
    assert_eq!((value(&restored), first), (1, 1), "the only one that has it");
    drop(restored);
    flip(&place.object("together", first, "part-0"));
    let mut owned: Vec<_> = (0..2).map(|number| place.own(number)).collect();
    let begun = words.begin_checkpoint(&place.to, &[0, 1]).unwrap();
    for owned in &mut owned {
        set(owned, 9);
        owned.join_checkpoint(&place.to, begun.number(), &options()).unwrap();
    }
    begun.commit(Duration::from_secs(10), &options()).unwrap();
    let restored = place.partition(0).restore(&place.to, &together, &worker("r")).unwrap();
    assert_eq!(value(&restored), 9);
}

#[test]
fn a_restore_keeps_its_lease_and_one_that_is_taken_over_is_given_up() {
    let place = Place::new();
    let mut owned = place.own(0);
    set(&mut owned, 1);
    owned.checkpoint(&place.to, &options()).unwrap();
    set(&mut owned, 2);
    let found = || place.partition(0).find_checkpoint(&place.to, &CheckpointChoice::latest()).unwrap();
    let short = worker("short").lease(Duration::from_millis(500));
    let mut restoring = place.partition(0).acquire_by_force(&short).unwrap();
    // Somebody takes it over in the middle: nothing of the restore is left, and what the next one does stays.
    let refused = restoring.restore_telling(found(), || {
        assert!(place.partition(0).is_restoring().unwrap());
        let mut next = place.own(0);
        assert!(!place.partition(0).is_restoring().unwrap());
        set(&mut next, 3);
    });
    assert_eq!(code(refused), Some("SH-4002"));
    assert_eq!(value(&place.partition(0)), 3);
    let mut restoring = place.partition(0).acquire_by_force(&short).unwrap();
    restoring.restore_to(found()).unwrap();
    assert_eq!(value(&restoring), 1);
    assert!(restoring.owner().unwrap().unwrap().lease_left > Duration::from_secs(10));
}

#[test]
fn what_is_damaged_costs_nobody_the_partition() {
    let place = Place::new();
    let mut owned = place.own(0);
    set(&mut owned, 1);
    owned.checkpoint(&place.to, &options()).unwrap();
    set(&mut owned, 2);
    let (latest, whole) = (CheckpointChoice::latest(), fs::read(place.object("0", 1, "part-0.")).unwrap());
    flip(&place.object("0", 1, "part-0."));
    assert_eq!(code(place.partition(0).restore(&place.to, &latest, &worker("r"))), Some("SH-8015"));
    set(&mut owned, 3);
    // If it is damaged only after that was checked, the next owner need not wait for the lease.
    fs::write(place.object("0", 1, "part-0."), whole).unwrap();
    let found = place.partition(0).find_checkpoint(&place.to, &latest).unwrap();
    found.check().unwrap();
    flip(&place.object("0", 1, "part-0."));
    assert_eq!(code(found.check()), Some("SH-8015"));
    let mut next = place.own(0);
    assert_eq!(code(next.restore_to(found)), Some("SH-8015"));
    assert_eq!(value(&next), 3);
}

#[test]
fn the_largest_value_comes_back() {
    let place = Place::new();
    let mut owned = place.own(0);
    let largest = vec![7; place.house.limits().unwrap().value_bytes_max as usize];
    owned.commit().put(b"k", largest.clone(), 1).run().unwrap();
    // Before it, almost as much as one command of a restore has; all of it together is more than a transaction may be.
    (0..9).for_each(|key| owned.commit().put(&[b'a', key], vec![7; 28_000], 1).run().map(drop).unwrap());
    let limits = place.house.limits().unwrap();
    let mut tight = limits;
    tight.transaction_bytes_max = limits.value_bytes_max + 10_000;
    place.house.set_limits(tight).unwrap();
    owned.checkpoint(&place.to, &options()).unwrap();
    let restored = place.partition(0).restore(&place.to, &CheckpointChoice::latest(), &worker("r")).unwrap();
    assert_eq!(restored.get(b"k").unwrap().unwrap().value, largest.into());
}

#[test]
fn as_many_partitions_as_are_allowed_are_taken_together_and_no_more() {
    let place = Place::new();
    let words = place.house.keyed("words");
    let mut partitions: Vec<u32> = (0..65_536).collect();
    words.begin_checkpoint(&place.to, &partitions).unwrap().abort().unwrap();
    partitions.push(65_536);
    let error = words.begin_checkpoint(&place.to, &partitions).err().unwrap();
    assert!(error.to_string().contains("joint_partitions_max"), "{error}");
    // The same one again is not one more.
    partitions[65_536] = 7;
    words.begin_checkpoint(&place.to, &partitions).unwrap().abort().unwrap();
}

#[test]
fn a_space_that_does_not_exist_has_no_checkpoints() {
    let place = Place::new();
    for (space, branch, code) in [("", "main", "SH-1005"), ("none", "main", "SH-1005"), ("default", "", "SH-1006")] {
        let partition = place.house.space(space).branch(branch).keyed("words").partition(0);
        let latest = CheckpointChoice::latest();
        let listed = partition.list_checkpoints(&place.to, &latest, None, 9).err().unwrap();
        let restored = partition.restore(&place.to, &latest, &worker("r")).err().unwrap();
        let compacted = partition.compact_checkpoints(&place.to, &latest, &options()).err().unwrap();
        let begun =
            place.house.space(space).branch(branch).keyed("words").begin_checkpoint(&place.to, &[0]).err().unwrap();
        for error in [listed, restored, compacted, begun] {
            assert_eq!(error.code(), Some(code), "{space:?} {branch:?}: {error}");
        }
    }
    assert!(!place.directory.path().join("checkpoints/none").exists(), "and gets none");
}
