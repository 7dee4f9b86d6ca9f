//! Checks of the stored rows: everything that is derived is derived again from the rows of the records, and compared.

use std::collections::{BTreeMap, BTreeSet};

use contract::Value;
use contract::guards::OWNER_RECORD;
use contract::records::types::{ReadyOrder, StateKind};
use kernel::Keys;
use kernel::catalogue::Declared;
use kernel::counts;
use kernel::keys::due::{Due, DueClock, DueOf, read_due_suffix};
use kernel::keys::names::is_name_in_group;
use kernel::keys::queues::{QueueId, Ready, ReadyPlace, read_lanes_key, read_ready_suffix};
use kernel::keys::records::read_counts_key;
use kernel::keys::things::{OwnedId, read_thing_key};
use kernel::keys::{GENERATION_BYTES, Kind, ThingId};
use kernel::records::get::ViewRecords;
use kernel::records::index::sort_key;
use kernel::records::lanes::Lanes;
use kernel::records::queue::{ALL_QUEUES, above, queue_of};
use kernel::records::row::{Content, Numbers, Row, read_value};
use kv::{KeyRange, Order, View};

use crate::model::instance::{Instance, halted, text};

type RowKey = Vec<u8>;

/// Space, branch, queue, type: the number in each state.
type CountRows = BTreeMap<(u32, u32, String, u32), Vec<u64>>;

/// The rows of records, and what follows from them.
#[derive(Default)]
struct Rebuilt {
    ready: BTreeSet<RowKey>,
    wall: BTreeSet<RowKey>,
    cluster: BTreeSet<RowKey>,
    indexes: BTreeSet<RowKey>,
    /// Of indexes that are being filled: they may be there.
    filling: BTreeSet<RowKey>,
    large: BTreeSet<RowKey>,
    names: BTreeSet<RowKey>,
    counts: CountRows,
}

/// Checks (1), (4), (6) and (7).
pub(crate) fn check(instance: &Instance, view: &dyn View) -> Result<(), String> {
    let catalogue = instance.kernel.catalogue();
    let records = ViewRecords::new(view, instance.keys, catalogue).map_err(halted)?;
    let wall_us = records.stamp().wall_us;
    let (mut rebuilt, mut names) = (Rebuilt::default(), BTreeSet::new());
    let buckets = catalogue.buckets.count();
    for bucket in 0..buckets {
        for (key, row) in rows_of(instance, view, bucket, Kind::Record)? {
            if is_name_in_group(&key) {
                names.insert(key);
                continue;
            }
            let number = |at: usize| u32::from_be_bytes(key[at..at + 4].try_into().expect("four bytes"));
            // Generation, bucket, kind; then space and branch.
            let (space, branch) = (number(GENERATION_BYTES + 3), number(GENERATION_BYTES + 7));
            let id = read_thing_key(&key, space, branch).ok_or("a foreign key among records")?;
            let record = id.in_bucket(bucket);
            let row = Row::decode(&row).map_err(halted)?;
            let declared = catalogue.space(space).map_err(text)?.types.get(row.numbers.record_type);
            let numbers = row.numbers;
            if numbers.expired_at(wall_us) && records.get(&record).map_err(halted)?.is_some() {
                return Err(format!("(4) nothing expired is ever read: {id:?} is, {numbers:?} at {wall_us}"));
            }
            one_holder(&numbers, declared).map_err(|what| format!("(1) one holder per record: {what}, {id:?}"))?;
            rebuilt.add(instance, view, &record, &row, declared)?;
        }
    }
    let live = live_places(instance);
    rebuilt.counts.retain(|(space, branch, ..), _| live.contains(&(*space, *branch)));
    compare_counts(instance, view, &rebuilt.counts)?;
    let is_live = |key: &RowKey| ready_key(key).is_ok_and(|(space, branch, ..)| live.contains(&(space, branch)));
    rebuilt.ready.retain(is_live);
    rebuilt.ready.extend(rows_of_lanes(instance, view, &rebuilt.ready, buckets)?);
    for (what, kind, expected) in [
        ("ready", Kind::Ready, &rebuilt.ready),
        ("due by wall time", Kind::DueWall, &rebuilt.wall),
        ("due by cluster time", Kind::DueCluster, &rebuilt.cluster),
        ("by field", Kind::FieldIndex, &rebuilt.indexes),
        ("large fields", Kind::RecordField, &rebuilt.large),
    ] {
        let mut found = BTreeSet::new();
        for bucket in 0..buckets {
            let keys = rows_of(instance, view, bucket, kind)?.into_iter().map(|(key, _)| key);
            found.extend(
                keys.filter(|key| kind != Kind::Ready || is_live(key))
                    .filter(|key| !matches!(kind, Kind::DueWall | Kind::DueCluster) || is_of_record(key))
                    .filter(|key| !rebuilt.filling.contains(key)),
            );
        }
        as_rebuilt(what, &found, expected)?;
    }
    as_rebuilt("K8: names in groups", &names, &rebuilt.names)
}

fn as_rebuilt(what: &str, found: &BTreeSet<RowKey>, expected: &BTreeSet<RowKey>) -> Result<(), String> {
    let surplus: Vec<_> = found.difference(expected).map(|key| shown(key)).collect();
    let missing: Vec<_> = expected.difference(found).map(|key| shown(key)).collect();
    if !surplus.is_empty() || !missing.is_empty() {
        let what = format!("{what}: rows too many {surplus:?}, rows too few {missing:?}");
        return Err(format!("(7) every index row is what a rebuild gives: {what}"));
    }
    Ok(())
}

/// Held exactly if the state says so, and then not to be claimed.
fn one_holder(numbers: &Numbers, declared: Option<&Declared>) -> Result<(), String> {
    let kind = declared.filter(|_| !numbers.deleted).map(|declared| declared.kind(numbers.state));
    if numbers.is_held() != (kind == Some(StateKind::Held)) {
        return Err(format!("state and lease disagree in {numbers:?}"));
    }
    if numbers.is_held() && (numbers.attempt == 0 || numbers.ready_us != 0 || numbers.waiting) {
        return Err(format!("held and ready at once: {numbers:?}"));
    }
    Ok(())
}

impl Rebuilt {
    fn add(
        &mut self,
        instance: &Instance,
        view: &dyn View,
        record: &ThingId<'_>,
        row: &Row<'_>,
        declared: Option<&Declared>,
    ) -> Result<(), String> {
        let keys = instance.keys;
        let numbers = row.numbers;
        if !numbers.deleted {
            self.names.extend(keys.name_in_group(Kind::Record, record).map(|key| key.to_vec()));
        }
        let mut due = |clock, at_us: u64, of| {
            let key = [&*keys.due_prefix(clock, record.bucket), &*Keys::due_suffix(at_us, of, record)].concat();
            match clock {
                DueClock::Wall => self.wall.insert(key),
                DueClock::Cluster => self.cluster.insert(key),
            };
        };
        for (clock, of, at_us, entry_us) in [
            (DueClock::Wall, DueOf::Expiry, numbers.expires_us, numbers.expires_entry_us),
            (DueClock::Cluster, DueOf::Lease, numbers.lease_us, numbers.lease_entry_us),
        ] {
            if (at_us == 0) != (entry_us == 0) || entry_us > at_us {
                return Err(format!(
                    "(7) every index row is what a rebuild gives: {of:?} of {record:?} in {numbers:?}"
                ));
            }
            if entry_us != 0 {
                due(clock, entry_us, of);
            }
        }
        let value = |field: &str| -> Result<Option<Value>, String> {
            match row.field(field).map(|field| field.content) {
                None => Ok(None),
                Some(Content::Inline(value)) => Ok(Some(value.to_value())),
                Some(Content::Apart { .. }) => {
                    let bytes = view.get(&keys.record_field(record, field)).map_err(text)?;
                    let bytes = bytes.ok_or_else(|| format!("(7) field {field:?} of {record:?} has lost its row"))?;
                    Ok(Some(read_value(&bytes).map_err(text)?.to_value()))
                }
            }
        };
        for field in row.fields.iter().filter(|field| matches!(field.content, Content::Apart { .. })) {
            self.large.insert(keys.record_field(record, field.name).to_vec());
        }
        let Some(declared) = declared.filter(|_| !numbers.deleted) else {
            return Ok(());
        };
        if declared.kind(numbers.state) == StateKind::Ready {
            if numbers.by_name && !numbers.waiting {
                // In a guarded group, or an owner: in no queue.
            } else if numbers.waiting {
                due(DueClock::Wall, numbers.ready_us, DueOf::Ready);
            } else {
                let order = match &declared.definition.ready_order {
                    ReadyOrder::Oldest => 0,
                    ReadyOrder::Field(field) => value(field)?.and_then(|value| value.as_integer()).unwrap_or(0),
                };
                let queue = QueueId { space: record.space, branch: record.branch, name: queue_of(record.name) };
                let prefix = keys.ready_prefix(record.bucket, queue);
                let place = ReadyPlace { order, ready_us: numbers.ready_us };
                self.ready.insert([&*prefix, &*Keys::ready_record_suffix(place, record)].concat());
            }
        }
        for (number, (field, kind)) in (0..).zip(&declared.definition.indexes) {
            let held = match field.as_str() {
                name if name == declared.definition.state_field => {
                    Some(Value::from(declared.state_name(numbers.state)))
                }
                "updated_at" => Some(Value::Integer(i64::try_from(numbers.updated_us / 1_000).map_err(text)?)),
                name => value(name)?,
            };
            if let Some(sorted) = held.and_then(|value| sort_key(field, *kind, &value)) {
                // The records of a deleted branch may go before a new index has come to them.
                let is_filled = number < declared.filled && is_live(instance, record);
                let entries = if is_filled { &mut self.indexes } else { &mut self.filling };
                entries.insert(keys.index_entry(record, declared.id, number, &sorted).to_vec());
            }
        }
        // Owners are not counted.
        let mut queue = Some(queue_of(record.name)).filter(|_| record.name != OWNER_RECORD);
        while let Some(name) = queue {
            let counts = self.counts.entry((record.space, record.branch, name.to_owned(), declared.id)).or_default();
            let state = usize::from(numbers.state);
            counts.resize(counts.len().max(state + 1), 0);
            counts[state] += 1;
            queue = above(name);
        }
        Ok(())
    }
}

/// The rows by which queues stand in those above them, from their lanes. Checks R7 on the way.
fn rows_of_lanes(
    instance: &Instance,
    view: &dyn View,
    ready: &BTreeSet<RowKey>,
    buckets: u16,
) -> Result<BTreeSet<RowKey>, String> {
    let keys = instance.keys;
    let mut rows = BTreeSet::new();
    let mut lanes = BTreeMap::new();
    for row in view.scan(&keys.all_lanes(), Order::Ascending) {
        let (key, row) = row.map_err(text)?;
        let (space, branch, name) = read_lanes_key(&key).ok_or("a foreign key among lanes")?;
        if !live_places(instance).contains(&(space, branch)) {
            continue;
        }
        for (bucket, lane) in Lanes::decode(Some(row)).map_err(halted)?.iter() {
            lanes.insert((bucket, space, branch, name.clone()), lane);
            if let Some(higher) = above(&name) {
                let prefix = keys.ready_prefix(bucket, QueueId { space, branch, name: higher });
                rows.insert([&*prefix, &*Keys::ready_queue_suffix(lane.stands, &name[higher.len()..])].concat());
            }
            if bucket >= buckets || lane.begins.is_some_and(|begins| begins < lane.stands) {
                return Err(format!("R7: {lane:?} of {name:?} in bucket {bucket}"));
            }
        }
    }
    for key in ready.iter().chain(&rows) {
        let bucket = u16::from_be_bytes(key[GENERATION_BYTES..GENERATION_BYTES + 2].try_into().expect("two bytes"));
        let (space, branch, queue, suffix) = ready_key(key)?;
        let (place, found) = read_ready_suffix(suffix, space, branch).ok_or("a foreign key among ready rows")?;
        let lane = lanes.get(&(bucket, space, branch, queue.clone()));
        let leads = lane.is_some_and(|lane| lane.begins.is_some_and(|begins| begins <= place));
        if !leads {
            let what = match found {
                Ready::Thing(id) => format!("record {id:?}"),
                Ready::Queue(rest) => format!("queue {rest:?}"),
            };
            return Err(format!("R7: the lane of {queue:?} in bucket {bucket} is {lane:?}, {what} at {place:?}"));
        }
    }
    Ok(rows)
}

/// Space, branch and queue from a key, and what follows.
fn ready_key(key: &[u8]) -> Result<(u32, u32, String, &[u8]), String> {
    let number = |at: usize| u32::from_be_bytes(key[at..at + 4].try_into().expect("four bytes"));
    // Generation, bucket, kind; then space and branch.
    let (space, branch) = (number(GENERATION_BYTES + 3), number(GENERATION_BYTES + 7));
    let rest = &key[GENERATION_BYTES + 11..];
    let end = rest.windows(2).position(|two| two == [0, 0]).ok_or("a key without a queue")?;
    let queue = String::from_utf8(rest[..end].to_vec()).map_err(text)?;
    Ok((space, branch, queue, &rest[end + 2..]))
}

/// The branches that were not deleted. Of the others some rows may be gone and some not.
fn live_places(instance: &Instance) -> BTreeSet<(u32, u32)> {
    let spaces = instance.kernel.catalogue().spaces();
    let live = spaces.flat_map(|(space, found)| {
        let branches = found.branches().filter(|(_, branch)| !branch.deleted);
        branches.map(move |(branch, _)| (space, branch)).collect::<Vec<_>>()
    });
    live.collect()
}

fn is_live(instance: &Instance, record: &ThingId<'_>) -> bool {
    let space = instance.kernel.catalogue().space(record.space);
    space.is_ok_and(|space| space.live_branch(record.branch).is_ok())
}

fn compare_counts(instance: &Instance, view: &dyn View, expected: &CountRows) -> Result<(), String> {
    let mut found = CountRows::new();
    for (space, branch) in live_places(instance) {
        for row in view.scan(&instance.keys.counts_from_queue(space, branch, ALL_QUEUES), Order::Ascending) {
            let (key, row) = row.map_err(text)?;
            let (queue, record_type) = read_counts_key(&key).ok_or("a foreign key among counts")?;
            let mut counts = counts::decode(&row).map_err(halted)?;
            while counts.last() == Some(&0) {
                counts.pop();
            }
            found.insert((space, branch, queue, record_type), counts);
        }
    }
    if found == *expected {
        return Ok(());
    }
    Err(format!("(6) counts equal a recount:\n  stored {found:?}\n  counted {expected:?}"))
}

fn rows_of(instance: &Instance, view: &dyn View, bucket: u16, kind: Kind) -> Result<Vec<(RowKey, kv::Bytes)>, String> {
    let prefix = [&bucket.to_be_bytes()[..], &[kind as u8]].concat();
    let range = KeyRange::prefix(&instance.keys.in_generation(&prefix));
    let rows = view.scan(&range, Order::Ascending);
    rows.map(|row| row.map(|(key, row)| (key.to_vec(), row)).map_err(text)).collect()
}

/// Whether an entry of a due index is a record's. Messages, ended sessions, deleted runs and maps have theirs there too.
fn is_of_record(key: &[u8]) -> bool {
    let due = read_due_suffix(&key[GENERATION_BYTES + 3..]).map(|(_, due)| due);
    matches!(due, Some(Due::Thing(DueOf::Expiry | DueOf::Ready | DueOf::Lease, _)))
}

fn shown(key: &[u8]) -> String {
    match read_due_suffix(&key[GENERATION_BYTES + 3..]) {
        Some((at_us, Due::Thing(DueOf::Expiry | DueOf::Ready | DueOf::Lease, id))) => {
            let OwnedId { space, branch, group, name } = id;
            format!("{at_us} of {space}/{branch} {group:?} {name:?}: {}", key.escape_ascii())
        }
        _ => key.escape_ascii().to_string(),
    }
}
