//! Undoing what a command has changed: a command that is refused, and a step of one, leave everything as it was.

use std::collections::BTreeMap;

use super::runs::RunUndo;
use super::{Floor, Id, Kept, Lane, LaneKey, Letter, Map, Message, MessageKey, PublishKey, Reference};

/// One change of a command, with what was there before.
pub(super) enum Undo {
    Record(Id, Option<Kept>),
    Cell(Id, Option<(usize, usize)>),
    Floor(u16, Option<Floor>),
    Message(MessageKey, Option<Message>),
    Publish(PublishKey, Option<Message>),
    Letter(PublishKey, Option<Letter>),
    Number(u16, Option<u64>),
    Received((u16, u16), Option<u64>),
    Lane(LaneKey, Option<Lane>),
    Run(Id, RunUndo),
    Map(Id, Option<Box<Map>>),
    Push,
}

impl Reference {
    pub(super) fn undo_to(&mut self, mark: usize) {
        for undo in self.undo.split_off(mark).into_iter().rev() {
            match undo {
                Undo::Record(id, before) => restore(&mut self.records, id, before),
                Undo::Cell(id, before) => self.undo_cell(&id, before),
                Undo::Floor(bucket, before) => restore(&mut self.floors, bucket, before),
                Undo::Message(key, before) => restore(&mut self.messages, key, before),
                Undo::Publish(key, before) => restore(&mut self.to_publish, key, before),
                Undo::Letter(key, before) => restore(&mut self.letters, key, before),
                Undo::Number(bucket, before) => restore(&mut self.numbers, bucket, before),
                Undo::Received(buckets, before) => restore(&mut self.received, buckets, before),
                Undo::Lane(key, before) => restore(&mut self.lanes, key, before),
                Undo::Run(id, undo) => self.undo_run(&id, undo),
                Undo::Map(id, before) => restore(&mut self.maps, id, before.map(|before| *before)),
                Undo::Push => drop(self.pushes.pop()),
            }
        }
    }
}

fn restore<K: Ord, V>(map: &mut BTreeMap<K, V>, key: K, before: Option<V>) {
    match before {
        None => map.remove(&key),
        Some(value) => map.insert(key, value),
    };
}
