//! Checkpoints of partitions, as far as the server knows of them: where they lie, which are being taken, and how old the last ones
//! are.
//!
//! Keeps: one at a time of a partition, and [`CHECKPOINTS_RUNNING_MAX`] checkpoints and restores of all. What is begun goes on when
//! its request is over. Never: knows of those that were taken elsewhere, or before the server was started.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use contract::{Error, Failure, FailureKind, Rejection};
use statehouse::keyed::{CheckpointError, CheckpointInfo, Checkpoints};
use statehouse::{Space, Statehouse};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::api::refusal::Refusal;
use crate::dates::wall_now;
use crate::limits::CHECKPOINTS_RUNNING_MAX;

/// The number of partitions whose last checkpoint is known; further ones are not in the metric of the oldest.
const LAST_MAX: usize = 100_000;

/// A partition of an operator, in its space and branch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PartitionName {
    space: String,
    branch: String,
    operator: String,
    partition: u32,
}

impl PartitionName {
    pub(crate) fn new(space: &Space, operator: &str, partition: u32) -> Self {
        let (space, branch) = (space.name().to_owned(), space.branch_name().to_owned());
        Self { space, branch, operator: operator.to_owned(), partition }
    }

    /// Whether it holds something; not known if the store does not say.
    fn is_there(&self, house: &Statehouse) -> Option<bool> {
        let branch = house.space(&self.space).branch(&self.branch);
        match branch.keyed(self.operator.as_str()).partition(self.partition).summary() {
            Ok(summary) => Some(summary.is_some()),
            Err(Error::Rejected(Rejection::NoSuchSpace { .. } | Rejection::NoSuchBranch { .. })) => Some(false),
            Err(_) => None,
        }
    }
}

/// The checkpoints of one server.
#[derive(Clone)]
pub(crate) struct ServerCheckpoints {
    place: Option<Checkpoints>,
    running: Arc<Semaphore>,
    known: Arc<Known>,
}

#[derive(Default)]
struct Known {
    /// Those that are being checkpointed.
    taking: Mutex<HashSet<PartitionName>>,
    /// When each had its last checkpoint.
    last: Mutex<HashMap<PartitionName, SystemTime>>,
    committed: AtomicU64,
    failed: AtomicU64,
}

impl Default for ServerCheckpoints {
    fn default() -> Self {
        Self { place: None, running: Arc::new(Semaphore::new(CHECKPOINTS_RUNNING_MAX)), known: Arc::default() }
    }
}

impl ServerCheckpoints {
    /// Checkpoints in a place.
    pub(crate) fn at(place: Checkpoints) -> Self {
        Self { place: Some(place), ..Self::default() }
    }

    /// Where they lie.
    pub(crate) fn place(&self) -> Result<&Checkpoints, Refusal> {
        self.place.as_ref().ok_or(Refusal::NoCheckpoints)
    }

    /// Begins a checkpoint or a restore; it counts until what is returned is dropped.
    pub(crate) fn enter(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        self.running.clone().try_acquire_owned().map_err(|_| {
            busy(format!(
                "all checkpoints_running_max = {CHECKPOINTS_RUNNING_MAX} checkpoints and restores are in progress; try again \
                 when one of them is done"
            ))
        })
    }

    /// Begins a checkpoint of a partition, unless one is being taken.
    pub(crate) fn taking(&self, of: PartitionName) -> Result<Taking, Refusal> {
        let permit = self.enter()?;
        if !lock(&self.known.taking).insert(of.clone()) {
            let PartitionName { operator, partition, .. } = of;
            return Err(busy(format!(
                "a checkpoint of partition {operator}/{partition} is being taken already; its checkpoints list it when it is \
                 committed; try again then"
            )));
        }
        Ok(Taking { of, known: self.known.clone(), _permit: permit })
    }

    /// How many were committed and how many failed, since the server was started.
    pub(crate) fn ended(&self) -> [(&'static str, u64); 2] {
        let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
        [("committed", count(&self.known.committed)), ("failed", count(&self.known.failed))]
    }

    /// When the partition whose last checkpoint is the oldest had it. Partitions that hold nothing any more are forgotten.
    pub(crate) fn oldest(&self, house: &Statehouse) -> Option<SystemTime> {
        loop {
            let (of, at) = {
                let last = lock(&self.known.last);
                last.iter().min_by_key(|(_, at)| **at).map(|(of, at)| (of.clone(), *at))?
            };
            if of.is_there(house) != Some(false) {
                return Some(at);
            }
            lock(&self.known.last).remove(&of);
        }
    }
}

/// A checkpoint that is being taken, until this is dropped.
pub(crate) struct Taking {
    of: PartitionName,
    known: Arc<Known>,
    _permit: OwnedSemaphorePermit,
}

impl Taking {
    /// Counts how it has ended.
    pub(crate) fn ended(&self, ended: &Result<CheckpointInfo, CheckpointError>) {
        match ended {
            Ok(_) => {
                self.known.committed.fetch_add(1, Ordering::Relaxed);
                let mut last = lock(&self.known.last);
                if last.len() < LAST_MAX || last.contains_key(&self.of) {
                    last.insert(self.of.clone(), wall_now());
                }
            }
            Err(_) => {
                self.known.failed.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl Drop for Taking {
    fn drop(&mut self) {
        lock(&self.known.taking).remove(&self.of);
    }
}

/// What is changed under the lock is changed in one step, so it is right even after a panic.
fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

fn busy(message: String) -> Refusal {
    Refusal::from(Error::from(Failure::not_applied(FailureKind::Busy, message)))
}
