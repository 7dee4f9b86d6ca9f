//! After a failed sync a journal does nothing more (J4): nothing is retried, nobody is told "durable".

#![allow(clippy::unwrap_used)]

mod failing_disk;

use std::path::Path;
use std::sync::{Arc, Mutex};

use failing_disk::{Call, EIO, ENOSPC, FailingDisk, Plan};
use statehouse_journal::{
    Consumer, EntryLog, JournalError, LocalJournal, LocalOptions, Ownership, Position, QueueFull, Queued, SegmentFiles,
    SegmentOptions,
};

const ID: u64 = 78;
const SHARD: u64 = 1;

fn small() -> SegmentOptions {
    SegmentOptions::default().file_bytes_target(1 << 10)
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

    fn committed(&mut self, at: Position, _: Vec<u8>, commands: Vec<Number>) {
        let numbers = numbers(commands);
        self.0.lock().unwrap().push(Heard::Committed { index: at.index, numbers });
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
    let files = SegmentFiles::open(directory, ID, &small()).unwrap();
    files.verify().unwrap();
    let entries = files.read(SHARD, 1, usize::MAX).unwrap();
    let number = |payload: &[u8]| u64::from_le_bytes(payload.try_into().unwrap());
    entries.iter().map(|(entry, _)| number(&entry.payload)).collect()
}

/// A journal on an empty log.
fn start(files: SegmentFiles<FailingDisk>, heard: &Listener) -> LocalJournal<Number> {
    let options = LocalOptions::default();
    let owner = Ownership { shard: SHARD, after: Position::START, term: 1, node: 0, history: ID };
    LocalJournal::start(Arc::new(files), owner, &options, heard.clone()).unwrap()
}

fn run_until_failure(directory: &Path, fail_after: u64, count: u64) -> (Vec<Heard>, u64, Arc<Plan>, u64) {
    let (disk, plan) = FailingDisk::new();
    let files = SegmentFiles::create_on(disk, directory, ID, &small()).unwrap();
    let heard = Listener::default();
    let journal = start(files, &heard);
    plan.fail(Some(Call::Sync), fail_after - 1, count, EIO);
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

/// The failing sync is, in turn, of an append and of the watermark.
#[test]
fn a_failed_sync_stops_the_journal_and_is_never_retried() {
    let mut failed_appends = 0;
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
        // The batch that failed may be in the journal; one that came while it failed is not. If the watermark failed,
        // no batch did.
        let failed = acknowledged.len() as u64;
        let append_failed = lost.first().is_some_and(|(_, written)| *written);
        failed_appends += u64::from(append_failed);
        let expected: Vec<_> =
            (failed..taken).map(|number| (vec![number], append_failed && number == failed)).collect();
        assert_eq!(lost, expected);
        assert!(lost.len() <= 1 + usize::from(append_failed));

        // The acknowledged entries are there; the lost one may be.
        let recovered = recovered(directory.path());
        assert_eq!(recovered[..acknowledged.len()], acknowledged);
        assert!(recovered.len() <= acknowledged.len() + usize::from(append_failed), "{recovered:?}");
    }
    assert!((30..49).contains(&failed_appends), "{failed_appends} appends failed, the others were watermarks");
}

#[test]
fn a_disk_that_is_gone_for_good_does_not_take_the_process_down() {
    let directory = tempfile::tempdir().unwrap();
    let (heard, ..) = run_until_failure(directory.path(), 20, u64::MAX);
    assert!(heard.len() > 10);

    let directory = tempfile::tempdir().unwrap();
    let (disk, plan) = FailingDisk::new();
    let files = SegmentFiles::create_on(disk, directory.path(), ID, &small()).unwrap();
    files.append(SHARD, 1, &[&7_u64.to_le_bytes()]).unwrap();
    plan.fail(None, 0, u64::MAX, EIO);
    drop(files);
    assert_eq!(recovered(directory.path()), [7]);
}

#[test]
fn every_shard_of_a_journal_that_failed_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (disk, plan) = FailingDisk::new();
    let files = SegmentFiles::create_on(disk, directory.path(), ID, &small()).unwrap();
    files.append(1, 1, &[b"kept"]).unwrap();
    files.append(2, 1, &[b"kept"]).unwrap();
    plan.fail(Some(Call::Sync), 0, 1, EIO);
    assert!(matches!(files.append(1, 1, &[b"lost"]), Err(JournalError::Io { .. })));
    let poisoned = |result| assert!(matches!(result, Err(JournalError::Poisoned { .. })));
    poisoned(files.append(1, 1, &[b"never"]).map(|_| ()));
    poisoned(files.append(2, 1, &[b"never"]).map(|_| ()));
    poisoned(files.settle());
    // Durable entries can still be read.
    assert_eq!(files.read(2, 1, 1000).unwrap().len(), 1);
    assert_eq!(files.last_index(1), Some(1), "what failed is not shown");
}

/// Files that cannot be removed or renamed take space and nothing else.
#[test]
fn a_journal_that_cannot_delete_files_goes_on() {
    for deletes in 0..5 {
        let directory = tempfile::tempdir().unwrap();
        let (disk, plan) = FailingDisk::new();
        let files = SegmentFiles::create_on(disk, directory.path(), ID, &small()).unwrap();
        for number in 0..100_u64 {
            files.append(SHARD, 1, &[&number.to_le_bytes()]).unwrap();
        }
        let names = || std::fs::read_dir(directory.path().join("segments")).unwrap().count();
        let before = names();
        assert!(before > 10);
        plan.fail(Some([Call::Remove, Call::Rename][deletes % 2]), deletes as u64 / 2, u64::MAX, EIO);
        files.cut(SHARD, 100).unwrap();
        assert_eq!(files.append(SHARD, 1, &[&100_u64.to_le_bytes()]), Ok(101));
        drop(files);
        plan.heal();
        let files = SegmentFiles::open(directory.path(), ID, &small()).unwrap();
        assert_eq!((files.first_index(SHARD), files.last_index(SHARD)), (Some(100), Some(101)));
        files.verify().unwrap();
        assert!(names() < before / 2, "what was left is removed when the journal is opened");
        assert_eq!(files.append(SHARD, 1, &[b"next"]), Ok(102));
    }
}

/// Commands that find no space are not applied, and the journal goes on as soon as there is space (J4 is not concerned).
#[test]
fn a_full_disk_refuses_commands_and_does_not_stop_the_journal() {
    let directory = tempfile::tempdir().unwrap();
    let (disk, plan) = FailingDisk::new();
    let files = SegmentFiles::create_on(disk, directory.path(), ID, &small()).unwrap();
    let heard = Listener::default();
    let journal = start(files, &heard);
    let heard_of = |number: u64| {
        journal.submit(Number(number)).map_err(|(_, full)| full).unwrap();
        loop {
            let heard = heard.0.lock().unwrap();
            if heard.iter().map(Heard::count).sum::<usize>() as u64 > number {
                return matches!(heard.last(), Some(Heard::Committed { .. }));
            }
            drop(heard);
            std::thread::yield_now();
        }
    };
    assert!(heard_of(0));
    plan.fail(Some(Call::Allocate), 0, u64::MAX, ENOSPC);
    let refused = (1..1000).find(|number| !heard_of(*number)).expect("the files are full at some time");
    assert!(refused > 5, "what was reserved was used: {refused}");
    assert_eq!(heard.0.lock().unwrap().last(), Some(&Heard::Lost { numbers: vec![refused], written: false }));
    assert!(!heard_of(refused + 1));
    assert_eq!(journal.failure(), None);
    plan.heal();
    assert!(heard_of(refused + 2));
    journal.close();
    assert_eq!(journal.failure(), None);
    drop(journal);
    let committed: Vec<u64> = (0..refused).chain([refused + 2]).collect();
    assert_eq!(recovered(directory.path()), committed);
}
