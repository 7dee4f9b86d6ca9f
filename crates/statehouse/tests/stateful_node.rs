//! A stateful node end to end, over each state backend: a source that sends orders twice, crashes with a replay in the middle of
//! batches and between sinks and checkpoint, ids of outputs, and sinks by id. Every output is there once, with the right total.
//!
//! Two canaries: with ids that a replay does not repeat, and with a backend that does not compare versions, outputs are wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use kv::MemoryStore;
use statehouse::keyed::backends::{
    BackendError, ExactlyOnceStateBackend, HashMapStateBackend, HouseStateBackend, KvStateBackend,
    VersionedStateBackend,
};
use statehouse::keyed::{KeysRange, UpdateOutcome};
use statehouse::stream::sinks::{GroupTable, OverwriteSink, Sink, TableSink};
use statehouse::stream::{StatefulNode, output_id};
use statehouse::{Group, Statehouse};
use testkit::random::Random;

/// Orders between two checkpoints.
const BATCH: usize = 20;
const SEEDS: std::ops::RangeInclusive<u64> = 1..=4;

#[derive(Clone, Debug)]
struct Order {
    customer: String,
    time: u64,
    amount: i64,
}

/// What the source holds: some orders come twice, at once or much later.
fn orders(random: &mut Random) -> Vec<Order> {
    let mut orders = Vec::new();
    for time in 1..=150 {
        let customer = format!("customer-{}", random.below(7));
        let order = Order { customer, time, amount: i64::try_from(random.below(100)).expect("small") };
        if random.one_in(4) {
            orders.push(order.clone());
        }
        orders.push(order);
        if random.one_in(6) {
            let again = random.index(orders.len());
            orders.push(Order::clone(&orders[again]));
        }
    }
    orders
}

fn id_of(order: &Order) -> String {
    output_id(order.customer.as_bytes(), order.time).to_string()
}

/// The outputs by id: after each order the customer's total.
fn expected(orders: &[Order]) -> BTreeMap<String, String> {
    let (mut totals, mut seen) = (BTreeMap::<&str, i64>::new(), BTreeSet::new());
    let outputs = orders.iter().filter(|order| seen.insert(order.time)).map(|order| {
        let total = totals.entry(&order.customer).or_default();
        *total += order.amount;
        (id_of(order), format!("{} {total}", order.customer))
    });
    outputs.collect()
}

/// A processor from its first start to the end of the source, with crashes. Returns the outputs that the sink by id has, and how
/// often it has crashed.
fn process<B>(
    orders: &[Order],
    open: impl Fn() -> B,
    mut id_of: impl FnMut(&Order) -> String,
    table: &mut TableSink<GroupTable>,
    random: &mut Random,
) -> (BTreeMap<String, String>, usize)
where
    B: VersionedStateBackend<Key = String, Value = i64, Version = u64>,
{
    let (mut outputs, mut crashes) = (BTreeMap::new(), 0);
    let mut sink = OverwriteSink::new(|id: &str, output: &[u8]| {
        outputs.insert(id.to_owned(), String::from_utf8_lossy(output).into_owned());
        Ok::<(), Infallible>(())
    });
    let mut node = StatefulNode::new(open());
    let (mut checkpoint, mut begin, mut at) = (node.snapshot().expect("snapshot"), 0, 0);
    while begin < orders.len() {
        let end = (begin + BATCH).min(orders.len());
        // It may crash before any order of the batch, or after all of them.
        let stop = if random.one_in(3) { at + random.index(end - at) } else { end };
        let mut rows = Vec::new();
        for order in &orders[at..stop] {
            let mut total = 0;
            let add = |before: Option<i64>| {
                total = before.unwrap_or(0) + order.amount;
                Some(total)
            };
            if node.apply(order.customer.clone(), order.time, add).expect("apply") {
                let (id, output) = (id_of(order), format!("{} {total}", order.customer));
                sink.write(&id, output.as_bytes()).expect("written");
                rows.push((id, output.into()));
            }
        }
        if stop == end {
            let batch = u64::try_from(begin / BATCH).expect("small");
            table.write(batch, &rows).expect("written");
        }
        if stop < end || random.one_in(4) {
            crashes += 1;
            drop(node);
            node = StatefulNode::new(open());
            node.restore(&checkpoint).expect("restore");
            // The source begins a little before the checkpoint.
            at = begin.saturating_sub(random.index(BATCH));
        } else {
            checkpoint = node.snapshot().expect("snapshot");
            (begin, at) = (end, end);
        }
    }
    (outputs, crashes)
}

/// The rows of a table.
fn rows(group: &Group) -> BTreeMap<String, String> {
    let page = group.maps().scan("outputs", &KeysRange::default().limit(1_000)).expect("rows");
    let text = |key: Vec<u8>| String::from_utf8(key).expect("text");
    let rows = page.keys.into_iter().map(|(key, found)| (text(key), found.value.as_text().expect("text").to_owned()));
    rows.collect()
}

/// Processes orders with each seed. `make` makes a place with a new state, which is opened again after each crash.
fn check<B, Open>(make: impl Fn() -> Open)
where
    B: VersionedStateBackend<Key = String, Value = i64, Version = u64>,
    Open: Fn() -> B,
{
    let directory = tempfile::tempdir().expect("a directory");
    let house = Statehouse::open(directory.path().join("outputs")).expect("a house");
    let mut crashes = 0;
    for seed in SEEDS {
        let mut random = Random::new(seed);
        let orders = orders(&mut random);
        let group = house.group(format!("seed-{seed}"));
        let mut table = TableSink::new(GroupTable::new(&group, "outputs"));
        let (outputs, crashed) = process(&orders, make(), id_of, &mut table, &mut random);
        assert_eq!(outputs, expected(&orders), "seed {seed}: the sink by id");
        assert_eq!(rows(&group), expected(&orders), "seed {seed}: the table");
        crashes += crashed;
    }
    assert!(crashes > 10, "{crashes} crashes");
}

#[test]
fn over_state_in_memory_every_output_is_there_once() {
    check(|| HashMapStateBackend::<String, i64, u64>::new);
}

#[test]
fn over_state_in_a_store_of_bytes_every_output_is_there_once() {
    check(|| {
        let store = Arc::new(MemoryStore::new());
        move || KvStateBackend::<String, i64, u64>::open(store.clone(), b"node/").expect("a state")
    });
}

#[test]
fn over_state_in_a_house_every_output_is_there_once() {
    check(|| {
        let directory = tempfile::tempdir().expect("a directory");
        move || {
            let house = Statehouse::open(directory.path().join("house")).expect("a house");
            HouseStateBackend::<String, i64, u64>::new(house.maps(), "totals").expect("a map")
        }
    });
}

/// The outputs of the sink by id, and what they should be.
fn broken<B>(open: impl Fn() -> B, id_of: impl FnMut(&Order) -> String) -> [BTreeMap<String, String>; 2]
where
    B: VersionedStateBackend<Key = String, Value = i64, Version = u64>,
{
    let directory = tempfile::tempdir().expect("a directory");
    let house = Statehouse::open(directory.path().join("outputs")).expect("a house");
    let mut random = Random::new(*SEEDS.start());
    let orders = orders(&mut random);
    let mut table = TableSink::new(GroupTable::new(&house.group("broken"), "outputs"));
    [process(&orders, open, id_of, &mut table, &mut random).0, expected(&orders)]
}

#[test]
fn canary_with_ids_that_a_replay_does_not_repeat_outputs_are_doubled() {
    let mut next = 0;
    let [found, expected] = broken(HashMapStateBackend::<String, i64, u64>::new, |_| {
        next += 1;
        format!("{next}")
    });
    assert!(found.len() > expected.len(), "{} outputs of {}", found.len(), expected.len());
}

#[test]
fn canary_without_the_comparison_of_versions_orders_count_twice() {
    let [found, expected] = broken(Unversioned::default, id_of);
    assert_eq!(found.len(), expected.len());
    assert_ne!(found, expected);
}

/// A backend that takes every update, whatever its version.
#[derive(Default)]
struct Unversioned {
    state: Mutex<BTreeMap<String, (i64, u64)>>,
}

impl ExactlyOnceStateBackend for Unversioned {
    type Key = String;
    type Value = i64;
    type Version = u64;

    fn put(&self, key: String, value: i64, version: u64) -> Result<(), BackendError> {
        self.put_outcome(key, value, version).map(drop)
    }

    fn get(&self, key: &String) -> Result<Option<(i64, u64)>, BackendError> {
        Ok(self.state.lock().expect("no panic").get(key).copied())
    }

    fn snapshot(&self) -> Result<Vec<u8>, BackendError> {
        Ok(serde_json::to_vec(&*self.state.lock().expect("no panic")).expect("JSON"))
    }

    fn restore(&mut self, data: &[u8]) -> Result<(), BackendError> {
        self.state = Mutex::new(serde_json::from_slice(data).expect("JSON"));
        Ok(())
    }
}

impl VersionedStateBackend for Unversioned {
    fn put_outcome(&self, key: String, value: i64, version: u64) -> Result<UpdateOutcome, BackendError> {
        self.state.lock().expect("no panic").insert(key, (value, version));
        Ok(UpdateOutcome::Applied)
    }

    fn delete(&self, key: String, _: u64) -> Result<UpdateOutcome, BackendError> {
        self.state.lock().expect("no panic").remove(&key);
        Ok(UpdateOutcome::Applied)
    }

    fn passed(&self, _: &String) -> Result<Option<u64>, BackendError> {
        Ok(None)
    }

    fn seal(&self, _: u64) -> Result<(), BackendError> {
        Ok(())
    }

    fn snapshot_for_keys(&self, _: &[String]) -> Result<Vec<u8>, BackendError> {
        self.snapshot()
    }

    fn restore_keys(&mut self, data: &[u8]) -> Result<(), BackendError> {
        self.restore(data)
    }
}
