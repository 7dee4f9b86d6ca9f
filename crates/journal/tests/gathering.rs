//! Appends of several threads become one call of the log below, and nobody is concerned by the others.

#![allow(clippy::unwrap_used)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use statehouse_journal::memory::{MemoryHabits, MemoryLog};
use statehouse_journal::{
    Append, Consumer, Ends, Entry, EntryKind, EntryLog, GatheringLog, JournalError, LocalJournal, LocalOptions,
    Ownership, Position, Queued, SegmentFiles, SegmentOptions, ShardId, Verified,
};

const HISTORY: u64 = 3;

/// A log that notes the shards of each call, and makes it when it is let.
struct Gate {
    log: MemoryLog,
    called: Sender<Vec<ShardId>>,
    go_on: Mutex<Receiver<()>>,
    panics: AtomicBool,
}

impl EntryLog for Gate {
    fn append_behind(&self, entries: &[Append<'_>]) -> Vec<Result<Position, JournalError>> {
        self.called.send(entries.iter().map(|entry| entry.shard).collect()).unwrap();
        self.go_on.lock().unwrap().recv().unwrap();
        assert!(!self.panics.swap(false, Ordering::SeqCst), "as it was told");
        self.log.append_behind(entries)
    }

    fn read(&self, shard: ShardId, first: u64, bytes_max: usize) -> Result<Vec<(Entry, Position)>, JournalError> {
        self.log.read(shard, first, bytes_max)
    }

    fn ends(&self, shard: ShardId) -> Result<Ends, JournalError> {
        self.log.ends(shard)
    }

    fn start_after(&self, shard: ShardId, at: Position, history: u64) -> Result<(), JournalError> {
        self.log.start_after(shard, at, history)
    }

    fn cut(&self, shard: ShardId, first_kept: u64) -> Result<(), JournalError> {
        self.log.cut(shard, first_kept)
    }

    fn bytes(&self) -> u64 {
        self.log.bytes()
    }

    fn kept_bytes(&self) -> u64 {
        self.log.kept_bytes()
    }

    fn settle(&self) -> Result<(), JournalError> {
        self.log.settle()
    }

    fn verify(&self) -> Result<Verified, JournalError> {
        self.log.verify()
    }
}

struct Gated {
    gate: Arc<Gate>,
    gathering: GatheringLog,
    called: Receiver<Vec<ShardId>>,
    go_on: Sender<()>,
}

fn gated() -> Gated {
    let ((called_send, called), (go_on, go_on_receive)) = (channel(), channel());
    let gate = Arc::new(Gate {
        log: MemoryLog::default(),
        called: called_send,
        go_on: Mutex::new(go_on_receive),
        panics: AtomicBool::new(false),
    });
    Gated { gathering: GatheringLog::new(gate.clone()), gate, called, go_on }
}

fn entry(shard: ShardId, after: Position, payload: &[u8]) -> Append<'_> {
    Append { shard, after, kind: EntryKind::COMMANDS, term: 1, node: 0, history: HISTORY, payload }
}

fn append(log: &GatheringLog, shard: ShardId, after: Position) -> Result<Position, JournalError> {
    log.append_behind(&[entry(shard, after, b"payload")]).remove(0)
}

/// Long enough for threads that were started to wait. If one is later than that, a test checks less.
fn let_others_wait() {
    std::thread::sleep(Duration::from_millis(50));
}

#[test]
fn an_append_that_is_alone_is_a_call_of_its_own() {
    let Gated { gathering, called, go_on, .. } = gated();
    for _ in 0..3 {
        go_on.send(()).unwrap();
        let after = gathering.ends(1).unwrap().last;
        let two = [entry(1, after, b"one"), entry(2, after, b"two")];
        gathering.append_behind(&two).into_iter().take(1).for_each(|answer| assert!(answer.is_ok()));
        assert_eq!(called.recv().unwrap(), [1, 2]);
    }
    let meter = gathering.meter();
    assert_eq!((meter.calls, meter.entries), (3, 6));
    assert!(gathering.append_behind(&[]).is_empty());
}

#[test]
fn appends_during_a_call_go_into_the_next_one_and_of_a_shard_one_at_a_time() {
    let Gated { gathering, called, go_on, .. } = gated();
    std::thread::scope(|scope| {
        // Dropped if an assertion fails, so that nobody waits for it then.
        let go_on = go_on;
        let spawn = |shard| {
            scope.spawn({
                let log = &gathering;
                move || append(log, shard, Position::START)
            })
        };
        let first = spawn(1);
        assert_eq!(called.recv().unwrap(), [1]);
        let others: Vec<_> = [2, 3, 4].into_iter().map(spawn).collect();
        let_others_wait();
        let twice = [spawn(2), spawn(2)];
        let_others_wait();
        go_on.send(()).unwrap();
        let mut together = called.recv().unwrap();
        together.sort_unstable();
        assert_eq!(together, [2, 3, 4]);
        go_on.send(()).unwrap();
        for _ in 0..2 {
            assert_eq!(called.recv().unwrap(), [2]);
            go_on.send(()).unwrap();
        }
        assert!(first.join().unwrap().is_ok());
        assert!(others.into_iter().all(|thread| thread.join().unwrap().is_ok()));
        let deposed = Err(JournalError::Deposed { shard: 2, after: Position::START });
        assert!(
            twice.into_iter().all(|thread| thread.join().unwrap() == deposed),
            "what was refused concerns nobody else"
        );
    });
    let meter = gathering.meter();
    assert_eq!((meter.calls, meter.entries), (4, 6));
}

/// Two shards that append again and again, each as soon as it is answered: without the moment they would take turns.
#[test]
fn those_of_the_last_call_are_waited_for_a_moment() {
    const ROUNDS: u64 = 200;
    let slow = MemoryLog::with_habits(MemoryHabits::default().delay(Duration::from_millis(1)));
    let gathering = GatheringLog::new(Arc::new(slow));
    std::thread::scope(|scope| {
        for shard in [1, 2] {
            let log = &gathering;
            scope.spawn(move || (0..ROUNDS).fold(Position::START, |after, _| append(log, shard, after).unwrap()));
        }
    });
    let meter = gathering.meter();
    assert_eq!(meter.entries, 2 * ROUNDS);
    assert!(meter.calls < ROUNDS * 3 / 2, "{meter:?}: they take turns");
    // Shard 2 has ended: shard 1 waits for it once, and then no more.
    let before = meter;
    let after = gathering.ends(1).unwrap().last;
    (0..10).fold(after, |after, _| append(&gathering, 1, after).unwrap());
    let meter = gathering.meter();
    assert_eq!(meter.calls, before.calls + 10);
    assert!(meter.in_vain <= before.in_vain + 1, "{before:?} and {meter:?}");
}

/// A shard that appends now and then is in a call with a busy one, which must not wait for it after each.
#[test]
fn a_shard_that_is_seldom_back_within_a_moment_is_not_waited_for() {
    let gathering = GatheringLog::new(Arc::new(MemoryLog::default()));
    let mut ends = [Position::START; 2];
    for _ in 0..5 {
        let both = [entry(1, ends[0], b"busy"), entry(2, ends[1], b"seldom")];
        for (end, at) in ends.iter_mut().zip(gathering.append_behind(&both)) {
            *end = at.unwrap();
        }
        // If shard 2 were expected, this would not begin at once.
        ends[0] = append(&gathering, 1, ends[0]).unwrap();
        // Longer than any moment, and on a busy machine longer still.
        std::thread::sleep(Duration::from_millis(20));
    }
    let meter = gathering.meter();
    assert_eq!((meter.calls, meter.in_vain), (10, 0));
}

#[test]
fn everybody_is_answered_when_the_log_below_panics() {
    let Gated { gate, gathering, called, go_on } = gated();
    std::thread::scope(|scope| {
        // Dropped if an assertion fails, so that nobody waits for it then.
        let go_on = go_on;
        let spawn = |shard| {
            let log = &gathering;
            scope.spawn(move || catch_unwind(AssertUnwindSafe(|| append(log, shard, Position::START))))
        };
        let first = spawn(1);
        assert_eq!(called.recv().unwrap(), [1]);
        let others: Vec<_> = [2, 3, 4].into_iter().map(spawn).collect();
        let_others_wait();
        go_on.send(()).unwrap();
        assert_eq!(called.recv().unwrap().len(), 3);
        gate.panics.store(true, Ordering::SeqCst);
        let last = spawn(5);
        let_others_wait();
        go_on.send(()).unwrap();
        assert_eq!(called.recv().unwrap(), [5]);
        go_on.send(()).unwrap();
        assert!(first.join().unwrap().unwrap().is_ok());
        let others: Vec<_> = others.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert_eq!(others.iter().filter(|answer| answer.is_err()).count(), 1, "who made the call");
        let answers = others.into_iter().flatten();
        assert!(answers.into_iter().all(|answer| answer.unwrap_err().may_be_appended()));
        assert!(last.join().unwrap().unwrap().is_ok(), "it goes on");
    });
}

struct Command;

impl Queued for Command {
    fn bytes(&self) -> usize {
        16
    }
}

struct Listener(Sender<Position>);

impl Consumer<Command> for Listener {
    fn seal(&mut self, commands: &[Command]) -> Vec<u8> {
        vec![7; commands.len()]
    }

    fn committed(&mut self, at: Position, _: Vec<u8>, _: Vec<Command>) {
        self.0.send(at).unwrap();
    }

    fn lost(&mut self, _: Vec<Command>, _: bool, error: &JournalError) {
        panic!("nothing fails: {error}");
    }
}

/// Eight journals on one set of files: they share syncs, and each has its own entries.
#[test]
fn journals_of_several_shards_share_syncs() {
    const SHARDS: u64 = 8;
    const COMMANDS: u64 = 300;
    let directory = tempfile::tempdir().unwrap();
    let files = SegmentFiles::create(directory.path(), HISTORY, &SegmentOptions::default()).unwrap();
    let log = Arc::new(GatheringLog::new(Arc::new(files)));
    std::thread::scope(|scope| {
        for shard in 0..SHARDS {
            let log = log.clone();
            scope.spawn(move || {
                let (heard, committed) = channel();
                let owner = Ownership { shard, after: Position::START, term: 1, node: 0, history: HISTORY };
                let journal =
                    LocalJournal::start(log.clone(), owner, &LocalOptions::default(), Listener(heard)).unwrap();
                for index in 1..=COMMANDS {
                    journal.submit(Command).map_err(|(_, full)| full).unwrap();
                    let at = committed.recv().unwrap();
                    assert_eq!(at.index, index);
                }
                assert_eq!(log.ends(shard).unwrap().last.index, COMMANDS);
            });
        }
    });
    let meter = log.meter();
    assert_eq!(meter.entries, SHARDS * COMMANDS);
    assert!(meter.calls < meter.entries, "{meter:?}");
    println!("{meter:?}");
    drop(log);
    let files = SegmentFiles::open(directory.path(), HISTORY, &SegmentOptions::default()).unwrap();
    assert_eq!(files.verify().unwrap().entries, SHARDS * COMMANDS);
}
