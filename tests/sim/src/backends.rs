//! The suite of the contract of state backends, with far more updates than a test has time for: `sim keyed-suite --ops N`.
//!
//! Each backend gets half of the updates with each of two seeds, beside a naive model that folds every update anew. Maps of a house
//! get fewer, since each update is synced: `--ops-in-house N`. Would see broken: D1, and a backend that differs from the others.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Instant;

use kv::MemoryStore;
use statehouse::Statehouse;
use statehouse::keyed::LogicalTime;
use statehouse::keyed::backends::{HashMapStateBackend, HouseStateBackend, KvStateBackend};
use testkit::arguments::Arguments;
use testkit::report::Report;
use testkit::state_backend::{Tested, moves_between, suite};

use crate::directories::fast_directory;

type InMemory = HashMapStateBackend<String, i64, LogicalTime>;
type InStore = KvStateBackend<String, i64, LogicalTime>;
type InHouse = HouseStateBackend<String, i64, LogicalTime>;

const GOAL: &str = "every check of the suite, and each update counts once";

/// Runs the suite on every backend. One that breaks the contract ends the program.
pub(crate) fn run(arguments: &Arguments) -> Report {
    let updates = arguments.number("ops", 200_000);
    let updates_in_house = arguments.number("ops-in-house", updates);
    let directory = fast_directory().expect("a directory");
    let house = Statehouse::open(directory.path().join("house")).expect("a house");
    let maps = Cell::new(0_u32);
    let in_store = || InStore::open(Arc::new(MemoryStore::new()), b"state/").expect("a state");
    let in_house = || {
        maps.set(maps.get() + 1);
        InHouse::new(house.group("shop").maps(), format!("stock-{}", maps.get())).expect("a map")
    };

    let mut report = Report::new("keyed");
    of_one(&mut report, "memory", updates, InMemory::new);
    of_one(&mut report, "store", updates, in_store);
    of_one(&mut report, "house", updates_in_house, in_house);
    moves_between(&InMemory::new(), &mut in_store());
    moves_between(&in_store(), &mut in_house());
    moves_between(&in_house(), &mut InMemory::new());
    report.add("suite.moves", "3-backends", "each restores what another has written", true);
    drop(house.close());
    report
}

fn of_one<B: Tested + Sync>(report: &mut Report, name: &str, updates: u64, make: impl Fn() -> B) {
    let started = Instant::now();
    suite(make, usize::try_from(updates).expect("it fits"));
    println!("keyed-suite: {name}: {updates} updates in {:.1} s", started.elapsed().as_secs_f64());
    report.add(&format!("suite.{name}"), format!("{updates}-updates"), GOAL, true);
}
