//! Options for opening a directory.

use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use contract::Error;
use node::background::plans::ImagePlan;
use node::clock::Clock;
use node::opening::Opening;
use node::publish::Publish;
use node::shard::Shard;
use node::space::disk::DiskReserve;
use session::{ImagePolicy, UserMachine};

use crate::house::Statehouse;

/// Options for opening a directory. Its fields are those of [`node::options::Options`]: they can be read and set.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("house");
/// let mut options = statehouse::Options::default().memory_bytes(64 << 20);
/// options.journal.queue_commands_max = 1_000;
/// let house = options.open(&path)?;
/// # house.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct Options(node::options::Options);

impl Deref for Options {
    type Target = node::options::Options;

    fn deref(&self) -> &node::options::Options {
        &self.0
    }
}

impl DerefMut for Options {
    fn deref_mut(&mut self) -> &mut node::options::Options {
        &mut self.0
    }
}

impl Options {
    /// Opens the directory at `path`, or creates it.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Statehouse, Error> {
        Ok(Statehouse::over(Shard::open(path.as_ref(), self)?))
    }

    /// Sets the store's cache to `bytes`, and what waits in memory to about as much.
    pub fn memory_bytes(mut self, bytes: usize) -> Self {
        self.0.storage.cache_bytes_max = bytes as u64;
        self.0.overlay.table_bytes_max = (bytes / 4).max(1 << 20);
        self
    }

    /// Sets where messages for brokers go.
    pub fn publish_to(mut self, broker: Arc<dyn Publish>) -> Self {
        self.0.broker = Some(broker);
        self
    }

    /// Brings a machine: its commands can be sent, and its state read, by [`Statehouse::machine`](crate::Statehouse::machine).
    /// A directory that it was opened with once cannot be opened without it, or with an older version of it.
    pub fn machine<M: UserMachine>(mut self, machine: M) -> Self {
        self.0.machines.insert(M::NUMBER, Arc::new(machine));
        self
    }

    /// Sets [`session_check_every`](Self::session_check_every).
    pub fn session_check_every(mut self, every: Duration) -> Self {
        self.0.session_check_every = every;
        self
    }

    /// Compares the projections of all runs with their events, repeatedly, with a pause in between; differences are
    /// logged, and counted in [`Status`](crate::Status).
    pub fn verify_runs_every(mut self, every: Duration) -> Self {
        self.0.verify_runs_every = Some(every);
        self
    }

    /// Writes images into a folder according to the policy, and keeps the newest `kept`.
    pub fn images(mut self, folder: impl Into<PathBuf>, policy: ImagePolicy, kept: usize) -> Self {
        self.0.images = Some(ImagePlan { folder: folder.into(), policy, kept });
        self
    }

    /// Keeps some of the disk free: below the reserve, operations that make the store larger are refused with
    /// [`DiskLow`](crate::FailureKind::DiskLow).
    pub fn disk_reserve(mut self, reserve: DiskReserve) -> Self {
        self.0.disk_reserve = Some(reserve);
        self
    }

    /// Sets [`scrub_bytes_per_second`](Self::scrub_bytes_per_second).
    pub fn scrub_bytes_per_second(mut self, bytes: u64) -> Self {
        self.0.scrub_bytes_per_second = bytes;
        self
    }

    /// Reports the progress of opening.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// use std::sync::Arc;
    /// let opening = Arc::new(statehouse::Opening::default());
    /// let house = statehouse::Options::default().opening(opening.clone()).open(directory.path().join("house"))?;
    /// assert_eq!((opening.replayed(), opening.to_replay()), (0, 0), "a new directory has nothing to replay");
    /// # house.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn opening(mut self, opening: Arc<Opening>) -> Self {
        self.0.opening = Some(opening);
        self
    }

    /// Sets the source of time.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.0.clock = clock;
        self
    }

    /// Sets [`retention_walk_every`](Self::retention_walk_every).
    pub fn retention_walk_every(mut self, every: Duration) -> Self {
        self.0.retention_walk_every = every;
        self
    }

    /// Sets [`buckets`](Self::buckets).
    pub fn buckets(mut self, buckets: u16) -> Self {
        self.0.buckets = buckets;
        self
    }

    /// Sets [`replay_bytes_max`](Self::replay_bytes_max).
    pub fn replay_bytes_max(mut self, bytes: u64) -> Self {
        self.0.replay_bytes_max = bytes;
        self
    }
}
