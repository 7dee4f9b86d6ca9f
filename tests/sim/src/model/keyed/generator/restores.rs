//! Draws restores and checkpoints: what is put aside, ended too early, given up, or begun again.

use contract::keyed::{LogicalTime, Policy};
use kernel::ValueRef;
use kernel::keyed::restore::{RestoredCounts, RestoredMap};
use kernel::keyed::rows::ContentWriter;

use super::Generator;
use super::updates::key;
use crate::model::keyed::command::Act;
use crate::model::keyed::names::INPUTS;
use crate::model::reference::{Content, Id};

/// As many keys as a step of the sweep does not remove at once.
const WIDE: u64 = 700;

impl Generator<'_> {
    pub(super) fn restore_or_checkpoint(&mut self, id: &Id) -> Option<Act> {
        let aside = self.reference.maps.get(id).and_then(|map| map.aside.as_ref());
        if let Some((number, content)) = aside.filter(|_| !self.random.one_in(3)) {
            return Some(self.go_on(id, *number, content));
        }
        if !self.random.one_in(self.habits.restore_one_in) {
            return None;
        }
        let checkpoints = self.reference.content(id).and_then(|content| content.checkpoints);
        Some(match self.random.below(6) {
            0..=1 => Act::BeginCheckpoint,
            2..=3 => {
                let (from, last) = checkpoints.unwrap_or_default();
                Act::EndCheckpoint(if self.random.one_in(4) { from } else { last + u64::from(self.random.one_in(9)) })
            }
            4 => Act::AbandonRestore(2),
            _ => Act::BeginRestore(self.restored(id)),
        })
    }

    fn restored(&mut self, id: &Id) -> RestoredMap {
        RestoredMap {
            policy: if self.random.one_in(2) { Policy::Ordered } else { Policy::Monotonic },
            last_number: self.random.pick(&[0, 1, 7]),
            seal: self.random.one_in(2).then(|| self.version(id)),
        }
    }

    fn go_on(&mut self, id: &Id, number: u32, aside: &Content) -> Act {
        let number = if self.random.one_in(20) { number - 1 } else { number };
        match self.random.below(12) {
            0 => Act::BeginRestore(self.restored(id)),
            1 => Act::AbandonRestore(number),
            2..=5 => {
                let RestoredCounts { keys, deleted, waiting } = aside.counts();
                let more = u64::from(self.random.one_in(8));
                Act::EndRestore(number, RestoredCounts { keys, deleted: deleted + more, waiting })
            }
            _ => Act::RestoreRows(number, self.rows(id, aside)),
        }
    }

    fn rows(&mut self, id: &Id, aside: &Content) -> ContentWriter {
        let mut writer = ContentWriter::new();
        if aside.last_number() > 0 && self.random.one_in(2) {
            writer.answer(&[0; 16], &kernel::Answer::Done { commit: 1, outcomes: Vec::new() }.encode());
        }
        if self.random.one_in(20) {
            for number in 0..WIDE {
                writer.put(format!("wide {number:05}").as_bytes(), ValueRef::Integer(2), LogicalTime::from(5));
            }
        }
        for _ in 0..self.random.below(6) {
            let (name, version) = (key(self.random), self.version(id));
            let integer = self.random.below(9).cast_signed();
            match (aside.policy, self.random.below(6)) {
                (Policy::Ordered, 0) => writer.waiting_put(name, ValueRef::Integer(integer), version),
                (Policy::Ordered, 1) => writer.waiting_delete(name, version),
                (Policy::Ordered, 2) => {
                    writer.waiting_merge(name, contract::keyed::Merge::Add, integer, version);
                }
                // Refused by one policy or the other.
                (_, 0) if self.random.one_in(20) => writer.waiting_delete(name, version),
                (Policy::Ordered, _) if self.random.one_in(20) => writer.deleted(name, version),
                (Policy::Monotonic, 0..=1) => writer.deleted(name, version),
                (_, 3) => writer.merged(name, integer),
                (_, 4) => writer.position(self.random.pick(&INPUTS), self.random.below(50), 7),
                _ => writer.put(name, ValueRef::Integer(integer), version),
            }
        }
        writer
    }
}
