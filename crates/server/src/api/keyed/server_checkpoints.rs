//! Checkpoints of partitions, as far as the server knows of them: where they lie, which are being taken, and how old the last ones
//! are.
//!
//! Keeps: one at a time of a partition, and [`CHECKPOINTS_RUNNING_MAX`] checkpoints and restores of all. What is begun goes on when
//! its request is over. Never: knows of those that others have taken since the server was started.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime};

use contract::{Error, Failure, FailureKind, Rejection};
use statehouse::keyed::{CheckpointError, CheckpointInfo, Checkpoints};
use statehouse::{Space, Statehouse};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::limits::CHECKPOINTS_RUNNING_MAX;
use super::look_back::look_back;
use crate::Server;
use crate::api::refusal::{OwnRefusal, Refusal, RefusalKind};
use crate::dates::wall_now;

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
    /// Whether requests wait for the end of what they began.
    ends_before_answers: bool,
}

#[derive(Default)]
struct Known {
    /// Those that are being checkpointed.
    taking: Mutex<HashSet<PartitionName>>,
    /// When each had its last checkpoint.
    last: Mutex<HashMap<PartitionName, SystemTime>>,
    /// Whether it was begun to look for those from before the server was started.
    looked_back: AtomicBool,
    committed: AtomicU64,
    failed: AtomicU64,
    /// Those that were committed, while what was not needed any more could not be removed.
    not_removed: AtomicU64,
}

impl Default for ServerCheckpoints {
    fn default() -> Self {
        let running = Arc::new(Semaphore::new(CHECKPOINTS_RUNNING_MAX));
        Self { place: None, running, known: Arc::default(), ends_before_answers: false }
    }
}

impl Server {
    /// The server, which takes and restores checkpoints of partitions there.
    pub fn keeping_checkpoints(mut self, place: Checkpoints) -> Self {
        self.checkpoints = ServerCheckpoints { place: Some(place), ..ServerCheckpoints::default() };
        self
    }

    /// The server, which answers requests for checkpoints and restores when those have ended, however long that takes: for a process
    /// that ends with its request.
    pub fn ending_checkpoints(mut self) -> Self {
        self.checkpoints.ends_before_answers = true;
        self
    }

    /// Ends when a request has waited so long for a checkpoint or a restore.
    pub(super) async fn waited_for_checkpoint(&self, wait: Duration) {
        match self.checkpoints.ends_before_answers {
            true => std::future::pending().await,
            false => self.waited(wait).await,
        }
    }
}

impl ServerCheckpoints {
    /// Where they lie.
    pub(crate) fn place(&self) -> Result<&Checkpoints, Refusal> {
        self.place.as_ref().ok_or_else(no_place)
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

    /// How many were committed, how many failed, and how many left behind what is not needed any more, since the server was started.
    pub(crate) fn ended(&self) -> [(&'static str, u64); 3] {
        let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
        [
            ("committed", count(&self.known.committed)),
            ("failed", count(&self.known.failed)),
            ("not_removed", count(&self.known.not_removed)),
        ]
    }

    /// When the partition whose last checkpoint is the oldest had it. Partitions that hold nothing any more are forgotten. The first call
    /// begins to look which checkpoints there are from before the server was started.
    pub(crate) fn oldest(&self, house: &Statehouse) -> Option<SystemTime> {
        self.look_back(house);
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

impl ServerCheckpoints {
    fn look_back(&self, house: &Statehouse) {
        let Some(place) = self.place.clone().filter(|_| !self.known.looked_back.swap(true, Ordering::Relaxed)) else {
            return;
        };
        let (house, known) = (house.clone(), self.known.clone());
        let look = move || {
            let looked = look_back(&house, &place, |of, at| known.note_last(of, at));
            if let Err(error) = looked {
                tracing::warn!(%error, "not all checkpoints from before the start were found; the metric of the oldest lacks them");
            }
        };
        if let Err(error) = thread::Builder::new().name("checkpoint-look".to_owned()).spawn(look) {
            tracing::warn!(%error, "no thread to look for checkpoints from before the start");
        }
    }
}

impl Known {
    fn note_last(&self, of: PartitionName, at: SystemTime) {
        let mut last = lock(&self.last);
        if last.len() < LAST_MAX || last.contains_key(&of) {
            let known = last.entry(of).or_insert(at);
            *known = at.max(*known);
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
            Ok(info) => {
                if info.not_removed.is_some() {
                    self.known.not_removed.fetch_add(1, Ordering::Relaxed);
                }
                self.known.committed.fetch_add(1, Ordering::Relaxed);
                self.known.note_last(self.of.clone(), wall_now());
            }
            Err(_) => self.failed(),
        }
    }

    /// Counts one that the place failed.
    pub(crate) fn failed(&self) {
        self.known.failed.fetch_add(1, Ordering::Relaxed);
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

/// The server was started without a place.
fn no_place() -> Refusal {
    let detail = "the server has no place for checkpoints; start it with the setting checkpoints: an absolute path, \
                  or s3://bucket/prefix";
    OwnRefusal::new(RefusalKind::NotOffered, "SH-2024", detail).into()
}

fn busy(message: String) -> Refusal {
    Refusal::from(Error::from(Failure::not_applied(FailureKind::Busy, message)))
}
