//! The bare journal: its files alone, one entry and one sync for each batch.

use std::path::Path;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use journal::{EntryLog, SegmentFiles, SegmentOptions};

const ID: u64 = 0x62_6172_6500;
const SHARD: u64 = 1;

/// Entries are given up so often, or whenever so many bytes were written.
const CUT_APPENDS: u64 = 4096;
const CUT_BYTES: u64 = 128 << 20;

/// Appends entries of `bytes` each for a while. Returns the latencies in ns.
pub fn run(directory: &Path, bytes: usize, duration: Duration) -> Histogram<u64> {
    std::fs::create_dir_all(directory).expect("a directory");
    let files = SegmentFiles::create(directory, ID, &SegmentOptions::default()).expect("a journal");
    let payload = vec![7; bytes];
    let cut_every = CUT_APPENDS.min(CUT_BYTES / bytes.max(1) as u64).max(1);
    let mut latencies = crate::callers::histogram();
    let started = Instant::now();
    while started.elapsed() < duration {
        let before = Instant::now();
        let index = files.append(SHARD, 1, &[&payload]).expect("a synced append");
        latencies.saturating_record(u64::try_from(before.elapsed().as_nanos()).unwrap_or(u64::MAX));
        files.upkeep().expect("upkeep");
        if index.is_multiple_of(cut_every) {
            files.cut(SHARD, index).expect("a cut");
        }
    }
    latencies
}
