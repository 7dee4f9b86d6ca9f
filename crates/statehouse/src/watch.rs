//! View, then tail: what cells held at one moment, and everything that changed after it.
//!
//! Keeps: F1 across the seam: the list and the cursor are of one view.

use std::sync::Arc;
use std::time::Duration;

use contract::{Error, Followed, ListPage, Versioned};
use kernel::Catalogue;
use kv::View;

use crate::admission::ScopeIds;
use crate::cells::{Cells, check_page, list_cells};
use crate::changes::Changes;

/// Cells as they were when they began to be watched, then what changed. Made by [`Cells::watch`].
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
///     known.extend(page.into_iter().map(|(name, _)| name));
/// }
/// assert_eq!(known, ["order-1"]);
/// match watch.follow(100, Duration::from_secs(10))? {
///     Followed::Page(page) => assert_eq!(page.changes[0].name, "order-2"),
///     Followed::Gap { .. } => {} // too far behind: watch again
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Watch {
    changes: Changes,
    cursor: u64,
    /// None when everything was listed.
    listing: Option<Listing>,
}

/// Where a list of the watched view stands.
struct Listing {
    view: Arc<dyn View>,
    catalogue: Arc<Catalogue>,
    ids: ScopeIds,
    group: Option<Arc<str>>,
    prefix: String,
    after: Option<String>,
}

impl Cells {
    /// Watches the cells whose names begin with `prefix`: a list of them as they are now, and a cursor at exactly that
    /// moment.
    pub fn watch(&self, prefix: &str) -> Result<Watch, Error> {
        let (view, catalogue) = self.scope.shard.view()?;
        let ids = self.scope.resolve(&catalogue)?;
        let cursor = crate::image::applied(&*view)?.commit;
        let (group, prefix) = (self.group.clone(), prefix.to_owned());
        let changes = self.changes().with_prefix(&prefix);
        Ok(Watch { changes, cursor, listing: Some(Listing { view, catalogue, ids, group, prefix, after: None }) })
    }
}

impl Watch {
    /// The next cells of the list, at least one and at most `limit`; none when all were given. What the store has replaced
    /// since then stays on disk until the list is at its end or the watch is dropped.
    pub fn list(&mut self, limit: usize) -> Result<Vec<(String, Versioned)>, Error> {
        check_page(limit)?;
        let Some(listing) = &mut self.listing else {
            return Ok(Vec::new());
        };
        let page = ListPage { after: listing.after.clone(), limit: limit.max(1) };
        let Listing { view, catalogue, ids, group, prefix, .. } = &*listing;
        let listed = list_cells(&**view, catalogue, *ids, group.as_deref(), prefix, &page)?;
        match listed.next_after {
            None => self.listing = None,
            after => listing.after = after,
        }
        Ok(listed.cells)
    }

    /// What changed after the list, or after what was followed before; [`Changes::follow`] says how. After a gap the
    /// watch stays where it is: what the list said is too old, so watch again.
    pub fn follow(&mut self, limit: usize, timeout: Duration) -> Result<Followed, Error> {
        let followed = self.changes.follow(self.cursor, limit, timeout)?;
        if let Followed::Page(page) = &followed {
            self.cursor = page.next;
        }
        Ok(followed)
    }

    /// The cursor: first that of the list, then that of the last page. [`Cells::changes`] can go on from it.
    pub fn cursor(&self) -> u64 {
        self.cursor
    }
}
