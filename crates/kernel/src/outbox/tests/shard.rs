//! A shard in memory, and what it holds.

use std::sync::Arc;

use contract::{HistoryPage, Reason, Value};
use kv::{Batch, Gaps, Key, KeyRange, MemoryStore, Order, Store, View, Writer};
use session::{Envelope, Reply, Stamp};

use crate::cells::{ViewCells, history};
use crate::command::{Body, MACHINE, Op, Transact};
use crate::counts::encode_messages;
use crate::keys::messages::{read_outgoing_key, read_publish_key, read_received_key};
use crate::outbox::command::Target;
use crate::outbox::dead_letters::{DeadLetterPage, list};
use crate::outbox::waiting::{WaitingMessage, list_waiting, waiting};
use crate::outbox::{Stored, numbers};
use crate::portable::{Builder, walk};
use crate::records::get::ViewRecords;
use crate::{Answer, BucketRange, Buckets, EntryHeader, EntryPlace, Kernel, Keys, MessageCounts, image};

/// Few, so that groups share buckets.
const BUCKETS: u16 = 8;

pub(super) struct Shard {
    store: MemoryStore,
    kernel: Kernel,
    generation: u32,
    messages: Vec<(Reason, u64)>,
    /// Keys whose rows are damaged.
    damaged: Vec<KeyRange>,
}

/// The bytes of a body.
pub(super) fn letter(body: &Body<'_>) -> Vec<u8> {
    let mut writer = Writer::new();
    body.encode(&mut writer);
    writer.finish()
}

/// The body of a transaction in a group.
pub(super) fn in_group(group: &str, ops: Vec<Op<'_>>) -> Vec<u8> {
    letter(&Body::Transact(Transact::new(1, 1, Some(group), ops)))
}

/// Two shards, each with half of the buckets.
pub(super) fn halves() -> [Shard; 2] {
    let half = |first, end| Shard::new(BucketRange::new(first, end).unwrap());
    [half(0, BUCKETS / 2), half(BUCKETS / 2, BUCKETS)]
}

impl Shard {
    pub(super) fn new(buckets: BucketRange) -> Self {
        let (store, keys) = (MemoryStore::new(), Keys::new(1, buckets));
        store.commit(Kernel::genesis(store.view().unwrap(), keys, Buckets::new(BUCKETS).unwrap())).unwrap();
        let kernel = Kernel::load(&*store.view().unwrap(), keys).unwrap().unwrap();
        Self { store, kernel, generation: 1, messages: Vec::new(), damaged: Vec::new() }
    }

    /// Applies one command at a time.
    pub(super) fn propose(&mut self, at_us: u64, body: &[u8]) -> Answer {
        let mut envelope = Writer::new();
        Envelope::without_session(MACHINE, self.kernel.catalogue().revision, body).encode(&mut envelope);
        let stamp = Stamp { wall_us: at_us, cluster_us: at_us };
        let entry = EntryHeader::new(stamp).encode([envelope.as_slice()].into_iter());
        let index = self.kernel.applied().index + 1;
        let effects = self.kernel.apply(self.view(), &EntryPlace::without_log(index), &entry).unwrap();
        let keys = self.kernel.keys();
        let copied = effects.batch.writes().filter(|(key, _)| keys.has_copy(key));
        let copies = copied.filter_map(|(key, row)| Some((Keys::copy_of(key), row?.clone()))).collect::<Vec<_>>();
        let batch = copies.into_iter().fold(effects.batch, |batch, (key, row)| batch.put(key, row));
        self.store.commit(batch).unwrap();
        for reason in [Reason::Delivered, Reason::Refused, Reason::Dropped, Reason::Lost] {
            self.messages.push((reason, effects.tally.changes(reason)));
        }
        match Reply::decode(&effects.replies[0]).unwrap() {
            Reply::Answer(bytes) => Answer::decode(bytes).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    /// The same for a command that must not be refused.
    pub(super) fn done(&mut self, at_us: u64, body: &[u8]) {
        let answer = self.propose(at_us, body);
        assert!(matches!(answer, Answer::Done { .. }), "{answer:?}");
    }

    /// Messages that were delivered here, or refused.
    pub(super) fn changes(&self, reason: Reason) -> u64 {
        self.messages.iter().filter(|(noted, _)| *noted == reason).map(|(_, count)| count).sum()
    }

    pub(super) fn bucket(&self, group: &str) -> u16 {
        self.kernel.catalogue().buckets.of_group(b"default", group.as_bytes())
    }

    pub(super) fn owns(&self, group: &str) -> bool {
        self.kernel.keys().buckets().contains(self.bucket(group))
    }

    pub(super) fn counts(&self) -> MessageCounts {
        waiting(&*self.view(), &self.kernel.keys()).unwrap()
    }

    /// How many dead letters each page of a list has.
    pub(super) fn letter_pages(&self, group: Option<&str>) -> Vec<usize> {
        let (mut pages, mut after) = (Vec::new(), None);
        loop {
            let page = DeadLetterPage { space: 1, branch: 1, group, after, limit: 100, rows_max: 1_000 };
            let found = list(&*self.view(), &self.kernel.keys(), self.kernel.catalogue(), &page).unwrap();
            pages.push(found.letters.len());
            after = found.next;
            if after.is_none() {
                return pages;
            }
        }
    }

    /// Has the shard go on at an earlier level of behaviour.
    pub(super) fn go_back_to_level(&mut self, level: u32) {
        let keys = self.kernel.keys();
        let mut catalogue = self.kernel.catalogue().clone();
        catalogue.level = level;
        let mut state = kv::Staging::new(self.view());
        catalogue.write_all(&keys, &mut state);
        self.store.commit(state.into_batch()).unwrap();
        self.kernel = Kernel::load(&*self.view(), keys).unwrap().unwrap();
    }

    /// Has the store count so many dead letters, and so many of them in the first space.
    pub(super) fn count_dead_letters(&mut self, dead: i64, of_space: i64) {
        let (counts, keys) = (MessageCounts { dead, ..MessageCounts::default() }, self.kernel.keys());
        let mut row = Writer::new();
        encode_messages(&mut row, counts);
        let mut of_space_row = Writer::new();
        of_space_row.u8(1).i64(of_space);
        let batch = Batch::new().put(keys.message_counts(), row.finish());
        self.store.commit(batch.put(keys.dead_letters_of_space(1), of_space_row.finish())).unwrap();
        assert_eq!(self.counts(), counts);
    }

    pub(super) fn waiting(&self) -> Vec<WaitingMessage> {
        list_waiting(&*self.view(), &self.kernel.keys(), self.kernel.catalogue(), 1_000, 1_000).unwrap()
    }

    /// The messages for other shards: bucket, number and row.
    pub(super) fn outgoing(&self) -> Vec<(u16, u64, Vec<u8>)> {
        let rows = self.scan_buckets(|keys, bucket| KeyRange::prefix(&keys.outgoing_prefix(bucket)));
        let read = |(key, row): (Vec<u8>, Vec<u8>)| {
            let (bucket, number) = read_outgoing_key(&key).unwrap();
            (bucket, number, row)
        };
        rows.into_iter().map(read).collect()
    }

    /// What waits to be published in each bucket, in order: the group that sent it, whether it was timed, the payload.
    pub(super) fn to_publish(&self) -> Vec<(u16, String, bool, Vec<u8>)> {
        let rows = self.scan_buckets(|keys, bucket| KeyRange::prefix(&keys.publish_prefix(bucket)));
        let read = |(key, row): (Vec<u8>, Vec<u8>)| {
            let stored = Stored::decode(&row).unwrap();
            let Target::Topic { payload, .. } = stored.send.target else { panic!("{stored:?}") };
            let is_timed = stored.send.after_us.is_some();
            (read_publish_key(&key).unwrap().0, stored.source.to_owned(), is_timed, payload.to_vec())
        };
        rows.into_iter().map(read).collect()
    }

    /// The last number received: bucket, source bucket, number.
    pub(super) fn received(&self) -> Vec<(u16, u16, u64)> {
        let rows = self.scan_buckets(|keys, bucket| keys.received_of_bucket(bucket));
        let read = |(key, row): (Vec<u8>, Vec<u8>)| {
            let (bucket, source) = read_received_key(&key).unwrap();
            (bucket, source, numbers::decode(&row).unwrap())
        };
        rows.into_iter().map(read).collect()
    }

    /// The last number that a bucket has given.
    pub(super) fn last_number(&self, bucket: u16) -> u64 {
        let row = self.view().get(&self.kernel.keys().message_numbers(bucket)).unwrap();
        row.map_or(0, |row| numbers::decode(&row).unwrap())
    }

    /// The values that a cell has had, oldest first.
    pub(super) fn values(&self, group: &str, cell: &str) -> Vec<i64> {
        let view = self.view();
        let cells = ViewCells { view: &*view, keys: self.kernel.keys() };
        let cell = self.kernel.catalogue().thing(1, 1, Some(group), cell).unwrap();
        let page = HistoryPage { before: None, limit: 1_000 };
        let versions = history::history(&cells, &cell, page).unwrap().versions;
        let integer = |value| match value {
            Some(Value::Integer(integer)) => integer,
            other => panic!("{other:?}"),
        };
        versions.into_iter().rev().map(|version| integer(version.value)).collect()
    }

    /// A counter in a record; 0 if there is none.
    pub(super) fn counter(&self, group: &str, record: &str, field: &str) -> i64 {
        let view = self.view();
        let records = ViewRecords::new(&*view, self.kernel.keys(), self.kernel.catalogue()).unwrap();
        let record = self.kernel.catalogue().thing(1, 1, Some(group), record).unwrap();
        match records.field(&record, field, Stamp::default).unwrap() {
            None => 0,
            Some(Value::Integer(integer)) => integer,
            other => panic!("{other:?}"),
        }
    }

    /// All rows of buckets.
    pub(super) fn rows(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        self.scan_buckets(|keys, bucket| {
            let start = keys.in_generation(&bucket.to_be_bytes());
            KeyRange { end: KeyRange::prefix(&start).end, start: start.to_vec() }
        })
    }

    pub(super) fn assert_sound(&self) {
        crate::script::assert_messages_sound(&*self.view(), &self.kernel);
    }

    /// Goes on from an image, in another generation.
    pub(super) fn restore(&mut self) {
        let mut bytes = Vec::new();
        image::write(&*self.view(), &self.kernel.keys(), &mut bytes).unwrap();
        let keys = self.next_keys();
        let store = MemoryStore::new();
        image::restore(&mut bytes.as_slice(), &store, &keys).unwrap();
        self.go_on(store, keys);
    }

    /// Goes on with a shard that is built from what this one exports.
    pub(super) fn rebuild(&mut self) {
        let (view, keys) = (self.view(), self.next_keys());
        let (catalogue, applied) = (self.kernel.catalogue().clone(), *self.kernel.applied());
        let store = MemoryStore::new();
        let mut builder = Builder::new(&store, keys, catalogue, applied).unwrap();
        let damaged = walk::<session::Halt>(&*view, &self.kernel.keys(), self.kernel.catalogue(), None, &mut |item| {
            builder.put(item).unwrap();
            Ok(())
        });
        assert!(damaged.unwrap().is_empty());
        builder.finish(applied.hash).unwrap();
        self.go_on(store, keys);
    }

    fn next_keys(&mut self) -> Keys {
        self.generation += 1;
        Keys::new(self.generation, self.kernel.keys().buckets())
    }

    fn go_on(&mut self, store: MemoryStore, keys: Keys) {
        self.kernel = Kernel::load(&*store.view().unwrap(), keys).unwrap().unwrap();
        self.store = store;
    }

    /// Damages the row with a key, or the second copy of one.
    pub(super) fn damage(&mut self, key: &[u8]) {
        self.store.commit(Batch::new().delete(Key::from(key))).unwrap();
        self.damaged.push(KeyRange { end: Some([key, &[0]].concat()), start: key.to_vec() });
        self.kernel.expect_damage(true);
    }

    pub(super) fn keys(&self) -> Keys {
        self.kernel.keys()
    }

    /// The key of a cell.
    pub(super) fn cell_key(&self, group: &str, cell: &str) -> Key {
        self.keys().cell_head(&self.kernel.catalogue().thing(1, 1, Some(group), cell).unwrap()).into_key()
    }

    fn view(&self) -> Arc<dyn View> {
        let view = self.store.view().unwrap();
        if self.damaged.is_empty() {
            return view;
        }
        // A test ends soon, and a view with gaps borrows the one below.
        let below: &'static Arc<dyn View> = Box::leak(Box::new(view));
        Arc::new(Gaps::new(&**below, self.damaged.clone()))
    }

    fn scan_buckets(&self, range: impl Fn(&Keys, u16) -> KeyRange) -> Vec<(Vec<u8>, Vec<u8>)> {
        let (view, keys) = (self.view(), self.kernel.keys());
        let ranges = self.kernel.catalogue().buckets_here().map(|bucket| range(&keys, bucket));
        let rows = ranges.flat_map(|range| view.scan(&range, Order::Ascending).collect::<Vec<_>>());
        let row = |row: Result<(kv::Key, kv::Bytes), _>| row.map(|(key, row)| (key.to_vec(), row.to_vec())).unwrap();
        rows.map(row).collect()
    }
}
