//! Listings by name: the cells, records or runs of all groups, of one group, or without a group, ordered by (name,
//! group).
//!
//! The things of a named group are together in one bucket. Everything else is spread over all buckets: the things
//! without a group, and between them the index of names, with one row for each existing thing of a named group. A
//! listing of all groups therefore merges one scan per bucket, and reads one more row for each name from the index.
//!
//! Touches: the index of names. Keeps: K8 (the index of names holds exactly the things of named groups that exist).

use contract::NameInGroup;
use kv::{Bytes, KeyRange, Staging, View};
use session::Halt;

use crate::catalogue::Catalogue;
use crate::keys::names::read_position;
use crate::keys::things::OwnedId;
use crate::keys::{Keys, Kind, ThingId};
use crate::merge::{MergedRow, MergedRows, Source};

/// Which groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InGroup<'name> {
    /// All.
    Any,
    /// Things without a group.
    Own,
    /// This group, with the thing that has its name.
    Named(&'name str),
}

impl InGroup<'_> {
    /// Whether a thing is in one of these groups. `group` is none for a thing without a group.
    pub fn has(self, group: Option<&str>, name: &str) -> bool {
        match self {
            InGroup::Any => true,
            InGroup::Own => group.is_none(),
            InGroup::Named(named) => group.unwrap_or(name) == named,
        }
    }
}

/// Adds a thing to the index of names, or removes it. A thing without a group needs no row there.
pub(crate) fn set_listed(state: &mut Staging, keys: &Keys, kind: Kind, thing: &ThingId<'_>, listed: bool) {
    match keys.name_in_group(kind, thing) {
        None => {}
        Some(key) if listed => state.put(key, Bytes::default()),
        Some(key) => state.delete(key),
    }
}

/// A listing.
#[derive(Clone, Copy, Debug)]
pub struct Listing<'name> {
    /// Rows of cells, records or runs.
    pub kind: Kind,
    /// Of which space.
    pub space: u32,
    /// And branch.
    pub branch: u32,
    /// Of which groups.
    pub groups: InGroup<'name>,
    /// The prefix of names.
    pub prefix: &'name str,
    /// Only things after this [`position`](Keys::position).
    pub after: Option<&'name [u8]>,
}

/// The things of a listing, one after the other.
pub(crate) struct Things<'view> {
    view: &'view dyn View,
    keys: Keys,
    kind: Kind,
    space: u32,
    branch: u32,
    /// Whether things that the index of names has are wanted.
    indexed: bool,
    /// The group that a listing of one has for all things but the one with its name.
    group: Option<String>,
    rows: MergedRows<'view>,
}

/// A thing of a listing.
pub(crate) struct Thing {
    pub(crate) id: OwnedId,
    pub(crate) bucket: u16,
    /// Its row; none if it is not in the listed groups.
    pub(crate) row: Option<Bytes>,
    /// Whether it came from the index of names, so that it must exist.
    pub(crate) indexed: bool,
}

impl Thing {
    /// Its position in the listing.
    pub(crate) fn position(&self) -> Vec<u8> {
        Keys::position(&self.id.name, self.id.group.as_deref()).to_vec()
    }

    pub(crate) fn into_name(self) -> NameInGroup {
        NameInGroup::new(self.id.name, self.id.group)
    }

    /// The index of names has a thing that does not exist.
    pub(crate) fn nothing_there(&self) -> Halt {
        let OwnedId { group, name, .. } = &self.id;
        Halt::Inconsistent(format!("K8: {name:?} of group {group:?} is in the index of names and does not exist"))
    }
}

impl<'view> Things<'view> {
    /// Begins a listing.
    pub(crate) fn new(
        view: &'view dyn View,
        keys: Keys,
        catalogue: &Catalogue,
        listing: &Listing<'_>,
    ) -> Result<Self, Halt> {
        let Listing { kind, space, branch, groups, prefix, after } = *listing;
        let sources = match groups {
            InGroup::Any | InGroup::Own => {
                let spread = |bucket| {
                    let none = ThingId { bucket, space, branch, group: None, name: "" };
                    let front = keys.names_prefix(kind, bucket, space, branch);
                    let range = keys.things_with_prefix(kind, &none, prefix);
                    let range = match after {
                        None => range,
                        Some(after) => range.after(&[&*front, after].concat()),
                    };
                    Source { bucket, range, cut: front.len() }
                };
                catalogue.buckets_here().map(spread).collect()
            }
            InGroup::Named(group) => of_group(&keys, catalogue, listing, group),
        };
        Ok(Self {
            view,
            keys,
            kind,
            space,
            branch,
            indexed: groups == InGroup::Any,
            group: match groups {
                InGroup::Named(group) => Some(group.to_owned()),
                _ => None,
            },
            rows: MergedRows::new(view, sources)?,
        })
    }

    /// The next thing.
    pub(crate) fn next(&mut self) -> Result<Option<Thing>, Halt> {
        let Some(found) = self.rows.next()? else {
            return Ok(None);
        };
        let MergedRow { bucket, value, .. } = &found;
        let (bucket, read) = (*bucket, read_position(found.suffix()));
        let (name, named) = read.ok_or_else(|| Halt::Inconsistent("a row has a key of another form".into()))?;
        let indexed = named.is_some();
        let group = named.or_else(|| self.group.clone().filter(|group| *group != name));
        let id = OwnedId { space: self.space, branch: self.branch, group, name };
        if !indexed {
            return Ok(Some(Thing { id, bucket, row: Some(value.clone()), indexed }));
        }
        let mut thing = Thing { id, bucket, row: None, indexed };
        if self.indexed {
            let row = self.view.get(&self.keys.thing(self.kind, &thing.id.in_bucket(bucket)))?;
            thing.row = Some(row.ok_or_else(|| thing.nothing_there())?);
        }
        Ok(Some(thing))
    }
}

/// The rows of a named group, plus the thing that has the group's name, which is stored under the name alone.
fn of_group(keys: &Keys, catalogue: &Catalogue, listing: &Listing<'_>, group: &str) -> Vec<Source> {
    let Listing { kind, space, branch, prefix, after, .. } = *listing;
    let Ok(own) = catalogue.thing(space, branch, None, group) else {
        return Vec::new();
    };
    let is_after = |name: &str, group| after.is_none_or(|after| *Keys::position(name, group) > *after);
    let members = ThingId { group: Some(group), name: "", ..own };
    let mut range = keys.things_with_prefix(kind, &members, prefix);
    if let Some((name, _)) = after.and_then(read_position) {
        let key = keys.thing(kind, &ThingId { name: &name, ..members });
        range = match is_after(&name, Some(group)) {
            true => KeyRange { start: range.start.max(key.to_vec()), end: range.end },
            false => range.after(&key),
        };
    }
    let cut = keys.things_with_prefix(kind, &members, "").start.len();
    let mut sources = vec![Source { bucket: own.bucket, range, cut }];
    if group.starts_with(prefix) && is_after(group, None) {
        let key = keys.thing(kind, &own);
        let range = KeyRange::between(key.to_vec(), [&*key, &[0]].concat());
        sources.push(Source {
            bucket: own.bucket,
            range,
            cut: keys.names_prefix(kind, own.bucket, space, branch).len(),
        });
    }
    sources
}
