//! Reading maps: keys, ranges of keys, input positions, and lists of maps.

use std::sync::Arc;

use contract::keyed::{InputPosition, KeyedValue, MapSummary};
use contract::limits::{NAME_BYTES_MAX, PAGE_BYTES_MAX, SCAN_ROWS_MAX};
use contract::{Error, NameInGroup, Rejection, names};
use kernel::keyed::head::MapHead;
use kernel::keyed::list::{MapPage, list};
use kernel::keyed::read::{self, Bounds, KeysFrom};
use kernel::keys::ThingId;
use kernel::{Catalogue, Keys};
use kv::View;
use node::error::from_halt;
use session::Halt;

use super::Maps;
use crate::paging::{check_page, listed_groups};

/// A page of keys with their values.
pub use kernel::keyed::read::KeysPage;

/// A page of maps.
pub use kernel::keyed::list::ListedMaps;

/// Which keys of a map, in the order of their bytes.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
/// use statehouse::keyed::{KeysRange, MapUpdates};
/// let maps = house.maps();
/// maps.update("prices", &MapUpdates::new().put(b"apple", 30, 1).put(b"apricot", 50, 1).put(b"pear", 40, 1))?;
/// let page = maps.scan("prices", &KeysRange::with_prefix(b"ap").limit(1))?;
/// assert_eq!((page.keys[0].0.as_slice(), page.next_after.as_deref()), (b"apple".as_slice(), Some(b"apple".as_slice())));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeysRange {
    /// Those that begin with this.
    pub prefix: Vec<u8>,
    /// Those from this one on.
    pub from: Option<Vec<u8>>,
    /// Those before this one.
    pub to: Option<Vec<u8>>,
    /// Those after this one: where the page before ended.
    pub after: Option<Vec<u8>>,
    /// The maximum number of keys.
    pub limit: usize,
}

impl Default for KeysRange {
    fn default() -> Self {
        Self { prefix: Vec::new(), from: None, to: None, after: None, limit: 100 }
    }
}

impl KeysRange {
    /// The keys that begin with these bytes.
    pub fn with_prefix(prefix: &[u8]) -> Self {
        Self { prefix: prefix.to_vec(), ..Self::default() }
    }

    /// Sets [`from`](Self::from).
    pub fn from(mut self, key: &[u8]) -> Self {
        self.from = Some(key.to_vec());
        self
    }

    /// Sets [`to`](Self::to).
    pub fn to(mut self, key: &[u8]) -> Self {
        self.to = Some(key.to_vec());
        self
    }

    /// Sets [`after`](Self::after).
    pub fn after(mut self, key: &[u8]) -> Self {
        self.after = Some(key.to_vec());
        self
    }

    /// Sets [`limit`](Self::limit), at most 1,000.
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    fn check(&self) -> Result<(), Error> {
        check_page(self.limit)?;
        let ends = [Some(&self.prefix), self.from.as_ref(), self.to.as_ref(), self.after.as_ref()];
        for end in ends.into_iter().flatten() {
            Rejection::check_limit("name_bytes_max", NAME_BYTES_MAX, end.len())?;
        }
        Ok(())
    }
}

/// A map in a view.
pub(super) struct InView<'name> {
    pub(super) view: Arc<dyn View>,
    pub(super) keys: Keys,
    pub(super) map: ThingId<'name>,
    pub(super) head: MapHead,
}

impl Maps {
    /// Reads a map, if it exists.
    fn read<T>(&self, map: &str, read: impl FnOnce(&InView<'_>) -> Result<T, Halt>) -> Result<Option<T>, Error> {
        self.read_with(map, |found| read(found).map_err(|halt| from_halt(&halt)))
    }

    /// Reads a map, if it exists, with errors of another kind.
    pub(super) fn read_with<T, E: From<Error>>(
        &self,
        map: &str,
        read: impl FnOnce(&InView<'_>) -> Result<T, E>,
    ) -> Result<Option<T>, E> {
        self.check_names(map)?;
        let (view, catalogue, ids) = self.scope.view()?;
        let map = catalogue.thing(ids.space, ids.branch, self.group.as_deref(), map).map_err(Error::from)?;
        let head = read::head(&*view, &ids.keys, &map).map_err(|halt| from_halt(&halt))?;
        head.map(|head| read(&InView { view, keys: ids.keys, map, head })).transpose()
    }

    /// The value of a key, with its version unless it is merged; none if there is no such key.
    pub fn get(&self, map: &str, key: &[u8]) -> Result<Option<KeyedValue>, Error> {
        names::check_key(key)?;
        let found = self.read(map, |found| read::get(&*found.view, &found.keys, &found.map, &found.head, key))?;
        Ok(found.flatten())
    }

    /// Keys of a map with their values, in the order of their bytes. A map that does not exist has none.
    pub fn scan(&self, map: &str, range: &KeysRange) -> Result<KeysPage, Error> {
        range.check()?;
        let which = KeysFrom {
            prefix: &range.prefix,
            from: range.from.as_deref(),
            to: range.to.as_deref(),
            after: range.after.as_deref(),
        };
        let bounds = Bounds { keys_max: range.limit, rows_max: SCAN_ROWS_MAX, bytes_max: PAGE_BYTES_MAX };
        let page =
            self.read(map, |found| read::scan(&*found.view, &found.keys, &found.map, &found.head, &which, &bounds))?;
        Ok(page.unwrap_or_default())
    }

    /// How far the map has read an input; none if it has read nothing of it.
    pub fn position(&self, map: &str, input: &str) -> Result<Option<InputPosition>, Error> {
        names::check_input(input)?;
        let found =
            self.read(map, |found| read::position(&*found.view, &found.keys, &found.map, &found.head, input))?;
        Ok(found.flatten())
    }

    /// How far the map has read its inputs, by name, at most `limit` (1 to 1,000) after one of them.
    pub fn positions(
        &self,
        map: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<(String, InputPosition)>, Error> {
        check_page(limit)?;
        after.map_or(Ok(()), names::check_input)?;
        let found =
            self.read(map, |found| read::positions(&*found.view, &found.keys, &found.map, &found.head, after, limit))?;
        Ok(found.unwrap_or_default())
    }

    /// The map as a whole; none if it does not exist.
    pub fn summary(&self, map: &str) -> Result<Option<MapSummary>, Error> {
        self.read(map, |found| Ok(found.head.summary()))
    }

    /// The number of the content that a restore is putting aside, if one is.
    pub(super) fn restoring(&self, map: &str) -> Result<Option<u32>, Error> {
        self.check_names(map)?;
        let (view, catalogue, ids) = self.scope.view()?;
        let map = catalogue.thing(ids.space, ids.branch, self.group.as_deref(), map)?;
        // Also of a map that does not exist: it will when the restore has ended.
        let read = || view.get(&ids.keys.map(&map))?.map(|row| MapHead::decode(&row)).transpose();
        let head: Option<MapHead> = read().map_err(|halt| from_halt(&halt))?;
        Ok(head.and_then(|head| head.building).map(|building| building.content.number))
    }

    /// The maps whose names begin with a prefix, by name and then by group, with their summaries.
    pub fn list(&self, prefix: &str, after: Option<&NameInGroup>, limit: usize) -> Result<ListedMaps, Error> {
        check_page(limit)?;
        let groups = listed_groups(self.group.as_deref())?;
        let (view, catalogue, ids) = self.scope.view()?;
        let catalogue: &Catalogue = &catalogue;
        let page = MapPage { groups, prefix, after, limit };
        list(&*view, &ids.keys, catalogue, (ids.space, ids.branch), &page).map_err(|halt| from_halt(&halt))
    }
}
