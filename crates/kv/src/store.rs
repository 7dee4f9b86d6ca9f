//! The two traits that every store implements, and the batch that changes one.
//!
//! Keeps: the duties written on [`Store`] and [`View`]; `statehouse-testkit` holds the suite that checks them.
//! Never: asks a store to order writers. One writer commits at a time, readers are never held up.

use std::sync::Arc;

use crate::key::Key;
use crate::range::KeyRange;

/// A stored value: shared, immutable bytes that are cheap to clone.
pub type Bytes = Arc<[u8]>;

/// A copy of `bytes` as a value. Rows of an index are empty, and these all share one allocation.
pub fn copied(bytes: &[u8]) -> Bytes {
    if bytes.is_empty() { Bytes::default() } else { Bytes::from(bytes) }
}

/// One row of a scan: key and value.
pub type Row = (Key, Bytes);

/// The rows of a scan. It borrows the view that it came from.
pub type Rows<'view> = Box<dyn Iterator<Item = Result<Row, KvError>> + Send + 'view>;

/// Counts the batches that a store has committed since it was opened, starting at 1.
/// Says "durable up to" in [`Store::durable`]; it is not stored.
pub type Sequence = u64;

/// The direction of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Smallest key first.
    Ascending,
    /// Largest key first.
    Descending,
}

/// A consistent read of everything committed when the view was taken.
///
/// # Duties
/// - A view never changes: batches committed later are invisible, whether or not they were flushed,
///   compacted or overwritten since.
/// - A view sees all of a batch or none of it.
/// - A scan yields every live key of the range once, in byte order (or its reverse), and nothing deleted.
/// - Where a range of keys is damaged, a get fails, and a scan yields [`KvError::Damaged`] in the range's place and goes on
///   behind it. After any other failure a scan ends.
pub trait View: Send + Sync {
    /// The value at `key`, or none.
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, KvError>;

    /// The rows of `range`, in `order`.
    fn scan(&self, range: &KeyRange, order: Order) -> Rows<'_>;
}

/// An ordered map of bytes that changes by atomic batches.
///
/// # Duties
/// - [`commit`](Store::commit) applies all of a batch or none of it, and a view taken after it returned sees it.
/// - Batches become durable in the order they were committed: after power loss the store is exactly the result of its
///   first `n` batches, for some `n` at or above what [`durable`](Store::durable) returned. (A store that flushes in
///   bulk is exactly one of its flushes.)
/// - A condition is judged against the state that the batch would change, with nothing in between.
/// - After an error that leaves the outcome of a batch in doubt, the store is poisoned: every later commit fails, reads
///   may continue. After any other error the batch has changed nothing, and may be committed again.
pub trait Store: Send + Sync {
    /// A view of everything committed so far.
    fn view(&self) -> Result<Arc<dyn View>, KvError>;

    /// Applies a batch, or refuses it because its condition does not hold.
    fn commit(&self, batch: Batch) -> Result<Committed, KvError>;

    /// The newest batch that survives power loss, with all before it.
    fn durable(&self) -> Sequence;

    /// Makes everything committed so far durable, and returns how far that is.
    fn persist(&self) -> Result<Sequence, KvError>;
}

/// The result of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Committed {
    /// The batch is in the store, as this one of its batches (an empty one may share the number before it).
    Applied(Sequence),
    /// The batch's condition did not hold; nothing was changed.
    ConditionFailed,
}

/// A condition that a batch may carry: `key` holds exactly `expected` (none: is absent).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The key to check.
    pub key: Key,
    /// Its expected value.
    pub expected: Option<Bytes>,
}

/// Writes that happen together. The last write to a key wins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// Sorted, each key once.
    writes: Vec<(Key, Option<Bytes>)>,
    condition: Option<Condition>,
}

impl Batch {
    /// A batch without writes.
    pub fn new() -> Self {
        Self::default()
    }

    /// A batch of writes sorted by key, each key once; none as a value deletes.
    ///
    /// # Panics
    /// If they are not.
    pub fn from_sorted(writes: Vec<(Key, Option<Bytes>)>) -> Self {
        assert!(writes.is_sorted_by(|(left, _), (right, _)| left < right), "the writes of a batch are sorted");
        Self { writes, condition: None }
    }

    /// Adds a write.
    pub fn put(self, key: impl Into<Key>, value: impl Into<Bytes>) -> Self {
        self.write(key.into(), Some(value.into()))
    }

    /// Adds a deletion.
    pub fn delete(self, key: impl Into<Key>) -> Self {
        self.write(key.into(), None)
    }

    fn write(mut self, key: Key, value: Option<Bytes>) -> Self {
        match self.writes.binary_search_by(|(other, _)| other.cmp(&key)) {
            Ok(place) => self.writes[place].1 = value,
            Err(place) => self.writes.insert(place, (key, value)),
        }
        self
    }

    /// Whether the batch changes nothing.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Makes the batch conditional.
    pub fn when(mut self, key: impl Into<Key>, expected: Option<Bytes>) -> Self {
        self.condition = Some(Condition { key: key.into(), expected });
        self
    }

    /// What it writes to a key; none if it deletes it or leaves it alone.
    pub fn value(&self, key: &[u8]) -> Option<&Bytes> {
        let place = self.writes.binary_search_by(|(other, _)| other.as_slice().cmp(key)).ok()?;
        self.writes[place].1.as_ref()
    }

    /// The writes in key order; none deletes.
    pub fn writes(&self) -> impl ExactSizeIterator<Item = (&Key, Option<&Bytes>)> {
        self.writes.iter().map(|(key, value)| (key, value.as_ref()))
    }

    /// The writes in key order, by value.
    pub fn into_writes(self) -> impl ExactSizeIterator<Item = (Key, Option<Bytes>)> {
        self.writes.into_iter()
    }

    /// The condition, if the batch has one.
    pub fn condition(&self) -> Option<&Condition> {
        self.condition.as_ref()
    }

    /// Whether the batch's condition holds in `view`.
    pub fn condition_holds(&self, view: &dyn View) -> Result<bool, KvError> {
        match &self.condition {
            None => Ok(true),
            Some(condition) => Ok(view.get(&condition.key)? == condition.expected),
        }
    }
}

/// Why a store could not do its work. Each one is the environment's failure, never an answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KvError {
    /// The disk or the database below failed.
    #[error("the store failed to {action}: {reason}")]
    Io {
        /// The failed operation.
        action: &'static str,
        /// The reason given by the layer below.
        reason: String,
    },
    /// The disk, or this user's share of it, is full. Nothing has changed.
    #[error("the store has no space to {action}{}: {reason}", needed(*bytes_needed))]
    NoSpace {
        /// The failed operation.
        action: &'static str,
        /// About how many bytes it needs in all; 0 if that is not known.
        bytes_needed: u64,
        /// The reason given by the layer below.
        reason: String,
    },
    /// Stored bytes differ from what was written.
    #[error("the store holds damaged bytes ({place}): {reason}")]
    Corrupt {
        /// Which file, table or key.
        place: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A range of keys cannot be read. Everything outside of it can.
    #[error(transparent)]
    Damaged(Box<DamagedRange>),
    /// An earlier failure left the outcome of a write in doubt; only reopening helps.
    #[error("the store accepts no more writes after an earlier failure: {first}")]
    Poisoned {
        /// The failure that came first.
        first: String,
    },
    /// The view was ended: it kept deleted rows on a disk with little space. A newer view can be read.
    #[error(
        "a view that was read for long was ended, because it kept {bytes} bytes of deleted rows on a disk with little space"
    )]
    ViewEnded {
        /// The bytes of the table that it was about to read.
        bytes: u64,
    },
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

fn needed(bytes: u64) -> String {
    if bytes == 0 { String::new() } else { format!(" ({bytes} bytes needed)") }
}

/// A range of keys that cannot be read, because the bytes that held it are damaged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a range of keys is damaged ({place}): {reason}")]
pub struct DamagedRange {
    /// Which file, and where in it.
    pub place: String,
    /// What is wrong with it.
    pub reason: &'static str,
    /// The keys that it may have held.
    pub range: KeyRange,
    /// Where a scan meets the range: its first key in ascending order, the key after its last in descending order,
    /// within what is scanned.
    pub at: Key,
    /// The first and the last thing of the range, if a layer above the store has named them.
    pub words: Option<(String, String)>,
    /// Whether the range is set apart: it stays unreadable from now on, whatever the disk says.
    pub is_set_apart: bool,
}

impl DamagedRange {
    /// Whether a scan in this order meets `key` before it meets the range.
    pub fn is_after(&self, key: &[u8], order: Order) -> bool {
        match order {
            Order::Ascending => *key < *self.at,
            Order::Descending => *key >= *self.at,
        }
    }
}

/// The rows of a scan without those that are damaged and set apart, for readers that must go on.
pub fn skip_set_apart(rows: Rows<'_>) -> Rows<'_> {
    Box::new(rows.filter(|row| !matches!(row, Err(KvError::Damaged(damaged)) if damaged.is_set_apart)))
}

/// A view of what can be read: damaged ranges are left out, as if nothing was there. For work that must go on and does
/// not decide anything.
pub struct Readable<'view>(pub &'view dyn View);

impl View for Readable<'_> {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, KvError> {
        match self.0.get(key) {
            Err(KvError::Damaged(_)) => Ok(None),
            found => found,
        }
    }

    fn scan(&self, range: &KeyRange, order: Order) -> Rows<'_> {
        Box::new(self.0.scan(range, order).filter(|row| !matches!(row, Err(KvError::Damaged(_)))))
    }
}

impl KvError {
    /// Whether what failed with this error may be tried again, with a new view: nothing has changed, and the reason can go
    /// away. If a commit has changed something after all, the next attempt says [`Poisoned`](Self::Poisoned).
    pub fn may_retry(&self) -> bool {
        matches!(self, KvError::Io { .. } | KvError::NoSpace { .. } | KvError::ViewEnded { .. })
    }
}
