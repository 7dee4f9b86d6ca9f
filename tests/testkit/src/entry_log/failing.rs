//! Appends that fail because of what the log writes to: it has no room for them, or it is broken.

use std::sync::Arc;

use journal::{EntryLog, JournalError, Position};

use super::Failure;
use super::driver::Driver;
use super::shard::{Content, Wanted};

impl Driver<'_> {
    /// An append of two shards' entries fails: of one, or of both.
    pub(super) fn fail(&mut self) {
        let failure = self.random.pick(&[Failure::NoRoom, Failure::Write, Failure::Sync]);
        if !self.subject.fail_next_append(failure) {
            return;
        }
        let first = self.choose_busy();
        let chosen = [first, 1 + first % (self.shards.len() - 1)];
        let contents = [self.content(), self.content()];
        let log = self.subject.log();
        let append = |number: usize| {
            let shard = &self.shards[chosen[number]];
            shard.append(shard.behind_last(), &contents[number])
        };
        let answers = log.append_behind(&[append(0), append(1)]);
        assert!(answers.iter().any(Result::is_err), "a failure {failure:?} is told: {answers:?}");
        let answered = chosen.into_iter().zip(contents).zip(answers);
        match failure {
            Failure::NoRoom => {
                for ((chosen, content), answer) in answered {
                    self.without_room(&log, chosen, content, answer);
                }
                self.append_to(&log, &chosen);
                self.checked.without_room += 1;
            }
            Failure::Write | Failure::Sync => {
                let unknown: Vec<(usize, Content)> = answered
                    .filter(|(_, answer)| is_unknown(answer, "an entry of the call that failed"))
                    .map(|(chosen, _)| chosen)
                    .collect();
                assert!(!unknown.is_empty(), "J7: what a failed {failure:?} leaves behind is not known");
                self.check_stopped(&log);
                drop(log);
                self.subject.reopen();
                for (chosen, content) in unknown {
                    self.settle_unknown(&self.subject.log(), chosen, content);
                }
                self.check_opened();
                self.checked.broken += 1;
            }
        }
    }

    /// There was no room for an entry, which then is not in the log; or there was.
    fn without_room(
        &mut self,
        log: &Arc<dyn EntryLog>,
        chosen: usize,
        content: Content,
        answer: Result<Position, JournalError>,
    ) {
        match answer {
            Ok(position) => self.shards[chosen].appended(position, content),
            Err(error) => {
                assert!(matches!(error, JournalError::NoSpace { .. }), "there was no room: {error}");
                assert!(!error.may_be_appended(), "J7: {error}");
                self.shards[chosen].check_ends(&**log);
            }
        }
    }

    /// Nothing is appended, wherever (J4). Everything that was there is shown, and nothing else.
    fn check_stopped(&self, log: &Arc<dyn EntryLog>) {
        for shard in &self.shards {
            let last = shard.last();
            for after in [last, Position { hash: !last.hash, ..last }] {
                let wanted = Wanted { after, history: shard.history() };
                let answer = log.append_behind(&[shard.append(wanted, &Content::never())]).remove(0);
                assert!(!is_unknown(&answer, "a log that has failed"), "J4: it must have appended nothing: {answer:?}");
            }
            shard.check_ends(&**log);
            shard.check_whole(&**log);
        }
        assert!(log.settle().is_err() && log.upkeep().is_err(), "J4: a log that has failed does nothing more");
    }
}

/// Whether the entry of an append that failed may be there.
fn is_unknown(answer: &Result<Position, JournalError>, what: &str) -> bool {
    answer.as_ref().expect_err(what).may_be_appended()
}
