//! The journal's files: durable appends of three sizes beside a bare file, in turns, shards that share syncs, and how long a
//! journal of 1 GB takes to open.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use bench::resources::{cpu_seconds, directory_bytes};
use hdrhistogram::Histogram;
use journal::{SegmentFiles, SegmentOptions};
use testkit::arguments::Arguments;
use testkit::report::Report;

use crate::{bare_append, journal_shards};

const ID: u64 = 0x0062_656e_6368;
const SHARD: u64 = 1;
const SIZES: [usize; 3] = [200, 4 << 10, 64 << 10];
const ROUNDS: u32 = 3;

const OPENED_ENTRY_BYTES: usize = 4 << 10;
const OPENED_BATCH: usize = 64;

/// What the appends of one contender took.
struct Appends {
    latency_ns: Histogram<u64>,
    cpu_us: f64,
}

pub fn run(arguments: &Arguments) -> Report {
    let small = arguments.flag("small");
    let duration = Duration::from_millis(if small { 100 } else { 1000 * arguments.number("seconds", 4) });
    let opened_bytes = if small { 8 << 20 } else { arguments.number("opened-mb", 1000) * 1_000_000 };
    let directory = match arguments.text("directory") {
        Some(parent) => tempfile::tempdir_in(parent),
        None => tempfile::tempdir(),
    };
    let directory = directory.expect("a directory");
    println!("{:>7} {:>14} {:>9} {:>9} {:>9} {:>9}", "bytes", "files", "appends", "p50 µs", "p99 µs", "CPU µs");
    let mut report = Report::new("cells");
    for bytes in SIZES {
        let mut rows: Vec<(&str, Vec<Appends>)> = vec![("journal", Vec::new()), ("bare file", Vec::new())];
        for round in 0..ROUNDS {
            for (name, runs) in &mut rows {
                let place = directory.path().join(format!("{name}-{bytes}-{round}"));
                let cpu_before = cpu_seconds();
                let latency_ns = match *name {
                    "journal" => bare_append::run(&place, bytes, duration),
                    _ => append_to_file(&place, bytes, duration),
                };
                let cpu_us = (cpu_seconds() - cpu_before) * 1e6 / latency_ns.len().max(1) as f64;
                runs.push(Appends { latency_ns, cpu_us });
                let _ = std::fs::remove_dir_all(&place);
                let _ = std::fs::remove_file(&place);
            }
        }
        let mut medians = Vec::new();
        for (name, mut runs) in rows {
            runs.sort_by_key(|run| run.latency_ns.value_at_quantile(0.5));
            let middle = &runs[runs.len() / 2];
            let quantile = |quantile| middle.latency_ns.value_at_quantile(quantile) as f64 / 1000.0;
            let (count, cpu_us) = (middle.latency_ns.len(), middle.cpu_us);
            let (p50, p99) = (quantile(0.5), quantile(0.99));
            println!("{bytes:>7} {name:>14} {count:>9} {p50:>9.0} {p99:>9.0} {cpu_us:>9.1}");
            medians.push(p50);
        }
        let ratio = medians[0] / medians[1];
        report.add(
            &format!("journal.append-{bytes}"),
            format!("{ratio:.2}x"),
            "<=1.2 times a bare file's",
            ratio <= 1.2,
        );
    }
    journal_shards::run(directory.path(), duration);
    let took = open_large(&directory.path().join("large"), opened_bytes);
    println!("{} MB of entries open in {:.0} ms", opened_bytes / 1_000_000, took.as_secs_f64() * 1000.0);
    report
}

fn create(directory: &Path) -> SegmentFiles {
    std::fs::create_dir_all(directory).expect("a directory");
    SegmentFiles::create(directory, ID, &SegmentOptions::default()).expect("a journal")
}

/// What no journal can do without: one write and one sync, to blocks that are there.
fn append_to_file(path: &Path, bytes: usize, duration: Duration) -> Histogram<u64> {
    const FILE_BYTES: u64 = 16 << 20;
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(path).expect("a file");
    file.write_all_at(&vec![1; usize::try_from(FILE_BYTES).expect("small")], 0).expect("room");
    file.sync_all().expect("a sync");
    let payload = vec![7; bytes];
    let mut offset = 0;
    timed(duration, |_| {
        file.write_all_at(&payload, offset).expect("a write");
        file.sync_data().expect("a sync");
        offset += bytes as u64;
        if offset + bytes as u64 > FILE_BYTES {
            offset = 0;
        }
    })
}

fn timed(duration: Duration, mut append: impl FnMut(u64)) -> Histogram<u64> {
    let mut latencies = crate::callers::histogram();
    let started = Instant::now();
    let mut number = 0;
    while started.elapsed() < duration {
        number += 1;
        let before = Instant::now();
        append(number);
        latencies.saturating_record(u64::try_from(before.elapsed().as_nanos()).unwrap_or(u64::MAX));
    }
    latencies
}

fn open_large(directory: &Path, bytes: u64) -> Duration {
    let files = create(directory);
    let payload = vec![7; OPENED_ENTRY_BYTES];
    let batch = [payload.as_slice(); OPENED_BATCH];
    for _ in 0..bytes / (OPENED_ENTRY_BYTES * OPENED_BATCH) as u64 {
        files.append(SHARD, 1, &batch).expect("an append");
    }
    let last = files.last_index(SHARD);
    drop(files);
    println!("{} MB on disk", directory_bytes(directory) / 1_000_000);
    let before = Instant::now();
    let files = SegmentFiles::open(directory, ID, &SegmentOptions::default()).expect("it opens");
    let took = before.elapsed();
    assert_eq!(files.last_index(SHARD), last);
    took
}
