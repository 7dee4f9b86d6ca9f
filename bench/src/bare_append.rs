//! The bare journal: `raft-engine` alone, one entry and one sync for each batch.

use std::path::Path;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use protobuf::well_known_types::BytesValue;
use raft_engine::{Config, Engine, LogBatch, MessageExt, ReadableSize};

struct Indexed;

impl MessageExt for Indexed {
    type Entry = BytesValue;

    fn index(entry: &BytesValue) -> u64 {
        entry.value.first_chunk().map_or(u64::MAX, |bytes| u64::from_le_bytes(*bytes))
    }
}

/// Appends entries of `bytes` each for a while. Returns the latencies in ns.
pub fn run(directory: &Path, bytes: usize, duration: Duration) -> Histogram<u64> {
    let config = Config {
        dir: directory.display().to_string(),
        batch_compression_threshold: ReadableSize(0),
        target_file_size: ReadableSize::mb(32),
        enable_log_recycle: false,
        ..Config::default()
    };
    let engine = Engine::open(config).expect("a bare engine");
    let mut latencies = crate::callers::histogram();
    let started = Instant::now();
    let mut index = 1_u64;
    while started.elapsed() < duration {
        let before = Instant::now();
        let mut entry = BytesValue::new();
        entry.value = vec![7; bytes.max(8)];
        entry.value[..8].copy_from_slice(&index.to_le_bytes());
        let mut batch = LogBatch::default();
        batch.add_entries::<Indexed>(1, &[entry]).expect("a batch");
        engine.write(&mut batch, true).expect("a synced append");
        latencies.saturating_record(u64::try_from(before.elapsed().as_nanos()).unwrap_or(u64::MAX));
        index += 1;
        if index.is_multiple_of(4096) {
            engine.compact_to(1, index - 10);
            engine.purge_expired_files().expect("a purge");
        }
    }
    latencies
}
