//! A damaged table: the rest goes on, and the damage is named.

use kv::{Batch, KvError, Store};
use testkit::random::Random;

use super::directory;
use super::merges::{Model, assert_equal, random_batch, rest};
use crate::table_writer::file_name;
use crate::{Options, TreeStore};

fn options() -> Options {
    Options { table_bytes_target: 8 << 10, unmerged_tables_max: 2, ..Options::default() }
}

fn flip(path: &std::path::Path, place: u64) {
    let mut bytes = std::fs::read(path).expect("read");
    bytes[usize::try_from(place).expect("small")] ^= 0x10;
    std::fs::write(path, bytes).expect("written");
}

#[test]
fn one_flipped_bit_in_a_cold_table_stops_nothing_else() {
    for seed in 0..10 {
        let mut random = Random::new(seed);
        let directory = directory();
        let path = directory.path().join("store");
        let mut model = Model::new();
        let store = TreeStore::create(&path, &options()).expect("created");
        for _ in 0..12 {
            store.commit(random_batch(&mut random, &mut model)).expect("committed");
        }
        rest(&store);
        let tables: Vec<u64> = store.shared.newest().version().tables().into_keys().collect();
        drop(store);
        let table = *random.choose(&tables);
        let file = path.join(file_name(table));
        flip(&file, random.below(std::fs::metadata(&file).expect("there").len()));

        let store = TreeStore::open(&path, &options()).expect("it opens all the same");
        let scrubbed = store.scrub_some(None, u64::MAX).expect("scrubbed");
        assert!(!scrubbed.damage.is_empty() && scrubbed.damage.iter().all(|damage| damage.table == table));
        let mut other_rows = 0;
        for (key, value) in &model {
            match store.view().expect("a view").get(key) {
                Ok(found) => {
                    assert_eq!(found.as_ref(), Some(value), "seed {seed}");
                    other_rows += 1;
                }
                Err(KvError::Corrupt { place, .. }) => assert!(place.contains(&file_name(table)), "{place}"),
                Err(other) => panic!("{other}"),
            }
        }
        assert!(other_rows > 0, "seed {seed}");
        // Writes go on, and so do merges of everything else.
        let keys: Vec<_> = model.keys().cloned().collect();
        for _ in 0..60 {
            let writes = keys.iter().map(|key| (key.clone(), Some(random.bytes(20).into())));
            store.commit(Batch::from_sorted(writes.collect())).expect("committed");
        }
        store.settle().expect("merges go on");
        let status = store.status();
        assert!(status.damaged_tables.iter().all(|damaged| *damaged == table), "{status:?}");
        assert!(status.merges > 0 && status.depth < options().unmerged_tables_stall, "{status:?}");
    }
}

#[test]
fn a_scrub_reads_everything_in_small_steps() {
    let directory = directory();
    let path = directory.path().join("store");
    let store = TreeStore::create(&path, &options()).expect("created");
    let (mut model, mut random) = (Model::new(), Random::new(4));
    for _ in 0..12 {
        store.commit(random_batch(&mut random, &mut model)).expect("committed");
    }
    rest(&store);
    let scrub = || {
        let (mut steps, mut bytes, mut damage, mut next) = (0, 0, Vec::new(), None);
        loop {
            let scrubbed = store.scrub_some(next, 3_000).expect("scrubbed");
            (steps, bytes) = (steps + 1, bytes + scrubbed.bytes);
            damage.extend(scrubbed.damage);
            next = scrubbed.next;
            if next.is_none() {
                return (steps, bytes, damage);
            }
        }
    };
    let (steps, bytes, damage) = scrub();
    assert!(steps > 5 && damage.is_empty(), "{steps} steps, {damage:?}");
    assert!(bytes > store.bytes_on_disk() * 8 / 10 && bytes <= store.bytes_on_disk());
    let table = store.shared.newest().version().tables().into_keys().next().expect("a table");
    flip(&path.join(file_name(table)), 100);
    let (_, _, damage) = scrub();
    assert_eq!(damage.len(), 1);
    assert_eq!((damage[0].table, damage[0].offset), (table, 0));
    assert!(damage[0].keys_upto.is_some());
    assert_equal(
        &*TreeStore::create(&directory.path().join("other"), &options()).unwrap().view().unwrap(),
        &Model::new(),
        &mut random,
        "another store",
    );
}

#[test]
fn a_missing_or_shortened_table_is_refused_by_name() {
    let directory = directory();
    let path = directory.path().join("store");
    let store = TreeStore::create(&path, &options()).expect("created");
    store.commit(Batch::new().put(b"k".as_slice(), b"v".as_slice())).expect("committed");
    drop(store);
    let file = path.join(file_name(1));
    let bytes = std::fs::read(&file).expect("read");
    let refused = || match TreeStore::open(&path, &options()) {
        Err(KvError::Corrupt { place, .. }) => place.contains("0000000000000001.table"),
        _ => false,
    };
    std::fs::write(&file, &bytes[..bytes.len() - 1]).expect("written");
    assert!(refused());
    std::fs::remove_file(&file).expect("removed");
    assert!(refused());
    std::fs::write(&file, &bytes).expect("written");
    let store = TreeStore::open(&path, &options()).expect("whole again");
    assert!(store.view().expect("a view").get(b"k").expect("a get").is_some());
}

#[test]
fn leftovers_are_removed_at_opening_and_foreign_files_stay() {
    let directory = directory();
    let path = directory.path().join("store");
    let store = TreeStore::create(&path, &options()).expect("created");
    store.commit(Batch::new().put(b"k".as_slice(), b"v".as_slice())).expect("committed");
    drop(store);
    for name in [file_name(77).as_str(), "manifest.new", "notes.txt"] {
        std::fs::write(path.join(name), "x").expect("written");
    }
    let store = TreeStore::open(&path, &options()).expect("opened");
    assert!(!path.join(file_name(77)).exists() && !path.join("manifest.new").exists());
    assert!(path.join("notes.txt").exists());
    store.commit(Batch::new().put(b"k".as_slice(), b"w".as_slice())).expect("committed");
}
