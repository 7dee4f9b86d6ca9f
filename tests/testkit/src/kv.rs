//! The suite of `kv::Store`: call [`suite`] with a function that creates an empty store.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kv::{Batch, Bytes, Committed, Key, KeyRange, Order, Store, View};

use crate::random::Random;

/// Runs every check of the suite, each on its own store.
///
/// # Panics
/// If the store breaks a duty.
pub fn suite<S: Store + 'static>(make: impl Fn() -> S) {
    a_batch_is_visible_at_once_and_the_last_write_wins(&make());
    a_deletion_hides_and_a_later_write_shows(&make());
    a_scan_goes_both_ways_within_its_range(&make());
    a_view_never_changes(&make());
    a_condition_decides_over_the_whole_batch(&make());
    durable_is_never_ahead_and_persist_catches_up(&make());
    a_random_history_equals_a_sorted_map(&make(), 1);
    a_reader_sees_whole_batches_only(Arc::new(make()));
}

fn bytes(text: &str) -> Bytes {
    text.as_bytes().into()
}

fn key(text: &str) -> Key {
    text.as_bytes().into()
}

fn applied(committed: Result<Committed, kv::KvError>) -> u64 {
    match committed.expect("the store takes the batch") {
        Committed::Applied(sequence) => sequence,
        Committed::ConditionFailed => panic!("a batch without a false condition is applied"),
    }
}

fn view(store: &impl Store) -> Arc<dyn View> {
    store.view().expect("the store gives a view")
}

/// The rows of a scan as `key=value` words.
fn rows(view: &dyn View, range: &KeyRange, order: Order) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let rows = view.scan(range, order).map(|row| {
        let (key, value) = row.expect("the scan goes on");
        format!("{}={}", text(&key), text(&value))
    });
    rows.collect::<Vec<_>>().join(" ")
}

fn a_batch_is_visible_at_once_and_the_last_write_wins(store: &impl Store) {
    assert_eq!(view(store).get(b"a").expect("get"), None);
    let first = applied(store.commit(Batch::new().put(key("a"), bytes("0")).put(key("a"), bytes("1"))));
    assert_eq!(view(store).get(b"a").expect("get"), Some(bytes("1")));
    let second = applied(store.commit(Batch::new().put(key("a"), bytes(""))));
    assert_eq!(view(store).get(b"a").expect("get"), Some(bytes("")), "an empty value is a value");
    assert!(second > first, "sequences rise");
}

fn a_deletion_hides_and_a_later_write_shows(store: &impl Store) {
    applied(store.commit(Batch::new().put(key("a"), bytes("1")).put(key("b"), bytes("2"))));
    store.persist().expect("persist");
    applied(store.commit(Batch::new().delete(key("a")).delete(key("never-there"))));
    assert_eq!(view(store).get(b"a").expect("get"), None);
    assert_eq!(rows(&*view(store), &KeyRange::all(), Order::Ascending), "b=2");
    store.persist().expect("persist");
    assert_eq!(view(store).get(b"a").expect("get"), None, "a deletion survives a persist");
    applied(store.commit(Batch::new().put(key("a"), bytes("3"))));
    assert_eq!(rows(&*view(store), &KeyRange::all(), Order::Descending), "b=2 a=3");
}

fn a_scan_goes_both_ways_within_its_range(store: &impl Store) {
    for (index, name) in ["d", "b", "a", "c", "e"].into_iter().enumerate() {
        applied(store.commit(Batch::new().put(key(name), bytes("v"))));
        if index == 2 {
            store.persist().expect("persist");
        }
    }
    let range = KeyRange::between(*b"b", *b"d");
    assert_eq!(rows(&*view(store), &range, Order::Ascending), "b=v c=v");
    assert_eq!(rows(&*view(store), &range, Order::Descending), "c=v b=v");
    assert_eq!(rows(&*view(store), &KeyRange::between(*b"d", *b"b"), Order::Ascending), "");
    assert_eq!(rows(&*view(store), &KeyRange::prefix(b"e"), Order::Descending), "e=v");
    assert_eq!(rows(&*view(store), &KeyRange::prefix(b"f"), Order::Ascending), "");
}

fn a_view_never_changes(store: &impl Store) {
    applied(store.commit(Batch::new().put(key("a"), bytes("1")).put(key("b"), bytes("1"))));
    let old = view(store);
    applied(store.commit(Batch::new().put(key("a"), bytes("2")).delete(key("b")).put(key("c"), bytes("2"))));
    store.persist().expect("persist");
    for round in 0..20 {
        applied(store.commit(Batch::new().put(key("a"), bytes(&format!("{round}")))));
        store.persist().expect("persist");
    }
    assert_eq!(rows(&*old, &KeyRange::all(), Order::Ascending), "a=1 b=1");
    assert_eq!(old.get(b"b").expect("get"), Some(bytes("1")));
    assert_eq!(old.get(b"c").expect("get"), None);
    assert_eq!(rows(&*view(store), &KeyRange::all(), Order::Ascending), "a=19 c=2");
}

fn a_condition_decides_over_the_whole_batch(store: &impl Store) {
    applied(store.commit(Batch::new().put(key("epoch"), bytes("7"))));
    let stale = Batch::new().put(key("a"), bytes("x")).when(key("epoch"), Some(bytes("6")));
    assert_eq!(store.commit(stale).expect("commit"), Committed::ConditionFailed);
    let present = Batch::new().put(key("a"), bytes("x")).when(key("epoch"), None);
    assert_eq!(store.commit(present).expect("commit"), Committed::ConditionFailed);
    assert_eq!(view(store).get(b"a").expect("get"), None);
    applied(store.commit(Batch::new().put(key("a"), bytes("y")).when(key("epoch"), Some(bytes("7")))));
    applied(store.commit(Batch::new().put(key("b"), bytes("z")).when(key("absent"), None)));
    assert_eq!(rows(&*view(store), &KeyRange::all(), Order::Ascending), "a=y b=z epoch=7");
}

fn durable_is_never_ahead_and_persist_catches_up(store: &impl Store) {
    let mut last = 0;
    for round in 0..10 {
        last = applied(store.commit(Batch::new().put(key("k"), bytes(&format!("{round}")))));
        assert!(store.durable() <= last, "what is durable was committed");
    }
    assert!(store.persist().expect("persist") >= last, "persist covers what was committed before it");
    assert!(store.durable() >= last, "durable says what persist did");
    store.persist().expect("an empty persist succeeds");
}

fn a_random_history_equals_a_sorted_map(store: &impl Store, seed: u64) {
    let mut random = Random::new(seed);
    let mut model = BTreeMap::<Key, Bytes>::new();
    let mut pinned = Vec::new();
    for round in 0..2_000 {
        let mut batch = Batch::new();
        for _ in 0..random.below(6) {
            let key = key(&format!("k{:02}", random.below(60)));
            if random.one_in(3) {
                model.remove(&key);
                batch = batch.delete(key);
            } else {
                let value: Bytes = random.bytes(random.clone().index(40)).into();
                model.insert(key.clone(), value.clone());
                batch = batch.put(key, value);
            }
        }
        applied(store.commit(batch));
        if random.one_in(50) {
            store.persist().expect("persist");
        }
        if random.one_in(100) {
            pinned.push((view(store), model.clone()));
        }
        if round % 20 == 0 {
            compare(&*view(store), &model, &mut random);
        }
    }
    for (view, model) in &pinned {
        compare(&**view, model, &mut random);
    }
}

/// Compares a view with the model by gets, and by scans of a random range in both orders.
fn compare(view: &dyn View, model: &BTreeMap<Key, Bytes>, random: &mut Random) {
    let start = format!("k{:02}", random.below(60)).into_bytes();
    let end = format!("k{:02}", random.below(60)).into_bytes();
    for range in [KeyRange::all(), KeyRange::between(start, end)] {
        let expected: Vec<_> =
            model.iter().filter(|(key, _)| range.contains(key)).map(|(k, v)| (k.clone(), v.clone())).collect();
        let up: Vec<_> = view.scan(&range, Order::Ascending).map(|row| row.expect("row")).collect();
        assert_eq!(up, expected, "an ascending scan equals the model");
        let mut down: Vec<_> = view.scan(&range, Order::Descending).map(|row| row.expect("row")).collect();
        down.reverse();
        assert_eq!(down, expected, "a descending scan equals the model");
    }
    for number in 0..60 {
        let key = key(&format!("k{number:02}"));
        assert_eq!(view.get(&key).expect("get").as_ref(), model.get(&key), "a get equals the model");
    }
}

fn a_reader_sees_whole_batches_only<S: Store + 'static>(store: Arc<S>) {
    let keys = ["a", "m", "z"];
    let stop = Arc::new(AtomicBool::new(false));
    let readers = (0..2).map(|_| {
        let (store, stop) = (store.clone(), stop.clone());
        std::thread::spawn(move || {
            let mut newest = 0;
            while !stop.load(Ordering::Relaxed) {
                let view = view(&*store);
                let seen = keys.map(|key| view.get(key.as_bytes()).expect("get"));
                assert!(seen.windows(2).all(|pair| pair[0] == pair[1]), "a view saw part of a batch: {seen:?}");
                let scanned = view.scan(&KeyRange::all(), Order::Ascending).map(|row| Some(row.expect("row").1));
                assert!(scanned.eq(seen.iter().filter(|value| value.is_some()).cloned()), "a scan saw another state");
                let number =
                    seen[0].as_ref().map_or(0, |value| String::from_utf8_lossy(value).parse().expect("number"));
                assert!(number >= newest, "a later view is never older");
                newest = number;
            }
        })
    });
    let readers: Vec<_> = readers.collect();
    for round in 1..=1_000_u64 {
        let value = bytes(&round.to_string());
        applied(store.commit(keys.iter().fold(Batch::new(), |batch, name| batch.put(key(name), value.clone()))));
        if round % 100 == 0 {
            store.persist().expect("persist");
        }
    }
    stop.store(true, Ordering::Relaxed);
    for reader in readers {
        reader.join().expect("no reader saw a broken duty");
    }
}
