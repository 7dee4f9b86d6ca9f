//! State published by the apply loop: the catalogue in force, its progress, and why it stopped.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use contract::Error;
use kernel::Catalogue;

use crate::arrivals::Arrivals;
use crate::background::scrub_progress::ScrubMeter;
use crate::contracts::Beside;
use crate::meters::Meters;

/// State published by the apply loop.
pub struct Shared {
    catalogue: ArcSwap<Catalogue>,
    /// Its progress.
    pub arrivals: Arrivals,
    failure: Mutex<Option<Error>>,
    /// Set with the failure, so that the usual case takes no lock.
    failed: AtomicBool,
    /// Rows that commands wrote since the store was opened.
    pub command_rows: AtomicU64,
    /// Bytes of the entries applied since the store was opened.
    pub(crate) entry_bytes: AtomicU64,
    /// Activity since the store was opened.
    pub(crate) meters: Meters,
    /// What is kept for the contracts beside their rows.
    pub beside: Beside,
    /// The progress of the scrub.
    pub scrub: ScrubMeter,
}

impl Shared {
    /// The shared state of a store with this catalogue.
    pub(crate) fn new(catalogue: Catalogue) -> Self {
        Self {
            catalogue: ArcSwap::from_pointee(catalogue),
            arrivals: Arrivals::default(),
            failure: Mutex::new(None),
            failed: AtomicBool::new(false),
            command_rows: AtomicU64::new(0),
            entry_bytes: AtomicU64::new(0),
            meters: Meters::default(),
            beside: Beside::default(),
            scrub: ScrubMeter::default(),
        }
    }

    pub(crate) fn publish_catalogue(&self, catalogue: Catalogue) {
        self.catalogue.store(Arc::new(catalogue));
    }

    /// The catalogue in force.
    pub fn catalogue(&self) -> Arc<Catalogue> {
        self.catalogue.load_full()
    }

    pub(crate) fn fail(&self, error: Error) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.failed.store(true, Ordering::Release);
    }

    /// Why nothing is applied any more, if so.
    pub fn failure(&self) -> Option<Error> {
        if !self.failed.load(Ordering::Acquire) {
            return None;
        }
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
