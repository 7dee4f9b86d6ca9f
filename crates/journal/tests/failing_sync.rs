//! After a failed sync a journal does nothing more (J4): nothing is retried, nobody is told "durable".

#![allow(clippy::unwrap_used)]

mod failing_disk;

use std::path::Path;
use std::sync::{Arc, Mutex};

use failing_disk::{FailingDisk, Plan};
use statehouse_journal::{
    Consumer, EngineFiles, EngineOptions, EntryFiles, JournalError, LocalJournal, LocalOptions, QueueFull, Queued,
};

const ID: u64 = 78;
const SHARD: u64 = 1;

fn small() -> EngineOptions {
    EngineOptions::default().file_bytes_target(1 << 10)
}

struct Number(u64);

impl Queued for Number {
    fn bytes(&self) -> usize {
        8
    }
}

#[derive(Debug, PartialEq)]
enum Heard {
    Committed { index: u64, numbers: Vec<u64> },
    Lost { numbers: Vec<u64>, written: bool },
}

#[derive(Clone, Default)]
struct Listener(Arc<Mutex<Vec<Heard>>>);

fn numbers(commands: Vec<Number>) -> Vec<u64> {
    commands.into_iter().map(|command| command.0).collect()
}

impl Consumer<Number> for Listener {
    fn seal(&mut self, commands: &[Number]) -> Vec<u8> {
        commands.iter().flat_map(|command| command.0.to_le_bytes()).collect()
    }

    fn committed(&mut self, index: u64, _: Vec<u8>, commands: Vec<Number>) {
        let numbers = numbers(commands);
        self.0.lock().unwrap().push(Heard::Committed { index, numbers });
    }

    fn lost(&mut self, commands: Vec<Number>, written: bool, _: &JournalError) {
        let numbers = numbers(commands);
        self.0.lock().unwrap().push(Heard::Lost { numbers, written });
    }
}

/// Submits numbers one by one until the journal is closed; the numbers it took.
fn submit_until_closed(journal: &LocalJournal<Number>, heard: &Listener) -> u64 {
    for number in 0.. {
        match journal.submit(Number(number)) {
            Ok(()) => {}
            Err((_, QueueFull::Closed)) => return number,
            Err((_, other)) => panic!("{other}"),
        }
        // One at a time, so that every entry holds one number.
        while heard.0.lock().unwrap().iter().map(Heard::count).sum::<usize>() as u64 <= number {
            std::thread::yield_now();
        }
    }
    unreachable!()
}

impl Heard {
    fn count(&self) -> usize {
        match self {
            Self::Committed { numbers, .. } | Self::Lost { numbers, .. } => numbers.len(),
        }
    }
}

fn recovered(directory: &Path) -> Vec<u64> {
    let files = EngineFiles::open(directory, ID, &small()).unwrap();
    files.verify().unwrap();
    let entries = files.read(SHARD, 1, usize::MAX).unwrap();
    let number = |payload: &[u8]| u64::from_le_bytes(payload.try_into().unwrap());
    entries.iter().map(|entry| number(&entry.payload)).collect()
}

fn run_until_failure(directory: &Path, fail_after: u64, count: u64) -> (Vec<Heard>, u64, Arc<Plan>, u64) {
    let (disk, plan) = FailingDisk::new(count);
    let files = EngineFiles::create_on(disk, directory, ID, &small()).unwrap();
    let heard = Listener::default();
    let journal = LocalJournal::start(Arc::new(files), SHARD, &LocalOptions::default(), heard.clone()).unwrap();
    plan.fail_after(fail_after);
    let taken = submit_until_closed(&journal, &heard);
    let syncs = plan.syncs();
    assert!(journal.failure().is_some());
    let (_, full) = journal.submit(Number(taken)).err().unwrap();
    assert_eq!(full, QueueFull::Closed);
    journal.close();
    drop(journal);
    let heard = std::mem::take(&mut *heard.0.lock().unwrap());
    (heard, taken, plan, syncs)
}

/// The failing sync is, in turn, of an append, of a file that is rolled, and of the watermark.
#[test]
fn a_failed_sync_stops_the_journal_and_is_never_retried() {
    for fail_after in 1..50 {
        let directory = tempfile::tempdir().unwrap();
        let (heard, taken, plan, syncs) = run_until_failure(directory.path(), fail_after, 1);
        assert_eq!(plan.syncs(), syncs, "no file was synced after the failure, not even to close it");

        let mut acknowledged = Vec::new();
        let mut lost = Vec::new();
        for heard in heard {
            match heard {
                Heard::Committed { index, numbers } => {
                    assert!(lost.is_empty(), "nothing is committed after the failure");
                    assert_eq!(index, acknowledged.len() as u64 + 1);
                    acknowledged.extend(numbers);
                }
                Heard::Lost { numbers, written } if !numbers.is_empty() => lost.push((numbers, written)),
                Heard::Lost { .. } => {}
            }
        }
        // The batch that failed may be in the journal; one that came while it failed is not.
        let failed = acknowledged.len() as u64;
        let expected: Vec<_> = (failed..taken).map(|number| (vec![number], number == failed)).collect();
        assert_eq!(lost, expected);
        assert!((1..=2).contains(&lost.len()));

        // The acknowledged entries are there; the lost one may be.
        let recovered = recovered(directory.path());
        assert_eq!(recovered[..acknowledged.len()], acknowledged);
        assert!(recovered.len() <= acknowledged.len() + 1, "{recovered:?}");
    }
}

/// The engine below panics at each failed sync, even when it closes its files: two panics at once would abort the
/// process.
#[test]
fn a_disk_that_is_gone_for_good_does_not_take_the_process_down() {
    let directory = tempfile::tempdir().unwrap();
    let (heard, ..) = run_until_failure(directory.path(), 20, u64::MAX);
    assert!(heard.len() > 10);

    let directory = tempfile::tempdir().unwrap();
    let (disk, plan) = FailingDisk::new(u64::MAX);
    let files = EngineFiles::create_on(disk, directory.path(), ID, &small()).unwrap();
    files.append(SHARD, 1, &[&7_u64.to_le_bytes()]).unwrap();
    plan.fail_after(1);
    drop(files);
    assert_eq!(recovered(directory.path()), [7]);
}

#[test]
fn every_shard_of_a_journal_that_failed_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (disk, plan) = FailingDisk::new(1);
    let files = EngineFiles::create_on(disk, directory.path(), ID, &small()).unwrap();
    files.append(1, 1, &[b"kept"]).unwrap();
    files.append(2, 1, &[b"kept"]).unwrap();
    plan.fail_after(1);
    assert!(matches!(files.append(1, 1, &[b"lost"]), Err(JournalError::Io { .. })));
    let poisoned = |result| assert!(matches!(result, Err(JournalError::Poisoned { .. })));
    poisoned(files.append(1, 1, &[b"never"]).map(|_| ()));
    poisoned(files.append(2, 1, &[b"never"]).map(|_| ()));
    poisoned(files.sync_watermark());
    // Durable entries can still be read.
    assert_eq!(files.read(2, 1, 1000).unwrap().len(), 1);
    assert_eq!(files.last_index(1), Some(1), "what failed is not shown");
}

#[test]
fn a_journal_that_fails_amid_deleting_files_opens_again() {
    for deletes in 0..5 {
        let directory = tempfile::tempdir().unwrap();
        let (disk, plan) = FailingDisk::new(1);
        let files = EngineFiles::create_on(disk, directory.path(), ID, &small()).unwrap();
        for number in 0..50_u64 {
            files.append(SHARD, 1, &[&number.to_le_bytes()]).unwrap();
        }
        plan.fail_deletes_after(deletes);
        assert!(files.cut(SHARD, 50).is_err());
        assert!(matches!(files.append(SHARD, 1, &[b"never"]), Err(JournalError::Poisoned { .. })));
        drop(files);
        let files = EngineFiles::open(directory.path(), ID, &small()).unwrap();
        assert_eq!(files.last_index(SHARD), Some(50));
        files.verify().unwrap();
        files.cut(SHARD, 50).unwrap();
        assert_eq!(files.append(SHARD, 1, &[b"next"]), Ok(51));
    }
}
