//! Every call to the disk fails in turn: nothing acknowledged is lost, a lack of space is survived, and a failed write or
//! sync stops the journal until it is opened again (J1, J4).

#![allow(clippy::unwrap_used)]

mod failing_disk;

use std::path::Path;
use std::sync::Arc;

use failing_disk::{Call, EIO, EMFILE, ENOSPC, FailingDisk, Plan};
use statehouse_journal::{Append, Disk, EntryKind, EntryLog, JournalError, SegmentFiles, SegmentOptions};

const ID: u64 = 81;
const SHARDS: [u64; 2] = [1, 2];

fn options() -> SegmentOptions {
    SegmentOptions::default().file_bytes_target(1 << 10)
}

fn payload(shard: u64, index: u64) -> Vec<u8> {
    format!("entry {index} of shard {shard}; ").repeat(1 + usize::try_from(index).unwrap() % 9).into_bytes()
}

/// What the journal has acknowledged, and what may be there beyond.
#[derive(Default)]
struct Promised {
    acknowledged: [u64; 2],
    attempted: [u64; 2],
    first_kept: [u64; 2],
}

impl Promised {
    fn check(&self, files: &SegmentFiles<impl Disk>, at: &str) {
        for (position, shard) in SHARDS.into_iter().enumerate() {
            let last = files.last_index(shard).unwrap_or(0);
            let range = self.acknowledged[position]..=self.attempted[position];
            assert!(range.contains(&last), "{at}: shard {shard} ends at {last}, promised is {range:?}");
            let first = files.first_index(shard).unwrap_or(1);
            assert!(first <= self.first_kept[position].max(1), "{at}: shard {shard} starts at {first}");
            for index in first..=last {
                // The call that fails may be this one.
                let read = files.read(shard, index, 0).or_else(|_| files.read(shard, index, 0)).unwrap();
                assert_eq!(read[0].0.payload, payload(shard, index), "{at}");
            }
        }
    }
}

struct Run<'a> {
    disk: Arc<FailingDisk>,
    errno: i32,
    plan: &'a Plan,
    directory: &'a Path,
    promised: Promised,
    /// How often the journal was opened again, and how often it went on without.
    reopened: u64,
    went_on: u64,
}

type Files = SegmentFiles<FailingDisk>;

impl Run<'_> {
    /// Tries until it succeeds: one call fails, so the second attempt must not.
    fn open(&mut self) -> Files {
        for _ in 0..2 {
            let opened = SegmentFiles::open_on(self.disk.clone(), self.directory, ID, &options());
            let opened = opened.or_else(|error| match self.promised.attempted {
                [0, 0] => SegmentFiles::create_on(self.disk.clone(), self.directory, ID, &options()),
                _ => Err(error),
            });
            if let Ok(files) = opened {
                self.promised.check(&files, "opened");
                for (position, shard) in SHARDS.into_iter().enumerate() {
                    let last = files.last_index(shard).unwrap_or(0);
                    self.promised.acknowledged[position] = last;
                    self.promised.attempted[position] = last;
                }
                return files;
            }
        }
        panic!("{:?}: it does not open once nothing fails any more", self.plan.failed());
    }

    /// Does something, and if it fails as it may, does it again: at once if the journal goes on, else after opening it.
    fn attempt<T>(
        &mut self,
        files: &mut Option<Files>,
        mut attempt: impl FnMut(&mut Self, &Files) -> Result<T, JournalError>,
    ) {
        for _ in 0..2 {
            let open = match files.take() {
                Some(open) => open,
                None => self.open(),
            };
            let result = attempt(self, &open);
            let failed = self.plan.failed();
            match result {
                Ok(_) => {
                    *files = Some(open);
                    return;
                }
                Err(JournalError::NoSpace { reason }) => {
                    assert!(!failed.last().unwrap().is_fatal(self.errno), "{failed:?}: {reason}");
                    self.went_on += 1;
                    *files = Some(open);
                }
                Err(error) => {
                    let is_named = matches!(error, JournalError::Io { .. } | JournalError::Poisoned { .. });
                    assert!(is_named, "{failed:?}: {error}");
                    let lacked_room = failed.last() == Some(&Call::Write) && self.errno == ENOSPC;
                    assert!(!lacked_room, "a lack of space has stopped it: {failed:?}: {error}");
                    if failed.last().unwrap().is_fatal(self.errno) {
                        let next = open.append(1, 1, &[b"never"]);
                        assert!(matches!(next, Err(JournalError::Poisoned { .. })), "{failed:?}: {next:?}");
                    }
                    self.reopened += 1;
                    drop(open);
                }
            }
        }
        panic!("{:?}: it fails although nothing fails any more", self.plan.failed());
    }

    fn append(&mut self, files: &mut Option<Files>, shard: u64, count: u64) {
        let position = usize::try_from(shard - 1).unwrap();
        self.attempt(files, |run, files| {
            let first = files.last_index(shard).unwrap_or(0) + 1;
            let payloads: Vec<Vec<u8>> = (first..first + count).map(|index| payload(shard, index)).collect();
            let borrowed: Vec<&[u8]> = payloads.iter().map(Vec::as_slice).collect();
            run.promised.attempted[position] = first + count - 1;
            let appended = files.append(shard, 1, &borrowed);
            match &appended {
                Ok(index) => {
                    assert_eq!(*index, first);
                    run.promised.acknowledged[position] = first + count - 1;
                }
                // Nothing was written.
                Err(JournalError::NoSpace { .. }) => run.promised.attempted[position] = first - 1,
                Err(_) => {}
            }
            appended.map(|_| ())
        });
    }

    /// One entry of each shard, in one call: both are there, or neither is.
    fn append_to_both(&mut self, files: &mut Option<Files>) {
        self.attempt(files, |run, files| {
            let lasts = SHARDS.map(|shard| files.ends(shard).unwrap().last);
            let payloads = [0, 1].map(|position| payload(SHARDS[position], lasts[position].index + 1));
            let entries = [0, 1].map(|position| Append {
                shard: SHARDS[position],
                after: lasts[position],
                kind: EntryKind::COMMANDS,
                term: 1,
                node: 0,
                history: ID,
                payload: &payloads[position],
            });
            let before = lasts.map(|last| last.index);
            run.promised.attempted = before.map(|last| last + 1);
            let answers: Result<Vec<_>, _> = files.append_behind(&entries).into_iter().collect();
            match &answers {
                Ok(_) => run.promised.acknowledged = before.map(|last| last + 1),
                // Nothing was written.
                Err(JournalError::NoSpace { .. }) => run.promised.attempted = before,
                Err(_) => {}
            }
            answers
        });
    }

    fn work(&mut self) {
        let mut files = Some(self.open());
        for round in 0..16 {
            self.append(&mut files, 1, 1 + round % 3);
            // Without it, the next segment is made by an append.
            if round < 2 {
                self.attempt(&mut files, |_, files| files.upkeep());
            }
            if round % 4 == 0 {
                self.append(&mut files, 2, 1);
            }
            if round % 5 == 1 {
                self.append_to_both(&mut files);
            }
            if round % 8 == 7 {
                let first_kept = self.promised.acknowledged[0] - 1;
                self.promised.first_kept[0] = first_kept;
                self.attempt(&mut files, |_, files| files.cut(1, first_kept));
                let first_kept = self.promised.acknowledged[1];
                self.promised.first_kept[1] = first_kept;
                self.attempt(&mut files, |_, files| files.cut(2, first_kept));
            }
            if round == 6 {
                files = None;
            }
            if round % 3 == 0 {
                self.attempt(&mut files, |_, files| files.settle());
            }
        }
    }
}

#[test]
fn whichever_call_fails_once_nothing_is_lost_and_work_goes_on() {
    let run = |directory: &Path, fail: Option<(u64, i32)>| {
        let (disk, plan) = FailingDisk::new();
        if let Some((after, errno)) = fail {
            plan.fail(None, after, 1, errno);
        }
        let errno = fail.map_or(0, |(_, errno)| errno);
        let mut run =
            Run { disk, errno, plan: &plan, directory, promised: Promised::default(), reopened: 0, went_on: 0 };
        run.work();
        let files = SegmentFiles::open(directory, ID, &options()).unwrap();
        run.promised.check(&files, "at the end");
        files.verify().unwrap();
        let counts = (run.reopened, run.went_on);
        (plan.calls(), plan.failed(), counts)
    };
    let healthy = tempfile::tempdir().unwrap();
    let (calls, failed, counts) = run(healthy.path(), None);
    assert!(calls > 100 && failed.is_empty() && counts == (0, 0), "{calls} calls");
    let (mut kinds, mut reopened, mut went_on) = (Vec::new(), 0, 0);
    for errno in [EIO, ENOSPC] {
        for after in 0..calls {
            let directory = tempfile::tempdir().unwrap();
            let (_, failed, counts) = run(directory.path(), Some((after, errno)));
            kinds.extend(failed);
            reopened += counts.0;
            went_on += counts.1;
        }
    }
    println!("{calls} calls: the journal was opened again {reopened} times and went on {went_on} times");
    use Call::*;
    for kind in [Create, Open, Read, Write, Allocate, Sync, SyncDirectory, Rename, List] {
        assert!(kinds.contains(&kind), "{kind:?} never failed");
    }
    assert!(reopened > 50 && went_on > 0);
}

/// On a full disk the journal goes on in what it has, refuses by name when that is full, and takes entries again when
/// there is space, without being opened again.
#[test]
fn a_full_disk_is_survived() {
    for (call, errno) in [(Call::Allocate, ENOSPC), (Call::Create, EMFILE), (Call::Allocate, 122)] {
        let directory = tempfile::tempdir().unwrap();
        let (disk, plan) = FailingDisk::new();
        let files = SegmentFiles::create_on(disk.clone(), directory.path(), ID, &options()).unwrap();
        files.append(1, 1, &[&payload(1, 1)]).unwrap();
        plan.fail(Some(call), 0, u64::MAX, errno);
        let mut last = 1;
        let error = loop {
            match files.append(1, 1, &[&payload(1, last + 1)]) {
                Ok(index) => last = index,
                Err(error) => break error,
            }
            files.upkeep().unwrap();
        };
        assert!(matches!(error, JournalError::NoSpace { .. }), "{error}");
        assert!(last > 5, "what was reserved was used: {last}");
        // The watermark needs no space, and reads none.
        files.settle().unwrap();
        files.verify().unwrap();
        assert!(matches!(files.append(1, 1, &[&payload(1, last + 1)]), Err(JournalError::NoSpace { .. })));
        drop(files);
        // Neither does an open.
        let files = SegmentFiles::open_on(disk, directory.path(), ID, &options()).unwrap();
        assert_eq!(files.last_index(1), Some(last));
        assert!(matches!(files.append(1, 1, &[&payload(1, last + 1)]), Err(JournalError::NoSpace { .. })));
        // A cut makes room by itself.
        files.cut(1, last).unwrap();
        assert_eq!(files.append(1, 1, &[&payload(1, last + 1)]), Ok(last + 1));
        plan.heal();
        for index in last + 2..last + 50 {
            assert_eq!(files.append(1, 1, &[&payload(1, index)]), Ok(index));
        }
        files.verify().unwrap();
    }
}

/// Some file systems lack space even for what they had reserved. A batch of which only a part was written is not in the
/// journal, wherever the next one goes and whenever the process ends.
#[test]
fn a_write_without_space_is_refused_and_leaves_nothing_to_be_read() {
    // The write fails; or the attempt to withdraw it as well.
    for failures in [1, 2] {
        for next_bytes in [None, Some(10), Some(5_000)] {
            let at = format!("{failures} writes failed, then an entry of {next_bytes:?} bytes");
            let directory = tempfile::tempdir().unwrap();
            let (disk, plan) = FailingDisk::new();
            let files = SegmentFiles::create_on(disk.clone(), directory.path(), ID, &options()).unwrap();
            for index in 1..=3 {
                assert_eq!(files.append(1, 1, &[b"before"]), Ok(index), "{at}");
            }
            plan.fail(Some(Call::Write), 0, failures, ENOSPC);
            let refused = files.append(1, 1, &[&[7; 300]]);
            assert!(matches!(refused, Err(JournalError::NoSpace { .. })), "{at}: {refused:?}");
            assert_eq!(plan.failed().len() as u64, failures);
            let mut last = 3;
            if let Some(bytes) = next_bytes {
                assert_eq!(files.append(1, 1, &[&vec![8; bytes]]), Ok(4), "{at}");
                last = 4;
            }
            files.verify().unwrap();
            drop(files);
            let files = SegmentFiles::open_on(disk, directory.path(), ID, &options()).unwrap();
            assert_eq!(files.last_index(1), Some(last), "{at}");
            let entries = files.read(1, 1, usize::MAX).unwrap();
            assert!(entries.iter().all(|(entry, _)| !entry.payload.contains(&7)), "{at}");
            assert_eq!(files.append(1, 1, &[b"after"]), Ok(last + 1), "{at}");
            files.verify().unwrap();
        }
    }
}

/// The watermark's files are written in place. Where even that lacks space, it is written later, and segments that nothing
/// needs are freed then, not before.
#[test]
fn a_watermark_without_space_is_written_later() {
    for failures in [1, 2, 5] {
        let directory = tempfile::tempdir().unwrap();
        let (disk, plan) = FailingDisk::new();
        let files = SegmentFiles::create_on(disk.clone(), directory.path(), ID, &options()).unwrap();
        for index in 1..=40 {
            assert_eq!(files.append(1, 1, &[&payload(1, index)]), Ok(index));
            files.upkeep().unwrap();
        }
        let before = files.bytes();
        plan.fail(Some(Call::Write), 0, failures, ENOSPC);
        let mut attempts = 0;
        let mut attempt = files.cut(1, 40);
        while let Err(error) = attempt {
            assert!(matches!(error, JournalError::NoSpace { .. }), "{error}");
            assert_eq!(files.bytes(), before, "nothing is freed while a file may still name it");
            attempts += 1;
            attempt = files.settle();
        }
        assert_eq!(attempts, failures);
        assert!(files.bytes() < before, "{failures} failures");
        assert_eq!(files.append(1, 1, &[&payload(1, 41)]), Ok(41));
        files.verify().unwrap();
        drop(files);
        let files = SegmentFiles::open_on(disk, directory.path(), ID, &options()).unwrap();
        assert_eq!((files.first_index(1), files.last_index(1)), (Some(40), Some(41)));
        files.verify().unwrap();
    }
}

/// While a refused batch cannot be withdrawn, nothing is appended; a sync that fails there stops the journal.
#[test]
fn nothing_is_appended_before_a_refused_batch_is_withdrawn() {
    let directory = tempfile::tempdir().unwrap();
    let (disk, plan) = FailingDisk::new();
    let files = SegmentFiles::create_on(disk, directory.path(), ID, &options()).unwrap();
    files.append(1, 1, &[b"before"]).unwrap();
    plan.fail(Some(Call::Write), 0, u64::MAX, ENOSPC);
    for _ in 0..3 {
        assert!(matches!(files.append(1, 1, &[b"refused"]), Err(JournalError::NoSpace { .. })));
    }
    assert_eq!(plan.failed().len(), 4, "one batch, and three attempts to withdraw it");
    plan.fail(Some(Call::Sync), 0, 1, EIO);
    assert!(matches!(files.append(1, 1, &[b"refused"]), Err(JournalError::Io { .. })));
    assert!(matches!(files.append(1, 1, &[b"never"]), Err(JournalError::Poisoned { .. })));
    drop(files);
    let files = SegmentFiles::open(directory.path(), ID, &options()).unwrap();
    assert_eq!(files.last_index(1), Some(1));
}
