//! The stores that need no disk pass the suite, and the faulty store fails as planned.

use std::sync::Arc;

use kv::{Batch, FaultPlan, FaultyStore, KvError, MemoryStore, Overlay, OverlayOptions, Store};

#[test]
fn memory_store_passes() {
    statehouse_testkit::kv::suite(MemoryStore::new);
}

#[test]
fn faulty_store_without_faults_passes() {
    statehouse_testkit::kv::suite(|| FaultyStore::new(MemoryStore::new()));
}

#[test]
fn overlay_passes_with_large_and_with_tiny_tables() {
    for table_bytes_max in [64 << 20, 2_000, 1] {
        statehouse_testkit::kv::suite(|| {
            let options = OverlayOptions::default().table_bytes_max(table_bytes_max);
            Overlay::new(Arc::new(MemoryStore::new()), options).expect("overlay")
        });
    }
}

#[test]
fn a_failed_commit_poisons() {
    let store = FaultyStore::new(MemoryStore::new());
    store.plan(FaultPlan { commit: Some(2), ..FaultPlan::default() });
    let put = |value: &'static str| store.commit(Batch::new().put(b"k".as_slice(), value.as_bytes()));
    put("1").expect("the first commit goes through");
    assert!(matches!(put("2"), Err(KvError::Io { .. })));
    assert!(matches!(put("3"), Err(KvError::Poisoned { .. })));
    assert_eq!(store.view().expect("view").get(b"k").expect("get").as_deref(), Some(b"1".as_slice()));
}

#[test]
fn a_failed_flush_poisons_the_overlay_and_reads_go_on() {
    let below = Arc::new(FaultyStore::new(MemoryStore::new()));
    let overlay = Overlay::new(below.clone(), OverlayOptions::default()).expect("overlay");
    below.plan(FaultPlan { commit: Some(1), ..FaultPlan::default() });
    overlay.commit(Batch::new().put(b"k".as_slice(), b"1".as_slice())).expect("memory takes it");
    assert!(overlay.persist().is_err());
    // The second attempt finds that the first has poisoned the store.
    while overlay.flush_failure().is_some() && !matches!(overlay.persist(), Err(KvError::Poisoned { .. })) {}
    assert_eq!(overlay.durable(), 0, "nothing is called durable after a failed flush");
    let refused = overlay.commit(Batch::new().put(b"k".as_slice(), b"2".as_slice()));
    assert!(matches!(refused, Err(KvError::Poisoned { .. })));
    assert!(overlay.view().expect("view").get(b"k").expect("get").is_some());
}

#[test]
fn a_flush_that_finds_the_disk_full_is_tried_until_it_succeeds() {
    let below = Arc::new(FaultyStore::new(MemoryStore::new()));
    let overlay = Overlay::new(below.clone(), OverlayOptions::default()).expect("overlay");
    below.plan(FaultPlan { commits_full: 3, ..FaultPlan::default() });
    overlay.commit(Batch::new().put(b"k".as_slice(), b"1".as_slice())).expect("memory takes it");
    assert!(matches!(overlay.persist(), Err(KvError::NoSpace { .. })), "whoever waits for a flush is told");
    assert!(matches!(overlay.flush_failure(), Some(KvError::NoSpace { .. })));
    overlay.commit(Batch::new().put(b"l".as_slice(), b"2".as_slice())).expect("memory still takes it");
    assert_eq!(overlay.durable(), 0);
    while overlay.flush_failure().is_some() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    overlay.persist().expect("there is space again");
    assert_eq!((overlay.durable(), overlay.flush_failure()), (2, None));
    assert!(below.view().expect("view").get(b"l").expect("get").is_some());
}

#[test]
fn an_overlay_closes_although_the_disk_is_full_and_its_last_attempt_ends_waiting_commits() {
    let below = Arc::new(FaultyStore::new(MemoryStore::new()));
    let overlay = Overlay::new(below.clone(), OverlayOptions::default().table_bytes_max(1)).expect("overlay");
    below.plan(FaultPlan { commits_full: u64::MAX, ..FaultPlan::default() });
    let put = |key: &[u8]| overlay.commit(Batch::new().put(key, b"1".as_slice()));
    put(b"a").expect("one table waits");
    put(b"b").expect("two tables wait");
    std::thread::scope(|scope| {
        let third = scope.spawn(|| put(b"c"));
        while overlay.flush_failure().is_none() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert!(!third.is_finished(), "the third waits for space");
        overlay.stop_retrying();
        let third = third.join().expect("no panic");
        assert!(matches!(third, Err(KvError::Poisoned { .. })), "{third:?}");
    });
    assert!(matches!(overlay.persist(), Err(KvError::Poisoned { .. })));
    drop(overlay);
    let overlay = Overlay::new(below, OverlayOptions::default()).expect("overlay");
    overlay.commit(Batch::new().put(b"a".as_slice(), b"1".as_slice())).expect("memory takes it");
    overlay.start_flush();
    drop(overlay);
}

#[test]
fn a_failed_read_is_an_error_and_not_an_absence() {
    let store = FaultyStore::new(MemoryStore::new());
    store.commit(Batch::new().put(b"k".as_slice(), b"1".as_slice())).expect("commit");
    store.plan(FaultPlan { read: Some(1), ..FaultPlan::default() });
    assert!(store.view().expect("view").get(b"k").is_err());
}
