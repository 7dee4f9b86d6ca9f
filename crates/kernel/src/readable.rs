//! Readable state: a view, or a view with staged writes above it.

use kv::{Bytes, KeyRange, KvError, Order, Rows, Staging, View};

/// State that can be read: a view, or staged writes above one.
pub(crate) trait Readable {
    /// The value at a key.
    fn read(&self, key: &[u8]) -> Result<Option<Bytes>, KvError>;

    /// The rows of a range, ascending.
    fn rows(&self, range: &KeyRange) -> Rows<'_>;
}

impl Readable for Staging {
    fn read(&self, key: &[u8]) -> Result<Option<Bytes>, KvError> {
        self.get(key)
    }

    fn rows(&self, range: &KeyRange) -> Rows<'_> {
        self.scan(range, Order::Ascending)
    }
}

impl Readable for dyn View + '_ {
    fn read(&self, key: &[u8]) -> Result<Option<Bytes>, KvError> {
        self.get(key)
    }

    fn rows(&self, range: &KeyRange) -> Rows<'_> {
        self.scan(range, Order::Ascending)
    }
}
