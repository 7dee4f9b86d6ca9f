//! Compares what a store holds with the reference, by every read of records there is.

use std::collections::BTreeMap;

use contract::limits::DEAD_LETTER_AGE_US;
use contract::records::filter::{Filter, Test};
use contract::{NameInGroup, Value};
use kernel::keys::ThingId;
use kernel::keys::due::{Due, DueClock, read_due_suffix};
use kernel::keys::messages::{read_dead_letter_key, read_publish_key, read_received_key};
use kernel::keys::queues::QueueId;
use kernel::names::InGroup;
use kernel::outbox::dead_letters::DeadLetter;
use kernel::outbox::waiting::waiting;
use kernel::outbox::{Stored, numbers};
use kernel::records::counts::{count_group, count_states};
use kernel::records::get::ViewRecords;
use kernel::records::scan::Scan;
use kernel::{Keys, MessageCounts, Target};
use kv::{KeyRange, Order, View};
use testkit::random::Random;

use super::names::{FIELDS, Focus, NAMES, PREFIXES, STATES};
use crate::model::compare::same;
use crate::model::instance::{Instance, halted, text};
use crate::model::places::GROUPS;
use crate::model::reference::{Id, Letter, Message, Reference, To};

/// Pages of a scan after which it must have ended.
const PAGES_MAX: usize = 10_000;

/// A store and the reference beside it.
pub(crate) struct Both<'both> {
    pub(crate) instance: &'both Instance,
    pub(crate) view: &'both dyn View,
    pub(crate) reference: &'both Reference,
    pub(crate) focus: Focus,
}

impl Both<'_> {
    fn cell_id<'id>(&self, id: &'id Id) -> ThingId<'id> {
        let (space, branch, group, name) = (id.space, id.branch, id.group.as_deref(), id.name.as_str());
        ThingId { bucket: self.reference.bucket(id), space, branch, group, name }
    }

    fn records(&self) -> Result<ViewRecords<'_>, String> {
        ViewRecords::new(self.view, self.instance.keys, self.instance.kernel.catalogue()).map_err(halted)
    }

    /// One record.
    pub(crate) fn thing(&self, id: &Id) -> Result<(), String> {
        let found = self.records()?.get(&self.cell_id(id)).map_err(halted)?;
        same(|| format!("the record {id:?}"), &found, &self.reference.record(id))
    }

    /// Every record, the messages, and some scans and counts. Gives how many reads that were.
    pub(crate) fn everything(&self, random: &mut Random) -> Result<u64, String> {
        let mut reads = 0;
        for (space, branch) in self.reference.live_places() {
            for group in GROUPS.map(Some).into_iter().chain([None]) {
                for name in NAMES {
                    self.thing(&Id::new(space, branch, group, name))?;
                    reads += 1;
                }
            }
        }
        for _ in 0..10 {
            self.scan(random)?;
            self.counts(random)?;
            reads += 2;
        }
        self.messages()?;
        Ok(reads)
    }

    fn counts(&self, random: &mut Random) -> Result<(), String> {
        let (space, branch) = *random.choose(&self.reference.live_places());
        let prefix = self.focus.queue(random);
        let (keys, catalogue) = (self.instance.keys, self.instance.kernel.catalogue());
        let queue = QueueId { space, branch, name: prefix };
        let counts = count_states(self.view, &keys, catalogue, queue).map_err(halted)?;
        let expected = self.reference.counts(space, branch, None, prefix);
        same(|| format!("the counts of {space}/{branch} {prefix:?}"), &counts.by_state, &expected)?;
        let (group, rows_max) = (random.pick(&GROUPS), random.pick(&[5, 1_000]));
        let counts = count_group(self.view, &keys, catalogue, (space, branch), group, prefix, rows_max);
        let expected = self.reference.counts(space, branch, Some(group), prefix);
        match counts.map_err(halted)? {
            Ok(counts) => {
                same(|| format!("the counts of {space}/{branch} {group:?} {prefix:?}"), &counts.by_state, &expected)
            }
            Err(rejection) => {
                same(|| format!("the counts of {group:?}: {rejection}"), &(rows_max < NAMES.len()), &true)
            }
        }
    }

    /// A scan, page by page to its end.
    pub(crate) fn scan(&self, random: &mut Random) -> Result<(), String> {
        let (space, branch, group) = self.focus.place(random, self.reference);
        let groups = match group {
            Some(group) => InGroup::Named(group),
            None => random.pick(&[InGroup::Any, InGroup::Any, InGroup::Own]),
        };
        let prefix = random.pick(&PREFIXES);
        let (record_type, filter) = match self.unfilled_index(space, random) {
            Some((record_type, field)) if random.one_in(2) => {
                let value = value(random, field, self.reference.wall_us);
                (Some(record_type), Filter::all().and(field, ordered(random, value)))
            }
            _ => (
                random.pick(&[None, None, Some("job"), Some("mail"), Some("mail")]),
                filter(random, self.reference.wall_us),
            ),
        };
        let limit = random.pick(&[1, 2, 7, 100]);
        let rows_max = random.pick(&[1, 3, 50, 10_000]);
        let what = || format!("a scan of {space}/{branch} {groups:?} {prefix:?} {record_type:?} {filter:?} by {limit}");
        let records = self.records()?;
        let (mut found, mut cursor) = (Vec::new(), None);
        for page in 0.. {
            if page == PAGES_MAX {
                return Err(format!("{} does not end", what()));
            }
            let cursor_now = cursor.take();
            let scan = Scan {
                space,
                branch,
                groups,
                prefix,
                record_type,
                filter: &filter,
                limit,
                rows_max,
                cursor: cursor_now.as_deref(),
            };
            let scanned = records.scan(&scan).map_err(halted)?.map_err(text)?;
            if scanned.records.len() > limit || scanned.looked_at > rows_max {
                return Err(format!("{}: a page is too long", what()));
            }
            found.extend(scanned.records);
            cursor = scanned.cursor;
            if cursor.is_none() {
                break;
            }
        }
        if let Some((name, _)) = found.iter().find(|(_, record)| record.ttl.is_some_and(|ttl| ttl.is_zero())) {
            return Err(format!("(4) nothing expired is ever read: {} found {name:?}", what()));
        }
        let expected = self.reference.scan((space, branch, groups), prefix, record_type, &filter);
        let names = |records: &[(NameInGroup, _)]| records.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        same(|| format!("the names in {}", what()), &names(&found), &names(&expected))?;
        same(what, &found, &expected)
    }

    /// A type of a space and one of its fields, whose index is declared and not filled yet.
    fn unfilled_index(&self, space: u32, random: &mut Random) -> Option<(&str, &str)> {
        let types = self.reference.spaces.get(&space)?.types.iter();
        let unfilled = types.flat_map(|declared| {
            let indexes = declared.definition.indexes.iter().filter(|index| !declared.filled.contains(index));
            indexes.map(|(field, _)| (declared.definition.name.as_str(), field.as_str()))
        });
        let unfilled: Vec<_> = unfilled.collect();
        (!unfilled.is_empty()).then(|| random.pick(&unfilled))
    }

    /// Messages that were refused. Gives how many there are.
    fn letters(&self) -> Result<i64, String> {
        let (keys, mut found) = (self.instance.keys, BTreeMap::new());
        for bucket in 0..self.reference.buckets.count() {
            for row in self.view.scan(&KeyRange::prefix(&keys.dead_letter_prefix(bucket)), Order::Ascending) {
                let (key, row) = row.map_err(text)?;
                let key = read_dead_letter_key(&key).ok_or("a foreign key among dead letters")?;
                let DeadLetter { refused_us, refusal, space, branch, group, sent_number, message: of, .. } =
                    DeadLetter::decode(&row).map_err(halted)?;
                let mut due = keys.due_prefix(DueClock::Wall, bucket);
                due.extend_from_slice(&Keys::due_dead_letter_suffix(
                    refused_us + DEAD_LETTER_AGE_US,
                    space,
                    branch,
                    key.1,
                ));
                if self.view.get(&due).map_err(text)?.is_none() {
                    return Err(format!("letter {key:?} never ends"));
                }
                let refusals = self.reference.letters.get(&key).map_or(Vec::new(), |letter| letter.refusals.clone());
                if !refusals.iter().any(|expected| expected.code() == refusal.code()) {
                    return Err(format!("letter {key:?} was refused with {refusal}, not with one of {refusals:?}"));
                }
                let (group, message) = (group.to_owned(), message(of));
                found.insert(key, Letter { space, branch, group, refused_us, sent_number, message, refusals });
            }
        }
        same(|| "the dead letters".into(), &found, &self.reference.letters)?;
        Ok(found.len() as i64)
    }

    /// What is on its way, and what waits to be published.
    fn messages(&self) -> Result<(), String> {
        let keys = self.instance.keys;
        let (mut due, mut publish) = (Vec::new(), Vec::new());
        for bucket in 0..self.reference.buckets.count() {
            let prefix = keys.due_prefix(DueClock::Wall, bucket);
            for row in self.view.scan(&KeyRange::prefix(&prefix), Order::Ascending) {
                let (key, row) = row.map_err(text)?;
                if let Some((at_us, Due::Send { number })) = read_due_suffix(&key[prefix.len()..]) {
                    due.push(((at_us, number, bucket), stored(&row)?));
                }
            }
            for row in self.view.scan(&KeyRange::prefix(&keys.publish_prefix(bucket)), Order::Ascending) {
                let (key, row) = row.map_err(text)?;
                publish.push((read_publish_key(&key).ok_or("a foreign key among messages")?, stored(&row)?));
            }
        }
        due.sort_by_key(|(key, _)| *key);
        let expected: Vec<_> = self.reference.messages.clone().into_iter().collect();
        same(|| "the messages on their way".into(), &due, &expected)?;
        let expected: Vec<_> = self.reference.to_publish.clone().into_iter().collect();
        same(|| "the messages that wait to be published".into(), &publish, &expected)?;
        let counted = waiting(self.view, &keys).map_err(halted)?;
        let dead = self.letters()?;
        let rows = MessageCounts { due: due.len() as i64, publish: publish.len() as i64, outgoing: 0, dead };
        same(|| "the number of messages that wait".into(), &counted, &rows)?;
        let (mut numbers, mut received) = (BTreeMap::new(), BTreeMap::new());
        for bucket in 0..self.reference.buckets.count() {
            if self.view.scan(&KeyRange::prefix(&keys.outgoing_prefix(bucket)), Order::Ascending).next().is_some() {
                return Err(format!("bucket {bucket} has messages for other shards, and this one owns all buckets"));
            }
            for row in self.view.scan(&keys.received_of_bucket(bucket), Order::Ascending) {
                let (key, row) = row.map_err(text)?;
                let buckets = read_received_key(&key).ok_or("a foreign key among what was received")?;
                received.insert(buckets, numbers::decode(&row).map_err(halted)?);
            }
            let row = self.view.get(&keys.message_numbers(bucket)).map_err(text)?;
            let last = row.map(|row| numbers::decode(&row)).transpose().map_err(halted)?;
            numbers.extend(last.map(|last| (bucket, last)));
        }
        same(|| "the last numbers received".into(), &received, &self.reference.received)?;
        same(|| "the last numbers of messages".into(), &numbers, &self.reference.numbers)
    }
}

fn stored(row: &[u8]) -> Result<Message, String> {
    Ok(message(Stored::decode(row).map_err(halted)?))
}

fn message(Stored { space, branch, source, send }: Stored<'_>) -> Message {
    let to = match send.target {
        Target::Transact(body) => To::Group(body.to_vec()),
        Target::Topic { topic, payload } => To::Topic(topic.to_owned(), payload.to_vec()),
    };
    Message { space, branch, source: source.to_owned(), to }
}

fn filter(random: &mut Random, wall_us: u64) -> Filter {
    let mut filter = Filter::all();
    while random.one_in(2) {
        // Half of them are such that an index may serve the scan.
        let indexed = ["n", "size", "to", "count", "updated_at", "status", "blob"];
        let field = if random.one_in(2) { random.pick(&indexed) } else { random.pick(&FIELDS) };
        let value = value(random, field, wall_us);
        let test = match random.below(9) {
            0 => Test::Ne(value),
            1 => Test::In(vec![value, 1.into()]),
            2 => Test::NotIn(vec![value]),
            3 => Test::Exists,
            _ => ordered(random, value),
        };
        filter = filter.and(field, test);
    }
    filter
}

/// A test by order or equality, which an index can serve.
fn ordered(random: &mut Random, value: Value) -> Test {
    match random.below(5) {
        0 => Test::Lt(value),
        1 => Test::Lte(value),
        2 => Test::Gt(value),
        3 => Test::Gte(value),
        _ => Test::Eq(value),
    }
}

fn value(random: &mut Random, field: &str, wall_us: u64) -> Value {
    let integer = i64::try_from(random.below(9)).expect("small") - 3;
    match field {
        _ if random.one_in(8) => Value::Boolean(true),
        "state" | "status" => Value::from(random.pick(&STATES)),
        "to" => Value::from(random.pick(&["", "a", "ab", "b", "rrr"])),
        "blob" => Value::from(vec![7; random.pick(&[0, 1, 2, 256, 257, 300])]),
        "updated_at" | "timeout_at" => Value::Integer(i64::try_from(wall_us / 1_000).expect("small") + integer * 5),
        _ => Value::Integer(integer),
    }
}
