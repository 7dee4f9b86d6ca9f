//! The changes of records, and records that are watched.

use contract::limits::SCAN_ROWS_MAX;
use contract::records::Record;
use contract::records::filter::Filter;
use contract::{Error, Subject};
use kernel::records::scan::Scan;

use super::{Records, scan_view};
use crate::changes::Changes;
use crate::paging::listed_groups;
use crate::watch::Watch;

impl Records {
    /// The changes of these records: those of all groups of the branch, or those of this group.
    pub fn changes(&self) -> Changes {
        Changes::new(self.scope.clone(), self.group.clone()).of(Subject::Record)
    }

    /// Watches the records whose names start with `prefix`, of all groups or of this one: a list of them as they are
    /// now, and a cursor at exactly that moment.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
    /// use statehouse::{Followed, Reason, records::{ClaimOptions, Put}};
    /// let records = house.records();
    /// records.put("jobs.1", [("n", 1)], Put::typed("task"))?;
    /// let mut watch = records.watch("jobs.")?;
    /// records.claim("jobs.1", &ClaimOptions::worker("w1"))?;
    /// assert_eq!(watch.list(100)?[0].1.attempt, 0, "as it was");
    /// let Followed::Page(page) = watch.follow(100, std::time::Duration::from_secs(10))? else { panic!("a gap") };
    /// assert_eq!((page.changes[0].name.as_str(), page.changes[0].reason), ("jobs.1", Reason::Claimed));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn watch(&self, prefix: &str) -> Result<Watch<Record>, Error> {
        listed_groups(self.group.as_deref())?;
        let (view, catalogue, ids) = self.scope.view()?;
        let cursor = node::image::applied(&*view, &self.scope.shard.keys())?.commit;
        let now = self.scope.shard.now();
        let (group, prefix) = (self.group.clone(), prefix.to_owned());
        let changes = self.changes().with_prefix(&prefix);
        let mut cursor_of_list: Option<Vec<u8>> = None;
        let listing = move |limit| {
            let scan = Scan {
                space: ids.space,
                branch: ids.branch,
                groups: listed_groups(group.as_deref())?,
                prefix: &prefix,
                record_type: None,
                filter: &Filter::all(),
                limit,
                rows_max: SCAN_ROWS_MAX,
                cursor: cursor_of_list.as_deref(),
            };
            let scanned = scan_view(&*view, ids.keys, &catalogue, now, &scan)?;
            cursor_of_list = scanned.cursor;
            Ok((scanned.records, cursor_of_list.is_some()))
        };
        Ok(Watch::new(changes, cursor, Box::new(listing)))
    }
}
