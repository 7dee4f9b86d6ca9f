//! Views are whole while tables are frozen and flushed under them.

use std::sync::Weak;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::*;
use crate::memory::MemoryStore;

/// Rows of every batch, each with the number of the batch.
const KEYS: [&[u8]; 3] = [b"a", b"m", b"z"];

const COMMITS: u64 = 30_000;

fn number(value: &[u8]) -> u64 {
    u64::from_be_bytes(value.try_into().expect("eight bytes"))
}

#[test]
fn a_view_shows_one_batch_wholly_and_never_an_earlier_one_than_before() {
    // A table takes three batches, so that nearly every view meets a freeze or a flush.
    let options = OverlayOptions::default().table_bytes_max(9 * 210);
    let overlay = Overlay::new(Arc::new(MemoryStore::new()), options).expect("an overlay");
    let (committed, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut last = 0;
                while !stop.load(Ordering::Relaxed) {
                    let at_least = committed.load(Ordering::SeqCst).max(last);
                    let view = overlay.view().expect("a view");
                    let got = KEYS.map(|key| view.get(key).expect("a get").map_or(0, |value| number(&value)));
                    let rows = view.scan(&KeyRange::all(), Order::Ascending);
                    let scanned: Vec<_> = rows.map(|row| number(&row.expect("a row").1)).collect();
                    assert!(got.iter().chain(&scanned).all(|one| *one == got[0]), "torn: {got:?}, {scanned:?}");
                    assert!(got[0] >= at_least, "{} after {at_least} was committed or seen", got[0]);
                    last = got[0];
                }
            });
        }
        for commit in 1..=COMMITS {
            let value = commit.to_be_bytes();
            let batch = KEYS.iter().fold(Batch::new(), |batch, key| batch.put(*key, value.as_slice()));
            assert_eq!(overlay.commit(batch), Ok(Committed::Applied(commit)));
            committed.store(commit, Ordering::SeqCst);
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(overlay.persist(), Ok(COMMITS));
}

#[test]
fn a_flushed_table_is_freed_once_nobody_reads_it() {
    // Every batch is a table.
    let overlay = Overlay::new(Arc::new(MemoryStore::new()), OverlayOptions::default().table_bytes_max(1));
    let overlay = overlay.expect("an overlay");
    let write = |value: &'static str| {
        let table = Arc::downgrade(&overlay.shared.published.load().active);
        overlay.commit(Batch::new().put(b"k".as_slice(), value.as_bytes())).expect("a commit");
        table
    };
    let until_freed = |table: Weak<Table>| {
        let freed = (0..60_000).any(|_| {
            std::thread::sleep(Duration::from_millis(1));
            table.strong_count() == 0
        });
        assert!(freed, "a flushed table is still in memory");
    };
    write("before");
    let kept = overlay.view().expect("a view");
    let of_view = write("first");
    let later = ["second", "third"].map(write);
    overlay.persist().expect("a flush");
    // From here on nothing is written, and an older table is still read.
    later.into_iter().for_each(until_freed);
    assert_eq!(kept.get(b"k").expect("a get").as_deref(), Some(b"before".as_slice()));
    assert!(of_view.strong_count() > 0);
    drop(kept);
    until_freed(of_view);
}
