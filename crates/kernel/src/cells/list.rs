//! List: the cells whose names start with a prefix, ordered by (name, group).
//!
//! Touches: nothing. Keeps: K8 while it reads.

use contract::limits::PAGE_BYTES_MAX;
use contract::{ListPage, Listed, NameInGroup};
use kv::View;
use session::Halt;

use super::row::Head;
use crate::catalogue::Catalogue;
use crate::keys::{Keys, Kind};
use crate::names::{InGroup, Listing, Things};

/// A page of the cells of a branch: of all groups, of one group, or without a group.
pub fn list(
    view: &dyn View,
    keys: &Keys,
    catalogue: &Catalogue,
    (space, branch): (u32, u32),
    groups: InGroup<'_>,
    prefix: &str,
    page: &ListPage,
) -> Result<Listed, Halt> {
    let after = page.after.as_ref().map(|NameInGroup { name, group }| Keys::position(name, group.as_deref()));
    let listing = Listing { kind: Kind::CellHead, space, branch, groups, prefix, after: after.as_deref() };
    let mut things = Things::new(view, *keys, catalogue, &listing)?;
    let mut listed = Listed::default();
    let mut bytes = 0;
    while let Some(thing) = things.next()? {
        let Some(row) = &thing.row else {
            continue;
        };
        let Some(versioned) = Head::decode(row)?.versioned() else {
            if thing.indexed {
                return Err(thing.nothing_there());
            }
            continue;
        };
        if listed.cells.len() == page.limit || bytes >= PAGE_BYTES_MAX {
            listed.next_after = listed.cells.last().map(|(name, _)| name.clone());
            break;
        }
        bytes += row.len();
        listed.cells.push((thing.into_name(), versioned));
    }
    Ok(listed)
}
