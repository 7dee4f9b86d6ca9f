//! Views of the tree that pin the version they read, so that no read takes a lock of the tree.
//!
//! The tree's own reads share a lock with installing a version, which is held across several syncs. A pinned version
//! is a shared list of tables; a table's file lives as long as anyone holds it. Compaction changes which
//! tables hold the content but not the content, so it may replace what the newest [`Content`] reads from.
//!
//! Uses doc-hidden parts of `lsm-tree`, which is pinned to one exact release for that reason.

use std::sync::Arc;

use arc_swap::ArcSwap;
use kv::{Bytes, Key, KeyRange, KvError, Order, Rows, View, copied};
use lsm_tree::table::filter::standard_bloom::Builder as BloomBuilder;
use lsm_tree::{AbstractTree, AnyTree, SeqNo, Tree, UserKey, UserValue};

use crate::tree::standard_tree;

type Get = dyn Fn(&[u8]) -> lsm_tree::Result<Option<UserValue>> + Send + Sync;
type TreeRow = lsm_tree::Result<(UserKey, UserValue)>;
type Range = dyn Fn(&KeyRange) -> Box<dyn DoubleEndedIterator<Item = TreeRow> + Send> + Send + Sync;

/// One version of the tree. The tree's types for it have no public names, hence closures.
pub(crate) struct Pinned {
    get: Box<Get>,
    range: Box<Range>,
}

impl Pinned {
    /// The newest version. The caller must keep runs from being added meanwhile.
    pub(crate) fn newest(tree: &AnyTree) -> Self {
        let tree = standard_tree(tree);
        let version = tree.current_version();
        let super_version = tree.get_version_history_lock().latest_version();
        Self {
            get: Box::new(move |key| {
                let hash = BloomBuilder::get_hash(key);
                for run in version.iter_levels().flat_map(|level| level.iter()) {
                    let Some(table) = run.get_for_key(key) else {
                        continue;
                    };
                    if let Some(found) = table.get(key, SeqNo::MAX, hash)? {
                        return Ok((!found.is_tombstone()).then_some(found.value));
                    }
                }
                Ok(None)
            }),
            range: Box::new(move |range| {
                use std::ops::Bound;
                let start = Bound::Included(UserKey::from(range.start.as_slice()));
                let end = range.end.as_deref().map_or(Bound::Unbounded, |end| Bound::Excluded(end.into()));
                let bounds: (Bound<UserKey>, Bound<UserKey>) = (start, end);
                let version = super_version.clone();
                let rows = Tree::create_internal_range::<UserKey, _>(version, &bounds, SeqNo::MAX, None);
                Box::new(rows.map(|row| row.map(|row| (row.key.user_key, row.value))))
            }),
        }
    }
}

/// The content of the store after one of its batches, shared by every view of that moment.
pub(crate) struct Content {
    pinned: ArcSwap<Pinned>,
}

impl Content {
    pub(crate) fn new(pinned: Pinned) -> Self {
        Self { pinned: ArcSwap::from_pointee(pinned) }
    }

    /// Switches to other tables with the same content.
    pub(crate) fn move_to(&self, pinned: Pinned) {
        self.pinned.store(Arc::new(pinned));
    }
}

impl View for Content {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, KvError> {
        let value = (self.pinned.load().get)(key).map_err(|error| read_error(&error))?;
        Ok(value.map(|value| Bytes::from(&*value)))
    }

    fn scan(&self, range: &KeyRange, order: Order) -> Rows<'_> {
        if range.is_empty() {
            return Box::new(std::iter::empty());
        }
        let rows = (self.pinned.load().range)(range);
        let row = |row: TreeRow| match row {
            Ok((key, value)) => Ok((Key::from(&*key), copied(&value))),
            Err(error) => Err(read_error(&error)),
        };
        match order {
            Order::Ascending => Box::new(rows.map(row)),
            Order::Descending => Box::new(rows.rev().map(row)),
        }
    }
}

fn read_error(error: &lsm_tree::Error) -> KvError {
    match error {
        lsm_tree::Error::Io(error) => KvError::Io { action: "read a table", reason: error.to_string() },
        other => KvError::Corrupt { place: "a table".into(), reason: format!("{other:?}") },
    }
}
