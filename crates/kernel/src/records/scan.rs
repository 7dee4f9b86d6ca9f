//! Scans: the records with a prefix that match a filter, at one view, a page at a time.
//!
//! A page ends when it is full or when enough records were examined; its cursor says where to continue. If the scan is
//! for one type and tests a field with a declared index, only records in the index are examined. Owners of groups are found
//! only by those who ask for them.

use contract::guards::{OWNER, OWNER_RECORD};
use contract::limits::PAGE_BYTES_MAX;
use contract::records::Scanned;
use contract::records::filter::{Filter, Test};
use contract::{NameInGroup, RecordRejection, Rejection, Value};
use kv::{Key, KeyRange};
use session::Halt;

use super::get::{Found, ViewRecords};
use super::index::sort_key;
use super::row::decode_numbers;
use crate::catalogue::{Declared, FillProgress};
use crate::keys::names::read_position;
use crate::keys::records::read_index_suffix;
use crate::keys::things::OwnedId;
use crate::keys::{Keys, Kind};
use crate::merge::{MergedRows, Source};
use crate::names::{InGroup, Listing, Things};

/// The parameters of a scan.
pub struct Scan<'scan> {
    /// The space.
    pub space: u32,
    /// The branch.
    pub branch: u32,
    /// Of which groups.
    pub groups: InGroup<'scan>,
    /// The prefix of names.
    pub prefix: &'scan str,
    /// Only records of this type, by name.
    pub record_type: Option<&'scan str>,
    /// The filter.
    pub filter: &'scan Filter,
    /// Records in the page at most.
    pub limit: usize,
    /// Maximum number of records to examine.
    pub rows_max: usize,
    /// Where the page before ended.
    pub cursor: Option<&'scan [u8]>,
}

const BY_NAME: u8 = 0;
const BY_INDEX: u8 = 1;

impl Scan<'_> {
    /// Whether it is for records of this name. An owner is a record that the store makes: a scan for anything leaves it out,
    /// as counts do.
    fn is_for(&self, name: &str) -> bool {
        name != OWNER_RECORD || !self.prefix.is_empty() || self.record_type == Some(OWNER)
    }
}

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
            Some((name, None)) => {
                return Ok(Err(Rejection::Record(RecordRejection::NoSuchType { name: name.to_owned() })));
            }
        };
        let filled = match declared {
            None => 0,
            Some(declared) => self.filled_indexes(scan.space, declared)?,
        };
        // A scan goes on as it began, though an index may have been filled since.
        let began = match scan.cursor {
            None => None,
            Some([BY_NAME, after @ ..]) if read_position(after).is_some() => Some((None, after)),
            Some([BY_INDEX, number, after @ ..]) => Some((Some(*number), after)),
            Some(_) => return Ok(Err(other_scan())),
        };
        let find = |number| declared.and_then(|declared| usable_index(declared, filled, scan.filter, number));
        let index = match began {
            None => find(None),
            Some((None, _)) => None,
            Some((Some(number), _)) => match find(Some(number)) {
                None => return Ok(Err(other_scan())),
                found => found,
            },
        };
        let after = began.map(|(_, after)| after);
        match (declared, index) {
            (Some(declared), Some((number, bounds))) => self.by_index(scan, (declared, number, &bounds), after).map(Ok),
            _ => self.by_name(scan, after).map(Ok),
        }
    }

    /// How many indexes of a type are filled in the view: the catalogue may be a newer one.
    fn filled_indexes(&self, space: u32, declared: &Declared) -> Result<usize, Halt> {
        let progress = FillProgress::read(self.keys, space, declared.id, |key| self.view.get(key))?;
        let filled = progress.map_or(declared.filled, |progress| progress.filled.min(declared.filled));
        Ok(filled.into())
    }

    fn by_name(&self, scan: &Scan<'_>, after: Option<&[u8]>) -> Result<Scanned, Halt> {
        let Scan { space, branch, groups, prefix, .. } = *scan;
        let listing = Listing { kind: Kind::Record, space, branch, groups, prefix, after };
        let mut page = Page::new(scan, vec![BY_NAME]);
        let mut things = Things::new(self.view, self.keys, self.catalogue, &listing)?;
        while let Some(thing) = things.next()? {
            let record = thing.id.in_bucket(thing.bucket);
            if let Some(row) = &thing.row
                && thing.indexed
                && decode_numbers(row)?.deleted
            {
                return Err(thing.nothing_there());
            }
            let found = self.found(&record, thing.row.as_deref(), || self.now)?;
            if !page.look_at(&thing.id, found.as_ref(), || thing.position())? {
                break;
            }
        }
        Ok(page.finish())
    }

    fn by_index(
        &self,
        scan: &Scan<'_>,
        (declared, number, bounds): (&Declared, u8, &Bounds),
        after: Option<&[u8]>,
    ) -> Result<Scanned, Halt> {
        let source = |bucket| {
            let prefix = self.keys.index_prefix(bucket, scan.space, scan.branch, declared.id, number);
            let range = bounds.range(&prefix);
            let range = match after {
                None => range,
                Some(after) => range.after(&[&*prefix, after].concat()),
            };
            Source { bucket, range, cut: prefix.len() }
        };
        let buckets = match scan.groups {
            InGroup::Named(group) => {
                let thing = self.catalogue.thing(scan.space, scan.branch, None, group);
                thing.map_or(0..0, |thing| thing.bucket..thing.bucket + 1)
            }
            InGroup::Any | InGroup::Own => self.catalogue.buckets_here(),
        };
        let mut page = Page::new(scan, vec![BY_INDEX, number]);
        let mut merged = MergedRows::new(self.view, buckets.map(source).collect())?;
        while let Some(found) = merged.next()? {
            let (_, id) = read_index_suffix(found.suffix(), scan.space, scan.branch)
                .ok_or_else(|| Halt::Inconsistent("a row has a key of another form".into()))?;
            let of_scan = scan.groups.has(id.group.as_deref(), &id.name) && id.name.starts_with(scan.prefix);
            let record = id.in_bucket(found.bucket);
            let row = if of_scan { self.row(&record)? } else { None };
            let record = self.found(&record, row.as_deref(), || self.now)?;
            if !page.look_at(&id, record.as_ref(), || found.suffix().to_vec())? {
                break;
            }
        }
        Ok(page.finish())
    }
}

/// A page under construction.
struct Page<'scan> {
    scan: &'scan Scan<'scan>,
    /// What its cursor begins with.
    by: Vec<u8>,
    bytes: usize,
    scanned: Scanned,
}

impl<'scan> Page<'scan> {
    fn new(scan: &'scan Scan<'scan>, by: Vec<u8>) -> Self {
        Self { scan, by, bytes: 0, scanned: Scanned::default() }
    }

    /// Takes a record if it matches; false when the page has ended. Of one that does not, large fields are read only if the
    /// filter tests them.
    fn look_at(
        &mut self,
        id: &OwnedId,
        found: Option<&Found<'_>>,
        position: impl FnOnce() -> Vec<u8>,
    ) -> Result<bool, Halt> {
        self.scanned.looked_at += 1;
        if let Some(found) = found
            && self.scan.is_for(&id.name)
            && self.matches(found)?
        {
            let record = found.whole()?;
            self.bytes += record.fields.iter().map(|(name, field)| name.len() + field.value.len()).sum::<usize>();
            self.scanned.records.push((NameInGroup::new(id.name.as_str(), id.group.clone()), record));
        }
        let full = self.scanned.records.len() >= self.scan.limit
            || self.scanned.looked_at >= self.scan.rows_max
            || self.bytes >= PAGE_BYTES_MAX;
        if full {
            self.scanned.cursor = Some([&*self.by, &*position()].concat());
        }
        Ok(!full)
    }

    fn matches(&self, found: &Found<'_>) -> Result<bool, Halt> {
        if self.scan.record_type.is_some_and(|wanted| !found.is_of_type(wanted)) {
            return Ok(false);
        }
        for (field, test) in &self.scan.filter.tests {
            if !test.holds(found.value(field)?.as_ref()) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn finish(self) -> Scanned {
        self.scanned
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

fn other_scan() -> Rejection {
    Rejection::InvalidName { what: "a cursor", reason: "it belongs to another scan" }
}

/// The first of the filled indexes that a test of the filter can use, or the wanted one.
fn usable_index(declared: &Declared, filled: usize, filter: &Filter, wanted: Option<u8>) -> Option<(u8, Bounds)> {
    filter.tests.iter().find_map(|(field, test)| {
        let mut indexes = declared.definition.indexes.iter().take(filled).enumerate();
        let (number, (_, kind)) = indexes.find(|(_, (name, _))| name == field)?;
        if wanted.is_some_and(|wanted| usize::from(wanted) != number) {
            return None;
        }
        let sorted = |value: &Value| sort_key(field, *kind, value);
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
