//! Stores with tiny tables, so that a short history has many flushes, cuts and merges, compared with a sorted map.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use kv::{Batch, Bytes, Key, KeyRange, Order, Store, View};
use testkit::random::Random;

use super::directory;
use crate::manifest::Manifest;
use crate::table_writer::file_name;
use crate::version::{Content, Version};
use crate::version_edit::{Made, Merged};
use crate::{Options, TreeStore};

pub(super) type Model = BTreeMap<Key, Bytes>;

pub(super) fn tiny(random: &mut Random) -> Options {
    Options {
        cache_bytes_max: 1 << 20,
        table_bytes_target: random.pick(&[2, 8, 30, 100]) << 10,
        unmerged_tables_max: random.pick(&[2, 3, 4]),
        unmerged_tables_stall: random.pick(&[5, 8, 32]),
        open_files_max: random.pick(&[1, 4, 512]),
        ..Options::default()
    }
}

fn key(number: u64) -> Key {
    let mut key = Key::from(b"a-prefix-that-all-keys-share-".as_slice());
    key.extend_from_slice(&number.to_be_bytes());
    key
}

/// A batch as a workload may bring it, also applied to the model.
pub(super) fn random_batch(random: &mut Random, model: &mut Model) -> Batch {
    let mut writes = BTreeMap::new();
    let keys = 4_000;
    let kind = random.below(10);
    let count = random.pick(&[1, 10, 100, 400]);
    let start = random.below(keys);
    for step in 0..count {
        // Everywhere, one place after the other, or in one small place.
        let number = match kind {
            0..=4 => random.below(keys),
            5..=7 => start + step,
            _ => start + random.below(20),
        };
        let deletes = kind == 7 || random.one_in(4);
        let bytes = random.index(60);
        writes.insert(key(number), (!deletes).then(|| Bytes::from(random.bytes(bytes))));
    }
    for (key, value) in &writes {
        match value {
            Some(value) => model.insert(key.clone(), value.clone()),
            None => model.remove(key),
        };
    }
    Batch::from_sorted(writes.into_iter().collect())
}

pub(super) fn assert_equal(view: &dyn View, model: &Model, random: &mut Random, what: &str) {
    let (first, second) = (key(random.below(4_000)), key(random.below(4_000)));
    for range in [KeyRange::all(), KeyRange::between(&*first, &*second)] {
        let expected = || model.iter().filter(|(key, _)| range.contains(key));
        let found: Vec<_> = view.scan(&range, Order::Ascending).map(|row| row.expect("a row")).collect();
        assert!(found.iter().map(|(key, value)| (key, value)).eq(expected()), "{what}: ascending");
        let found: Vec<_> = view.scan(&range, Order::Descending).map(|row| row.expect("a row")).collect();
        assert!(found.iter().map(|(key, value)| (key, value)).eq(expected().rev()), "{what}: descending");
    }
    for _ in 0..30 {
        let key = key(random.below(4_100));
        assert_eq!(view.get(&key).expect("a get").as_ref(), model.get(&key), "{what}: a get");
    }
}

/// The directory holds what the manifest names, and nothing else.
pub(super) fn assert_no_orphans(store: &TreeStore, path: &Path, what: &str) {
    let files = &store.shared.tables.files;
    let manifest = Manifest::read(files).expect("a manifest").manifest;
    let mut expected: BTreeSet<String> = manifest.tables.keys().map(|number| file_name(*number)).collect();
    expected.insert("manifest".into());
    let found: BTreeSet<String> = files.list().expect("a list").into_iter().map(|(name, _)| name).collect();
    assert_eq!(found, expected, "{what}: {}", path.display());
    let bytes: u64 = manifest.tables.values().map(|facts| facts.file_bytes).sum();
    assert_eq!(store.bytes_on_disk(), bytes, "{what}");
}

/// Waits until no merge is due and everything that nobody needs was removed.
pub(super) fn rest(store: &TreeStore) {
    store.settle().expect("it settles");
    // Removing a file is itself a change.
    store.shared.signal.table_added();
    store.settle().expect("it settles");
}

#[test]
fn any_history_equals_a_sorted_map() {
    for seed in 0..12 {
        let mut random = Random::new(seed);
        let directory = directory();
        let path = directory.path().join("store");
        let mut store = TreeStore::create(&path, &tiny(&mut random)).expect("created");
        let mut model = Model::new();
        let mut views: Vec<(Arc<dyn View>, Model)> = Vec::new();
        for round in 0..60 {
            let what = format!("seed {seed} round {round}");
            store.commit(random_batch(&mut random, &mut model)).expect("committed");
            if random.one_in(8) {
                views.push((store.view().expect("a view"), model.clone()));
            }
            if random.one_in(6) {
                rest(&store);
                if views.is_empty() {
                    assert_no_orphans(&store, &path, &what);
                }
            }
            if random.one_in(10) && !views.is_empty() {
                let (view, then) = views.swap_remove(random.clone().index(views.len()));
                assert_equal(&*view, &then, &mut random, &format!("{what}, an old view"));
            }
            if random.one_in(12) {
                views.clear();
                drop(store);
                store = TreeStore::open(&path, &tiny(&mut random)).expect("opened");
            }
            if random.one_in(3) {
                assert_equal(&*store.view().expect("a view"), &model, &mut random, &what);
            }
        }
        for (view, then) in &views {
            assert_equal(&**view, then, &mut random, &format!("seed {seed}: an old view at the end"));
        }
        views.clear();
        rest(&store);
        assert_equal(&*store.view().expect("a view"), &model, &mut random, &format!("seed {seed}: at the end"));
        assert_no_orphans(&store, &path, &format!("seed {seed}"));
        // A view of the newest content must not hold on to what merges replace.
        let view = store.view().expect("a view");
        let deletions = model.keys().map(|key| (key.clone(), None));
        if !model.is_empty() {
            store.commit(Batch::from_sorted(deletions.collect())).expect("committed");
        }
        assert_equal(&*view, &model, &mut random, &format!("seed {seed}: before everything was deleted"));
        let newest = store.view().expect("a view");
        drop(view);
        rest(&store);
        assert_eq!(newest.scan(&KeyRange::all(), Order::Ascending).count(), 0);
        // The rows of stacks that were cut are estimates; those of small tables have few blocks to estimate by.
        assert!(store.bytes_on_disk() < 20_000, "seed {seed}: {} bytes are left", store.bytes_on_disk());
    }
}

#[test]
fn merges_keep_up_and_cut_large_stacks_into_small_ones() {
    let directory = directory();
    let path = directory.path().join("store");
    let options = Options { table_bytes_target: 20 << 10, ..Options::default() };
    let store = TreeStore::create(&path, &options).expect("created");
    let mut random = Random::new(1);
    for _ in 0..30 {
        let writes: BTreeMap<_, _> =
            (0..1_000).map(|_| (key(random.below(20_000)), Some(Bytes::from(random.bytes(40))))).collect();
        store.commit(Batch::from_sorted(writes.into_iter().collect())).expect("committed");
    }
    rest(&store);
    let version = store.shared.newest().version();
    assert!(version.stacks.len() > 20, "{} stacks", version.stacks.len());
    assert!(version.depth() < 14, "{} tables in a stack", version.depth());
    let largest = version.tables().values().map(|table| table.facts.file_bytes).max();
    // A flush is larger than any merged table.
    assert!(largest < Some(120 << 10), "{largest:?} bytes");
    let status = store.status();
    assert!(status.merges > 10 && status.merge_bytes_written > 0 && status.waiting_reason.is_none(), "{status:?}");
    let live = 15_500 * (37 + 40 + 4);
    assert!(status.bytes_on_disk < live * 2 && status.bytes_live > live / 2, "{status:?}");
}

/// Counts of rows do not tell that: the large rows are few among many small ones.
#[test]
fn an_idle_store_takes_at_most_a_fifth_more_than_its_rows() {
    for seed in 0..12 {
        let mut random = Random::new(seed);
        let directory = directory();
        let options = Options { table_bytes_target: random.pick(&[30, 100, 400]) << 10, ..tiny(&mut random) };
        let store = TreeStore::create(&directory.path().join("store"), &options).expect("created");
        let mut model = Model::new();
        let large_one_in = random.pick(&[20, 80]);
        let large_bytes = random.pick(&[700, 4_000, 12_000]);
        let large = |number: u64| number.is_multiple_of(large_one_in);
        let mut write = |numbers: Vec<u64>, value: &dyn Fn(u64) -> Option<Bytes>| {
            for chunk in numbers.chunks(random.pick(&[30, 500, 4_000])) {
                let writes: BTreeMap<_, _> = chunk.iter().map(|number| (key(*number), value(*number))).collect();
                for (key, value) in &writes {
                    match value {
                        Some(value) => drop(model.insert(key.clone(), value.clone())),
                        None => drop(model.remove(key)),
                    }
                }
                store.commit(Batch::from_sorted(writes.into_iter().collect())).expect("committed");
            }
        };
        write((0..4_000).collect(), &|number| Some(vec![7; if large(number) { large_bytes } else { 20 }].into()));
        rest(&store);
        let before = store.bytes_on_disk();
        let deletes = |number: u64| seed % 3 == 0 || (seed % 3 == 1 && number.is_multiple_of(2));
        write((0..4_000).filter(|number| large(*number)).collect(), &|number| {
            (!deletes(number)).then(|| Bytes::from(vec![8; 10]))
        });
        rest(&store);
        let live: u64 = model.iter().map(|(key, value)| (key.len() + value.len() + 4) as u64).sum();
        let bytes = store.bytes_on_disk();
        assert!(bytes <= live + live / 5 + (24 << 10), "seed {seed}: {before} bytes, then {bytes} for {live}");
        let content = store.view().expect("a view");
        let found: Vec<_> = content.scan(&KeyRange::all(), Order::Ascending).map(|row| row.expect("a row")).collect();
        assert!(found.iter().map(|(key, value)| (key, value)).eq(&model), "seed {seed}");
    }
}

#[test]
fn a_file_stays_while_a_view_needs_it_and_no_longer() {
    let directory = directory();
    let path = directory.path().join("store");
    let store = TreeStore::create(&path, &Options::default()).expect("created");
    let put = |value: &[u8]| store.commit(Batch::new().put(key(1), value)).expect("committed");
    put(b"first");
    let view = store.view().expect("a view");
    for _ in 0..10 {
        put(b"later");
    }
    rest(&store);
    let files = || std::fs::read_dir(&path).expect("a list").count();
    let before = files();
    assert_eq!(view.get(&key(1)).expect("a get").as_deref(), Some(b"first".as_slice()));
    drop(view);
    rest(&store);
    assert!(files() < before, "the view's table is gone");
    assert_no_orphans(&store, &path, "after the view");
}

#[test]
fn old_views_can_be_ended_and_new_ones_read_on() {
    let directory = directory();
    let path = directory.path().join("store");
    let options = Options { table_bytes_target: 8 << 10, cache_bytes_max: 0, ..Options::default() };
    let store = TreeStore::create(&path, &options).expect("created");
    store.commit(many_rows(Some(&[7; 100]))).expect("committed");
    let old = store.view().expect("a view");
    let bytes_before = store.bytes_on_disk();
    store.commit(many_rows(None)).expect("committed");
    store.set_space(crate::SpaceState::Short { unflushed_bytes: 0 });
    rest(&store);
    assert!(old.get(&key(3)).expect("read").is_some(), "the old view still reads what was deleted");
    assert!(store.held_bytes() >= bytes_before, "and holds it on disk: {}", store.held_bytes());

    store.end_old_views();
    rest(&store);
    assert!(matches!(old.get(&key(3)), Err(kv::KvError::ViewEnded { .. })));
    let scanned: Result<Vec<_>, _> = old.scan(&KeyRange::all(), Order::Ascending).collect();
    assert!(matches!(scanned, Err(kv::KvError::ViewEnded { .. })));
    assert!(store.bytes_on_disk() < bytes_before / 10, "{} of {bytes_before}", store.bytes_on_disk());
    assert_eq!(store.view().expect("a view").get(&key(3)), Ok(None));
    store.commit(many_rows(Some(&[8; 100]))).expect("committed");
    assert!(store.view().expect("a view").get(&key(3)).expect("read").is_some());
    drop(old);
    rest(&store);
    assert_no_orphans(&store, &path, "the old view is gone");
    assert_eq!(store.held_bytes(), 0);
}

fn many_rows(value: Option<&[u8]>) -> Batch {
    Batch::from_sorted((0..500).map(|number| (key(number), value.map(Bytes::from))).collect())
}

/// A table may hold rows beyond its stack that were merged away there. Moving the border would bring them back.
#[test]
fn an_emptied_range_is_not_given_to_a_stack_whose_tables_reach_into_it() {
    let directory = directory();
    let shared = super::tables::shared(&directory);
    let rows = [(b"a".to_vec(), Some(b"1".to_vec())), (b"z".to_vec(), Some(b"2".to_vec()))].into();
    let facts = super::tables::write(&shared, 1, &rows);
    let table = super::tables::open(&shared, &facts);
    let version = Version::empty().with_flush(&table, &[facts.rows]).with_cut(0, &b"m".as_slice().into());
    let depths = version.stacks.iter().map(|stack| stack.slices.len()).collect::<Vec<_>>();
    assert_eq!(depths, [1, 1]);
    let emptied = |stack: usize| Merged { stacks: stack..stack + 1, depths: vec![1], made: Made::Bottoms(Vec::new()) };
    let merged = version.with_merge(&emptied(1));
    assert_eq!(merged.stacks.len(), 2, "the border stays");
    let content = Content::new(merged.clone());
    assert!(content.get(b"a").expect("a get").is_some());
    assert_eq!(content.get(b"z").expect("a get"), None, "what was merged away stays away");
    assert_eq!(content.scan(&KeyRange::all(), Order::Descending).count(), 1);
    let merged = merged.with_merge(&emptied(0));
    assert_eq!(merged.stacks.len(), 1, "nothing is left that could come back");
}
