//! What holds at the end of every script: what the store derives from things matches them.

use std::collections::{BTreeMap, BTreeSet};

use contract::runs::RunSnapshot;
use kv::{Key, KeyRange, Order, View};

use super::Stage;
use crate::catalogue::types::OWNER_ID;
use crate::keys::Kind;
use crate::keys::due::{Due, DueClock, read_due_suffix};
use crate::keys::messages::{read_dead_letter_key, read_outgoing_key, read_publish_key};
use crate::keys::names::is_name_in_group;
use crate::keys::queues::QueueId;
use crate::keys::things::read_thing_key;
use crate::outbox::dead_letters::DeadLetter;
use crate::outbox::numbers;
use crate::outbox::waiting::{dead_letters_of_spaces, waiting};
use crate::records::counts::count_states;
use crate::records::fields::FieldReader;
use crate::records::index::sort_key;
use crate::records::queue::ALL_QUEUES;
use crate::records::row::Row;
use crate::runs::read;
use crate::usage;
use crate::{BucketRange, Kernel, MessageCounts};

/// More than any script has.
const MANY: usize = 100_000;

impl Stage {
    pub(crate) fn assert_sound(&self) {
        for (space, found) in self.kernel.catalogue().spaces() {
            self.assert_usage_sound(space);
            for (branch, _) in found.branches().filter(|(_, branch)| !branch.deleted) {
                self.assert_records_sound(space, branch);
                self.assert_runs_sound(space, branch);
            }
        }
        assert_messages_sound(&*self.view(), &self.kernel);
    }

    /// U1: what a space takes is what its rows take.
    fn assert_usage_sound(&self, space: u32) {
        let (view, keys, catalogue) = (self.view(), self.kernel.keys(), self.kernel.catalogue());
        let counted = usage::read(&*view, &keys, space).unwrap();
        assert_eq!(counted, usage::recount(&*view, &keys, catalogue, space).unwrap(), "U1: space {space}");
    }

    /// R5: the counts and the declared indexes say what the records say.
    fn assert_records_sound(&self, space: u32, branch: u32) {
        let (view, keys, catalogue) = (self.view(), self.kernel.keys(), self.kernel.catalogue());
        let fields = FieldReader { rows: &*view, keys, stamp: self.kernel.applied().stamp };
        let mut counts = BTreeMap::new();
        let (mut entries, mut filling, mut indexed) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::<Key>::new());
        for bucket in catalogue.buckets_here() {
            let range = keys.rows_of_branch(Kind::Record, bucket, space, branch);
            for found in view.scan(&range, Order::Ascending) {
                let (key, bytes) = found.unwrap();
                if is_name_in_group(&key) {
                    continue;
                }
                let id = read_thing_key(&key, space, branch).unwrap();
                let (record, row) = (id.in_bucket(bucket), Row::decode(&bytes).unwrap());
                let declared = catalogue.record_type(space, row.numbers.record_type);
                let Some(declared) = declared.filter(|_| !row.numbers.deleted) else {
                    continue;
                };
                if declared.id == OWNER_ID {
                    continue;
                }
                let state = declared.state_name(row.numbers.state).to_owned();
                *counts.entry((declared.definition.name.clone(), state)).or_insert(0) += 1;
                for (number, (field, kind)) in (0..).zip(&declared.definition.indexes) {
                    let value = fields.value(&record, &row, Some(declared), field).unwrap();
                    let sorted = value.and_then(|value| sort_key(field, *kind, &value));
                    let of_index = if number < declared.filled { &mut entries } else { &mut filling };
                    of_index.extend(sorted.map(|sorted| keys.index_entry(&record, declared.id, number, &sorted)));
                }
            }
            let range = keys.rows_of_branch(Kind::FieldIndex, bucket, space, branch);
            indexed.extend(view.scan(&range, Order::Ascending).map(|row| row.unwrap().0));
        }
        let counted = count_states(&*view, &keys, catalogue, QueueId { space, branch, name: ALL_QUEUES }).unwrap();
        assert_eq!(counted.by_state, counts, "R5: counts");
        // An index that is being filled may lack entries.
        assert_eq!(&indexed - &filling, entries, "R5: indexes");
    }

    /// L3 and L4: a projection is what its events say, and the counts are those of the runs.
    fn assert_runs_sound(&self, space: u32, branch: u32) {
        let (view, keys, catalogue) = (self.view(), self.kernel.keys(), self.kernel.catalogue());
        let (runs, _) = read::all(&*view, &keys, catalogue, (space, branch), None, MANY).unwrap();
        let mut counts = BTreeMap::new();
        for id in runs {
            let run = catalogue.thing(space, branch, id.group.as_deref(), &id.name).unwrap();
            let head = read::head(&*view, &keys, &run).unwrap().unwrap();
            let mut replayed = RunSnapshot::empty(run.name);
            let events = self.fetch(&run, &head, 0, MANY);
            assert_eq!(events.len() as u64, head.last_seq, "L1: {run:?}");
            events.iter().for_each(|event| replayed.apply(event));
            assert_eq!(read::snapshot(&*view, &keys, &run, &head).unwrap(), replayed, "L3");
            *counts.entry((head.run_type, head.status)).or_insert(0) += 1;
        }
        let counted = read::counts(&*view, &keys, space, branch).unwrap();
        let counted: BTreeMap<_, _> =
            counted.into_iter().map(|(kind, status, count)| ((kind, status), count)).collect();
        assert_eq!(counted, counts, "L4: counts");
    }
}

/// R6: as many messages wait as are counted, and their numbers are different ones that their bucket has given. A shard
/// that owns all buckets has none for other shards.
pub(crate) fn assert_messages_sound(view: &dyn View, kernel: &Kernel) {
    let (keys, catalogue) = (kernel.keys(), kernel.catalogue());
    let (mut counted, mut letters_due, mut of_spaces) = (MessageCounts::default(), 0, BTreeMap::new());
    for bucket in catalogue.buckets_here() {
        let row = view.get(&keys.message_numbers(bucket)).unwrap();
        let last = row.map_or(0, |row| numbers::decode(&row).unwrap());
        let mut given = BTreeSet::new();
        let mut note = |number: u64| assert!((1..=last).contains(&number) && given.insert(number), "R6: {number}");
        let due = keys.due_prefix(DueClock::Wall, bucket);
        for row in view.scan(&KeyRange::prefix(&due), Order::Ascending) {
            match read_due_suffix(&row.unwrap().0[due.len()..]) {
                Some((_, Due::Send { number })) => {
                    note(number);
                    counted.due += 1;
                }
                Some((at_us, Due::DeadLetter { space, branch, number })) => {
                    let row = view.get(&keys.dead_letter(bucket, space, branch, number)).unwrap();
                    let row = row.expect("R6: what is due has a row");
                    assert_eq!(DeadLetter::decode(&row).unwrap().until_us(), at_us, "R6: dead letter {number}");
                    letters_due += 1;
                }
                _ => {}
            }
        }
        for row in view.scan(&KeyRange::prefix(&keys.dead_letter_prefix(bucket)), Order::Ascending) {
            let (key, row) = row.unwrap();
            note(read_dead_letter_key(&key).unwrap().1);
            *of_spaces.entry(DeadLetter::decode(&row).unwrap().space).or_insert(0) += 1;
            counted.dead += 1;
        }
        for row in view.scan(&KeyRange::prefix(&keys.publish_prefix(bucket)), Order::Ascending) {
            note(read_publish_key(&row.unwrap().0).unwrap().1);
            counted.publish += 1;
        }
        for row in view.scan(&KeyRange::prefix(&keys.outgoing_prefix(bucket)), Order::Ascending) {
            note(read_outgoing_key(&row.unwrap().0).unwrap().1);
            counted.outgoing += 1;
        }
    }
    assert_eq!(waiting(view, &keys).unwrap(), counted, "R6: counts");
    assert_eq!(counted.dead, letters_due, "R6: each dead letter ends");
    assert_eq!(dead_letters_of_spaces(view, &keys).unwrap(), of_spaces, "R6: dead letters of spaces");
    assert!(counted.outgoing == 0 || keys.buckets() != BucketRange::ALL, "R6: {counted:?} in a shard that owns all");
}
