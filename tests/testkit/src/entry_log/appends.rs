//! Appends behind the last entries of shards, and behind others.

use std::sync::Arc;

use journal::{Append, EntryLog, JournalError, Position};

use super::driver::Driver;
use super::quiet::QUIET;
use super::unknown::Unknown;

impl Driver<'_> {
    /// Appends to one shard, or to several in one call. Now and then one of several entries names another position than the
    /// last.
    pub(super) fn append(&mut self, log: &Arc<dyn EntryLog>, chosen: usize) {
        if !self.random.one_in(4) {
            return self.append_to(log, &[chosen]);
        }
        let (busy, first) = (self.shards.len() - 1, self.choose_busy());
        let count = 1 + self.random.index(busy);
        let chosen: Vec<usize> = (0..count).map(|number| 1 + (first + number) % busy).collect();
        let stale = chosen[self.random.index(count)];
        let stale = if self.random.one_in(3) { self.elsewhere(stale).map(|after| (stale, after)) } else { None };
        self.checked.mixed += u64::from(count > 1 && stale.is_some());
        self.append_all(log, &chosen, stale);
    }

    /// Appends to each shard behind its last entry, in one call.
    pub(super) fn append_to(&mut self, log: &Arc<dyn EntryLog>, chosen: &[usize]) {
        self.append_all(log, chosen, None);
    }

    /// The same; but in the shard of `stale` behind the position there, which is refused. The others are not concerned.
    fn append_all(&mut self, log: &Arc<dyn EntryLog>, chosen: &[usize], stale: Option<(usize, Position)>) {
        let term = self.term();
        let payloads: Vec<Vec<u8>> = chosen.iter().map(|_| self.payload()).collect();
        let after = |shard: usize| stale.filter(|(stale, _)| *stale == shard).map(|(_, after)| after);
        let append = |(shard, payload): (&usize, _)| {
            let (id, last) = (self.shards[*shard].id(), self.shards[*shard].last());
            Append { shard: id, after: after(*shard).unwrap_or(last), term, payload }
        };
        let appends: Vec<Append<'_>> = chosen.iter().zip(payloads.iter().map(Vec::as_slice)).map(append).collect();
        let answers = log.append_behind(&appends);
        assert_eq!(answers.len(), chosen.len(), "each entry has its answer");
        for ((chosen, answer), payload) in chosen.iter().copied().zip(answers).zip(payloads) {
            if let Some(after) = after(chosen) {
                self.refused(log, chosen, after, &answer);
                continue;
            }
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
    pub(super) fn append_elsewhere(&mut self, log: &Arc<dyn EntryLog>, chosen: usize) {
        if let Some(after) = self.elsewhere(chosen) {
            self.check_refused(log, chosen, after);
        }
    }

    /// A position that is not the last entry.
    fn elsewhere(&mut self, chosen: usize) -> Option<Position> {
        let shard = &self.shards[chosen];
        let last = shard.last();
        let any = self.random.index(1 << 20);
        match self.random.below(4) {
            0 => Some(Position { hash: last.hash ^ (1 << self.random.below(64)), ..last }),
            1 => Some(Position { index: last.index + 1 + self.random.below(3), hash: self.random.next() }),
            2 => shard.before_last(any),
            _ => shard.lost(any),
        }
    }

    /// An append behind something that is not the last entry is refused.
    pub(super) fn check_refused(&mut self, log: &Arc<dyn EntryLog>, chosen: usize, after: Position) {
        let append = Append { shard: self.shards[chosen].id(), after, term: 1, payload: b"never" };
        let answer = log.append_behind(&[append]).remove(0);
        self.refused(log, chosen, after, &answer);
    }

    /// The answer to an append behind something that is not the last entry says so, and its entry is not in the log.
    fn refused(
        &mut self,
        log: &Arc<dyn EntryLog>,
        chosen: usize,
        after: Position,
        answer: &Result<Position, JournalError>,
    ) {
        let shard = &self.shards[chosen];
        let (id, last) = (shard.id(), shard.last());
        let expected = match after.index > last.index {
            true => JournalError::TailLost { shard: id, acknowledged: after, found: last },
            false => JournalError::Deposed { shard: id, after },
        };
        assert!(!expected.may_be_appended(), "J7: {expected}");
        assert_eq!(answer, &Err(expected), "J6: shard {id} behind {after}, its last entry is {last}");
        shard.check_ends(&**log);
        self.checked.refused += 1;
        self.checked.replaced += u64::from(shard.has_replaced(after));
    }
}
