//! The library passes the suite of the portable contract: records without a group, and those of a group.

mod held;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use contract::Error;
use held::HeldClock;
use statehouse::Statehouse;
use statehouse::records::{PortableRecord, PortableRecords, PortableScan, Records, ScanFilter, StateStore};

/// Records with the directory that holds them.
struct Kept {
    records: PortableRecords,
    clock: Arc<HeldClock>,
    _directory: tempfile::TempDir,
}

macro_rules! delegate {
    ($($name:ident($($argument:ident: $type:ty),*) -> $output:ty;)*) => {
        impl StateStore for Kept {
            $(fn $name(&self, $($argument: $type),*) -> $output {
                self.records.$name($($argument),*)
            })*
        }
    };
}

delegate! {
    get(key: &str) -> Result<Option<PortableRecord>, Error>;
    put(key: &str, fields: &BTreeMap<String, Vec<u8>>, ttl: Option<Duration>) -> Result<(), Error>;
    delete(key: &str) -> Result<(), Error>;
    get_field(key: &str, field: &str) -> Result<Option<Vec<u8>>, Error>;
    set_fields(key: &str, fields: &BTreeMap<String, Option<Vec<u8>>>) -> Result<(), Error>;
    compare_and_swap(key: &str, field: &str, expected: Option<&[u8]>, new: &[u8]) -> Result<bool, Error>;
    scan(prefix: &str, filter: Option<&ScanFilter>) -> PortableScan<'_>;
    ping() -> bool;
}

fn suite_on(choose: impl Fn(&Statehouse) -> Records) {
    let make = || {
        let (directory, clock, house) = held::house();
        Kept { records: choose(&house).portable(), clock, _directory: directory }
    };
    let advance = |kept: &Kept, by: Duration| kept.clock.advance(by);
    testkit::state_store::suite(make, advance);
}

#[test]
fn records_that_are_their_own_groups_pass() {
    suite_on(Statehouse::records);
}

#[test]
fn records_of_a_group_pass() {
    // One of the suite's names is the group's own.
    suite_on(|house| house.group("plain.a").records());
}

#[test]
fn records_of_another_space_and_branch_pass() {
    suite_on(|house| {
        let space = house.create_space("tenant").expect("a space");
        space.create_branch("draft").expect("a branch").records()
    });
}

#[test]
fn a_closed_store_does_not_answer() {
    let directory = tempfile::tempdir().expect("a directory");
    let house = Statehouse::open(directory.path().join("house")).expect("a house");
    let records = house.records().portable();
    house.close().expect("close");
    assert!(!records.ping());
}
