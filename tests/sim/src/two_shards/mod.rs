//! Two shards over one journal, in one process: `sim two-shards [--seconds N] [--seed S]`.
//!
//! Each shard owns half of the buckets and has a store of its own; their entries are in the same files. Sixty-four callers
//! write to both, and sometimes send a write to the wrong one, which must refuse it. Then the rows of both stores are read: none
//! is in a bucket of the other one. Both are opened again over the journal, and must be as they were.
//!
//! `sim two-shards-syncs` counts the syncs of the journal, against the entries of the busier shard: two shards that do not share
//! their syncs would need two for each.

mod callers;
mod counting_disk;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use journal::{GatheringLog, SegmentFiles, SegmentOptions};
use kernel::{BucketRange, Buckets, Keys};
use kv::{KeyRange, Order};
use node::follower::Follower;
use node::parts::{Parts, StoreAtRest};
use node::place::ShardPlace;
use node::tenure::Tenure;
use statehouse::{Options, Statehouse};
use testkit::arguments::Arguments;
use testkit::report::Report;

use callers::Caller;
use counting_disk::CountingDisk;

const CALLERS: u64 = 64;
const JOURNAL_ID: u64 = 0x7477_6f73_6861_7264;

/// The name of the space that all of it is in.
const SPACE: &str = "default";

pub(crate) fn run(arguments: &Arguments) -> Report {
    let seconds = Duration::from_secs(arguments.number("seconds", 60));
    let scratch = tempfile::tempdir().expect("a folder");
    let stage = Stage::new(scratch.path());
    let mut report = Report::new("inside");
    let pair = stage.open(true);
    let callers = pair.load(seconds);
    let written: u64 = callers.iter().map(Caller::acknowledged).sum();
    let refused: u64 = callers.iter().map(|caller| caller.refused).sum();
    let mut differences: Vec<String> = callers.iter().flat_map(|caller| caller.differences(&pair.houses)).collect();
    let before = pair.close();
    let strays: Vec<usize> = (0..2).map(|shard| stage.strays(shard)).collect();
    let again = stage.open(false);
    differences.extend(callers.iter().flat_map(|caller| caller.differences(&again.houses)));
    let after = again.close();
    differences.iter().take(10).for_each(|difference| println!("two-shards: {difference}"));
    report.add(
        "shards.apart",
        format!("{strays:?}-strays-{refused}-refused").replace(", ", "-"),
        "no row of a shard in a bucket of the other; writes to the wrong shard are refused",
        strays == [0, 0] && refused > 0,
    );
    report.add(
        "shards.kept",
        format!("{written}-writes-{}-differ", differences.len()),
        "what was acknowledged is there, at its owner only, also after both were opened again",
        written > 0 && differences.is_empty() && before == after,
    );
    report
}

pub(crate) fn run_syncs(arguments: &Arguments) -> Report {
    let seconds = Duration::from_secs(arguments.number("seconds", 60));
    let scratch = tempfile::tempdir().expect("a folder");
    let pair = Stage::new(scratch.path()).open(true);
    let before = (pair.disk.syncs(), pair.entries());
    pair.load(seconds);
    let (syncs, entries) = (pair.disk.syncs() - before.0, pair.entries());
    let entries = [entries[0] - before.1[0], entries[1] - before.1[1]];
    let calls = pair.log.meter();
    println!("two-shards-syncs: {syncs} syncs, entries {entries:?}, {calls:?}");
    let busier = entries[0].max(entries[1]).max(1);
    let per_batch = syncs as f64 / busier as f64;
    let mut report = Report::new("inside");
    let shares = entries.iter().all(|entries| entries * 10 > busier * 9);
    report.add(
        "syncs",
        format!("{per_batch:.2}"),
        "at most 1.1 syncs for an entry of the busier shard; 2 would be one for each shard",
        per_batch <= 1.1 && shares,
    );
    report
}

/// The shard of the pair that owns what has this name and no group.
fn owner_of(name: &str, buckets: Buckets) -> usize {
    let half = buckets.count() / 2;
    usize::from(buckets.of_group(SPACE.as_bytes(), name.as_bytes()) >= half)
}

fn place(shard: usize) -> ShardPlace {
    let half = Buckets::default().count() / 2;
    let (first, id) = [(0, 1), (half, 2)][shard];
    let range = BucketRange::new(first, first + half).expect("half of the buckets");
    ShardPlace { id, keys: Keys::new(1, range) }
}

struct Stage {
    journal: PathBuf,
    folders: [PathBuf; 2],
}

/// Both shards, open.
struct Pair {
    houses: [Statehouse; 2],
    log: Arc<GatheringLog>,
    disk: Arc<CountingDisk>,
}

impl Stage {
    fn new(scratch: &Path) -> Self {
        let journal = scratch.join("journal");
        std::fs::create_dir(&journal).expect("a folder");
        Self { journal, folders: ["lower", "upper"].map(|name| scratch.join(name)) }
    }

    fn open(&self, is_new: bool) -> Pair {
        let (disk, options) = (Arc::new(CountingDisk::default()), SegmentOptions::default());
        let files = match is_new {
            true => SegmentFiles::create_on(disk.clone(), &self.journal, JOURNAL_ID, &options),
            false => SegmentFiles::open_on(disk.clone(), &self.journal, JOURNAL_ID, &options),
        };
        let log = Arc::new(GatheringLog::new(Arc::new(files.expect("a journal"))));
        let houses = [0, 1].map(|shard| {
            let options = Options::default();
            let parts = Parts::beside_log(&self.folders[shard], place(shard), log.clone(), Tenure::always(), &options);
            let follower = Follower::start(parts.expect("a folder"), &options).expect("it starts");
            Statehouse::over(follower.own(1).expect("it owns"))
        });
        Pair { houses, log, disk }
    }

    /// Rows in the store of a shard that belong to the other.
    fn strays(&self, shard: usize) -> usize {
        let store = StoreAtRest::open(&self.folders[shard], &Options::default()).expect("a store at rest");
        let range = place(shard).keys.buckets();
        let view = store.view().expect("readable");
        let rows = view.scan(&KeyRange::all(), Order::Ascending).map(|row| row.expect("a row").0);
        rows.filter(|key| !is_of(key, range)).inspect(|key| println!("two-shards: {key:02x?} is astray")).count()
    }
}

/// Whether a key is of a shard with these buckets: after the generation it has a bucket, or it is a row of the shard itself. A
/// second copy has four bytes in front.
fn is_of(key: &[u8], range: BucketRange) -> bool {
    let key = key.strip_prefix(&[0; 4]).unwrap_or(key);
    let number = |at: usize| u16::from_be_bytes([key[at], key[at + 1]]);
    match number(4) {
        u16::MAX => number(6) == range.first(),
        bucket => range.contains(bucket),
    }
}

impl Pair {
    fn load(&self, duration: Duration) -> Vec<Caller> {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let stop = &stop;
            let callers: Vec<_> =
                (0..CALLERS).map(|number| scope.spawn(move || Caller::new(number).run(&self.houses, stop))).collect();
            std::thread::sleep(duration);
            stop.store(true, Ordering::Relaxed);
            callers.into_iter().map(|caller| caller.join().expect("a caller ends")).collect()
        })
    }

    /// The entries of each shard.
    fn entries(&self) -> [u64; 2] {
        [0, 1].map(|shard| self.houses[shard].status().expect("a status").applied_index)
    }

    /// Closes both, and returns what each was: its last entry, and the hash of all effects.
    fn close(self) -> [(u64, u64); 2] {
        self.houses.map(|house| {
            let status = house.status().expect("a status");
            house.close().expect("it closes");
            (status.applied_index, status.effects_hash)
        })
    }
}
