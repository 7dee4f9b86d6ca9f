//! A store that fails on command, to test that the layers above stop and report it.
//!
//! Keeps: the poisoning duty of [`Store`]: after a failed commit every later one fails, unless the disk was full.
//! Never: fails by itself. A test names the call that fails.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::range::KeyRange;
use crate::store::{Batch, Bytes, Committed, KvError, Order, Rows, Sequence, Store, View};

/// Which calls fail, each counted from 1; none fails if it is left out.
#[derive(Clone, Copy, Debug, Default)]
pub struct FaultPlan {
    /// The commit that fails without having changed anything, and leaves the store poisoned.
    pub commit: Option<u64>,
    /// So many commits find the disk full, without having changed anything; the store is not poisoned.
    pub commits_full: u64,
    /// The read (get or scan) that fails, and all after it.
    pub read: Option<u64>,
    /// The persist that fails, and leaves the store poisoned.
    pub persist: Option<u64>,
}

/// A [`Store`] above another, which fails according to a plan.
pub struct FaultyStore<S> {
    inner: S,
    plan: Mutex<FaultPlan>,
    counts: Arc<Counts>,
    poisoned: AtomicBool,
}

#[derive(Default)]
struct Counts {
    commits: AtomicU64,
    reads: AtomicU64,
    persists: AtomicU64,
}

impl<S: Store> FaultyStore<S> {
    /// A store that does not fail yet.
    pub fn new(inner: S) -> Self {
        Self { inner, plan: Mutex::new(FaultPlan::default()), counts: Arc::default(), poisoned: AtomicBool::new(false) }
    }

    /// Sets which calls fail, counted from now.
    pub fn plan(&self, plan: FaultPlan) {
        self.counts.commits.store(0, Ordering::SeqCst);
        self.counts.reads.store(0, Ordering::SeqCst);
        self.counts.persists.store(0, Ordering::SeqCst);
        *self.plan.lock().unwrap_or_else(PoisonError::into_inner) = plan;
    }

    fn current_plan(&self) -> FaultPlan {
        *self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refuse_if_poisoned(&self) -> Result<(), KvError> {
        if self.poisoned.load(Ordering::SeqCst) {
            return Err(KvError::Poisoned { first: "an injected fault".into() });
        }
        Ok(())
    }

    fn write_fault(&self, count: &AtomicU64, at: Option<u64>, action: &'static str) -> Result<(), KvError> {
        self.refuse_if_poisoned()?;
        if Some(count.fetch_add(1, Ordering::SeqCst) + 1) == at {
            self.poisoned.store(true, Ordering::SeqCst);
            return Err(injected(action));
        }
        Ok(())
    }
}

fn injected(action: &'static str) -> KvError {
    KvError::Io { action, reason: "an injected fault".into() }
}

impl<S: Store> Store for FaultyStore<S> {
    fn view(&self) -> Result<Arc<dyn View>, KvError> {
        let read_fault = self.current_plan().read;
        Ok(Arc::new(FaultyView { inner: self.inner.view()?, counts: self.counts.clone(), read_fault }))
    }

    fn commit(&self, batch: Batch) -> Result<Committed, KvError> {
        self.write_fault(&self.counts.commits, self.current_plan().commit, "commit a batch")?;
        if self.counts.commits.load(Ordering::SeqCst) <= self.current_plan().commits_full {
            return Err(KvError::NoSpace {
                action: "commit a batch",
                bytes_needed: 1,
                reason: "an injected fault".into(),
            });
        }
        self.inner.commit(batch)
    }

    fn durable(&self) -> Sequence {
        self.inner.durable()
    }

    fn persist(&self) -> Result<Sequence, KvError> {
        self.write_fault(&self.counts.persists, self.current_plan().persist, "persist")?;
        self.inner.persist()
    }
}

struct FaultyView {
    inner: Arc<dyn View>,
    counts: Arc<Counts>,
    read_fault: Option<u64>,
}

impl FaultyView {
    fn read(&self) -> Result<(), KvError> {
        let count = self.counts.reads.fetch_add(1, Ordering::SeqCst) + 1;
        if self.read_fault.is_some_and(|at| count >= at) {
            return Err(injected("read"));
        }
        Ok(())
    }
}

impl View for FaultyView {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, KvError> {
        self.read()?;
        self.inner.get(key)
    }

    fn scan(&self, range: &KeyRange, order: Order) -> Rows<'_> {
        match self.read() {
            Ok(()) => self.inner.scan(range, order),
            Err(error) => Box::new(std::iter::once(Err(error))),
        }
    }
}
