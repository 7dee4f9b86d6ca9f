//! The journal of one process: batches, order, limits.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use statehouse_journal::{
    Consumer, EntryLog, JournalError, LocalJournal, LocalOptions, Ownership, Position, QueueFull, Queued, SegmentFiles,
    SegmentOptions,
};

const ID: u64 = 79;
const SHARD: u64 = 1;

/// A command: its submitter, and its number there.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Command {
    thread: u64,
    number: u64,
    bytes: usize,
}

impl Queued for Command {
    fn bytes(&self) -> usize {
        self.bytes
    }
}

fn command(thread: u64, number: u64) -> Command {
    Command { thread, number, bytes: 16 }
}

fn seal(commands: &[Command]) -> Vec<u8> {
    let words = commands.iter().flat_map(|command| [command.thread, command.number]);
    words.flat_map(u64::to_le_bytes).collect()
}

fn unseal(payload: &[u8]) -> Vec<(u64, u64)> {
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    payload.chunks_exact(16).map(|pair| (word(&pair[..8]), word(&pair[8..]))).collect()
}

/// Committed entries: their indexes and commands.
type Committed = Arc<Mutex<Vec<(u64, Vec<Command>)>>>;

/// Hears of commits, and can be held up in the middle of one.
struct Listener {
    committed: Committed,
    gate: Option<(Sender<()>, Receiver<()>)>,
}

impl Consumer<Command> for Listener {
    fn seal(&mut self, commands: &[Command]) -> Vec<u8> {
        if let Some((entered, leave)) = &self.gate {
            entered.send(()).unwrap();
            let _ = leave.recv();
        }
        seal(commands)
    }

    fn committed(&mut self, at: Position, payload: Vec<u8>, commands: Vec<Command>) {
        assert_eq!(payload, seal(&commands));
        self.committed.lock().unwrap().push((at.index, commands));
    }

    fn lost(&mut self, commands: Vec<Command>, _: bool, error: &JournalError) {
        assert!(commands.is_empty(), "{error}");
    }
}

struct Fixture {
    directory: tempfile::TempDir,
    files: Arc<SegmentFiles>,
    committed: Committed,
}

fn options() -> SegmentOptions {
    SegmentOptions::default().file_bytes_target(16 << 10)
}

fn fixture() -> Fixture {
    let directory = tempfile::tempdir().unwrap();
    let files = Arc::new(SegmentFiles::create(directory.path(), ID, &options()).unwrap());
    Fixture { directory, files, committed: Arc::default() }
}

impl Fixture {
    fn owner(&self) -> Ownership {
        let after = self.files.ends(SHARD).unwrap().last;
        Ownership { shard: SHARD, after, term: 1, node: 0, history: ID }
    }

    fn start(&self, options: &LocalOptions) -> LocalJournal<Command> {
        let consumer = Listener { committed: self.committed.clone(), gate: None };
        LocalJournal::start(self.files.clone(), self.owner(), options, consumer).unwrap()
    }

    /// A journal whose writer blocks in each `seal` until it is released.
    fn start_gated(&self, options: &LocalOptions) -> (LocalJournal<Command>, Receiver<()>, Sender<()>) {
        let (entered_send, entered) = channel();
        let (leave, leave_receive) = channel();
        let consumer = Listener { committed: self.committed.clone(), gate: Some((entered_send, leave_receive)) };
        let journal = LocalJournal::start(self.files.clone(), self.owner(), options, consumer).unwrap();
        (journal, entered, leave)
    }
}

#[test]
fn every_command_is_committed_once_in_the_order_of_its_thread_and_in_batches() {
    const THREADS: u64 = 8;
    const COMMANDS: u64 = 500;
    let fixture = fixture();
    let journal = fixture.start(&LocalOptions::default());
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let journal = &journal;
            scope.spawn(move || {
                for number in 0..COMMANDS {
                    journal.submit(command(thread, number)).unwrap();
                }
            });
        }
    });
    journal.close();
    assert_eq!(journal.failure(), None);

    let committed = std::mem::take(&mut *fixture.committed.lock().unwrap());
    let entry_count = committed.len() as u64;
    let mut next = BTreeMap::<u64, u64>::new();
    for (position, (index, commands)) in committed.into_iter().enumerate() {
        assert_eq!(index, position as u64 + 1, "entries are handed on in order (J5)");
        for command in commands {
            let expected = next.entry(command.thread).or_default();
            assert_eq!(command.number, *expected);
            *expected += 1;
        }
    }
    assert_eq!(next, (0..THREADS).map(|thread| (thread, COMMANDS)).collect());
    assert!(entry_count < THREADS * COMMANDS / 2, "{entry_count} entries: batches form");

    // The same is in the files.
    drop(journal);
    let Fixture { directory, files, .. } = fixture;
    drop(files);
    let files = SegmentFiles::open(directory.path(), ID, &options()).unwrap();
    assert_eq!(files.last_index(SHARD), Some(entry_count));
    let mut next = BTreeMap::<u64, u64>::new();
    for (entry, _) in files.read(SHARD, 1, usize::MAX).unwrap() {
        for (thread, number) in unseal(&entry.payload) {
            assert_eq!(number, *next.entry(thread).or_default());
            next.insert(thread, number + 1);
        }
    }
    assert_eq!(next, (0..THREADS).map(|thread| (thread, COMMANDS)).collect());
}

#[test]
fn commands_that_arrive_during_a_sync_share_the_next_entry() {
    let fixture = fixture();
    let (journal, entered, leave) = fixture.start_gated(&LocalOptions::default());
    journal.submit(command(0, 0)).unwrap();
    entered.recv().unwrap();
    for number in 1..=20 {
        journal.submit(command(0, number)).unwrap();
    }
    drop(leave);
    journal.close();
    let committed = fixture.committed.lock().unwrap();
    let counts: Vec<usize> = committed.iter().map(|(_, commands)| commands.len()).collect();
    assert_eq!(counts, [1, 20]);
}

#[test]
fn an_entry_takes_no_more_bytes_than_it_may_unless_one_command_does() {
    let fixture = fixture();
    let options = LocalOptions::default().entry_bytes_max(100);
    let (journal, entered, leave) = fixture.start_gated(&options);
    journal.submit(command(0, 0)).unwrap();
    entered.recv().unwrap();
    for (number, bytes) in [(1, 40), (2, 40), (3, 40), (4, 500), (5, 1)] {
        journal.submit(Command { thread: 0, number, bytes }).unwrap();
    }
    drop(leave);
    journal.close();
    let committed = fixture.committed.lock().unwrap();
    let counts: Vec<usize> = committed.iter().map(|(_, commands)| commands.len()).collect();
    assert_eq!(counts, [1, 2, 1, 1, 1]);
}

#[test]
fn a_full_queue_gives_the_command_back_and_names_the_bound() {
    let fixture = fixture();
    let options = LocalOptions::default().queue_commands_max(3).queue_bytes_max(100);
    let (journal, entered, leave) = fixture.start_gated(&options);
    journal.submit(command(0, 0)).unwrap();
    entered.recv().unwrap();
    let large = Command { thread: 0, number: 9, bytes: 101 };
    assert_eq!(journal.submit(large), Err((large, QueueFull::Bytes { bytes_max: 100 })));
    for number in 1..=3 {
        journal.submit(command(0, number)).unwrap();
    }
    let refused = journal.submit(command(0, 4));
    assert_eq!(refused, Err((command(0, 4), QueueFull::Commands { commands_max: 3 })));
    drop(leave);
    journal.close();
    assert_eq!(journal.submit(command(0, 5)), Err((command(0, 5), QueueFull::Closed)));
    let committed: Vec<Command> =
        fixture.committed.lock().unwrap().iter().flat_map(|(_, commands)| commands.clone()).collect();
    assert_eq!(committed, (0..=3).map(|number| command(0, number)).collect::<Vec<_>>());
}

#[test]
fn a_journal_at_its_size_takes_no_commands_until_it_is_cut() {
    let fixture = fixture();
    let payload = vec![7; 1000];
    for _ in 0..200 {
        fixture.files.append(SHARD, 1, &[&payload]).unwrap();
    }
    let journal = fixture.start(&LocalOptions::default().files_bytes_max(100_000));
    let refused = eventually(|| match journal.submit(command(0, 0)) {
        Err((_, full)) => Some(full),
        Ok(()) => None,
    });
    assert!(matches!(refused, QueueFull::JournalBytes { bytes } if bytes > 100_000), "{refused}");
    journal.cut(150);
    journal.cut(100);
    eventually(|| journal.submit(command(0, 1)).ok());
    journal.close();
    assert_eq!(fixture.files.first_index(SHARD), Some(150), "the farther of two cuts counts");
}

#[test]
fn a_consumer_that_panics_closes_the_journal() {
    struct Panics;
    impl Consumer<Command> for Panics {
        fn seal(&mut self, commands: &[Command]) -> Vec<u8> {
            seal(commands)
        }
        fn committed(&mut self, _: Position, _: Vec<u8>, _: Vec<Command>) {
            panic!("on purpose");
        }
        fn lost(&mut self, _: Vec<Command>, _: bool, _: &JournalError) {}
    }
    let fixture = fixture();
    let options = LocalOptions::default();
    let journal = LocalJournal::start(fixture.files.clone(), fixture.owner(), &options, Panics).unwrap();
    let refused = eventually(|| journal.submit(command(0, 0)).err());
    assert_eq!(refused.1, QueueFull::Closed);
}

/// Retries until there is an answer; the writer runs on its own thread.
fn eventually<T>(mut attempt: impl FnMut() -> Option<T>) -> T {
    for _ in 0..60_000 {
        if let Some(answer) = attempt() {
            return answer;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    panic!("nothing happened within a minute");
}
