//! Options for opening a directory. Every limit has a name here or in its own layer.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kernel::Hosted;
use session::{ImagePolicy, UserMachine};

use crate::clock::{Clock, SystemClock};
use crate::opening::Opening;
use crate::plans::{ImagePlan, ScrubPlan};
use crate::publish::Publish;
use crate::space::disk::DiskReserve;

/// Options for opening a directory.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("house");
/// let house = statehouse::Options::default().memory_bytes(64 << 20).open(&path)?;
/// # house.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct Options {
    /// The number of buckets of a new directory; a power of two, at most 4,096. An existing one keeps its number.
    pub buckets: u16,
    /// Bounds of the store's files and cache.
    pub storage: storage::Options,
    /// Bounds of what waits in memory for the store.
    pub overlay: kv::OverlayOptions,
    /// Sizes of the journal's files.
    pub journal_files: journal::SegmentOptions,
    /// Bounds of the journal's queue and of all its files.
    pub journal: journal::LocalOptions,
    /// Bytes of journal after which the store is flushed, which limits the replay after a crash.
    pub replay_bytes_max: u64,
    /// How often cells are searched for history to discard.
    pub retention_walk_every: Duration,
    /// The source of time.
    pub clock: Arc<dyn Clock>,
    /// Where messages for brokers go; without one they wait, and a server refuses them.
    pub broker: Option<Arc<dyn Publish>>,
    /// How often to look for expired sessions.
    pub session_check_every: Duration,
    /// The pause between two verifications of all runs; none for no verification.
    pub verify_runs_every: Option<Duration>,
    /// Where and when images are written; none are without it.
    pub images: Option<ImagePlan>,
    /// How many bytes per second the scrub reads, to find damage; 0 for no scrub.
    pub scrub_bytes_per_second: u64,
    /// The time from the start of one scrub of everything to the start of the next, at least.
    pub scrub_every: Duration,
    /// How much of the disk is kept free; none for no reserve.
    pub disk_reserve: Option<DiskReserve>,
    /// Receives the progress of opening.
    pub opening: Option<Arc<Opening>>,
    machines: Hosted,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            buckets: 64,
            storage: storage::Options::default(),
            overlay: kv::OverlayOptions::default(),
            journal_files: journal::SegmentOptions::default(),
            journal: journal::LocalOptions::default(),
            replay_bytes_max: 128 << 20,
            retention_walk_every: Duration::from_secs(10 * 60),
            clock: Arc::new(SystemClock::new()),
            broker: None,
            session_check_every: Duration::from_millis(100),
            verify_runs_every: None,
            images: None,
            scrub_bytes_per_second: 4 << 20,
            scrub_every: Duration::from_secs(60 * 60),
            disk_reserve: None,
            opening: None,
            machines: Hosted::new(),
        }
    }
}

impl Options {
    /// Sets the store's cache to `bytes`, and what waits in memory to about as much.
    pub fn memory_bytes(mut self, bytes: usize) -> Self {
        self.storage.cache_bytes_max = bytes as u64;
        self.overlay.table_bytes_max = (bytes / 4).max(1 << 20);
        self
    }

    /// Sets where messages for brokers go.
    pub fn publish_to(mut self, broker: Arc<dyn Publish>) -> Self {
        self.broker = Some(broker);
        self
    }

    /// Brings a machine: its commands can be sent, and its state read, by [`Statehouse::machine`](crate::Statehouse::machine).
    /// A directory that it was opened with once cannot be opened without it, or with an older version of it.
    pub fn machine<M: UserMachine>(mut self, machine: M) -> Self {
        self.machines.insert(M::NUMBER, Arc::new(machine));
        self
    }

    pub(crate) fn hosted(&self) -> Hosted {
        self.machines.clone()
    }

    /// Sets [`session_check_every`](Self::session_check_every).
    pub fn session_check_every(mut self, every: Duration) -> Self {
        self.session_check_every = every;
        self
    }

    /// Compares the projections of all runs with their events, repeatedly, with a pause in between; differences are
    /// logged, and counted in [`Status`](crate::Status).
    pub fn verify_runs_every(mut self, every: Duration) -> Self {
        self.verify_runs_every = Some(every);
        self
    }

    /// Writes images into a folder according to the policy, and keeps the newest `kept`.
    pub fn images(mut self, folder: impl Into<PathBuf>, policy: ImagePolicy, kept: usize) -> Self {
        self.images = Some(ImagePlan { folder: folder.into(), policy, kept });
        self
    }

    /// Keeps some of the disk free: below the reserve, operations that make the store larger are refused with
    /// [`DiskLow`](crate::FailureKind::DiskLow).
    pub fn disk_reserve(mut self, reserve: DiskReserve) -> Self {
        self.disk_reserve = Some(reserve);
        self
    }

    /// Sets [`scrub_bytes_per_second`](Self::scrub_bytes_per_second).
    pub fn scrub_bytes_per_second(mut self, bytes: u64) -> Self {
        self.scrub_bytes_per_second = bytes;
        self
    }

    pub(crate) fn scrub_plan(&self) -> Option<ScrubPlan> {
        let (bytes_per_second, every) = (self.scrub_bytes_per_second, self.scrub_every);
        (bytes_per_second > 0).then_some(ScrubPlan { bytes_per_second, every })
    }

    /// Reports the progress of opening.
    pub fn opening(mut self, opening: Arc<Opening>) -> Self {
        self.opening = Some(opening);
        self
    }

    /// Sets the source of time.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Sets [`retention_walk_every`](Self::retention_walk_every).
    pub fn retention_walk_every(mut self, every: Duration) -> Self {
        self.retention_walk_every = every;
        self
    }

    /// Sets [`buckets`](Self::buckets).
    pub fn buckets(mut self, buckets: u16) -> Self {
        self.buckets = buckets;
        self
    }

    /// Sets [`replay_bytes_max`](Self::replay_bytes_max).
    pub fn replay_bytes_max(mut self, bytes: u64) -> Self {
        self.replay_bytes_max = bytes;
        self
    }
}
