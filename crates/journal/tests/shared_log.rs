//! A journal on a log that others append to, and that loses answers or its end. The journal says of commands that failed
//! whether they may be in the log, and stops.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use statehouse_journal::memory::{MemoryHabits, MemoryLog};
use statehouse_journal::{
    Append, Consumer, EntryKind, EntryLog, JournalError, LocalJournal, LocalOptions, Ownership, Position, QueueFull,
    Queued, ShardId,
};

const SHARD: ShardId = 1;
/// A journal that does not say anything for so long does not stop when it must.
const PATIENCE: Duration = Duration::from_secs(20);
const HISTORY: u64 = 9;
/// A shard that nobody looks at.
const OTHER: ShardId = 2;

struct Number(u8);

impl Queued for Number {
    fn bytes(&self) -> usize {
        1
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Heard {
    Committed { index: u64, numbers: Vec<u8> },
    Lost { numbers: Vec<u8>, written: bool, error: JournalError },
}

/// Tells what it hears. It seals an entry only when it is let.
struct Listener {
    heard: Sender<Heard>,
    sealing: Sender<()>,
    go_on: Receiver<()>,
}

fn numbers(commands: &[Number]) -> Vec<u8> {
    commands.iter().map(|command| command.0).collect()
}

impl Consumer<Number> for Listener {
    fn seal(&mut self, commands: &[Number]) -> Vec<u8> {
        self.sealing.send(()).unwrap();
        let _ = self.go_on.recv();
        numbers(commands)
    }

    fn committed(&mut self, at: Position, payload: Vec<u8>, commands: Vec<Number>) {
        assert_eq!(payload, numbers(&commands));
        self.heard.send(Heard::Committed { index: at.index, numbers: payload }).unwrap();
    }

    fn lost(&mut self, commands: Vec<Number>, written: bool, error: &JournalError) {
        let lost = Heard::Lost { numbers: numbers(&commands), written, error: error.clone() };
        self.heard.send(lost).unwrap();
    }
}

/// An owner of the shard, with its journal.
struct Owner {
    heard: Receiver<Heard>,
    sealing: Receiver<()>,
    go_on: Sender<()>,
    /// Dropped last: it waits for its writer, which waits for `go_on` when a test fails in between.
    journal: LocalJournal<Number>,
}

impl Owner {
    fn start(log: &MemoryLog, after: Position) -> Self {
        let ((heard_send, heard), (sealing_send, sealing), (go_on, go_on_receive)) = (channel(), channel(), channel());
        let listener = Listener { heard: heard_send, sealing: sealing_send, go_on: go_on_receive };
        let options = LocalOptions::default();
        let owner = Ownership { shard: SHARD, after, term: 1, node: 3, history: HISTORY };
        let journal = LocalJournal::start(Arc::new(log.clone()), owner, &options, listener).unwrap();
        Self { heard, sealing, go_on, journal }
    }

    fn hear(&self) -> Heard {
        self.heard.recv_timeout(PATIENCE).unwrap()
    }

    fn submit(&self, number: u8) {
        self.journal.submit(Number(number)).map_err(|(_, full)| full).unwrap();
    }

    /// Submits a command, and another while the first one's entry is made; what is heard of the first one.
    fn submit_two(&self, first: u8, second: u8) -> Heard {
        self.submit(first);
        self.sealing.recv().unwrap();
        self.submit(second);
        self.go_on.send(()).unwrap();
        self.hear()
    }

    fn commit(&self, number: u8) -> Heard {
        self.submit(number);
        self.sealing.recv().unwrap();
        self.go_on.send(()).unwrap();
        self.hear()
    }

    /// The journal has stopped with this error: what waited is lost and was not written, and nothing is taken any more.
    fn assert_stopped(self, waited: &[u8], expected: &JournalError) {
        let lost = Heard::Lost { numbers: waited.to_vec(), written: false, error: expected.clone() };
        assert_eq!(self.hear(), lost);
        assert_eq!(self.journal.failure().as_ref(), Some(expected));
        let refused = self.journal.submit(Number(99)).map_err(|(_, full)| full);
        assert_eq!(refused, Err(QueueFull::Closed));
        self.journal.close();
        assert_eq!(self.heard.try_recv().ok(), None, "nothing is heard after that");
    }
}

fn last(log: &MemoryLog) -> Position {
    log.ends(SHARD).unwrap().last
}

/// The commands in the log, in order.
fn logged(log: &MemoryLog) -> Vec<u8> {
    log.read(SHARD, 1, usize::MAX).unwrap().into_iter().flat_map(|(entry, _)| entry.payload).collect()
}

fn committed(index: u64, number: u8) -> Heard {
    Heard::Committed { index, numbers: vec![number] }
}

fn lost(number: u8, written: bool, error: &JournalError) -> Heard {
    Heard::Lost { numbers: vec![number], written, error: error.clone() }
}

/// What becomes of an append that is not answered, in the order in which a log in memory has them.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Appended,
    Lost,
    Late,
}

/// An owner whose second append was not answered, and what it left.
fn stopped_without_answer(fate: Fate) -> (MemoryLog, Position) {
    // With every second append unanswered, a late one is carried out by the second call after it.
    let log = MemoryLog::with_habits(MemoryHabits::default().unanswered_one_in(2).late_by_calls(2));
    for _ in 0..2 * fate as u64 {
        let after = log.ends(OTHER).unwrap().last;
        let kind = EntryKind::COMMANDS;
        let other = Append { shard: OTHER, after, kind, term: 1, node: 0, history: HISTORY, payload: b"" };
        let _ = log.append_behind(&[other]);
    }
    let owner = Owner::start(&log, Position::START);
    assert_eq!(owner.commit(1), committed(1, 1));
    let after = log.read(SHARD, 1, 0).unwrap()[0].1;
    let unanswered = JournalError::Unanswered { shard: SHARD, after };
    assert_eq!(owner.submit_two(2, 3), lost(2, true, &unanswered), "{fate:?}");
    owner.assert_stopped(&[3], &unanswered);
    (log, after)
}

#[test]
fn commands_without_an_answer_may_be_written_and_the_journal_stops() {
    let (log, _) = stopped_without_answer(Fate::Appended);
    let next = Owner::start(&log, last(&log));
    assert_eq!(next.commit(4), committed(3, 4));
    assert_eq!(logged(&log), [1, 2, 4]);

    let (log, _) = stopped_without_answer(Fate::Lost);
    let next = Owner::start(&log, last(&log));
    assert_eq!(next.commit(4), committed(2, 4));
    assert_eq!(logged(&log), [1, 4]);
}

/// The next owner has read to the end, and the entry arrives after that.
#[test]
fn a_late_entry_stops_the_next_owner_that_has_not_seen_it() {
    let (log, after) = stopped_without_answer(Fate::Late);
    assert_eq!(last(&log), after, "it is not there yet");
    let next = Owner::start(&log, after);
    let deposed = JournalError::Deposed { shard: SHARD, after };
    assert_eq!(next.submit_two(4, 5), lost(4, false, &deposed));
    next.assert_stopped(&[5], &deposed);
    assert_eq!(logged(&log), [1, 2], "it is there, and what was refused is not");
}

#[test]
fn of_two_owners_the_one_that_was_replaced_stops() {
    let log = MemoryLog::default();
    let old = Owner::start(&log, Position::START);
    assert_eq!((old.commit(1), old.commit(2)), (committed(1, 1), committed(2, 2)));
    let after = last(&log);
    let new = Owner::start(&log, after);
    assert_eq!(new.journal.meter().durable_index, 2);
    assert_eq!(new.commit(3), committed(3, 3));
    let deposed = JournalError::Deposed { shard: SHARD, after };
    assert_eq!(old.submit_two(4, 5), lost(4, false, &deposed));
    old.assert_stopped(&[5], &deposed);
    assert_eq!(new.commit(6), committed(4, 6), "the new owner goes on");
    assert_eq!(logged(&log), [1, 2, 3, 6]);
}

/// An owner names what it has applied. The log ends behind that, and the journal must not go on from there.
#[test]
fn an_owner_that_has_not_seen_the_last_entry_appends_nothing() {
    let log = MemoryLog::default();
    let owner = Owner::start(&log, Position::START);
    assert_eq!(owner.commit(1), committed(1, 1));
    let after = last(&log);
    assert_eq!(owner.commit(2), committed(2, 2));
    let behind = Owner::start(&log, after);
    let deposed = JournalError::Deposed { shard: SHARD, after };
    assert_eq!(behind.submit_two(3, 4), lost(3, false, &deposed));
    behind.assert_stopped(&[4], &deposed);
    assert_eq!(logged(&log), [1, 2]);
}

#[test]
fn a_journal_whose_log_has_lost_its_end_stops() {
    for others in 0..=3 {
        let log = MemoryLog::default();
        let owner = Owner::start(&log, Position::START);
        for number in 1..=3 {
            assert_eq!(owner.commit(number), committed(u64::from(number), number));
        }
        let acknowledged = last(&log);
        log.forget(SHARD, 2);
        // Somebody else may have appended since, up to the same entry and beyond.
        let other = Owner::start(&log, last(&log));
        for number in 0..others {
            assert_eq!(other.commit(10 + number), committed(2 + u64::from(number), 10 + number));
        }
        let found = last(&log);
        let error = match others < 2 {
            true => JournalError::TailLost { shard: SHARD, acknowledged, found },
            false => JournalError::Deposed { shard: SHARD, after: acknowledged },
        };
        assert_eq!(owner.submit_two(4, 5), lost(4, false, &error));
        owner.assert_stopped(&[5], &error);
        assert_eq!(logged(&log), [&[1][..], &[10, 11, 12][..usize::from(others)]].concat());
    }
}
