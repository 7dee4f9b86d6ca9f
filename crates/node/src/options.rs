//! Options for opening a directory. Every limit has a name here or in its own layer.

use std::sync::Arc;
use std::time::Duration;

use kernel::Hosted;

use crate::background::plans::{ImagePlan, ScrubPlan};
use crate::clock::{Clock, SystemClock};
use crate::opening::Opening;
use crate::publish::Publish;
use crate::space::disk::DiskReserve;

/// Options for opening a directory.
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
    /// Machines that the user brings, by number.
    pub machines: Hosted,
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
    pub(crate) fn scrub_plan(&self) -> Option<ScrubPlan> {
        let (bytes_per_second, every) = (self.scrub_bytes_per_second, self.scrub_every);
        (bytes_per_second > 0).then_some(ScrubPlan { bytes_per_second, every })
    }
}
