//! A store on a small disk, fed as a server feeds it: filled with rows of all sizes until space is low, and then everything
//! is deleted. Whatever merges did meanwhile, the space comes back.
//!
//! Would see broken: merges that take what a flush of deletions needs, that take more than they free, or that wait for more
//! space than they take.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use kv::{Batch, Bytes, Key, KvError, Store};
use testkit::random::Random;

use super::directory;
use crate::status::SpaceState;
use crate::{Options, TreeStore};

const MIB: u64 = 1 << 20;
/// What is written at once is this part of the disk.
const AT_ONCE_PART: u64 = 32;
/// Attempts until the space is back.
const ATTEMPTS_MAX: u32 = 100;

struct SmallDisk {
    store: TreeStore,
    bytes: u64,
    /// Written, and not yet in the store. The journal takes as much.
    memory: BTreeMap<Key, Option<Bytes>>,
    memory_bytes: u64,
}

impl SmallDisk {
    fn new(path: &Path, bytes: u64) -> Self {
        let at_once = bytes / AT_ONCE_PART;
        let options = Options { table_bytes_target: at_once, space_reserve_bytes: 3 * at_once, ..Options::default() };
        let store = TreeStore::create(path, &options).expect("created");
        Self { store, bytes, memory: BTreeMap::new(), memory_bytes: 0 }
    }

    fn at_once(&self) -> u64 {
        self.bytes / AT_ONCE_PART
    }

    fn free(&self) -> u64 {
        let files = &self.store.shared.tables.files;
        files.faults.disk_bytes.store(self.bytes - self.memory_bytes - self.at_once() / 2, Ordering::SeqCst);
        files.bytes_available().expect("no call fails")
    }

    /// Tells the store how much space there is; true if it is low.
    fn look(&self) -> bool {
        let (free, needed) = (self.free(), self.at_once() * 9 / 2 + 4 * MIB);
        let unflushed_bytes = self.memory_bytes;
        let is_short = free < needed + needed / 4;
        self.store.set_space(if is_short { SpaceState::Short { unflushed_bytes } } else { SpaceState::Enough });
        free < needed
    }

    fn write(&mut self, key: Key, value: Option<Bytes>) {
        self.memory_bytes += (key.len() + value.as_ref().map_or(0, |value| value.len())) as u64;
        self.memory.insert(key, value);
    }

    fn flush(&mut self) -> Result<(), KvError> {
        self.look();
        self.store.commit(Batch::from_sorted(self.memory.clone().into_iter().collect()))?;
        self.memory.clear();
        self.memory_bytes = 0;
        Ok(())
    }

    /// Writes things until space is low, and returns their numbers. With `again`, the value of each is replaced by another as
    /// large, in the next flush.
    fn fill(&mut self, random: &mut Random, first: u64, sizes: &[usize], again: bool) -> Vec<u64> {
        let mut written = Vec::new();
        let mut flushed = 0;
        while !self.look() {
            let number = first + written.len() as u64;
            let (head, value) = keys(number);
            let bytes = random.pick(sizes);
            self.write(head, Some(random.bytes(80).into()));
            self.write(value, Some(random.bytes(bytes).into()));
            written.push(number);
            if self.memory_bytes > self.at_once() {
                self.flush().expect("there is space");
                for number in written[flushed..].iter().filter(|_| again) {
                    let bytes = random.pick(sizes);
                    self.write(keys(*number).1, Some(random.bytes(bytes).into()));
                }
                flushed = written.len();
            }
        }
        written
    }

    /// Deletes things; what they held goes, and a small row remains of each.
    fn delete(&mut self, random: &mut Random, things: &[u64]) {
        let per_flush = random.pick(&[50, 200, 800, usize::MAX]);
        for (place, number) in things.iter().enumerate() {
            let (head, value) = keys(*number);
            self.write(head, Some(random.bytes(60).into()));
            self.write(value, None);
            if place % per_flush == 0 {
                // Without space it is tried again with the next.
                let _ = self.flush();
            }
        }
    }

    fn await_space(&mut self) -> Result<(), String> {
        for _ in 0..ATTEMPTS_MAX {
            let flushed = self.flush();
            if self.store.settle().is_ok() && flushed.is_ok() && self.bytes - self.free() < self.bytes / 5 {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let (taken, memory) = (self.bytes - self.free(), self.memory_bytes);
        Err(format!("{taken} of {} bytes are taken, {memory} in memory: {:?}", self.bytes, self.store.status()))
    }
}

/// The keys of the two rows of a thing: things that are written together are far apart.
fn keys(number: u64) -> (Key, Key) {
    let bucket = Random::new(number).below(1_024);
    let key = |kind: &str| Key::from(format!("{kind}/{bucket:04}/{number}").as_bytes());
    (key("heads"), key("values"))
}

fn fill_and_free(mib: u64, seed: u64) {
    let directory = directory();
    let mut random = Random::new(seed);
    let mut disk = SmallDisk::new(&directory.path().join("store"), mib * MIB);
    // As large, measured by the disk, on any disk.
    let part = |part: u64| usize::try_from(mib * MIB / part).expect("a small part");
    let mixed = [part(80_000), part(80_000), part(80_000), part(8_000), part(1_600)];
    let mut first = 0;
    let large = [part(1_000)];
    let loads = [(mixed.as_slice(), false), (&large, false), (&large, true), (&mixed, true)];
    for (cycle, (sizes, again)) in loads.into_iter().enumerate() {
        let mut things = disk.fill(&mut random, first, sizes, again);
        first += things.len() as u64;
        if random.one_in(2) {
            things.reverse();
        }
        disk.delete(&mut random, &things);
        disk.await_space().unwrap_or_else(|what| panic!("{mib} MiB, seed {seed}, cycle {cycle}: {what}"));
    }
}

#[test]
fn deleting_everything_frees_a_full_disk_whatever_was_merged_before() {
    for seed in 1..=6 {
        fill_and_free(64, seed);
    }
}

/// `SEEDS=1..200 cargo test --profile stress -p statehouse-storage many_full -- --ignored` looks for more.
#[test]
#[ignore = "takes minutes"]
fn many_full_disks_are_freed() {
    let seeds = std::env::var("SEEDS").unwrap_or_else(|_| "1..100".into());
    let (first, end) = seeds.split_once("..").expect("FIRST..END");
    for seed in first.parse().expect("a number")..end.parse().expect("a number") {
        fill_and_free(64, seed);
        fill_and_free(320, seed);
        println!("seed {seed}");
    }
}
