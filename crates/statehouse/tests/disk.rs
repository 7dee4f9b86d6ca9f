//! Low disk space: operations that make the store larger are refused by name, those that free space pass, and it
//! recovers by itself.

use std::time::Duration;

use statehouse::records::{ClaimOptions, Put};
use statehouse::{DiskReserve, Error, FailureKind, Options, Outcome, Statehouse};

fn refused<T: std::fmt::Debug>(done: Result<T, Error>) -> String {
    match done {
        Err(Error::Failed(failure)) if failure.kind == FailureKind::DiskLow => {
            assert_eq!(failure.outcome, Outcome::NotApplied);
            failure.to_string()
        }
        other => panic!("the disk is low, and this was done: {other:?}"),
    }
}

/// More than there is: every disk is low.
const EVERYTHING: DiskReserve = DiskReserve { percent: 100, bytes: u64::MAX };

fn house(reserve: DiskReserve) -> (tempfile::TempDir, Statehouse) {
    // In memory if the system has such a disk: fewer others write to it.
    let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a directory");
    let house = Options::default().disk_reserve(reserve).open(directory.path().join("house")).expect("a house");
    (directory, house)
}

#[test]
fn below_the_reserve_only_what_makes_room_passes() {
    let (_directory, house) = house(DiskReserve { percent: 0, bytes: 0 });
    let (cells, records, runs) = (house.cells(), house.records(), house.runs());
    cells.set("cell", "value").expect("written");
    for name in ["jobs.1", "jobs.2", "jobs.3"] {
        records.put(name, [("n", "1")], Put::typed("task")).expect("put");
    }
    assert!(!house.disk().expect("known").is_low());

    house.set_disk_reserve(Some(EVERYTHING));
    let space = house.disk().expect("known");
    assert!(space.is_low() && space.free_bytes > 0 && space.total_bytes > space.free_bytes, "{space:?}");
    let said = refused(cells.set("cell", "another"));
    assert!(said.contains("are kept free") && said.ends_with("[SH-2015]"), "{said}");
    refused(records.put("jobs.4", [("n", "1")], Put::typed("task")));
    refused(records.increment("jobs.3", "count", 1));

    assert_eq!(cells.get("cell").expect("read").as_ref().and_then(|value| value.as_text()), Some("value"));
    let claimed = records.claim_next("jobs.", 2, &ClaimOptions::worker("w")).expect("claims pass");
    assert_eq!(claimed.len(), 2);
    refused(records.step(&claimed[0], [("state", "running")]));
    records.complete(&claimed[0], [("result", "done")]).expect("completions pass");
    records.release(&claimed[1]).expect("releases pass");
    records.delete("jobs.3").expect("deletes pass");
    cells.delete("cell").expect("deletes pass");
    assert!(runs.list(&Default::default()).expect("read").runs.is_empty());

    house.set_disk_reserve(None);
    cells.set("cell", "again").expect("it clears itself");
    house.close().expect("closed");
}

#[test]
fn a_transaction_passes_if_all_of_it_makes_room() {
    let (_directory, house) = house(DiskReserve { percent: 0, bytes: 0 });
    let group = house.group("g");
    let cells = group.cells();
    cells.set("a", "1").expect("written");
    cells.set("b", "1").expect("written");
    house.set_disk_reserve(Some(EVERYTHING));
    let mixed = group.transact(|transaction| {
        transaction.delete("a")?;
        transaction.set("c", "1")
    });
    assert!(refused(mixed).contains("are kept free"));
    assert!(cells.get("a").expect("read").is_some(), "nothing of it was done");
    let deletes = group.transact(|transaction| transaction.delete("a"));
    deletes.expect("a transaction that only deletes");
    assert!(cells.get("a").expect("read").is_none());
}

#[test]
fn it_is_looked_again_after_a_second() {
    // A reserve a little below the free space: a large file uses it up, and removing the file clears it.
    let (directory, house) = house(DiskReserve { percent: 0, bytes: 0 });
    let free = house.disk().expect("known").free_bytes;
    let ballast = directory.path().join("ballast");
    house.set_disk_reserve(Some(DiskReserve { percent: 100, bytes: free - (64 << 20) }));
    house.cells().set("cell", "1").expect("there is room");
    std::fs::write(&ballast, vec![1; 128 << 20]).expect("written");
    let wait_until = |low: bool| {
        for _ in 0..1_200 {
            if house.disk().expect("known").is_low() == low {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("the disk is not seen as {}", if low { "low" } else { "clear" });
    };
    wait_until(true);
    refused(house.cells().set("cell", "2"));
    std::fs::remove_file(&ballast).expect("removed");
    wait_until(false);
    house.cells().set("cell", "3").expect("it clears itself");
}

/// What is deleted goes before its time while space is short, and never comes back under an old version.
#[test]
fn what_is_deleted_is_forgotten_while_space_is_short() {
    let (_directory, house) = house(DiskReserve { percent: 0, bytes: 0 });
    let (cells, records) = (house.cells(), house.records());
    cells.set("cell", "1").expect("written");
    cells.set("cell", "2").expect("written");
    records.put("jobs.1", [("n", "1")], Put::typed("task")).expect("put");
    cells.delete("cell").expect("deleted");
    records.delete("jobs.1").expect("deleted");
    let versions = || cells.history("cell", Default::default()).expect("history").versions.len();
    assert_eq!(versions(), 3, "there is room for history");

    house.set_disk_reserve(Some(EVERYTHING));
    for _ in 0..1_200 {
        if versions() == 0 {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(versions(), 0, "its history is gone");
    house.set_disk_reserve(None);
    assert_eq!(cells.set("cell", "3").expect("written").version, 4, "its versions go on");
}

/// Merges replace tables, and nobody must have to write for the old ones to go.
#[test]
fn what_was_deleted_goes_from_the_disk_although_nobody_writes_any_more() {
    let (directory, house) = house(DiskReserve { percent: 0, bytes: 0 });
    let cells = house.cells();
    let value = "x".repeat(100_000);
    let names: Vec<_> = (0..200).map(|number| format!("cell-{number}")).collect();
    names.iter().for_each(|name| assert!(cells.set(name, value.as_str()).is_ok(), "written"));
    let store_bytes = || -> u64 {
        let files = std::fs::read_dir(directory.path().join("house/store")).expect("a store").flatten();
        files.filter_map(|file| Some(file.metadata().ok()?.len())).sum()
    };
    house.set_disk_reserve(Some(EVERYTHING));
    wait_for("what is in memory is written, since space is short", || store_bytes() > 10 << 20);
    names.iter().for_each(|name| assert!(cells.delete(name).is_ok(), "deleted"));
    wait_for("the space is back", || store_bytes() < 2 << 20);
}

fn wait_for(what: &str, is_true: impl Fn() -> bool) {
    for _ in 0..1_200 {
        if is_true() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("{what}: not within a minute");
}
