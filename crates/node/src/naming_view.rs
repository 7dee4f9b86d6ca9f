//! A view whose errors say in words what is damaged.

use std::sync::Arc;

use kernel::Catalogue;
use kernel::keys::readable::describe_range;
use kv::{Bytes, KeyRange, KvError, Order, Rows, View};

/// A view whose errors name what is damaged.
pub(crate) struct NamingView {
    pub(crate) inner: Arc<dyn View>,
    pub(crate) catalogue: Arc<Catalogue>,
}

fn named(error: KvError, catalogue: &Catalogue) -> KvError {
    match error {
        KvError::Damaged(mut damaged) => {
            damaged.words = Some(describe_range(&damaged.range, catalogue));
            KvError::Damaged(damaged)
        }
        other => other,
    }
}

impl View for NamingView {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, KvError> {
        self.inner.get(key).map_err(|error| named(error, &self.catalogue))
    }

    fn scan(&self, range: &KeyRange, order: Order) -> Rows<'_> {
        Box::new(self.inner.scan(range, order).map(|row| row.map_err(|error| named(error, &self.catalogue))))
    }
}
