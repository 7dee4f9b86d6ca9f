//! What a script can read of records.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use contract::limits::SCAN_ROWS_MAX;
use contract::records::filter::{Filter, Test};
use contract::records::types::{CREATED_AT, TIMEOUT_AT, UPDATED_AT, WORKER};
use contract::records::{Counts, Holder, Record};
use kv::{Bytes, KeyRange, KvError, Order, Rows, View};

use super::super::Stage;
use super::super::words::{
    group_and_name, groups_and_prefix, joined, option, prefix, show, show_duration, show_time, shown_name,
    small_number, value,
};
use crate::keys::queues::QueueId;
use crate::keys::readable::kind_of;
use crate::records::counts::{count_group, count_states};
use crate::records::get::ViewRecords;
use crate::records::oldest::oldest_ready;
use crate::records::scan::Scan;

/// Words that end what precedes them.
const SCAN_OPTIONS: [&str; 6] = ["of", "where", "limit", "examine", "more", "counting"];

/// The kind of key of a large field.
const LARGE_FIELD: &str = "fields of record";

/// A view that counts the large fields that are read.
struct CountsLargeFields {
    view: Arc<dyn View>,
    read: AtomicUsize,
}

impl View for CountsLargeFields {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, KvError> {
        let is_large = kind_of(key) == Some(LARGE_FIELD);
        self.read.fetch_add(usize::from(is_large), Ordering::Relaxed);
        self.view.get(key)
    }

    fn scan(&self, range: &KeyRange, order: Order) -> Rows<'_> {
        self.view.scan(range, order)
    }
}

impl Stage {
    pub(in crate::script) fn read_records(&mut self, words: &[&str]) -> Option<String> {
        Some(match words {
            ["read", record] => self.read_record(record).map_or("absent".into(), |found| self.show_record(&found)),
            ["field", record, field] => self.field(record, field),
            ["scan", options @ ..] => self.scan(options),
            ["count", "records", options @ ..] => self.count_records(options),
            ["oldest", parts] => self.oldest(small_number(parts)),
            _ => return None,
        })
    }

    fn read_record(&self, record: &str) -> Option<Record> {
        let view = self.view();
        let records = ViewRecords::new(&*view, self.kernel.keys(), self.kernel.catalogue()).unwrap();
        records.get(&self.thing(record)).unwrap()
    }

    /// Type, state, version, attempt, holder, failures, pause and TTL, as far as there are any; then the fields of
    /// callers.
    fn show_record(&self, record: &Record) -> String {
        let mut shown = Vec::new();
        let mut kept = Vec::new();
        if let Some(name) = &record.record_type {
            let types = &self.kernel.catalogue().space(self.space).unwrap().types;
            let state_field = types.named(name).unwrap().definition.state_field.as_str();
            shown.push(format!("{name} {}", show(record.value(state_field).unwrap())));
            kept = vec![state_field, CREATED_AT, UPDATED_AT, TIMEOUT_AT, WORKER];
        }
        shown.push(format!("v{}", record.version));
        if record.attempt > 0 {
            shown.push(format!("#{}", record.attempt));
        }
        if let Some(Holder { worker, lease_left, .. }) = &record.holder {
            let worker = worker.as_deref().unwrap_or("somebody");
            shown.push(format!("by {worker} for {}", show_duration(*lease_left)));
        }
        if record.failures > 0 {
            shown.push(format!("{} failed", record.failures));
        }
        shown.extend(record.ready_in.map(|pause| format!("again in {}", show_duration(pause))));
        shown.extend(record.ttl.map(|ttl| format!("ttl {}", show_duration(ttl))));
        let of_callers = record.fields.iter().filter(|(name, _)| !kept.contains(&name.as_str()));
        shown.extend(of_callers.map(|(name, field)| format!("{name}={}", show(&field.value))));
        shown.join(" ")
    }

    /// A field with the version that wrote it, whether the store maintains it or not.
    fn field(&self, record: &str, field: &str) -> String {
        let found = self.read_record(record).and_then(|record| record.fields.get(field).cloned());
        let view = self.view();
        let records = ViewRecords::new(&*view, self.kernel.keys(), self.kernel.catalogue()).unwrap();
        let alone = records.field(&self.thing(record), field, || records.stamp()).unwrap();
        assert_eq!(alone, found.as_ref().map(|found| found.value.clone()), "field {field} of {record}, read alone");
        found.map_or("absent".into(), |found| format!("{} v{}", show(&found.value), found.version))
    }

    fn scan(&mut self, options: &[&str]) -> String {
        let (groups, prefix) = groups_and_prefix(prefix(options, &SCAN_OPTIONS));
        let cursor = self.cursor.take().filter(|_| options.contains(&"more"));
        let scan = Scan {
            space: self.space,
            branch: self.branch,
            groups,
            prefix,
            record_type: option(options, "of"),
            filter: &filter(options),
            limit: option(options, "limit").map_or(100, small_number),
            rows_max: option(options, "examine").map_or(SCAN_ROWS_MAX, small_number),
            cursor: cursor.as_deref(),
        };
        let view = CountsLargeFields { view: self.view(), read: AtomicUsize::new(0) };
        let records = ViewRecords::new(&view, self.kernel.keys(), self.kernel.catalogue()).unwrap();
        let scanned = match records.scan(&scan).unwrap() {
            Ok(scanned) => scanned,
            Err(rejection) => return rejection.to_string(),
        };
        let names = scanned.records.iter().map(|(found, _)| shown_name(found.group.as_deref(), &found.name));
        let read = view.read.load(Ordering::Relaxed);
        let counted = options.contains(&"counting").then(|| format!("{read} large fields read"));
        let shown = joined(names.chain(scanned.cursor.as_ref().map(|_| "more".into())).chain(counted).collect());
        self.cursor = scanned.cursor;
        shown
    }

    fn count_records(&self, options: &[&str]) -> String {
        let (view, keys, catalogue) = (self.view(), self.kernel.keys(), self.kernel.catalogue());
        let (group, prefix) = group_and_name(prefix(options, &["examine"]));
        let Self { space, branch, .. } = *self;
        let counts = match group {
            None => count_states(&*view, &keys, catalogue, QueueId { space, branch, name: prefix }).unwrap(),
            Some(group) => {
                let rows_max = option(options, "examine").map_or(SCAN_ROWS_MAX, small_number);
                match count_group(&*view, &keys, catalogue, (space, branch), group, prefix, rows_max).unwrap() {
                    Ok(counts) => counts,
                    Err(rejection) => return rejection.to_string(),
                }
            }
        };
        show_counts(&counts)
    }

    fn oldest(&self, parts_max: usize) -> String {
        let (view, keys, catalogue) = (self.view(), self.kernel.keys(), self.kernel.catalogue());
        let place = (self.space, self.branch);
        let (oldest, left_out) = oldest_ready(&*view, &keys, catalogue, place, parts_max).unwrap();
        assert_eq!(left_out, 0, "the queues of a script are short");
        let shown = oldest.iter().map(|found| {
            let name = shown_name(found.group.as_deref(), &found.record);
            format!("{name} {} since {}", found.record_type, show_time(found.ready_us))
        });
        joined(shown.collect())
    }
}

pub(in crate::script) fn show_counts(counts: &Counts) -> String {
    let shown = counts.by_state.iter().map(|((name, state), count)| format!("{name} {state} {count}"));
    joined(shown.collect())
}

/// The tests after `where`, joined by `and`.
fn filter(options: &[&str]) -> Filter {
    let Some(start) = options.iter().position(|word| *word == "where") else {
        return Filter::all();
    };
    let tests = options[start + 1..].split(|word| SCAN_OPTIONS.contains(word)).next().unwrap_or_default();
    let tests = tests.split(|word| *word == "and").map(|words| match words {
        [field, "exists"] => ((*field).to_owned(), Test::Exists),
        [field, comparison, text] => {
            let one = || value(text).to_value();
            let many = || text.split('|').map(|text| value(text).to_value()).collect();
            let test = match *comparison {
                "=" => Test::Eq(one()),
                "!=" => Test::Ne(one()),
                "<" => Test::Lt(one()),
                "<=" => Test::Lte(one()),
                ">" => Test::Gt(one()),
                ">=" => Test::Gte(one()),
                "in" => Test::In(many()),
                "not-in" => Test::NotIn(many()),
                other => panic!("no such comparison: {other}"),
            };
            ((*field).to_owned(), test)
        }
        other => panic!("no such test: {other:?}"),
    });
    Filter { tests: tests.collect() }
}
