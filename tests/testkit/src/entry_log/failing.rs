//! Appends that fail because of what the log writes to: it has no room for them, or it is broken.

use std::sync::Arc;

use journal::{EntryLog, JournalError, Position};

use super::Failure;
use super::driver::Driver;
use super::shard::{Content, Wanted};

impl Driver<'_> {
    /// An append fails. Another shard's entry is in the same call.
    pub(super) fn fail(&mut self) {
        let failure = self.random.pick(&[Failure::NoRoom, Failure::Write, Failure::Sync]);
        if !self.subject.fail_next_append(failure) {
            return;
        }
        let chosen = self.choose_busy();
        let other = 1 + chosen % (self.shards.len() - 1);
        let log = self.subject.log();
        let content = self.content();
        let append = |shard: usize| self.shards[shard].append(self.shards[shard].behind_last(), &content);
        let mut answers = log.append_behind(&[append(chosen), append(other)]);
        let (answer, error) = (answers.pop().expect("an answer"), answers.remove(0).expect_err("a failure"));
        match failure {
            Failure::NoRoom => {
                assert!(matches!(error, JournalError::NoSpace { .. }), "there was no room: {error}");
                assert!(!error.may_be_appended(), "J7: {error}");
                self.shards[chosen].check_ends(&*log);
                self.shards[other].appended(answer.expect("room for the next one"), content);
                self.append_to(&log, &[chosen]);
                self.checked.without_room += 1;
            }
            Failure::Write | Failure::Sync => {
                assert!(error.may_be_appended(), "J7: what a failed {failure:?} leaves behind is not known: {error}");
                assert_certain(&answer, "an entry of the call that failed");
                self.check_stopped(&log);
                drop(log);
                self.subject.reopen();
                self.settle_unknown(&self.subject.log(), chosen, content);
                self.check_opened();
                self.checked.broken += 1;
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
                assert_certain(&answer, "a log that has failed");
            }
            shard.check_ends(&**log);
            shard.check_whole(&**log);
        }
        assert!(log.settle().is_err() && log.upkeep().is_err(), "J4: a log that has failed does nothing more");
    }
}

fn assert_certain(answer: &Result<Position, JournalError>, what: &str) {
    let error = answer.as_ref().expect_err(what);
    assert!(!error.may_be_appended(), "J4: {what} must have appended nothing: {error}");
}
