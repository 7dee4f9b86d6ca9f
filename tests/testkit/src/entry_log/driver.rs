//! Random operations on a log.

use std::sync::Arc;

use journal::{EntryKind, EntryLog, Position, Verified};

use super::Subject;
use super::quiet::QUIET;
use super::shard::{Content, Shard, Wanted};
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
/// So many operations for each failure of what the log writes to.
const FAILED_ONE_IN: u64 = 100;

/// What was done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Checked {
    /// Operations.
    pub operations: u64,
    /// Entries that were appended.
    pub appended: u64,
    /// Appends behind another entry than the last, all refused.
    pub refused: u64,
    /// Of those, appends of another history.
    pub other_history: u64,
    /// Calls in which one entry was refused and others were appended.
    pub mixed: u64,
    /// Appends of which the log did not say whether they succeeded.
    pub unknown: u64,
    /// Entries that were not there when somebody looked after such an append, and arrived later.
    pub late: u64,
    /// How often the log lost its end, and said so.
    pub lost: u64,
    /// Appends behind an entry that the log had lost, where there was another one by then; all refused.
    pub replaced: u64,
    /// Appends for which there was no room.
    pub without_room: u64,
    /// How often a write or a sync failed, and the log was opened again.
    pub broken: u64,
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
        if self.random.one_in(FAILED_ONE_IN) {
            return self.fail();
        }
        let log = self.subject.log();
        let chosen = self.choose();
        match self.random.below(100) {
            0..45 => self.append(&log, chosen),
            45..55 => self.append_elsewhere(&log, chosen),
            55..79 => self.read(&log, chosen),
            79..87 => self.shards[chosen].check_ends(&*log),
            87..88 => self.check_sizes(&log),
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

    pub(super) fn choose_busy(&mut self) -> usize {
        1 + self.random.index(self.shards.len() - 1)
    }

    pub(super) fn term(&self) -> u64 {
        1 + self.checked.operations / 1_000
    }

    pub(super) fn content(&mut self) -> Content {
        let term = self.term();
        // Also entries that were lost, and what came in their place, have the same content at the same index.
        if self.random.one_in(4) {
            return Content { kind: EntryKind::COMMANDS, term, node: 1, payload: b"the same".to_vec() };
        }
        // A log keeps kinds that it does not know.
        let kind = self.random.pick(&[EntryKind::COMMANDS, EntryKind::FENCE, EntryKind::from_byte(200)]);
        let length = self.random.below(PAYLOAD_BYTES_MAX);
        let payload = self.random.bytes(usize::try_from(length).expect("short"));
        Content { kind, term, node: self.random.below(3), payload }
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
        let (kept, bytes) = self
            .shards
            .iter()
            .fold((0, 0), |(kept, bytes), shard| (kept + shard.kept() as u64, bytes + shard.payload_bytes()));
        let expected = Verified { entries: kept, payload_bytes: bytes };
        assert_eq!(log.verify(), Ok(expected), "J2: the entries that were verified");
    }

    /// The sizes hold what they must; with spares or without.
    fn check_sizes(&mut self, log: &Arc<dyn EntryLog>) {
        log.keep_spares(self.random.one_in(2)).expect("spares");
        let (bytes, kept_bytes) = (log.bytes(), log.kept_bytes());
        let busy = || self.shards.iter().filter(|shard| shard.kept() > 1);
        let payload_bytes: u64 = busy().map(Shard::payload_bytes).sum();
        assert!(kept_bytes >= payload_bytes, "{kept_bytes} bytes that a cut can free, of {payload_bytes}");
        assert!(bytes >= kept_bytes, "{kept_bytes} bytes that a cut can free, of {bytes}");
        assert!(kept_bytes == 0 || busy().next().is_some(), "{kept_bytes} bytes that no cut can free");
    }

    /// A new shard begins after an image.
    fn start(&mut self, log: &Arc<dyn EntryLog>) {
        if self.started >= SHARDS {
            return;
        }
        let id = STARTED + self.started;
        self.started += 1;
        let at = Position { index: 1 + self.random.below(1 << 40), hash: self.random.next() };
        let (chosen, shard) = (self.shards.len(), Shard::new(id, at));
        let history = shard.history();
        log.start_after(id, at, history).expect("a start");
        self.shards.push(shard);
        self.shards[chosen].check_ends(&**log);
        self.check_refused(log, chosen, Wanted { after: at, history: !history });
        self.append_to(log, &[chosen]);
        assert!(log.start_after(id, at, history).is_err(), "a shard with entries has begun");
    }

    /// The log loses its end: whoever appends behind what is gone is told. Others go on from what is there, and have
    /// often reached the same index before that.
    fn forget(&mut self, log: &Arc<dyn EntryLog>, chosen: usize) {
        let shard = &mut self.shards[chosen];
        let Some(most) = shard.kept().checked_sub(1).filter(|most| *most > 0) else { return };
        let entries = 1 + self.random.index(most.min(5));
        let (acknowledged, history) = (shard.last(), shard.history());
        if !self.subject.forget(shard.id(), entries) {
            return;
        }
        shard.forget(entries);
        self.checked.lost += 1;
        if self.random.one_in(2) {
            self.check_refused(log, chosen, Wanted { after: acknowledged, history });
        }
        for _ in 0..self.random.index(entries + 1) {
            self.append_to(log, &[chosen]);
        }
        // The same entries again are the same history.
        if self.shards[chosen].last() != acknowledged {
            self.check_refused(log, chosen, Wanted { after: acknowledged, history });
        }
    }

    pub(super) fn reopen(&mut self) {
        self.subject.reopen();
        self.check_opened();
    }

    /// Everything that was there is there again, and can be read.
    pub(super) fn check_opened(&mut self) {
        let log = self.subject.log();
        for shard in &self.shards {
            shard.check_reopened(&*log);
            shard.check_ends(&*log);
            shard.check_whole(&*log);
        }
        self.verify(&log);
    }
}
