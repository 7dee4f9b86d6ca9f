//! Lists of maps by name, over all groups or of one.

use contract::NameInGroup;
use contract::keyed::MapSummary;
use kv::View;
use session::Halt;

use super::head::MapHead;
use crate::catalogue::{BranchId, Catalogue, SpaceId};
use crate::keys::{Keys, Kind};
use crate::names::{InGroup, Listing, Things};

/// Selects a page of maps.
#[derive(Clone, Copy, Debug)]
pub struct MapPage<'name> {
    /// Of which groups.
    pub groups: InGroup<'name>,
    /// The prefix of names.
    pub prefix: &'name str,
    /// Only maps after this one.
    pub after: Option<&'name NameInGroup>,
    /// The maximum number of maps.
    pub limit: usize,
}

/// A page of maps, by name and then by group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedMaps {
    /// Names with their groups, and the maps as a whole.
    pub maps: Vec<(NameInGroup, MapSummary)>,
    /// The map after which the next page starts, if there is more.
    pub next_after: Option<NameInGroup>,
}

/// A page of the maps of a branch.
pub fn list(
    view: &dyn View,
    keys: &Keys,
    catalogue: &Catalogue,
    (space, branch): (SpaceId, BranchId),
    page: &MapPage<'_>,
) -> Result<ListedMaps, Halt> {
    let MapPage { groups, prefix, after, limit } = *page;
    let after = after.map(|after| Keys::position(&after.name, after.group.as_deref()));
    let listing = Listing { kind: Kind::KeyedMap, space, branch, groups, prefix, after: after.as_deref() };
    let mut things = Things::new(view, *keys, catalogue, &listing)?;
    let mut listed = ListedMaps::default();
    while let Some(thing) = things.next()? {
        let Some(row) = &thing.row else { continue };
        let head = MapHead::decode(row)?;
        if head.deleted {
            if thing.indexed {
                return Err(thing.nothing_there());
            }
            continue;
        }
        if listed.maps.len() == limit {
            listed.next_after = listed.maps.last().map(|(name, _)| name.clone());
            break;
        }
        listed.maps.push((thing.into_name(), head.summary()));
    }
    Ok(listed)
}
