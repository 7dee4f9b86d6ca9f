//! Checkpoints of partitions (D5), in a folder.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use statehouse::keyed::{
    CheckpointChoice, CheckpointOptions, Checkpoints, KeysRange, Merge, OwnedPartition, Partition, Policy,
};
use statehouse::records::ClaimOptions;
use statehouse::{Statehouse, Value};
use tempfile::TempDir;

struct Place {
    directory: TempDir,
    house: Statehouse,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let house = Statehouse::open(directory.path().join("house")).unwrap();
        Self { directory, house }
    }

    fn folder(&self) -> PathBuf {
        self.directory.path().join("checkpoints")
    }

    fn checkpoints(&self) -> Checkpoints {
        Checkpoints::open(self.folder().to_str().unwrap()).unwrap()
    }

    fn partition(&self) -> Partition {
        self.house.keyed("words").partition(0)
    }

    fn own(&self) -> OwnedPartition {
        self.partition().acquire_by_force(&worker()).unwrap()
    }

    fn restore(&self, choice: &CheckpointChoice) -> OwnedPartition {
        self.partition().restore(&self.checkpoints(), choice, &worker()).unwrap()
    }
}

fn worker() -> ClaimOptions {
    ClaimOptions::worker("w")
}

fn all_of(partition: &Partition) -> BTreeMap<Vec<u8>, (Value, Option<String>)> {
    let (mut found, mut range) = (BTreeMap::new(), KeysRange::with_prefix(b"").limit(1000));
    loop {
        let page = partition.scan(&range).unwrap();
        let keys = page.keys.into_iter();
        found.extend(keys.map(|(key, of)| (key, (of.value, of.version.map(|version| version.to_string())))));
        match page.next_after {
            Some(after) => range = range.after(&after),
            None => return found,
        }
    }
}

fn fill(owned: &mut OwnedPartition, keys: u64, version: u64) {
    let mut commit = owned.commit();
    for key in 0..keys {
        commit = commit.put(format!("k{key:05}").as_bytes(), format!("{version}:{key}"), version);
    }
    commit.run().unwrap();
}

fn sizes(folder: &Path) -> Vec<u64> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            match entry.file_type().unwrap().is_dir() {
                true => folders.push(entry.path()),
                false => found.push(entry.metadata().unwrap().len()),
            }
        }
    }
    found
}

#[test]
fn a_partition_becomes_what_it_was_and_goes_on_from_there() {
    let place = Place::new();
    let mut owned = place.own();
    fill(&mut owned, 5_000, 7);
    owned.commit().merge(b"sum", Merge::Add, 5).delete(b"k00001", 8).advance("in", 41).seal(3).run().unwrap();
    let (before, positions) = (all_of(&owned), owned.input_positions(None, 10).unwrap());
    let taken = owned.checkpoint(&place.checkpoints(), &CheckpointOptions::default()).unwrap();
    assert_eq!((taken.number, taken.depth, taken.keys), (1, 0, 5_000));

    fill(&mut owned, 3_000, 9);
    owned.commit().merge(b"sum", Merge::Add, 1).advance("in", 50).run().unwrap();
    let mut restored = place.restore(&CheckpointChoice::latest());
    assert_eq!(owned.commit().merge(b"sum", Merge::Add, 1).run().unwrap_err().code(), "SH-4002");
    assert_eq!(all_of(&restored), before);
    let found = restored.input_positions(None, 10).unwrap();
    assert_eq!((found.len(), found[0].1.position), (positions.len(), 41));
    // A replay from there counts what was lost, and nothing twice; the deletion is remembered.
    restored.commit().put(b"k00001", "late", 7).merge(b"sum", Merge::Add, 1).advance("in", 50).run().unwrap();
    assert_eq!(restored.get(b"k00001").unwrap(), None);
    assert_eq!(restored.get(b"sum").unwrap().unwrap().value, Value::Integer(6));
    assert_eq!(restored.summary().unwrap().unwrap().last_number, 3);
}

#[test]
fn the_next_ones_have_what_has_changed_and_what_is_gone() {
    let place = Place::new();
    let (to, options) = (place.checkpoints(), CheckpointOptions::default().keep(10));
    let mut owned = place.own();
    for part in 0..4 {
        let mut commit = owned.commit();
        for key in 0..5_000 {
            commit = commit.merge(format!("{part}{key:05}").as_bytes(), Merge::Add, key);
        }
        commit.run().unwrap();
    }
    let full = owned.checkpoint(&to, &options).unwrap();
    let mut states = vec![all_of(&owned)];
    owned
        .commit()
        .merge(b"000007", Merge::Add, 1)
        .remove(b"100001")
        .remove(b"100002")
        .merge(b"new", Merge::Add, 1)
        .run()
        .unwrap();
    let changed = owned.checkpoint(&to, &options).unwrap();
    assert_eq!((changed.depth, changed.base), (1, Some(1)));
    assert!(changed.bytes * 50 < full.bytes, "{} of {} bytes", changed.bytes, full.bytes);
    states.push(all_of(&owned));
    owned.commit().merge(b"100001", Merge::Add, 9).remove(b"new").remove(b"000007").run().unwrap();
    // One that was begun and never ended makes no difference.
    let begun = place.house.keyed("words").begin_checkpoint(&to, &[0]).unwrap();
    owned.join_checkpoint(&to, begun.number(), &options).unwrap();
    owned.commit().remove(b"300000").run().unwrap();
    assert_eq!(owned.checkpoint(&to, &options).unwrap().depth, 2);
    states.push(all_of(&owned));
    owned.commit().merge(b"zzz", Merge::Add, 1).run().unwrap();
    for (number, state) in (1..).zip(&states) {
        let restored = place.restore(&CheckpointChoice::number(number));
        assert_eq!(all_of(&restored), *state, "checkpoint {number}");
    }
    let mut owned = place.restore(&CheckpointChoice::latest());
    // After a restore everything has changed.
    assert_eq!(owned.checkpoint(&to, &options).unwrap().depth, 0);
    owned.commit().merge(b"one", Merge::Add, 1).run().unwrap();
    assert_eq!(owned.checkpoint(&to, &options).unwrap().depth, 1);
}

#[test]
fn a_chain_ends_and_becomes_one() {
    let place = Place::new();
    let (to, options) = (place.checkpoints(), CheckpointOptions::default().changes_max(2).keep(2));
    let mut owned = place.own();
    fill(&mut owned, 1_000, 1);
    let mut depths = Vec::new();
    for round in 0..7_u64 {
        owned.commit().put(format!("k{round:05}").as_bytes(), "changed", 2 + round).run().unwrap();
        depths.push(owned.checkpoint(&to, &options).unwrap().depth);
    }
    assert_eq!(depths, [0, 1, 2, 0, 1, 2, 0]);
    let numbers = |choice: CheckpointChoice| {
        let listed = place.partition().checkpoints(&to, &choice).unwrap();
        listed.iter().map(|info| info.number).collect::<Vec<_>>()
    };
    // The last two, and what they build on.
    assert_eq!(numbers(CheckpointChoice::latest()), [7, 6, 5, 4]);
    owned.commit().put(b"k00100", "changed", 20).run().unwrap();
    assert_eq!(owned.checkpoint(&to, &options).unwrap().depth, 1);
    let state = all_of(&owned);
    let one = place.partition().compact_checkpoints(&to, &CheckpointChoice::latest(), &options).unwrap();
    assert_eq!((one.number, one.depth, one.keys), (9, 0, 1_000));
    owned.commit().put(b"k00101", "changed", 21).run().unwrap();
    assert_eq!(owned.checkpoint(&to, &options).unwrap().base, Some(9));
    assert_eq!(all_of(&place.restore(&CheckpointChoice::number(9))), state);
    assert_eq!(numbers(CheckpointChoice::latest()), [10, 9]);
}

#[test]
fn several_partitions_are_taken_together_or_not_at_all() {
    let place = Place::new();
    let (to, options, words) = (place.checkpoints(), CheckpointOptions::default(), place.house.keyed("words"));
    let mut owned: Vec<_> = (0..3).map(|number| words.partition(number).acquire(&worker()).unwrap()).collect();
    owned.iter_mut().for_each(|owned| fill(owned, 10, 1));
    let begun = words.begin_checkpoint(&to, &[0, 1, 2]).unwrap();
    for partition in &owned[..2] {
        partition.join_checkpoint(&to, begun.number(), &options).unwrap();
        partition.join_checkpoint(&to, begun.number(), &options).unwrap();
    }
    let error = begun.commit(Duration::from_millis(50), &options).unwrap_err();
    assert_eq!(error.code(), Some("SH-8017"));
    assert!(error.to_string().contains("1 of its partitions had not written"), "{error}");
    // Whoever is late is told so.
    assert_eq!(owned[2].join_checkpoint(&to, 1, &options).unwrap_err().code(), Some("SH-8016"));
    let together = CheckpointChoice::latest().together();
    let error = words.partition(0).restore(&to, &together, &worker()).err().unwrap();
    assert_eq!(error.code(), Some("SH-8016"));

    for round in 2..4 {
        let begun = words.begin_checkpoint(&to, &[2, 0, 1, 1]).unwrap();
        assert_eq!(begun.number(), round);
        owned.iter().for_each(|owned| owned.join_checkpoint(&to, round, &options).unwrap());
        let taken = begun.commit(Duration::from_secs(10), &options).unwrap();
        assert_eq!((taken.partitions, taken.depth), (vec![0, 1, 2], u32::try_from(round - 2).unwrap()));
        owned.iter_mut().for_each(|owned| fill(owned, 10, round));
    }
    let restored = words.partition(2).restore(&to, &together, &worker()).unwrap();
    assert_eq!(restored.get(b"k00001").unwrap().unwrap().version, Some(2.into()));
}

#[test]
fn a_damaged_checkpoint_is_refused_and_the_partition_stays_as_it_is() {
    let place = Place::new();
    let (to, options) = (place.checkpoints(), CheckpointOptions::default());
    let mut owned = place.own();
    fill(&mut owned, 100, 1);
    owned.checkpoint(&to, &options).unwrap();
    fill(&mut owned, 100, 2);
    let state = all_of(&owned);
    let folder = place.folder();
    let files: Vec<PathBuf> = {
        let mut found = Vec::new();
        let mut folders = vec![folder];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
                if entry.path().is_dir() { folders.push(entry.path()) } else { found.push(entry.path()) }
            }
        }
        found.retain(|file| !file.ends_with("begun") && !file.ends_with("probe"));
        found
    };
    assert!(files.len() >= 3, "{files:?}");
    for file in files {
        let whole = fs::read(&file).unwrap();
        let mut flipped = whole.clone();
        flipped[whole.len() / 2] ^= 4;
        for bytes in [&flipped[..], &whole[..whole.len() - 1], &whole[..whole.len() / 2], &[]] {
            fs::write(&file, bytes).unwrap();
            let restored = place.partition().restore(&to, &CheckpointChoice::latest(), &worker());
            let error = restored.err().unwrap_or_else(|| panic!("{} of {file:?}", bytes.len()));
            assert_eq!(error.code(), Some("SH-8015"), "{error}");
            assert_eq!(all_of(&place.partition()), state);
        }
        fs::remove_file(&file).unwrap();
        let error = place.partition().restore(&to, &CheckpointChoice::latest(), &worker()).err().unwrap();
        // Without a marker it is no checkpoint.
        let expected = if file.ends_with("marker") { "SH-8016" } else { "SH-8015" };
        assert_eq!(error.code(), Some(expected), "{file:?}: {error}");
        fs::write(&file, whole).unwrap();
    }
    place.restore(&CheckpointChoice::latest());
    assert_eq!(place.partition().get(b"k00001").unwrap().unwrap().version, Some(1.into()));
}

#[test]
fn what_waits_in_an_ordered_partition_waits_in_the_restored_one() {
    let place = Place::new();
    let (to, options) = (place.checkpoints(), CheckpointOptions::default());
    let mut owned = place.own();
    owned.owned_group().commit().create_map("words", Policy::Ordered).run().unwrap();
    owned.commit().merge_at(b"a", Merge::Add, 5, 1).merge_at(b"a", Merge::Max, 9, 3).seal(2).run().unwrap();
    assert_eq!(owned.checkpoint(&to, &options).unwrap().depth, 0);
    owned.commit().seal(5).run().unwrap();
    let mut owned = place.restore(&CheckpointChoice::latest());
    assert_eq!(owned.get(b"a").unwrap().unwrap().value, Value::Integer(5));
    owned.commit().seal(4).run().unwrap();
    assert_eq!(owned.get(b"a").unwrap().unwrap().value, Value::Integer(9));
}

#[test]
fn only_the_owner_takes_checkpoints() {
    let place = Place::new();
    let mut owned = place.own();
    fill(&mut owned, 1, 1);
    let next = place.own();
    let error = owned.checkpoint(&place.checkpoints(), &CheckpointOptions::default()).unwrap_err();
    assert_eq!(error.code(), Some("SH-4002"));
    next.checkpoint(&place.checkpoints(), &CheckpointOptions::default()).unwrap();
    assert!(!sizes(&place.folder()).is_empty());
}

#[test]
fn an_owned_partition_without_a_commit_has_a_checkpoint_and_one_that_is_not_meant_is_not_made() {
    let place = Place::new();
    let (to, options) = (place.checkpoints(), CheckpointOptions::default());
    let forced = place.house.space("default").forced();
    let nobodys = forced.keyed("words").partition(0);
    assert_eq!(nobodys.start_checkpoint(&to).err().unwrap().code(), Some("SH-8001"));
    assert_eq!(place.house.keyed("words").partitions(None, 9).unwrap().partitions, []);
    let owned = place.own();
    let taken = owned.checkpoint(&to, &options).unwrap();
    assert_eq!((taken.number, taken.keys), (1, 0));
    assert_eq!(nobodys.start_checkpoint(&to).unwrap().finish(&options).unwrap().number, 2);
}

#[test]
fn more_small_rows_than_one_step_takes_are_restored() {
    let place = Place::new();
    let mut owned = place.own();
    for part in 0..2 {
        let mut commit = owned.commit();
        for key in 0..7_000_u32 {
            commit = commit.merge(format!("{:x}", part * 7_000 + key).as_bytes(), Merge::Add, 1);
        }
        commit.run().unwrap();
    }
    owned.checkpoint(&place.checkpoints(), &CheckpointOptions::default()).unwrap();
    let before = all_of(&owned);
    assert_eq!(before.len(), 14_000);
    assert_eq!(all_of(&place.restore(&CheckpointChoice::latest())), before);
}
