//! The bare store: a sorted map that is flushed to an `lsm-tree` in the background.
//!
//! One command is one get and some writes, as the kernel does them, without journal, kernel, versions or views.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use lsm_tree::compaction::Leveled;
use lsm_tree::{AbstractTree, AnyTree, Cache, Config, SeqNo, SequenceNumberCounter};
use testkit::random::Random;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// The map is flushed when it holds this many bytes, as the overlay is.
const TABLE_BYTES_MAX: usize = 64 << 20;

/// A sorted map above an `lsm-tree`.
pub struct BareMap {
    tree: AnyTree,
    active: Map,
    active_bytes: usize,
    flushing: Option<Arc<Map>>,
    flushes: SyncSender<Arc<Map>>,
    flushed: Mutex<Receiver<()>>,
    flusher: Option<JoinHandle<()>>,
}

/// The key of a cell's newest version, or of an older one, as long as ours.
pub fn key(cell: u64, version: Option<u64>) -> Vec<u8> {
    let mut key = vec![0, 0, 0, 1, 0, (cell % 64) as u8, if version.is_some() { 4 } else { 3 }];
    key.extend_from_slice(&[0, 0, 0, 1, 0, 0, 0, 1, 0]);
    key.extend_from_slice(format!("cell-{cell:09}").as_bytes());
    key.extend_from_slice(&[0, 0]);
    if let Some(version) = version {
        key.extend_from_slice(&version.to_be_bytes());
    }
    key
}

/// The key of a row, as long as asked for.
fn row_key(row: u64, bytes: usize) -> Vec<u8> {
    let mut key = vec![b'k'; bytes - 16];
    key.extend_from_slice(format!("key-{row:012}").as_bytes());
    key
}

impl BareMap {
    /// A map and a tree that hold `cells` values of `bytes` each, written as any others are.
    pub fn load(directory: &Path, cells: u64, bytes: usize) -> Self {
        let (next, visible) = (SequenceNumberCounter::new(1), SequenceNumberCounter::new(1));
        let tree = Config::new(directory, next, visible)
            .use_cache(Arc::new(Cache::with_capacity_bytes(128 << 20)))
            .open()
            .expect("a bare tree");
        let (flushes, to_flush) = sync_channel::<Arc<Map>>(0);
        let (done, flushed) = sync_channel(1);
        let flusher = std::thread::spawn({
            let tree = tree.clone();
            move || {
                while let Ok(rows) = to_flush.recv() {
                    if !rows.is_empty() {
                        ingest(&tree, &rows);
                    }
                    let _ = done.send(());
                    let strategy = Arc::new(Leveled::default());
                    tree.compact(strategy, SeqNo::MAX - 1).expect("a merge");
                }
            }
        });
        let mut map = Self {
            tree,
            active: Map::new(),
            active_bytes: 0,
            flushing: None,
            flushes,
            flushed: Mutex::new(flushed),
            flusher: Some(flusher),
        };
        for cell in 0..cells {
            map.put(key(cell, None), vec![1; bytes + 42]);
        }
        map
    }

    /// Runs one get and two writes per command, like a set that displaces a version, for a while. Returns commands per
    /// second.
    pub fn run_sets(&mut self, cells: u64, bytes: usize, duration: Duration) -> f64 {
        let mut random = Random::new(2);
        let started = Instant::now();
        let mut commands = 0_u64;
        let payload = vec![7; bytes + 42];
        while started.elapsed() < duration {
            for _ in 0..64 {
                let cell = random.below(cells);
                let head_key = key(cell, None);
                let head = self.get(&head_key).unwrap_or_default();
                self.put(key(cell, Some(commands)), head);
                self.put(head_key, payload.clone());
                commands += 1;
            }
        }
        commands as f64 / started.elapsed().as_secs_f64()
    }

    /// A map and a tree that hold rows of these sizes.
    pub fn load_rows(directory: &Path, rows: u64, key_bytes: usize, row_bytes: usize) -> Self {
        let mut map = Self::load(directory, 0, 0);
        for row in 0..rows {
            map.put(row_key(row, key_bytes), vec![1; row_bytes]);
        }
        map
    }

    /// Runs one get and one put for each row, like a put of keyed state, for a while. Returns rows per second.
    pub fn run_puts(&mut self, rows: u64, key_bytes: usize, row_bytes: usize, duration: Duration) -> f64 {
        let (mut random, mut puts) = (Random::new(3), 0_u64);
        let (started, row) = (Instant::now(), vec![7; row_bytes]);
        while started.elapsed() < duration {
            for _ in 0..64 {
                let key = row_key(random.below(rows), key_bytes);
                assert!(self.get(&key).is_some(), "every row was loaded");
                self.put(key, row.clone());
                puts += 1;
            }
        }
        puts as f64 / started.elapsed().as_secs_f64()
    }

    /// The value in the map, then in the tree.
    pub fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        if let Some(value) = self.active.get(key) {
            return Some(value.clone());
        }
        if let Some(value) = self.flushing.as_ref().and_then(|map| map.get(key)) {
            return Some(value.clone());
        }
        self.tree.get(key, SeqNo::MAX).expect("a get").map(|value| value.to_vec())
    }

    fn put(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.active_bytes += key.len() + value.len() + 128;
        self.active.insert(key, value);
        if self.active_bytes >= TABLE_BYTES_MAX {
            self.flush();
        }
    }

    /// Flushes the map, once the flush and the merge before are over.
    fn flush(&mut self) {
        if self.flushing.take().is_some() {
            self.flushed.lock().expect("one user").recv().expect("the flusher lives");
        }
        let full = Arc::new(std::mem::take(&mut self.active));
        self.active_bytes = 0;
        self.flushing = Some(full.clone());
        self.flushes.send(full).expect("the flusher lives");
    }

    /// Flushes what is in the map, and waits until it is merged.
    pub fn settle(&mut self) {
        // The flusher takes the third, which is empty, once it has merged the second, which is empty as well.
        (0..3).for_each(|_| self.flush());
    }
}

impl Drop for BareMap {
    fn drop(&mut self) {
        let (closed, _) = sync_channel(0);
        self.flushes = closed;
        if let Some(flusher) = self.flusher.take() {
            let _ = flusher.join();
        }
    }
}

fn ingest(tree: &AnyTree, rows: &Map) {
    let mut ingestion = tree.ingestion().expect("an ingestion");
    for (key, value) in rows {
        ingestion.write(key.as_slice(), value.as_slice()).expect("a row");
    }
    ingestion.finish().expect("a flush");
}
