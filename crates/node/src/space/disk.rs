//! Free disk space: below a reserve, everything that makes the store larger is refused, until space is free again.
//!
//! Keeps: operations that free space always pass (deletes, completions, TTL, retention), and so do claims and reads: a
//! store that refuses these when it is full can only be helped from outside. Never: has a thread; writers and readers
//! of the figure check at most four times a second.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use contract::{Error, Failure, FailureKind};

use crate::clock::Clock;

/// The maximum age of the disk figures.
const LOOK_EVERY_US: u64 = 250_000;

/// The space is looked at again when commands with this part of what the store needs were let in.
const LET_IN_PART: u64 = 16;

/// How much of a disk is kept free: a share of it, but no more than a number of bytes. A tenth of a large disk would be
/// far more than is ever needed. What the store needs to write what it has in memory, and to merge, is kept free in any
/// case: a fifth of a small disk or less, and never more than 1 GiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskReserve {
    /// This part of it, in percent,
    pub percent: u8,
    /// and at most this many bytes.
    pub bytes: u64,
}

/// The state of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiskSpace {
    /// Free bytes.
    pub free_bytes: u64,
    /// Bytes of the whole disk.
    pub total_bytes: u64,
    /// Bytes kept free: the reserve, or what the store needs to go on if that is more.
    pub reserve_bytes: u64,
}

impl DiskSpace {
    /// Whether operations that make the store larger are refused.
    pub fn is_low(&self) -> bool {
        self.free_bytes < self.reserve_bytes
    }

    /// Whether space is freed before its time, so that operations may never have to be refused.
    fn is_short(&self) -> bool {
        self.free_bytes < self.reserve_bytes + self.margin_bytes()
    }

    /// What is to be free above the reserve.
    fn margin_bytes(&self) -> u64 {
        self.reserve_bytes / 4
    }

    /// Whether deleted data that a slow reader keeps must be freed. With space short, each merge adds to it and none frees
    /// anything, until nothing is left to merge with; so the margin above the reserve is all that it may keep. Otherwise
    /// it may keep as much as is free.
    pub(super) fn cannot_spare(&self, held_bytes: u64) -> bool {
        match self.is_short() {
            true => held_bytes > self.margin_bytes(),
            false => held_bytes > self.free_bytes,
        }
    }
}

/// The disk of a directory.
pub struct Disk {
    folder: PathBuf,
    /// The store needs this many bytes to write what is in memory, and to merge.
    needed_bytes: u64,
    known: Mutex<Known>,
    /// The time of the last check, plus one; zero for never. Outside of the lock, because every write reads it.
    looked_us: AtomicU64,
    /// The bytes of commands that were let in since then: the last look does not know of them.
    let_in_bytes: AtomicU64,
    low: std::sync::atomic::AtomicBool,
}

struct Known {
    reserve: Option<DiskReserve>,
    space: Option<DiskSpace>,
}

impl Disk {
    pub(crate) fn new(folder: PathBuf, needed_bytes: u64, reserve: Option<DiskReserve>) -> Self {
        let known = Mutex::new(Known { reserve, space: None });
        Self {
            folder,
            needed_bytes,
            known,
            looked_us: AtomicU64::new(0),
            let_in_bytes: AtomicU64::new(0),
            low: false.into(),
        }
    }

    pub(crate) fn set_reserve(&self, reserve: Option<DiskReserve>) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).reserve = reserve;
        self.looked_us.store(0, Ordering::Release);
    }

    /// Lets in a command of so many bytes that makes the store larger, or refuses it while disk space is low.
    pub(crate) fn check(&self, clock: &dyn Clock, bytes: usize) -> Result<(), Error> {
        let let_in = self.let_in_bytes.fetch_add(bytes as u64, Ordering::AcqRel);
        // Very much at once: the space is not what it was.
        if let_in > self.needed_bytes / LET_IN_PART {
            self.looked_us.store(0, Ordering::Release);
        }
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

    /// The state of the disk; none if the system does not tell.
    pub fn space(&self, clock: &dyn Clock) -> Option<DiskSpace> {
        self.look(clock);
        self.known.lock().unwrap_or_else(PoisonError::into_inner).space
    }

    /// Whether space is freed before its time.
    pub(crate) fn is_short(&self, clock: &dyn Clock) -> bool {
        self.space(clock).is_some_and(|space| space.is_short())
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
            let reserve_bytes = reserve_bytes.max(self.needed_bytes);
            DiskSpace { free_bytes: stat.f_bavail * stat.f_frsize, total_bytes, reserve_bytes }
        });
        self.low.store(known.space.is_some_and(|space| space.is_low()), Ordering::Release);
        self.let_in_bytes.store(0, Ordering::Release);
        self.looked_us.store(now, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_may_keep_what_the_disk_can_spare() {
        // Free, kept by the reader, and whether that is too much; the reserve is 50 and the disk has 320.
        let cases = [
            (10, 5, false, "next to nothing, although space is short"),
            (10, 20, true, "space is short, and a merge needs more than is free"),
            (10, 200, true, "space is short, and the reader keeps most of the disk"),
            (100, 180, true, "merges have freed some, and the reader keeps most of the disk"),
            (200, 80, false, "there is more than it keeps"),
        ];
        for (free_bytes, held_bytes, is_too_much, why) in cases {
            let space = DiskSpace { free_bytes, total_bytes: 320, reserve_bytes: 50 };
            assert_eq!(space.cannot_spare(held_bytes), is_too_much, "{why}");
        }
    }
}
