//! View, then tail: the content of a branch or group at one moment, and everything that changed after it.
//!
//! Keeps: F1 across the seam: the list and the cursor are of one view.

use std::time::Duration;

use contract::{Error, Followed, NameInGroup};

use crate::changes::Changes;
use crate::paging::check_page;

/// Things as they were when they began to be watched, then what changed. Made by [`Cells::watch`](crate::Cells::watch) and
/// [`Records::watch`](crate::Records::watch).
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
pub(crate) type Listing<T> = Box<dyn FnMut(usize) -> Result<(Vec<(NameInGroup, T)>, bool), Error> + Send>;

impl<T> Watch<T> {
    /// A watch of what `listing` returns at a view, and of the changes after the commit of that view.
    pub(crate) fn new(changes: Changes, cursor: u64, listing: Listing<T>) -> Self {
        Self { changes, cursor, listing: Some(listing) }
    }

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

    /// The cursor: first that of the list, then that of the last page. [`Cells::changes`](crate::Cells::changes) can continue from it.
    pub fn cursor(&self) -> u64 {
        self.cursor
    }
}
