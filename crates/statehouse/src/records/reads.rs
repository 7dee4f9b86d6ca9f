//! Reading records: one record, one field, a page of matching records, and counts.

use contract::limits::SCAN_ROWS_MAX;
use contract::records::filter::Filter;
use contract::records::{Counts, Record, Scanned};
use contract::{Error, Value};
use kernel::keys::ThingId;
use kernel::keys::queues::QueueId;
use kernel::names::InGroup;
use kernel::records::counts::{count_group, count_states};
use kernel::records::get::ViewRecords;
use kernel::records::scan::Scan;
use kernel::{Catalogue, Keys};
use kv::View;
use node::error::from_halt;
use session::{Halt, Stamp};

use super::attempts::check_queue_prefix;
use super::{Records, check_fields};
use crate::paging::{check_page, listed_groups};

/// Which page of a scan.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScanOptions {
    /// Only records of this type. A declared index of the type can serve the scan then.
    pub record_type: Option<String>,
    /// Records in the page at most.
    pub limit: usize,
    /// Where the page before ended.
    pub cursor: Option<Vec<u8>>,
}

impl Default for ScanOptions {
    fn default() -> Self {
        Self { record_type: None, limit: 100, cursor: None }
    }
}

impl ScanOptions {
    /// Only records of this type.
    pub fn of_type(record_type: impl Into<String>) -> Self {
        Self { record_type: Some(record_type.into()), ..Self::default() }
    }

    /// The maximum number of records in the page.
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// From where the page before ended.
    pub fn after(mut self, cursor: Option<Vec<u8>>) -> Self {
        self.cursor = cursor;
        self
    }
}

/// A page of records of a view; remaining times are counted from `now`.
pub(crate) fn scan_view(
    view: &dyn View,
    keys: Keys,
    catalogue: &Catalogue,
    now: Stamp,
    scan: &Scan<'_>,
) -> Result<Scanned, Error> {
    let read = || ViewRecords::new(view, keys, catalogue)?.at(now).scan(scan);
    Ok(read().map_err(|halt| from_halt(&halt))??)
}

impl Records {
    /// The record, or none if it does not exist.
    pub fn get(&self, record: &str) -> Result<Option<Record>, Error> {
        self.read(record, |records, id, now| records.get_at(id, now))
    }

    /// Reads something of a record at the newest view.
    pub(super) fn read<T>(
        &self,
        record: &str,
        read: impl FnOnce(&ViewRecords<'_>, &ThingId<'_>, &dyn Fn() -> Stamp) -> Result<T, Halt>,
    ) -> Result<T, Error> {
        self.check_names(record)?;
        self.scope.shard.read(|view, catalogue| {
            let ids = self.scope.resolve(catalogue)?;
            let id = catalogue.thing(ids.space, ids.branch, self.group.as_deref(), record)?;
            let now = || self.scope.shard.now();
            let read = || read(&ViewRecords::new(view, ids.keys, catalogue)?, &id, &now);
            read().map_err(|halt| from_halt(&halt))
        })
    }

    /// The value of a field, or none if it or its record does not exist. Other fields are not read.
    pub fn get_field(&self, record: &str, field: &str) -> Result<Option<Value>, Error> {
        check_fields(std::iter::once(field))?;
        self.read(record, |records, id, now| records.field(id, field, now))
    }

    /// The record with one of its fields, or with none if it lacks it. Other fields are not read.
    pub fn get_only(&self, record: &str, field: &str) -> Result<Option<Record>, Error> {
        check_fields(std::iter::once(field))?;
        self.read(record, |records, id, now| records.get_only(id, field, now))
    }

    /// A page of the matching records whose names start with `prefix`, from one view: those of all groups of the
    /// branch, or those of this group. Each comes with its group, which is needed to read or write it. The owners of
    /// groups, `_statehouse.owner`, are among them only if the prefix says so.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
    /// use statehouse::records::{Filter, Put, ScanOptions, Test};
    /// let records = house.records();
    /// for n in 0..5 {
    ///     records.put(&format!("jobs.{n}"), [("size", n)], Put::typed("task"))?;
    /// }
    /// let large = Filter::all().and("size", Test::Gte(3.into())).and("state", Test::Eq("pending".into()));
    /// let page = records.scan("jobs.", &large, &ScanOptions::default())?;
    /// assert_eq!(page.records.iter().map(|(record, _)| &*record.name).collect::<Vec<_>>(), ["jobs.3", "jobs.4"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn scan(&self, prefix: &str, filter: &Filter, options: &ScanOptions) -> Result<Scanned, Error> {
        self.scan_groups(listed_groups(self.group.as_deref())?, prefix, filter, options)
    }

    /// [`scan`](Self::scan) of the records that this handle reads and writes by name: those of this group, or those
    /// without a group.
    pub(crate) fn scan_exact(&self, prefix: &str, filter: &Filter, options: &ScanOptions) -> Result<Scanned, Error> {
        let groups = match listed_groups(self.group.as_deref())? {
            InGroup::Any => InGroup::Own,
            named => named,
        };
        self.scan_groups(groups, prefix, filter, options)
    }

    fn scan_groups(
        &self,
        groups: InGroup<'_>,
        prefix: &str,
        filter: &Filter,
        options: &ScanOptions,
    ) -> Result<Scanned, Error> {
        check_page(options.limit)?;
        let (view, catalogue, ids) = self.scope.view()?;
        let scan = Scan {
            space: ids.space,
            branch: ids.branch,
            groups,
            prefix,
            record_type: options.record_type.as_deref(),
            filter,
            limit: options.limit.max(1),
            rows_max: SCAN_ROWS_MAX,
            cursor: options.cursor.as_deref(),
        };
        scan_view(&*view, self.scope.shard.keys(), &catalogue, self.scope.shard.now(), &scan)
    }

    /// The number of records of each type and state, for the queues whose names start with `prefix` (the name of a queue,
    /// or empty for all), in all groups or in this one. For all groups, the store maintains the numbers. The records of one group are counted, so a group
    /// of more than 10,000 is refused.
    pub fn counts(&self, prefix: &str) -> Result<Counts, Error> {
        check_queue_prefix(prefix)?;
        let groups = listed_groups(self.group.as_deref())?;
        let (view, catalogue, ids) = self.scope.view()?;
        let place = (ids.space, ids.branch);
        let queue = QueueId { space: ids.space, branch: ids.branch, name: prefix };
        let counts = match groups {
            InGroup::Named(group) => {
                count_group(&*view, &self.scope.shard.keys(), &catalogue, place, group, prefix, SCAN_ROWS_MAX)
            }
            _ => count_states(&*view, &self.scope.shard.keys(), &catalogue, queue).map(Ok),
        };
        Ok(counts.map_err(|halt| from_halt(&halt))??)
    }

    /// Whether the store answers: it is open and has not stopped.
    pub fn ping(&self) -> bool {
        self.scope.shard.shared.failure().is_none() && self.scope.shard.view().is_ok()
    }
}
