//! Draws updates: newer and older ones, repeated ones, and the same version with another value.

use contract::keyed::limits::KEYED_UPDATES_MAX;
use contract::keyed::{LogicalTime, Merge, Policy};
use kernel::ValueRef;
use kernel::keyed::updates::UpdatesWriter;
use testkit::random::Random;

use super::Habits;
use crate::model::keyed::names::{MERGED_KEYS, PUT_KEYS};
use crate::model::reference::{Content, State};

static LARGE: [u8; 3_000] = [7; 3_000];

/// As many keys as a step of the sweep does not remove at once.
const WIDE: u64 = 700;

/// The way of a merge.
const MERGES: [Merge; 3] = [Merge::Add, Merge::Min, Merge::Max];

/// Draws the updates of a map.
pub(super) struct Drawing<'draw> {
    pub(super) random: &'draw mut Random,
    pub(super) content: Option<&'draw Content>,
    pub(super) habits: Habits,
}

/// Any key.
pub(super) fn key(random: &mut Random) -> &'static [u8] {
    if random.one_in(3) { random.pick(&MERGED_KEYS) } else { random.pick(&PUT_KEYS) }
}

impl Drawing<'_> {
    pub(super) fn updates(&mut self, in_commit: bool) -> UpdatesWriter {
        let mut writer = UpdatesWriter::new();
        if self.random.one_in(self.habits.wide_one_in) {
            self.wide(&mut writer, in_commit);
            return writer;
        }
        for _ in 0..self.random.pick(&[0, 1, 1, 2, 3, 5, 9]) {
            self.one(&mut writer, in_commit);
        }
        writer
    }

    fn is_ordered(&self) -> bool {
        self.content.is_some_and(|content| content.policy == Policy::Ordered)
    }

    /// Many keys at once; now and then one more than there may be.
    fn wide(&mut self, writer: &mut UpdatesWriter, in_commit: bool) {
        let count = if self.random.one_in(40) { KEYED_UPDATES_MAX as u64 + 1 } else { WIDE };
        let (version, deletes) = (self.version(), self.random.one_in(2));
        for number in 0..count {
            let key = format!("wide {number:05}").into_bytes();
            match deletes {
                true => writer.delete(&key, version),
                false if in_commit && self.random.one_in(50) => self.one(writer, in_commit),
                false => writer.put(&key, ValueRef::Integer(1), version),
            }
        }
    }

    fn version(&mut self) -> LogicalTime {
        let LogicalTime { epoch, round } = self.content.and_then(|content| content.seal).unwrap_or_default();
        match self.random.below(60) {
            0 => LogicalTime::new(epoch + 1, self.random.below(3)),
            1 => LogicalTime::new(epoch.saturating_sub(1), round),
            _ => LogicalTime::new(epoch, (round + self.random.below(10)).saturating_sub(1)),
        }
    }

    fn one(&mut self, writer: &mut UpdatesWriter, in_commit: bool) {
        if self.random.one_in(6) && self.again(writer) {
            return;
        }
        let ordered = self.is_ordered();
        // Now and then a way that the map does not take.
        let versioned = if self.random.one_in(150) { !ordered } else { ordered };
        let merges = (in_commit || versioned || self.random.one_in(60)) && self.random.one_in(3);
        let wrong = self.random.one_in(80);
        match merges {
            true => {
                let key = if wrong { self.random.pick(&PUT_KEYS) } else { self.random.pick(&MERGED_KEYS) };
                let (merge, operand) = (self.random.pick(&MERGES), self.operand());
                match versioned {
                    true => writer.merge_at(key, merge, operand, self.version()),
                    false if self.random.one_in(8) => writer.remove(key),
                    false => writer.merge(key, merge, operand),
                }
            }
            false => {
                let keys: &[&[u8]] = if wrong { &MERGED_KEYS } else { &PUT_KEYS };
                let (key, version) = (*self.random.choose(keys), self.version());
                // In an ordered map what was merged can be deleted.
                let key = if ordered && self.random.one_in(8) { self.random.pick(&MERGED_KEYS) } else { key };
                match self.random.one_in(3) || ordered && MERGED_KEYS.contains(&key) && !wrong {
                    true => writer.delete(key, version),
                    false => writer.put(key, self.value(), version),
                }
            }
        }
    }

    /// What was put or deleted before, perhaps with another value.
    fn again(&mut self, writer: &mut UpdatesWriter) -> bool {
        let Some(content) = self.content else { return false };
        let place = self.random.index(content.keys.len().max(1));
        let Some((name, key)) = content.keys.iter().nth(place) else { return false };
        match &key.state {
            State::Put(value, version) => {
                let other = self.random.one_in(4);
                let value = if other { self.value() } else { ValueRef::from(value) };
                writer.put(name, value, *version);
            }
            State::Deleted(version) => writer.delete(name, *version),
            State::Merged(_) | State::Nothing => return false,
        }
        true
    }

    fn operand(&mut self) -> i64 {
        match self.random.below(60) {
            0 => i64::MAX,
            1 => i64::MIN,
            _ => i64::try_from(self.random.below(30)).expect("small") - 10,
        }
    }

    fn value(&mut self) -> ValueRef<'static> {
        match self.random.below(8) {
            0 => ValueRef::Null,
            1 => ValueRef::Bytes(&LARGE[..self.random.pick(&[0, 1, 300, 3_000])]),
            2..=4 => ValueRef::Text(self.random.pick(&["", "a", "b"])),
            _ => ValueRef::Integer(i64::try_from(self.random.below(5)).expect("small")),
        }
    }
}
