//! The time of the latest event of each word, which versions alone keep right: updates without a number, late, twice and in any order.
//!
//! Keeps: before a commit, the latest event of each word that it counts was sent, so that a kill between the two loses nothing.

use std::collections::BTreeMap;

use testkit::random::Random;
use wire::keyed::updates::KeyUpdate;

use super::events::Event;

/// Updates that may be sent once more.
const KEPT_MAX: usize = 500;
/// Of those, so many are sent once more with each commit.
const AGAIN: usize = 50;
/// No event is earlier: versions are not negative.
const EARLIEST: i64 = -1_000_000;

/// What was sent.
#[derive(Default)]
pub(super) struct Latest {
    sent: Vec<(String, i64)>,
}

impl Latest {
    /// Two parts that are sent at the same time: of each word the latest event and another one, and some that were sent before.
    pub(super) fn updates(&mut self, events: impl Iterator<Item = Event>, random: &mut Random) -> [Vec<KeyUpdate>; 2] {
        let mut words: BTreeMap<String, (i64, i64)> = BTreeMap::new();
        for Event { word, time, .. } in events {
            let (first, latest) = words.entry(word).or_insert((time, time));
            (*first, *latest) = (*first, time.max(*latest));
        }
        let mut all: Vec<(String, i64)> = Vec::new();
        for (word, (first, latest)) in words {
            all.push((word.clone(), latest));
            all.push((word, first));
        }
        let before = self.sent.len();
        self.sent.extend(all.iter().cloned());
        if before > 0 {
            all.extend((0..AGAIN).map(|_| self.sent[random.index(before)].clone()));
        }
        while self.sent.len() > KEPT_MAX {
            self.sent.swap_remove(random.index(self.sent.len()));
        }
        for left in (1..all.len()).rev() {
            all.swap(left, random.index(left + 1));
        }
        let updates: Vec<_> = all.into_iter().map(|(word, time)| put(&word, time)).collect();
        let (first, second) = updates.split_at(updates.len() / 2);
        [first.to_vec(), second.to_vec()]
    }
}

/// An event has the version that follows from its time, so that two of one time are one.
fn put(word: &str, time: i64) -> KeyUpdate {
    let version = u64::try_from(time - EARLIEST).expect("no event is earlier");
    KeyUpdate::put(format!("e/{word}"), time, version)
}
