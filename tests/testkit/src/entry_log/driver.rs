//! Random operations on a log.

use std::sync::Arc;

use journal::{Append, EntryLog, JournalError, Position};

use super::Subject;
use super::quiet::QUIET;
use super::shard::Shard;
use super::unknown::Unknown;
use crate::random::Random;

/// Shards that are there from the beginning.
const SHARDS: u64 = 4;
/// So many operations on shards for each one on the quiet shard.
const QUIET_ONE_IN: u64 = 100;
/// The first shard that starts after an image.
const STARTED: u64 = 100;
const PAYLOAD_BYTES_MAX: u64 = 200;
/// So many operations for each time that the log is opened again.
const REOPENED_ONE_IN: u64 = 200;

/// What was done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Checked {
    /// Operations.
    pub operations: u64,
    /// Entries that were appended.
    pub appended: u64,
    /// Appends behind another entry than the last, all refused.
    pub refused: u64,
    /// Appends of which the log did not say whether they succeeded.
    pub unknown: u64,
    /// Entries that were not there when somebody looked after such an append, and arrived later.
    pub late: u64,
    /// How often the log lost its end, and said so.
    pub lost: u64,
    /// Appends behind an entry that the log had lost, where there was another one by then; all refused.
    pub replaced: u64,
    /// How often the entry of the quiet shard was moved to another file.
    pub moved: u64,
    /// How often it was opened again before the end.
    pub reopened: u64,
}

pub(super) struct Driver<'subject> {
    pub(super) subject: &'subject mut dyn Subject,
    pub(super) random: Random,
    pub(super) shards: Vec<Shard>,
    started: u64,
    /// The newest file when the quiet shard was last appended to.
    pub(super) quiet_file: Option<u64>,
    pub(super) checked: Checked,
}

/// Does random operations, and compares each with what it must do.
///
/// # Panics
/// If the log breaks a duty.
pub fn check(subject: &mut dyn Subject, seed: u64, operations: u64) -> Checked {
    let shards = (1..=SHARDS).map(|id| Shard::new(id, Position::START)).collect();
    let random = Random::new(seed);
    let mut driver = Driver { subject, random, shards, started: 0, quiet_file: None, checked: Checked::default() };
    while driver.checked.operations < operations {
        driver.checked.operations += 1;
        driver.operation();
    }
    driver.reopen();
    driver.checked
}

impl Driver<'_> {
    fn operation(&mut self) {
        if self.random.one_in(REOPENED_ONE_IN) {
            self.checked.reopened += 1;
            return self.reopen();
        }
        let log = self.subject.log();
        let chosen = self.choose();
        match self.random.below(100) {
            0..45 => self.append(&log, chosen),
            45..55 => self.append_elsewhere(&log, chosen),
            55..80 => self.read(&log, chosen),
            80..88 => self.shards[chosen].check_ends(&*log),
            88..94 => self.cut(&log, chosen),
            94..95 => self.verify(&log),
            95..96 => log.settle().expect("settled"),
            96..97 => log.upkeep().expect("upkeep"),
            97..98 => self.start(&log),
            _ => self.forget(&log, chosen),
        }
        drop(log);
        self.check_moved();
    }

    /// A shard, seldom the quiet one.
    fn choose(&mut self) -> usize {
        if self.random.one_in(QUIET_ONE_IN) { QUIET } else { self.choose_busy() }
    }

    fn choose_busy(&mut self) -> usize {
        1 + self.random.index(self.shards.len() - 1)
    }

    pub(super) fn term(&self) -> u64 {
        1 + self.checked.operations / 1_000
    }

    pub(super) fn payload(&mut self) -> Vec<u8> {
        // Histories that differ also have the same payload at the same index.
        if self.random.one_in(4) {
            return b"the same".to_vec();
        }
        let length = self.random.below(PAYLOAD_BYTES_MAX);
        self.random.bytes(usize::try_from(length).expect("short"))
    }

    /// Appends to one shard, or to several in one call.
    fn append(&mut self, log: &Arc<dyn EntryLog>, chosen: usize) {
        if !self.random.one_in(4) {
            return self.append_to(log, &[chosen]);
        }
        let (busy, first) = (self.shards.len() - 1, self.choose_busy());
        let count = 1 + self.random.index(busy);
        let chosen: Vec<usize> = (0..count).map(|number| 1 + (first + number) % busy).collect();
        self.append_to(log, &chosen);
    }

    pub(super) fn append_to(&mut self, log: &Arc<dyn EntryLog>, chosen: &[usize]) {
        let term = self.term();
        let payloads: Vec<Vec<u8>> = chosen.iter().map(|_| self.payload()).collect();
        let appends: Vec<Append<'_>> = chosen
            .iter()
            .zip(&payloads)
            .map(|(shard, payload)| {
                let shard = &self.shards[*shard];
                Append { shard: shard.id(), after: shard.last(), term, payload }
            })
            .collect();
        let answers = log.append_behind(&appends);
        assert_eq!(answers.len(), chosen.len(), "each entry has its answer");
        for ((chosen, answer), payload) in chosen.iter().copied().zip(answers).zip(payloads) {
            match answer {
                Ok(position) => {
                    self.shards[chosen].appended(position, term, payload);
                    self.checked.appended += 1;
                }
                Err(error) if error.may_be_appended() => self.settle_unknown(log, chosen, Unknown { term, payload }),
                Err(error) => panic!("J6: shard {} behind its last entry: {error}", self.shards[chosen].id()),
            }
        }
        if chosen.contains(&QUIET) {
            self.rest_quiet(log);
        }
    }

    /// Appends behind something that is not the last entry.
    fn append_elsewhere(&mut self, log: &Arc<dyn EntryLog>, chosen: usize) {
        let shard = &self.shards[chosen];
        let last = shard.last();
        let any = self.random.index(1 << 20);
        let after = match self.random.below(4) {
            0 => Some(Position { hash: last.hash ^ (1 << self.random.below(64)), ..last }),
            1 => Some(Position { index: last.index + 1 + self.random.below(3), hash: self.random.next() }),
            2 => shard.before_last(any),
            _ => shard.lost(any),
        };
        if let Some(after) = after {
            self.check_refused(log, chosen, after);
        }
    }

    /// An append behind something that is not the last entry is refused, and its entry is not in the log.
    pub(super) fn check_refused(&mut self, log: &Arc<dyn EntryLog>, chosen: usize, after: Position) {
        let shard = &self.shards[chosen];
        let last = shard.last();
        let append = Append { shard: shard.id(), after, term: 1, payload: b"never" };
        let answer = log.append_behind(&[append]).remove(0);
        assert_refused(&answer, append, last);
        shard.check_ends(&**log);
        self.checked.refused += 1;
        self.checked.replaced += u64::from(shard.has_replaced(after));
    }

    fn read(&mut self, log: &Arc<dyn EntryLog>, chosen: usize) {
        let shard = &self.shards[chosen];
        let (first_kept, last) = (shard.first_kept().unwrap_or(1), shard.last().index);
        let from = first_kept.saturating_sub(2).max(1);
        let first = from + self.random.below((last + 3).saturating_sub(from).max(1));
        let bytes_max = match self.random.below(4) {
            0 => 0,
            1 => usize::MAX,
            _ => usize::try_from(self.random.below(2_000)).expect("few"),
        };
        shard.check_read(&**log, first, bytes_max);
    }

    /// Gives up entries of one shard; or all but the last entry of every shard, so that whole files are freed.
    fn cut(&mut self, log: &Arc<dyn EntryLog>, chosen: usize) {
        if self.random.one_in(4) {
            return (0..self.shards.len()).for_each(|chosen| self.cut_to(log, chosen, u64::MAX));
        }
        let shard = &self.shards[chosen];
        let Some(first_kept) = shard.first_kept() else { return };
        let to = first_kept + self.random.below(shard.last().index + 3 - first_kept);
        self.cut_to(log, chosen, to);
    }

    pub(super) fn cut_to(&mut self, log: &Arc<dyn EntryLog>, chosen: usize, first_kept: u64) {
        let shard = &mut self.shards[chosen];
        log.cut(shard.id(), first_kept).expect("a cut");
        shard.cut(first_kept);
        shard.check_ends(&**log);
    }

    fn verify(&mut self, log: &Arc<dyn EntryLog>) {
        let kept: usize = self.shards.iter().map(Shard::kept).sum();
        assert_eq!(log.verify().expect("a sound log").entries, kept as u64, "J2: the entries that were verified");
    }

    /// A new shard begins after an image.
    fn start(&mut self, log: &Arc<dyn EntryLog>) {
        if self.started >= SHARDS {
            return;
        }
        let id = STARTED + self.started;
        self.started += 1;
        let at = Position { index: 1 + self.random.below(1 << 40), hash: self.random.next() };
        log.start_after(id, at).expect("a start");
        let chosen = self.shards.len();
        self.shards.push(Shard::new(id, at));
        self.shards[chosen].check_ends(&**log);
        self.append_to(log, &[chosen]);
        assert!(log.start_after(id, at).is_err(), "a shard with entries has begun");
    }

    /// The log loses its end: whoever appends behind what is gone is told. Others go on from what is there, and have
    /// often reached the same index before that.
    fn forget(&mut self, log: &Arc<dyn EntryLog>, chosen: usize) {
        let shard = &mut self.shards[chosen];
        let Some(most) = shard.kept().checked_sub(1).filter(|most| *most > 0) else { return };
        let entries = 1 + self.random.index(most.min(5));
        let acknowledged = shard.last();
        if !self.subject.forget(shard.id(), entries) {
            return;
        }
        shard.forget(entries);
        self.checked.lost += 1;
        if self.random.one_in(2) {
            self.check_refused(log, chosen, acknowledged);
        }
        for _ in 0..self.random.index(entries + 1) {
            self.append_to(log, &[chosen]);
        }
        // The same entries again are the same history.
        if self.shards[chosen].last() != acknowledged {
            self.check_refused(log, chosen, acknowledged);
        }
    }

    /// Everything that was there is there again, and can be read.
    pub(super) fn reopen(&mut self) {
        self.subject.reopen();
        let log = self.subject.log();
        for shard in &self.shards {
            shard.check_reopened(&*log);
            shard.check_ends(&*log);
            shard.check_read(&*log, shard.first_kept().unwrap_or(1), usize::MAX);
        }
        self.verify(&log);
    }
}

/// An append behind another entry than the last is refused for what it is, and certainly.
fn assert_refused(answer: &Result<Position, JournalError>, append: Append<'_>, last: Position) {
    let Append { shard, after, .. } = append;
    let expected = match after.index > last.index {
        true => JournalError::TailLost { shard, acknowledged: after, found: last },
        false => JournalError::Deposed { shard, after },
    };
    assert!(!expected.may_be_appended(), "J7: {expected}");
    assert_eq!(answer, &Err(expected), "J6: shard {shard} behind {after}, its last entry is {last}");
}
