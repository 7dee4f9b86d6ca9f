//! A damaged table: the rest goes on, and the damage is named.

use std::collections::BTreeMap;

use kv::{Batch, Bytes, Key, KeyRange, KvError, Order, Store};
use testkit::random::Random;

use super::directory;
use super::merges::{Model, assert_equal, random_batch, rest};
use crate::table_writer::file_name;
use crate::{Damage, Effect, Options, TreeStore};

fn options() -> Options {
    Options { table_bytes_target: 8 << 10, unmerged_tables_max: 2, ..Options::default() }
}

fn flip(path: &std::path::Path, place: u64) {
    let mut bytes = std::fs::read(path).expect("read");
    bytes[usize::try_from(place).expect("small")] ^= 0x10;
    std::fs::write(path, bytes).expect("written");
}

/// What the store says about every key, by gets: none is damaged.
fn content(store: &TreeStore, keys: &[Key]) -> BTreeMap<Key, Option<Option<Bytes>>> {
    let view = store.view().expect("a view");
    let get = |key: &Key| match view.get(key) {
        Ok(found) => (key.clone(), Some(found)),
        Err(KvError::Damaged(_)) => (key.clone(), None),
        Err(other) => panic!("{other}"),
    };
    keys.iter().map(get).collect()
}

/// Compares scans with gets: every row that a get finds, in order, and an error exactly where a damaged part begins.
fn assert_scans_agree(store: &TreeStore, content: &BTreeMap<Key, Option<Option<Bytes>>>, what: &str) {
    let view = store.view().expect("a view");
    for order in [Order::Ascending, Order::Descending] {
        let mut rows = Vec::new();
        let mut parts: Vec<KeyRange> = Vec::new();
        let mut last: Option<Key> = None;
        for row in view.scan(&KeyRange::all(), order) {
            match row {
                Ok((key, value)) => {
                    let in_order = last.as_ref().is_none_or(|last| match order {
                        Order::Ascending => *last < key,
                        Order::Descending => *last > key,
                    });
                    assert!(in_order, "{what}: {last:?} then {key:?}");
                    last = Some(key.clone());
                    rows.push((key, value));
                }
                Err(KvError::Damaged(damaged)) => {
                    // All rows on this side of the part were there before it.
                    let passed = rows.iter().all(|(key, _)| {
                        damaged.is_after(key, order) || { parts.iter().any(|part| part.contains(key)) }
                    });
                    assert!(passed, "{what}: {damaged:?}");
                    parts.push(damaged.range);
                }
                Err(other) => panic!("{other}"),
            }
        }
        if order == Order::Descending {
            rows.reverse();
        }
        let expected = content.iter().filter_map(|(key, found)| Some((key.clone(), found.clone()??)));
        assert!(expected.eq(rows), "{what}: {order:?}");
        let lost = content.iter().filter(|(_, found)| found.is_none());
        assert!(lost.clone().all(|(key, _)| parts.iter().any(|part| part.contains(key))), "{what}: {order:?}");
    }
}

/// Flips a bit anywhere in the tables. Whatever is not in the damaged block stays as it was, and once the part is set
/// apart, no flush, merge or reopening changes what can be read.
#[test]
fn one_flipped_bit_costs_one_block_and_nothing_changes_that() {
    let (mut lost, mut healed) = (0, 0);
    for seed in 0..400 {
        // Which tables there are depends on when merges ran: on until both kinds of damage were met.
        if seed >= 20 && lost > 5 && healed > 0 {
            break;
        }
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

        let mut store = TreeStore::open(&path, &options()).expect("it opens all the same");
        let scrubbed = store.scrub_some(None, u64::MAX).expect("scrubbed");
        assert!(!scrubbed.damage.is_empty() && scrubbed.damage.iter().all(|damage| damage.table == table));
        let set_apart = |store: &TreeStore, damage: &Damage| store.set_apart(damage.table, damage.offset, &damage.keys);
        let is_lost = |damage: &&Damage| damage.effect == Effect::Lost;
        let parts: Vec<Damage> = store.noticed().iter().filter(is_lost).cloned().collect();
        assert!(parts.iter().all(|part| set_apart(&store, part)), "seed {seed}");
        (lost, healed) = (lost + parts.len(), healed + usize::from(parts.is_empty()));
        assert!(parts.len() <= 1, "seed {seed}: {parts:?}");

        let mut keys: Vec<Key> = model.keys().cloned().collect();
        for _ in 0..200 {
            let mut absent = random.choose(&keys).clone();
            absent.push(0);
            keys.push(absent);
        }
        keys.sort();
        keys.dedup();
        let mut expected = content(&store, &keys);
        for (key, found) in &expected {
            match found {
                Some(found) => assert_eq!(found.as_ref(), model.get(key), "seed {seed}"),
                None => assert!(parts.iter().any(|part| part.keys.contains(key)), "seed {seed}: {key:?}"),
            }
        }
        assert_scans_agree(&store, &expected, &format!("seed {seed}"));
        // A store counts from its opening; what it merged before may be all there was to merge.
        let mut merges = 0;
        for round in 0..40 {
            let mut writes = BTreeMap::new();
            for _ in 0..random.pick(&[1, 30, 300]) {
                let value = (!random.one_in(4)).then(|| Bytes::from(random.bytes(20)));
                writes.insert(random.choose(&keys).clone(), value);
            }
            expected.extend(writes.iter().map(|(key, value)| (key.clone(), Some(value.clone()))));
            store.commit(Batch::from_sorted(writes.into_iter().collect())).expect("committed");
            if random.one_in(8) {
                merges += store.status().merges;
                drop(store);
                store = TreeStore::open(&path, &options()).expect("opened");
                assert!(parts.iter().all(|part| set_apart(&store, part)), "seed {seed} round {round}");
            }
            if random.one_in(4) {
                rest(&store);
            }
            assert!(content(&store, &keys) == expected, "seed {seed} round {round}");
        }
        rest(&store);
        assert!(content(&store, &keys) == expected, "seed {seed}");
        assert_scans_agree(&store, &expected, &format!("seed {seed}, at the end"));
        let status = store.status();
        assert!(merges + status.merges > 0, "seed {seed}: {status:?}");
        assert!(status.depth < options().unmerged_tables_stall, "seed {seed}: {status:?}");
        assert!(status.damaged_tables.len() <= 1, "{status:?}");
    }
    assert!(lost > 5 && healed > 0, "{lost} lost, {healed} healed");
}

/// The bytes may be right again later; a part that was set apart stays so.
#[test]
fn a_part_stays_set_apart_when_its_bytes_are_right_again() {
    let directory = directory();
    let path = directory.path().join("store");
    let store = TreeStore::create(&path, &options()).expect("created");
    let (mut model, mut random) = (Model::new(), Random::new(7));
    for _ in 0..6 {
        store.commit(random_batch(&mut random, &mut model)).expect("committed");
    }
    rest(&store);
    let table = store.shared.newest().version().tables().into_keys().next_back().expect("a table");
    drop(store);
    let file = path.join(file_name(table));
    flip(&file, 100);
    let store = TreeStore::open(&path, &options()).expect("opened");
    store.scrub_some(None, u64::MAX).expect("scrubbed");
    let part = store.noticed().pop().expect("damage");
    assert!(store.set_apart(part.table, part.offset, &part.keys));
    drop(store);
    flip(&file, 100);
    let store = TreeStore::open(&path, &options()).expect("opened");
    let keys: Vec<Key> = model.keys().cloned().collect();
    assert!(content(&store, &keys).iter().all(|(key, found)| found.as_ref() == Some(&model.get(key).cloned())));
    assert!(store.set_apart(part.table, part.offset, &part.keys));
    let found = content(&store, &keys);
    let inside: Vec<_> = keys.iter().filter(|key| part.keys.contains(key)).collect();
    assert!(!inside.is_empty() && inside.iter().any(|key| found[*key].is_none()));
    assert_scans_agree(&store, &found, "set apart");
    for _ in 0..6 {
        store.commit(Batch::new().put(b"a".as_slice(), b"v".as_slice())).expect("committed");
    }
    rest(&store);
    assert!(content(&store, &keys) == found, "a merge takes nothing of it");
}

#[test]
fn a_damaged_copy_of_the_manifest_is_written_again() {
    let directory = directory();
    let path = directory.path().join("store");
    let store = TreeStore::create(&path, &options()).expect("created");
    store.commit(Batch::new().put(b"k".as_slice(), b"v".as_slice())).expect("committed");
    let manifest = path.join("manifest");
    let whole = std::fs::read(&manifest).expect("read");
    flip(&manifest, 20);
    let scrubbed = store.scrub_some(None, u64::MAX).expect("scrubbed");
    assert_eq!((scrubbed.damage.len(), scrubbed.damage[0].effect), (1, Effect::Healed));
    assert_eq!(std::fs::read(&manifest).expect("read"), whole, "while it is open");
    drop(store);
    flip(&manifest, whole.len() as u64 - 3);
    let store = TreeStore::open(&path, &options()).expect("one copy is enough");
    assert_eq!(store.noticed().len(), 1);
    assert_eq!(std::fs::read(&manifest).expect("read"), whole, "at opening");
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
    assert_eq!(damage[0].effect, Effect::Lost);
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
