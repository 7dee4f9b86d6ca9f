//! Scans: the records with a prefix that match a filter, at one view, a page at a time.
//!
//! A page ends when it is full or when so many records were looked at; its cursor says where to go on. If the scan is
//! for one type and tests a field that the type declares an index for, only what the index names is looked at.

use std::iter::Peekable;

use contract::limits::PAGE_BYTES_MAX;
use contract::records::filter::{Filter, Test};
use contract::records::{Record, Scanned};
use contract::{Rejection, Value};
use kv::{Bytes, Key, KeyRange, Order, Rows};
use session::Halt;

use super::get::ViewRecords;
use super::index::sort_key;
use crate::catalogue::Declared;
use crate::keys::records::{OwnedId, read_index_suffix, read_record_key};
use crate::keys::{Keys, ThingId};

/// What is looked for, and how much at a time.
pub struct Scan<'scan> {
    /// The space.
    pub space: u32,
    /// The branch.
    pub branch: u32,
    /// The group, or none for the records that are their own.
    pub group: Option<&'scan str>,
    /// What names begin with.
    pub prefix: &'scan str,
    /// Only records of this type, by name.
    pub record_type: Option<&'scan str>,
    /// What must hold of them.
    pub filter: &'scan Filter,
    /// Records in the page at most.
    pub limit: usize,
    /// Records looked at, at most.
    pub rows_max: usize,
    /// Where the page before ended.
    pub cursor: Option<&'scan [u8]>,
}

const BY_NAME: u8 = 0;
const BY_INDEX: u8 = 1;

impl ViewRecords<'_> {
    /// A page of records.
    pub fn scan(&self, scan: &Scan<'_>) -> Result<Result<Scanned, Rejection>, Halt> {
        let space = match self.catalogue.space(scan.space) {
            Ok(space) => space,
            Err(rejection) => return Ok(Err(rejection)),
        };
        if let Err(rejection) = space.live_branch(scan.branch) {
            return Ok(Err(rejection));
        }
        let declared = match scan.record_type.map(|name| (name, space.types.named(name))) {
            None => None,
            Some((_, Some(declared))) => Some(declared),
            Some((name, None)) => return Ok(Err(Rejection::NoSuchType { name: name.to_owned() })),
        };
        let index = declared.and_then(|declared| usable_index(declared, scan.filter));
        let by = if index.is_some() { BY_INDEX } else { BY_NAME };
        if scan.cursor.is_some_and(|cursor| cursor.first() != Some(&by)) {
            return Ok(Err(Rejection::InvalidName { what: "a cursor", reason: "it is of another scan" }));
        }
        match (declared, index) {
            (Some(declared), Some((number, bounds))) => self.by_index(scan, declared, number, &bounds).map(Ok),
            _ => self.by_name(scan).map(Ok),
        }
    }

    fn by_name(&self, scan: &Scan<'_>) -> Result<Scanned, Halt> {
        let after = scan.cursor.and_then(|cursor| cursor.strip_prefix(&[BY_NAME]));
        let mut sources = Vec::new();
        for (record, range) in self.ranges(scan) {
            let range = match after.map(std::str::from_utf8) {
                Some(Ok(after)) => range.after(&self.keys.record(&ThingId { name: after, ..record })),
                _ => range,
            };
            sources.push((record.bucket, range));
        }
        let name_of = |key: &[u8]| {
            let id = read_record_key(key, scan.space, scan.branch)?;
            Some((id.name.clone().into_bytes(), id))
        };
        let mut page = Page::new(scan, BY_NAME);
        let mut merged = Merged::new(self, sources, name_of)?;
        while let Some(found) = merged.next()? {
            let record = found.id.in_bucket(found.bucket);
            let whole = self.record_of_row(&record, &found.value, || self.now)?;
            if !page.look_at(&found.sorted, &found.id.name, whole) {
                break;
            }
        }
        Ok(page.finish())
    }

    /// The ranges of keys that hold the records of the scan's group, or of those that are their own.
    fn ranges<'scan>(&self, scan: &Scan<'scan>) -> Vec<(ThingId<'scan>, KeyRange)> {
        let (space, branch, prefix) = (scan.space, scan.branch, scan.prefix);
        let name = "";
        match scan.group {
            None => {
                let buckets = 0..self.catalogue.buckets.count();
                let groups = buckets.map(|bucket| ThingId { bucket, space, branch, group: None, name });
                groups.map(|group| (group, self.keys.records_with_prefix(&group, prefix))).collect()
            }
            Some(named) => {
                let Ok(group) = self.catalogue.thing(space, branch, Some(named), name) else {
                    return Vec::new();
                };
                let mut ranges = vec![(group, self.keys.records_with_prefix(&group, prefix))];
                // The record that has the group's own name is stored under its name alone.
                if named.starts_with(prefix) {
                    let own = ThingId { group: None, name: named, ..group };
                    let key = self.keys.record(&own);
                    let end = [&*key, &[0]].concat();
                    ranges.push((own, KeyRange::between(key.to_vec(), end)));
                }
                ranges
            }
        }
    }

    fn by_index(&self, scan: &Scan<'_>, declared: &Declared, number: u8, bounds: &Bounds) -> Result<Scanned, Halt> {
        let after = scan.cursor.and_then(|cursor| cursor.strip_prefix(&[BY_INDEX]));
        let prefix_of = |bucket| self.keys.index_prefix(bucket, scan.space, scan.branch, declared.id, number);
        let mut sources = Vec::new();
        for bucket in 0..self.catalogue.buckets.count() {
            let prefix = prefix_of(bucket);
            let mut range = bounds.range(&prefix);
            if let Some(after) = after {
                range = range.after(&[&*prefix, after].concat());
            }
            sources.push((bucket, range));
        }
        let prefix_bytes = prefix_of(0).len();
        let entry_of = |key: &[u8]| {
            let suffix = &key[prefix_bytes..];
            let (_, id) = read_index_suffix(suffix, scan.space, scan.branch)?;
            Some((suffix.to_vec(), id))
        };
        let mut page = Page::new(scan, BY_INDEX);
        let mut merged = Merged::new(self, sources, entry_of)?;
        while let Some(found) = merged.next()? {
            let group = found.id.group.as_deref();
            let of_scan = group == scan.group || (group.is_none() && Some(&*found.id.name) == scan.group);
            let whole = match of_scan && found.id.name.starts_with(scan.prefix) {
                true => self.get(&found.id.in_bucket(found.bucket))?,
                false => None,
            };
            if !page.look_at(&found.sorted, &found.id.name, whole) {
                break;
            }
        }
        Ok(page.finish())
    }
}

/// A page that is being filled.
struct Page<'scan> {
    scan: &'scan Scan<'scan>,
    by: u8,
    bytes: usize,
    scanned: Scanned,
}

impl<'scan> Page<'scan> {
    fn new(scan: &'scan Scan<'scan>, by: u8) -> Self {
        Self { scan, by, bytes: 0, scanned: Scanned::default() }
    }

    /// Takes a record if it matches; false when the page has ended.
    fn look_at(&mut self, sorted: &[u8], name: &str, record: Option<Record>) -> bool {
        self.scanned.looked_at += 1;
        let matches = |record: &Record| {
            let typed = self.scan.record_type.is_none_or(|wanted| record.record_type.as_deref() == Some(wanted));
            typed && self.scan.filter.matches(|field| record.value(field).cloned())
        };
        if let Some(record) = record.filter(matches) {
            self.bytes += record.fields.iter().map(|(name, field)| name.len() + field.value.len()).sum::<usize>();
            self.scanned.records.push((name.to_owned(), record));
        }
        let full = self.scanned.records.len() >= self.scan.limit
            || self.scanned.looked_at >= self.scan.rows_max
            || self.bytes >= PAGE_BYTES_MAX;
        if full {
            self.scanned.cursor = Some([&[self.by], sorted].concat());
        }
        !full
    }

    fn finish(self) -> Scanned {
        self.scanned
    }
}

/// Rows of several ranges, merged by what they are sorted by.
struct Merged<'view, F> {
    sources: Vec<(Found, Peekable<Rows<'view>>)>,
    read: F,
}

struct Found {
    sorted: Vec<u8>,
    id: OwnedId,
    bucket: u16,
    value: Bytes,
}

impl<'view, F: Fn(&[u8]) -> Option<(Vec<u8>, OwnedId)>> Merged<'view, F> {
    fn new(records: &ViewRecords<'view>, ranges: Vec<(u16, KeyRange)>, read: F) -> Result<Self, Halt> {
        let mut merged = Self { sources: Vec::new(), read };
        for (bucket, range) in ranges {
            let mut rows = records.view.scan(&range, Order::Ascending).peekable();
            if let Some(found) = merged.take(bucket, &mut rows)? {
                merged.sources.push((found, rows));
            }
        }
        Ok(merged)
    }

    fn take(&self, bucket: u16, rows: &mut Peekable<Rows<'view>>) -> Result<Option<Found>, Halt> {
        let Some(row) = rows.next() else {
            return Ok(None);
        };
        let (key, value): (Key, Bytes) = row?;
        let (sorted, id) =
            (self.read)(&key).ok_or_else(|| Halt::Inconsistent("a row has a key of another form".into()))?;
        Ok(Some(Found { sorted, id, bucket, value }))
    }

    fn next(&mut self) -> Result<Option<Found>, Halt> {
        let order = |a: &usize, b: &usize| self.sources[*a].0.sorted.cmp(&self.sources[*b].0.sorted);
        let Some(smallest) = (0..self.sources.len()).min_by(order) else {
            return Ok(None);
        };
        let (found, mut rows) = self.sources.swap_remove(smallest);
        if let Some(next) = self.take(found.bucket, &mut rows)? {
            self.sources.push((next, rows));
        }
        Ok(Some(found))
    }
}

/// Between which sorted values an index is read, both included; the records themselves decide.
struct Bounds {
    from: Option<Vec<u8>>,
    to: Option<Vec<u8>>,
}

impl Bounds {
    fn range(&self, prefix: &Key) -> KeyRange {
        let whole = KeyRange::prefix(prefix);
        let start = match &self.from {
            None => whole.start,
            Some(from) => [&**prefix, &*Keys::escaped(from)].concat(),
        };
        let end = match &self.to {
            None => whole.end,
            Some(to) => KeyRange::prefix(&[&**prefix, &*Keys::escaped(to)].concat()).end,
        };
        KeyRange { start, end }
    }
}

/// The first declared index that a test of the filter can use.
fn usable_index(declared: &Declared, filter: &Filter) -> Option<(u8, Bounds)> {
    filter.tests.iter().find_map(|(field, test)| {
        let (number, (_, kind)) =
            declared.definition.indexes.iter().enumerate().find(|(_, (name, _))| name == field)?;
        let sorted = |value: &Value| sort_key(*kind, value);
        let bounds = match test {
            Test::Eq(value) => {
                let value = sorted(value)?;
                Bounds { from: Some(value.clone()), to: Some(value) }
            }
            Test::Lt(value) | Test::Lte(value) => Bounds { from: None, to: Some(sorted(value)?) },
            Test::Gt(value) | Test::Gte(value) => Bounds { from: Some(sorted(value)?), to: None },
            _ => return None,
        };
        Some((u8::try_from(number).ok()?, bounds))
    })
}
