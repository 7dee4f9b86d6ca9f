//! A store that counts what it is given, and times its commits.

use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use kv::{Batch, Committed, KvError, Sequence, Store, View};

use super::subject::Watched;
use crate::store_maker::{MadeStore, StoreMaker};

/// What all stores of a maker were given since the last look.
#[derive(Default)]
pub(super) struct Watch {
    given_bytes: AtomicU64,
    longest_commit_ns: AtomicU64,
}

impl Watch {
    /// What was counted, from zero on again.
    pub(super) fn take(&self) -> Watched {
        Watched {
            given_bytes: self.given_bytes.swap(0, Ordering::Relaxed),
            longest_commit: Duration::from_nanos(self.longest_commit_ns.swap(0, Ordering::Relaxed)),
        }
    }
}

/// Makes stores that are watched.
pub(super) struct WatchingMaker {
    pub(super) inner: Rc<dyn StoreMaker>,
    pub(super) watch: Arc<Watch>,
}

impl WatchingMaker {
    fn watched(&self, made: MadeStore) -> MadeStore {
        MadeStore { store: Arc::new(WatchedStore { inner: made.store, watch: self.watch.clone() }), ..made }
    }
}

impl StoreMaker for WatchingMaker {
    fn create(&self, path: &Path) -> MadeStore {
        self.watched(self.inner.create(path))
    }

    fn open(&self, path: &Path) -> MadeStore {
        self.watched(self.inner.open(path))
    }
}

struct WatchedStore {
    inner: Arc<dyn Store>,
    watch: Arc<Watch>,
}

impl Store for WatchedStore {
    fn view(&self) -> Result<Arc<dyn View>, KvError> {
        self.inner.view()
    }

    fn commit(&self, batch: Batch) -> Result<Committed, KvError> {
        let bytes: usize = batch.writes().map(|(key, value)| key.len() + value.map_or(0, |value| value.len())).sum();
        let started = Instant::now();
        let committed = self.inner.commit(batch);
        let took = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.watch.given_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.watch.longest_commit_ns.fetch_max(took, Ordering::Relaxed);
        committed
    }

    fn durable(&self) -> Sequence {
        self.inner.durable()
    }

    fn persist(&self) -> Result<Sequence, KvError> {
        self.inner.persist()
    }
}

#[cfg(test)]
mod tests {
    use kv::MemoryStore;

    use super::*;

    fn watched(watch: &Arc<Watch>) -> WatchedStore {
        WatchedStore { inner: Arc::new(MemoryStore::new()), watch: watch.clone() }
    }

    #[test]
    fn it_is_a_store() {
        testkit::kv::suite(|| watched(&Arc::default()));
    }

    #[test]
    fn it_counts_keys_and_values_from_one_look_to_the_next() {
        let watch = Arc::default();
        let store = watched(&watch);
        store.commit(Batch::new().put(*b"key", *b"value").delete(*b"gone")).expect("a commit");
        assert_eq!(watch.take().given_bytes, 12);
        assert_eq!(watch.take().given_bytes, 0);
    }
}
