//! The changes of cells, and cells that are watched.

use contract::{Error, ListPage, Subject, Versioned};

use super::{Cells, list_cells};
use crate::changes::Changes;
use crate::paging::listed_groups;
use crate::watch::Watch;

impl Cells {
    /// The changes of these cells: those of all groups of the branch, or those of this group.
    pub fn changes(&self) -> Changes {
        Changes::new(self.scope.clone(), self.group.clone()).of(Subject::Cell)
    }

    /// Watches the cells whose names start with `prefix`, of all groups or of this one: a list of them as they are now,
    /// and a cursor at exactly that moment.
    pub fn watch(&self, prefix: &str) -> Result<Watch<Versioned>, Error> {
        listed_groups(self.group.as_deref())?;
        let (view, catalogue, ids) = self.scope.view()?;
        let cursor = node::image::applied(&*view, &self.scope.shard.keys())?.commit;
        let (group, prefix) = (self.group.clone(), prefix.to_owned());
        let changes = self.changes().with_prefix(&prefix);
        let mut after = None;
        let listing = move |limit| {
            let page = ListPage { after: after.take(), limit };
            let listed = list_cells(&*view, &catalogue, ids, listed_groups(group.as_deref())?, &prefix, &page)?;
            after = listed.next_after;
            Ok((listed.cells, after.is_some()))
        };
        Ok(Watch::new(changes, cursor, Box::new(listing)))
    }
}
