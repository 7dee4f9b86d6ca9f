//! Shards of one journal that are appended to at the same time: each with syncs of its own, and with syncs that they share.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use journal::{Append, EntryKind, EntryLog, GatheringLog, Position, SegmentFiles, SegmentOptions, ShardId};

const ID: u64 = 0x7368_6172_6473;
const SHARDS: [u64; 3] = [1, 8, 32];
const ENTRY_BYTES: usize = 200;
/// Entries are given up so often.
const CUT_APPENDS: u64 = 4096;

/// Prints how many entries are appended each second.
pub fn run(directory: &Path, duration: Duration) {
    println!("{:>7} {:>14} {:>14} {:>14}", "shards", "own syncs/s", "shared/s", "entries a call");
    for shards in SHARDS {
        let files = || {
            let place = directory.join(format!("shards-{shards}"));
            let _ = std::fs::remove_dir_all(&place);
            std::fs::create_dir_all(&place).expect("a directory");
            SegmentFiles::create(&place, ID, &SegmentOptions::default()).expect("a journal")
        };
        let own = appends_per_second(&files(), shards, duration);
        let gathering = GatheringLog::new(Arc::new(files()));
        let shared = appends_per_second(&gathering, shards, duration);
        let meter = gathering.meter();
        let entries = meter.entries as f64 / meter.calls as f64;
        println!("{shards:>7} {own:>14.0} {shared:>14.0} {entries:>14.1}");
    }
}

fn appends_per_second(log: &dyn EntryLog, shards: u64, duration: Duration) -> f64 {
    let appends = AtomicU64::new(0);
    let started = Instant::now();
    std::thread::scope(|scope| {
        for shard in 0..shards {
            let appends = &appends;
            scope.spawn(move || {
                let last = append_for(log, shard, started, duration);
                appends.fetch_add(last.index, Ordering::Relaxed);
            });
        }
    });
    appends.into_inner() as f64 / started.elapsed().as_secs_f64()
}

fn append_for(log: &dyn EntryLog, shard: ShardId, started: Instant, duration: Duration) -> Position {
    let payload = vec![7; ENTRY_BYTES];
    let mut after = Position::START;
    while started.elapsed() < duration {
        let kind = EntryKind::COMMANDS;
        let entry = Append { shard, after, kind, term: 1, node: 0, history: ID, payload: &payload };
        after = log.append_behind(&[entry]).remove(0).expect("a synced append");
        log.upkeep().expect("upkeep");
        if after.index.is_multiple_of(CUT_APPENDS) {
            log.cut(shard, after.index).expect("a cut");
        }
    }
    after
}
