//! Appends whose outcome is not known, and how an appender learns it.

use std::sync::Arc;

use journal::{EntryLog, JournalError};

use super::driver::Driver;
use super::shard::Content;

/// So many appends in a row are not answered by a log that is no use.
const UNANSWERED_MAX: usize = 1_000;
/// The appender looks so many times at most before it appends again.
const LOOKS_MAX: u64 = 5;

impl Driver<'_> {
    /// Settles what is behind the last entry of a shard. Looking does not settle it; an append behind the same entry does:
    /// it succeeds, or the entry that is there instead is one of the unknown ones.
    pub(super) fn settle_unknown(&mut self, log: &Arc<dyn EntryLog>, chosen: usize, first: Content) {
        let (id, after) = (self.shards[chosen].id(), self.shards[chosen].last());
        let mut unknown = vec![first];
        self.checked.unknown += 1;
        let (mut seen, mut missed) = (None, false);
        for _ in 0..self.random.below(LOOKS_MAX) {
            let last = log.ends(id).expect("the ends of a shard").last;
            assert!(seen.is_none_or(|seen| seen == last), "J2: entry {seen:?} of shard {id} was there, now {last} is");
            seen = (last != after).then_some(last);
            missed |= seen.is_none();
        }
        while unknown.len() < UNANSWERED_MAX {
            let (content, shard) = (self.content(), &self.shards[chosen]);
            match log.append_behind(&[shard.append(shard.behind_last(), &content)]).remove(0) {
                Ok(position) => {
                    assert_eq!(seen, None, "J6: two entries behind {after} of shard {id}");
                    self.shards[chosen].appended(position, content);
                    self.checked.appended += 1;
                    return;
                }
                Err(error) if error.may_be_appended() => {
                    unknown.push(content);
                    self.checked.unknown += 1;
                }
                Err(JournalError::Deposed { .. }) => {
                    let (entry, position) =
                        log.read(id, after.index + 1, 0).expect("the entry that is there").remove(0);
                    assert!(seen.is_none_or(|seen| seen == position), "J2: {seen:?} of shard {id}, then {position}");
                    let found = unknown.iter().rposition(|one| *one == Content::of(&entry));
                    let Some(found) = found else {
                        panic!("J7: nobody appended what is behind {after} of shard {id}: {entry:?}");
                    };
                    // Those after the first were appended when nobody looked any more.
                    self.checked.late += u64::from(missed && found == 0);
                    self.shards[chosen].appended(position, Content::of(&entry));
                    assert_eq!(log.ends(id).expect("the ends of a shard").last, position, "J6: the last of shard {id}");
                    self.checked.appended += 1;
                    return;
                }
                Err(error) => {
                    panic!("J7: shard {id} behind {after}, which is its last entry or the one before: {error}")
                }
            }
        }
        panic!("shard {id} has not answered {UNANSWERED_MAX} appends behind {after}");
    }
}
