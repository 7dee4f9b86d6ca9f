//! The tree store beside `lsm-tree`: the same flushes into both, one after the other.
//!
//! Loads rows in random order, updates as many at random, reads, and deletes. The figure is the CPU time of the thread
//! that merges: there is one in each, and it is what the rest of a node competes with.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Instant;

use kv::{Batch, Bytes, Key, KeyRange, Order, Store};
use lsm_tree::compaction::Leveled;
use lsm_tree::{AbstractTree, AnyTree, Cache, Config, Guard, SeqNo, SequenceNumberCounter};
use storage::TreeStore;
use testkit::arguments::Arguments;
use testkit::random::Random;
use testkit::report::Report;

use crate::bare_map::key;

/// Rows of one flush, about what the overlay brings at its usual size.
const FLUSH_ROWS: u64 = 120_000;
const CACHE_BYTES: u64 = 128 << 20;
/// The thread of `lsm-tree` that merges.
const BARE_MERGE: &str = "bare-merge";
const OURS_MERGE: &str = "store-merge";

type Rows = BTreeMap<Key, Option<Bytes>>;

/// What one of the two has taken.
#[derive(Default)]
struct Taken {
    load_seconds: f64,
    update_seconds: f64,
    merge_cpu_seconds: f64,
    get_hot_ns: f64,
    get_absent_ns: f64,
    scan_ns: f64,
    delete_seconds: f64,
    bytes_after_updates: u64,
    bytes_after_deletion: u64,
}

trait Subject {
    fn flush(&mut self, rows: Rows);
    fn settle(&mut self);
    fn get(&self, key: &[u8]) -> bool;
    fn scan(&self) -> usize;
    fn merge_cpu_seconds(&self) -> f64;
    fn bytes(&self) -> u64;
}

pub(crate) fn run(arguments: &Arguments) -> Report {
    let small = arguments.flag("small");
    let rows = arguments.number("rows", if small { 100_000 } else { 2_000_000 });
    let value_bytes = usize::try_from(arguments.number("bytes", 200)).expect("a size");
    let mut report = Report::new("tables");
    let directory = tempfile::tempdir().expect("a directory");
    let only = arguments.text("only");
    let mut measured = Vec::new();
    for name in ["ours", "lsm-tree"] {
        if only.is_some_and(|only| only != name) {
            continue;
        }
        let path = directory.path().join(name);
        let mut subject: Box<dyn Subject> =
            if name == "ours" { Box::new(Ours::new(&path)) } else { Box::new(Bare::new(&path)) };
        let taken = measure(&mut *subject, rows, value_bytes);
        print(name, &taken, rows);
        measured.push(taken);
        drop(subject);
        std::fs::remove_dir_all(&path).expect("removed");
    }
    if let [ours, bare] = measured.as_slice() {
        let ratio = ours.merge_cpu_seconds / bare.merge_cpu_seconds;
        report.add("merge-cpu", format!("{ratio:.2}"), "at most 0.5 of lsm-tree's", ratio <= 0.5);
    }
    report
}

fn print(name: &str, taken: &Taken, rows: u64) {
    let million = |bytes: u64| bytes / 1_000_000;
    println!(
        "{name}: load {:.1} s, updates {:.1} s, merge CPU {:.1} s ({:.0} ns for each row written), {} MB",
        taken.load_seconds,
        taken.update_seconds,
        taken.merge_cpu_seconds,
        taken.merge_cpu_seconds * 1e9 / (2 * rows) as f64,
        million(taken.bytes_after_updates),
    );
    println!(
        "{name}: get {:.0} ns, absent {:.0} ns, scan {:.0} ns a row; deleted within {:.1} s, {} MB left",
        taken.get_hot_ns,
        taken.get_absent_ns,
        taken.scan_ns,
        taken.delete_seconds,
        million(taken.bytes_after_deletion),
    );
}

fn measure(subject: &mut dyn Subject, rows: u64, value_bytes: usize) -> Taken {
    let mut random = Random::new(1);
    let mut taken = Taken::default();
    let cpu_before = subject.merge_cpu_seconds();
    let started = Instant::now();
    // Every row once, in an order that spreads each flush over all keys.
    let mut flush = Rows::new();
    for number in 0..rows {
        flush.insert(spread(number, rows), Some(random.bytes(value_bytes).into()));
        flush_if_full(subject, &mut flush, FLUSH_ROWS);
    }
    flush_if_full(subject, &mut flush, 1);
    taken.load_seconds = started.elapsed().as_secs_f64();
    let started = Instant::now();
    for _ in 0..rows {
        flush.insert(spread(random.below(rows), rows), Some(random.bytes(value_bytes).into()));
        flush_if_full(subject, &mut flush, FLUSH_ROWS);
    }
    flush_if_full(subject, &mut flush, 1);
    taken.update_seconds = started.elapsed().as_secs_f64();
    subject.settle();
    taken.merge_cpu_seconds = subject.merge_cpu_seconds() - cpu_before;
    taken.bytes_after_updates = subject.bytes();

    let hot: Vec<Key> = (0..20_000).map(|_| spread(random.below(rows), rows)).collect();
    let gets = |keys: &[Key], found: bool| {
        let started = Instant::now();
        keys.iter().for_each(|key| assert_eq!(subject.get(key), found, "{key:?}"));
        started.elapsed().as_secs_f64() * 1e9 / keys.len() as f64
    };
    gets(&hot, true);
    taken.get_hot_ns = gets(&hot, true);
    let absent: Vec<Key> = hot.iter().map(|key| [key.as_slice(), b"x"].concat().into()).collect();
    gets(&absent, false);
    taken.get_absent_ns = gets(&absent, false);
    let started = Instant::now();
    let count = subject.scan();
    taken.scan_ns = started.elapsed().as_secs_f64() * 1e9 / count as f64;

    let started = Instant::now();
    for number in 0..rows {
        flush.insert(spread(number, rows), None);
        flush_if_full(subject, &mut flush, 3 * FLUSH_ROWS);
    }
    flush_if_full(subject, &mut flush, 1);
    subject.settle();
    taken.delete_seconds = started.elapsed().as_secs_f64();
    taken.bytes_after_deletion = subject.bytes();
    taken
}

/// Row `number` in an order that looks random.
fn spread(number: u64, rows: u64) -> Key {
    // A prime that is no factor of a usual number of rows.
    key(number.wrapping_mul(1_000_003) % rows, None).into()
}

fn flush_if_full(subject: &mut dyn Subject, rows: &mut Rows, rows_max: u64) {
    if rows.len() as u64 >= rows_max {
        subject.flush(std::mem::take(rows));
    }
}

/// The CPU time of the thread with this name.
fn thread_cpu_seconds(name: &str) -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task").expect("Linux");
    let read = |task: std::fs::DirEntry, file: &str| std::fs::read_to_string(task.path().join(file)).ok();
    let ticks = tasks.filter_map(Result::ok).filter_map(|task| {
        let stat = read(task, "stat")?;
        let (head, rest) = stat.rsplit_once(')')?;
        if !head.ends_with(name) {
            return None;
        }
        let field = |place: usize| rest.split_whitespace().nth(place)?.parse::<u64>().ok();
        Some(field(11)? + field(12)?)
    });
    // The kernel reports hundredths of a second on every usual system.
    ticks.sum::<u64>() as f64 / 100.0
}

struct Ours(TreeStore);

impl Ours {
    fn new(path: &Path) -> Self {
        let options = storage::Options::default().cache_bytes_max(CACHE_BYTES);
        Self(TreeStore::create(path, &options).expect("a store"))
    }
}

impl Subject for Ours {
    fn flush(&mut self, rows: Rows) {
        self.0.commit(Batch::from_sorted(rows.into_iter().collect())).expect("a flush");
    }

    fn settle(&mut self) {
        self.0.settle().expect("it settles");
        let status = self.0.status();
        println!("ours: {status:?}");
    }

    fn get(&self, key: &[u8]) -> bool {
        self.0.view().expect("a view").get(key).expect("a get").is_some()
    }

    fn scan(&self) -> usize {
        let view = self.0.view().expect("a view");
        view.scan(&KeyRange::all(), Order::Ascending).inspect(|row| assert!(row.is_ok())).count()
    }

    fn merge_cpu_seconds(&self) -> f64 {
        thread_cpu_seconds(OURS_MERGE)
    }

    fn bytes(&self) -> u64 {
        self.0.bytes_on_disk()
    }
}

struct Bare {
    tree: AnyTree,
    due: Option<SyncSender<SyncSender<()>>>,
    merger: Option<JoinHandle<()>>,
}

impl Bare {
    fn new(path: &Path) -> Self {
        let (next, visible) = (SequenceNumberCounter::new(1), SequenceNumberCounter::new(1));
        let config = Config::new(path, next, visible).use_cache(Arc::new(Cache::with_capacity_bytes(CACHE_BYTES)));
        let tree = config.open().expect("a bare tree");
        let (due, asked) = sync_channel::<SyncSender<()>>(1);
        let merger = std::thread::Builder::new().name(BARE_MERGE.into()).spawn({
            let tree = tree.clone();
            move || {
                while let Ok(done) = asked.recv() {
                    loop {
                        let before = tree.current_version().id();
                        tree.compact(Arc::new(Leveled::default()), SeqNo::MAX).expect("a merge");
                        if tree.current_version().id() == before {
                            break;
                        }
                    }
                    let _ = done.send(());
                }
            }
        });
        Self { tree, due: Some(due), merger: Some(merger.expect("a thread")) }
    }

    fn wake(&self) -> std::sync::mpsc::Receiver<()> {
        let (done, waited) = sync_channel(1);
        self.due.as_ref().expect("open").send(done).expect("the merger lives");
        waited
    }
}

impl Subject for Bare {
    fn flush(&mut self, rows: Rows) {
        let mut ingestion = self.tree.ingestion().expect("an ingestion");
        for (key, value) in rows {
            match value {
                Some(value) => ingestion.write(&*key, &*value).expect("a row"),
                None => ingestion.write_tombstone(&*key).expect("a row"),
            }
        }
        ingestion.finish().expect("a flush");
        drop(self.wake());
    }

    fn settle(&mut self) {
        self.wake().recv().expect("the merger lives");
    }

    fn get(&self, key: &[u8]) -> bool {
        self.tree.get(key, SeqNo::MAX).expect("a get").is_some()
    }

    fn scan(&self) -> usize {
        let read = |count, row: lsm_tree::IterGuardImpl| {
            row.into_inner().expect("a row");
            count + 1
        };
        self.tree.iter(SeqNo::MAX, None).fold(0, read)
    }

    fn merge_cpu_seconds(&self) -> f64 {
        thread_cpu_seconds(BARE_MERGE)
    }

    fn bytes(&self) -> u64 {
        self.tree.disk_space()
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        self.due = None;
        if let Some(merger) = self.merger.take() {
            let _ = merger.join();
        }
    }
}
