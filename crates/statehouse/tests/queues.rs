//! Many queues: claims find what is first wherever it is, and empty queues leave nothing.

use std::time::Duration;

use statehouse::records::{ClaimOptions, Put, Records};
use statehouse::{Error, Options, Rejection, Statehouse};

fn open() -> (Statehouse, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options::default().retention_walk_every(Duration::from_millis(20));
    (options.open(folder.path().join("house")).expect("open"), folder)
}

fn put_all(records: &Records, names: impl Iterator<Item = String>) {
    let puts: Vec<_> = names.map(|name| records.put_later(&name, [("n", 1)], Put::typed("task"))).collect();
    for put in puts {
        put.wait().expect("put");
    }
}

fn claim_all(records: &Records, prefix: &str) -> Vec<String> {
    let mut names = Vec::new();
    loop {
        let claimed = records.claim_next(prefix, 7, &ClaimOptions::worker("w")).expect("claimed");
        if claimed.is_empty() {
            return names;
        }
        names.extend(claimed.into_iter().map(|claimed| claimed.name));
    }
}

#[test]
fn a_claim_takes_the_oldest_of_all_queues_below_its_prefix() {
    let (house, _folder) = open();
    let records = house.records();
    let names = ["b.x.1", "alone", "b.1", "a.1", "b.y.z.1", "b.x.2", "a.b:c/d.1", "b.2"];
    for name in names {
        records.put(name, [("n", 1)], Put::typed("task")).expect("put");
    }
    assert_eq!(claim_all(&records, "b.x."), ["b.x.1", "b.x.2"]);
    assert_eq!(claim_all(&records, "b."), ["b.1", "b.y.z.1", "b.2"]);
    assert_eq!(claim_all(&records, ""), ["alone", "a.1", "a.b:c/d.1"]);
    assert_eq!(claim_all(&records, ""), [""; 0]);
}

#[test]
fn a_name_deeper_than_queues_go_is_in_the_eighth_and_a_deeper_prefix_is_refused() {
    let (house, _folder) = open();
    let records = house.records();
    records.put("1.2.3.4.5.6.7.8.9.10.11", [("n", 1)], Put::typed("task")).expect("put");
    let deeper = records.claim_next("1.2.3.4.5.6.7.8.9.", 1, &ClaimOptions::worker("w"));
    let depth = Rejection::LimitExceeded { limit: "queue_depth_max", max: 8, got: 9 };
    assert_eq!(deeper.map(|_| ()), Err(Error::Rejected(depth)));
    assert_eq!(records.counts("1.2.3.4.").expect("counts").of("pending"), 1);
    assert_eq!(records.counts("").expect("counts").of("pending"), 1);
    assert!(matches!(records.counts("1.2"), Err(Error::Rejected(Rejection::InvalidName { .. }))));
    assert_eq!(claim_all(&records, "1.2.3.4.5.6.7.8."), ["1.2.3.4.5.6.7.8.9.10.11"]);
}

/// Each deleted record leaves a lane that leads to nothing, many more than one command may correct.
#[test]
fn what_is_ready_is_found_behind_a_thousand_queues_that_were_emptied_by_name() {
    // The walk must not tidy up first.
    let folder = tempfile::tempdir().expect("a folder");
    let house = Statehouse::open(folder.path().join("house")).expect("open");
    let records = house.records();
    put_all(&records, (0..1_000).map(|number| format!("order/{number}/job")));
    for number in 0..1_000 {
        records.delete(&format!("order/{number}/job")).expect("deleted");
    }
    records.put("order/last/job", [("n", 1)], Put::typed("task")).expect("put");
    assert_eq!(claim_all(&records, "order/"), ["order/last/job"]);
    // In a session, where an empty answer would be kept for good.
    put_all(&records, (0..1_000).map(|number| format!("order/{number}/again")));
    for number in 0..1_000 {
        records.delete(&format!("order/{number}/again")).expect("deleted");
    }
    records.put("order/last/again", [("n", 1)], Put::typed("task")).expect("put");
    let session = house.sessions().open().expect("a session");
    let claimed = session.records().claim_next("order/", 1, &ClaimOptions::worker("w")).expect("claimed");
    assert_eq!(claimed.first().map(|claimed| claimed.name.as_str()), Some("order/last/again"));
}

#[test]
fn the_oldest_ready_are_known_for_as_many_parts_as_are_shown() {
    let (house, _folder) = open();
    let records = house.records();
    let oldest = || {
        let overview = house.overview().expect("an overview");
        let mut names: Vec<_> =
            overview.records.oldest_ready.into_iter().map(|(ready, _)| (ready.queue, ready.record)).collect();
        names.sort();
        (names, overview.left_out)
    };
    let named =
        |pairs: &[(&str, &str)]| pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect::<Vec<_>>();
    for name in ["jobs.1", "jobs.mail.1", "jobs.mail.2", "alone", "logs.x.1"] {
        records.put(name, [("n", 1)], Put::typed("task")).expect("put");
    }
    let each = [("", "alone"), ("jobs.", "jobs.1"), ("jobs.mail.", "jobs.mail.1"), ("logs.x.", "logs.x.1")];
    assert_eq!(oldest(), (named(&each), 0));
    put_all(&records, (0..500).map(|number| format!("order/{number}/job")));
    let (names, left_out) = oldest();
    assert_eq!((names.len(), left_out), (5, 0), "all orders are one part: {names:?}");
    records.claim("jobs.mail.1", &ClaimOptions::worker("w")).expect("claimed");
    assert!(oldest().0.contains(&("jobs.mail.".to_owned(), "jobs.mail.2".to_owned())));
}

/// Nobody claims from above, so nobody but the walk meets the lanes.
#[test]
fn empty_queues_leave_no_rows() {
    let (house, _folder) = open();
    let records = house.records();
    records.put("other.1", [("n", 1)], Put::typed("task")).expect("put");
    put_all(&records, (0..300).map(|number| format!("order/{number}/job")));
    for number in 0..300 {
        let claimed = records.claim_next(&format!("order/{number}/"), 1, &ClaimOptions::worker("w")).expect("claimed");
        records.complete(&claimed[0], [("done", true)]).expect("completed");
        records.delete(&format!("order/{number}/job")).expect("deleted");
    }
    // The walk begins every 20 ms.
    let is_tidy = (0..1_000).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        lanes(&house) <= 3
    });
    assert!(is_tidy, "{} lanes are left", lanes(&house));
    assert_eq!(claim_all(&records, ""), ["other.1"]);
}

/// Rows that say in which buckets queues have lanes.
fn lanes(house: &Statehouse) -> usize {
    let mut backup = Vec::new();
    statehouse::backup::create(house, &mut backup, &mut |_| {}).expect("a backup");
    // Mark of shard rows, first bucket, kind, then space 1 and branch 1.
    let key = [0xff, 0xff, 0, 0, 0x0d, 0, 0, 0, 1, 0, 0, 0, 1];
    backup.windows(key.len()).filter(|bytes| *bytes == key).count()
}
