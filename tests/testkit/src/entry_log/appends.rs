//! Appends behind the last entries of shards, and behind others.

use std::sync::Arc;

use journal::{Append, EntryLog, JournalError, Position};

use super::driver::Driver;
use super::quiet::QUIET;
use super::shard::{Content, Wanted};

impl Driver<'_> {
    /// Appends to one shard, or to several in one call. Now and then one of several entries is wanted elsewhere than behind
    /// the last.
    pub(super) fn append(&mut self, log: &Arc<dyn EntryLog>, chosen: usize) {
        if !self.random.one_in(4) {
            return self.append_to(log, &[chosen]);
        }
        let (busy, first) = (self.shards.len() - 1, self.choose_busy());
        let count = 1 + self.random.index(busy);
        let chosen: Vec<usize> = (0..count).map(|number| 1 + (first + number) % busy).collect();
        let stale = chosen[self.random.index(count)];
        let stale = if self.random.one_in(3) { self.elsewhere(stale).map(|wanted| (stale, wanted)) } else { None };
        self.checked.mixed += u64::from(count > 1 && stale.is_some());
        self.append_all(log, &chosen, stale);
    }

    /// Appends to each shard behind its last entry, in one call.
    pub(super) fn append_to(&mut self, log: &Arc<dyn EntryLog>, chosen: &[usize]) {
        self.append_all(log, chosen, None);
    }

    /// The same; but in the shard of `stale` where it says, which is refused. The others are not concerned.
    fn append_all(&mut self, log: &Arc<dyn EntryLog>, chosen: &[usize], stale: Option<(usize, Wanted)>) {
        let contents: Vec<Content> = chosen.iter().map(|_| self.content()).collect();
        let wanted = |shard: usize| stale.filter(|(stale, _)| *stale == shard).map(|(_, wanted)| wanted);
        let append = |(chosen, content): (&usize, _)| {
            let shard = &self.shards[*chosen];
            shard.append(wanted(*chosen).unwrap_or(shard.behind_last()), content)
        };
        let appends: Vec<Append<'_>> = chosen.iter().zip(&contents).map(append).collect();
        let answers = log.append_behind(&appends);
        assert_eq!(answers.len(), chosen.len(), "each entry has its answer");
        for ((chosen, answer), content) in chosen.iter().copied().zip(answers).zip(contents) {
            if let Some(wanted) = wanted(chosen) {
                self.refused(log, chosen, wanted, &answer);
                continue;
            }
            match answer {
                Ok(position) => {
                    self.shards[chosen].appended(position, content);
                    self.checked.appended += 1;
                }
                Err(error) if error.may_be_appended() => self.settle_unknown(log, chosen, content),
                Err(error) => panic!("J6: shard {} behind its last entry: {error}", self.shards[chosen].id()),
            }
        }
        if chosen.contains(&QUIET) {
            self.rest_quiet(log);
        }
    }

    /// Appends behind something that is not the last entry, or in another history.
    pub(super) fn append_elsewhere(&mut self, log: &Arc<dyn EntryLog>, chosen: usize) {
        if let Some(wanted) = self.elsewhere(chosen) {
            self.check_refused(log, chosen, wanted);
        }
    }

    /// Anything but behind the last entry in its history.
    fn elsewhere(&mut self, chosen: usize) -> Option<Wanted> {
        let shard = &self.shards[chosen];
        let (last, history) = (shard.last(), shard.history());
        let any = self.random.index(1 << 20);
        let after = match self.random.below(5) {
            0 => Some(Position { hash: last.hash ^ (1 << self.random.below(64)), ..last }),
            1 => Some(Position { index: last.index + 1 + self.random.below(3), hash: self.random.next() }),
            2 => shard.before_last(any),
            3 => shard.lost(any),
            _ if shard.has_begun() => {
                let after = if self.random.one_in(2) { last } else { Position::START };
                return Some(Wanted { after, history: history ^ (1 << self.random.below(64)) });
            }
            _ => None,
        };
        after.map(|after| Wanted { after, history })
    }

    /// An append elsewhere is refused.
    pub(super) fn check_refused(&mut self, log: &Arc<dyn EntryLog>, chosen: usize, wanted: Wanted) {
        let answer = log.append_behind(&[self.shards[chosen].append(wanted, &Content::never())]).remove(0);
        self.refused(log, chosen, wanted, &answer);
    }

    /// The answer to an append elsewhere says so, and its entry is not in the log.
    fn refused(
        &mut self,
        log: &Arc<dyn EntryLog>,
        chosen: usize,
        wanted: Wanted,
        answer: &Result<Position, JournalError>,
    ) {
        let shard = &self.shards[chosen];
        let (id, last, found) = (shard.id(), shard.last(), shard.history());
        let Wanted { after, history: appended } = wanted;
        let expected = match after.index > last.index {
            _ if appended != found => JournalError::OtherHistory { shard: id, found, appended },
            true => JournalError::TailLost { shard: id, acknowledged: after, found: last },
            false => JournalError::Deposed { shard: id, after },
        };
        assert!(!expected.may_be_appended(), "J7: {expected}");
        assert_eq!(answer, &Err(expected), "J6: shard {id} behind {after}, its last entry is {last}");
        shard.check_ends(&**log);
        self.checked.refused += 1;
        self.checked.other_history += u64::from(appended != found);
        self.checked.replaced += u64::from(shard.has_replaced(after));
    }
}
