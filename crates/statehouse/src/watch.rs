//! View, then tail: the content of cells or records at one moment, and everything that changed after it.
//!
//! Keeps: F1 across the seam: the list and the cursor are of one view.

use std::time::Duration;

use contract::limits::SCAN_ROWS_MAX;
use contract::records::Record;
use contract::records::filter::Filter;
use contract::{Error, Followed, ListPage, NameInGroup, Versioned};
use kernel::records::scan::Scan;

use crate::cells::{Cells, list_cells};
use crate::changes::Changes;
use crate::paging::{check_page, listed_groups};
use crate::records::{Records, scan_view};

/// Things as they were when they began to be watched, then what changed. Made by [`Cells::watch`] and
/// [`Records::watch`].
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
/// use std::time::Duration;
/// use statehouse::Followed;
/// let cells = house.cells();
/// cells.set("order-1", "new")?;
/// let mut watch = cells.watch("order-")?;
/// cells.set("order-2", "new")?; // after the view: not in the list, but in what follows
/// let mut known = Vec::new();
/// loop {
///     let page = watch.list(100)?;
///     if page.is_empty() {
///         break;
///     }
///     known.extend(page.into_iter().map(|(cell, _)| cell.name));
/// }
/// assert_eq!(known, ["order-1"]);
/// match watch.follow(100, Duration::from_secs(10))? {
///     Followed::Page(page) => assert_eq!(page.changes[0].name, "order-2"),
///     Followed::Gap { .. } => {} // too far behind: watch again
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Watch<T> {
    changes: Changes,
    cursor: u64,
    /// None when everything was listed.
    listing: Option<Listing<T>>,
}

/// Returns the next things of the watched view, and whether there are more.
type Listing<T> = Box<dyn FnMut(usize) -> Result<(Vec<(NameInGroup, T)>, bool), Error> + Send>;

impl Cells {
    /// Watches the cells whose names start with `prefix`, of all groups or of this one: a list of them as they are now,
    /// and a cursor at exactly that moment.
    pub fn watch(&self, prefix: &str) -> Result<Watch<Versioned>, Error> {
        listed_groups(self.group.as_deref())?;
        let (view, catalogue, ids) = self.scope.view()?;
        let cursor = crate::image::applied(&*view)?.commit;
        let (group, prefix) = (self.group.clone(), prefix.to_owned());
        let changes = self.changes().with_prefix(&prefix);
        let mut after = None;
        let listing = move |limit| {
            let page = ListPage { after: after.take(), limit };
            let listed = list_cells(&*view, &catalogue, ids, listed_groups(group.as_deref())?, &prefix, &page)?;
            after = listed.next_after;
            Ok((listed.cells, after.is_some()))
        };
        Ok(Watch { changes, cursor, listing: Some(Box::new(listing)) })
    }
}

impl Records {
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
        let cursor = crate::image::applied(&*view)?.commit;
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
            let scanned = scan_view(&*view, &catalogue, now, &scan)?;
            cursor_of_list = scanned.cursor;
            Ok((scanned.records, cursor_of_list.is_some()))
        };
        Ok(Watch { changes, cursor, listing: Some(Box::new(listing)) })
    }
}

impl<T> Watch<T> {
    /// The next things of the list, at least one and at most `limit`; none at the end. Data replaced since then stays
    /// on disk until the list is at its end or the watch is dropped.
    pub fn list(&mut self, limit: usize) -> Result<Vec<(NameInGroup, T)>, Error> {
        check_page(limit)?;
        while let Some(listing) = &mut self.listing {
            let (page, more) = listing(limit.max(1))?;
            if !more {
                self.listing = None;
            }
            if !page.is_empty() {
                return Ok(page);
            }
        }
        Ok(Vec::new())
    }

    /// The changes after the list, or after what was followed before; see [`Changes::follow`]. After a gap the watch
    /// stays where it is: the list is too old, so watch again.
    pub fn follow(&mut self, limit: usize, timeout: Duration) -> Result<Followed, Error> {
        let followed = self.changes.follow(self.cursor, limit, timeout)?;
        if let Followed::Page(page) = &followed {
            self.cursor = page.next;
        }
        Ok(followed)
    }

    /// The cursor: first that of the list, then that of the last page. [`Cells::changes`] can continue from it.
    pub fn cursor(&self) -> u64 {
        self.cursor
    }
}
