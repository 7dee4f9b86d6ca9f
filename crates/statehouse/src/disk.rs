//! Free space of the disk: below a reserve, whatever makes the store larger is refused, until space is free again.
//!
//! Keeps: what makes room always passes (deletes, completions, TTL, retention), and so do claims and reads: a store that refuses
//! these when it is full can only be helped from outside. Never: has a thread; it is looked at most once a second, by
//! whoever writes or asks.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use contract::{Error, Failure, FailureKind};

use crate::clock::Clock;

/// How old what is known of the disk may be.
const LOOK_EVERY_US: u64 = 1_000_000;

/// How much of a disk is kept free: a part of it, but not more than so many bytes. A tenth of a large disk would be far more than
/// is ever needed to make room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskReserve {
    /// This part of it, in percent,
    pub percent: u8,
    /// and at most this many bytes.
    pub bytes: u64,
}

/// How a disk is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiskSpace {
    /// Bytes that are free.
    pub free_bytes: u64,
    /// Bytes of the whole disk.
    pub total_bytes: u64,
    /// Bytes that are to be kept free; zero without a reserve.
    pub reserve_bytes: u64,
}

impl DiskSpace {
    /// Whether what makes the store larger is refused.
    pub fn is_low(&self) -> bool {
        self.free_bytes < self.reserve_bytes
    }
}

/// The disk of a directory.
pub(crate) struct Disk {
    folder: PathBuf,
    known: Mutex<Known>,
    /// When it was looked last, plus one; zero for never. Outside of the lock, since every write asks.
    looked_us: AtomicU64,
    low: std::sync::atomic::AtomicBool,
}

struct Known {
    reserve: Option<DiskReserve>,
    space: Option<DiskSpace>,
}

impl Disk {
    pub(crate) fn new(folder: PathBuf, reserve: Option<DiskReserve>) -> Self {
        let known = Mutex::new(Known { reserve, space: None });
        Self { folder, known, looked_us: AtomicU64::new(0), low: false.into() }
    }

    pub(crate) fn set_reserve(&self, reserve: Option<DiskReserve>) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).reserve = reserve;
        self.looked_us.store(0, Ordering::Release);
    }

    /// Refuses what makes the store larger while the disk is low.
    pub(crate) fn check(&self, clock: &dyn Clock) -> Result<(), Error> {
        self.look(clock);
        if !self.low.load(Ordering::Acquire) {
            return Ok(());
        }
        let Some(space) = self.known.lock().unwrap_or_else(PoisonError::into_inner).space else {
            return Ok(());
        };
        let message = format!(
            "the disk of {} has {} bytes free of {}, and {} are kept free; delete something or make room: deletes, completions \
             and reads go on, and writes do when there is room",
            self.folder.display(),
            space.free_bytes,
            space.total_bytes,
            space.reserve_bytes
        );
        Err(Failure::not_applied(FailureKind::DiskLow, message).into())
    }

    /// What is known of the disk; nothing if the system does not say.
    pub(crate) fn space(&self, clock: &dyn Clock) -> Option<DiskSpace> {
        self.look(clock);
        self.known.lock().unwrap_or_else(PoisonError::into_inner).space
    }

    fn look(&self, clock: &dyn Clock) {
        let now = clock.monotonic_us() + 1;
        let looked = self.looked_us.load(Ordering::Acquire);
        if looked != 0 && now < looked + LOOK_EVERY_US {
            return;
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let reserve = known.reserve;
        known.space = rustix::fs::statvfs(&self.folder).ok().map(|stat| {
            let total_bytes = stat.f_blocks * stat.f_frsize;
            let reserve_bytes = reserve
                .map_or(0, |reserve| (total_bytes / 100 * u64::from(reserve.percent.min(100))).min(reserve.bytes));
            DiskSpace { free_bytes: stat.f_bavail * stat.f_frsize, total_bytes, reserve_bytes }
        });
        self.low.store(known.space.is_some_and(|space| space.is_low()), Ordering::Release);
        self.looked_us.store(now, Ordering::Release);
    }
}
