//! What all tables of a store share: its directory, open files, and the cache of blocks.
//!
//! Keeps: memory for blocks and the number of open files stay below their limits; a file is removed only when no
//! version names its table any more. Never: holds a lock across a file call.

use std::collections::BTreeMap;
use std::fs::File;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kv::{KeyRange, KvError};
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{OptionsBuilder, UnitWeighter, Weighter};
use rustix::io::Errno;

use crate::Options;
use crate::block::{self, Block, Kind, Place};
use crate::failure::{Damage, Effect, Failure};
use crate::files::Files;
use crate::signal::Signal;
use crate::table_writer::{BLOCK_BYTES_TARGET, file_name};

pub(crate) struct TableFiles {
    pub(crate) files: Arc<Files>,
    /// The store's number, part of every checksum.
    pub(crate) store: u64,
    blocks: Cache<BlockKey, Block, BlockWeight, Mix>,
    handles: Cache<u64, Arc<File>, UnitWeighter, Mix>,
    /// Bytes of all table files, needed or not.
    bytes: AtomicU64,
    /// Tables that nobody names any more.
    unneeded: Mutex<Vec<Unneeded>>,
    /// Wakes the thread that removes files.
    signal: Arc<Signal>,
    /// Damage by file and offset, as far as it was met.
    noticed: Mutex<BTreeMap<(u64, u64), Damage>>,
    /// Counts changes of `noticed`.
    news: AtomicU64,
}

/// A table whose file can be removed.
struct Unneeded {
    table: u64,
    file_bytes: u64,
    /// A failure to remove it was reported.
    reported: bool,
}

/// The table and the offset.
type BlockKey = (u64, u64);

impl TableFiles {
    pub(crate) fn new(files: Arc<Files>, store: u64, signal: Arc<Signal>, options: &Options) -> Self {
        // Also the items are limited: they cost memory besides their bytes.
        let block_count = usize::try_from(options.cache_bytes_max).unwrap_or(usize::MAX) / BLOCK_BYTES_TARGET;
        let cache = |weight, count: usize| {
            let mut builder = OptionsBuilder::new();
            builder.weight_capacity(weight).estimated_items_capacity(count.max(1)).hot_allocation(0.8);
            builder.build().expect("both capacities are set")
        };
        let handle_count = options.open_files_max.max(1);
        Self {
            files,
            store,
            blocks: Cache::with_options(
                cache(options.cache_bytes_max, block_count),
                BlockWeight,
                Mix,
                DefaultLifecycle::default(),
            ),
            handles: Cache::with_options(
                cache(handle_count as u64, handle_count),
                UnitWeighter,
                Mix,
                DefaultLifecycle::default(),
            ),
            bytes: AtomicU64::new(0),
            unneeded: Mutex::default(),
            signal,
            noticed: Mutex::default(),
            news: AtomicU64::new(0),
        }
    }

    /// Keeps damage for those who ask. Returns whether it was not known.
    pub(crate) fn notice(&self, damage: &Damage) -> bool {
        let mut noticed = self.lock_noticed();
        let before = noticed.insert((damage.table, damage.offset), damage.clone());
        let is_new = before.as_ref() != Some(damage);
        if is_new {
            self.news.fetch_add(1, Ordering::Release);
        }
        if before.is_none() {
            let Damage { file, offset, reason, effect, .. } = damage;
            tracing::error!(file, offset, reason, ?effect, "damage was found");
        }
        is_new
    }

    pub(crate) fn lock_noticed(&self) -> MutexGuard<'_, BTreeMap<(u64, u64), Damage>> {
        self.noticed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn news(&self) -> u64 {
        self.news.load(Ordering::Acquire)
    }

    /// Puts a block that was made again into the cache, in place of the one in the file.
    pub(crate) fn cache_block(&self, table: u64, offset: u64, block: &Block) {
        self.blocks.insert((table, offset), block.clone());
    }

    /// A block from the cache, or else from the file.
    pub(crate) fn cached_block(&self, table: u64, kind: Kind, place: Place) -> Result<Block, Failure> {
        if let Some(block) = self.blocks.get(&(table, place.offset)) {
            return Ok(block);
        }
        let block = self.read_block(table, kind, place)?;
        self.blocks.insert((table, place.offset), block.clone());
        Ok(block)
    }

    /// A block from the file. The caller has checked that the place is inside the file.
    pub(crate) fn read_block(&self, table: u64, kind: Kind, place: Place) -> Result<Block, Failure> {
        let mut bytes: Arc<[u8]> = std::iter::repeat_n(0, place.bytes as usize).collect();
        self.read(table, Arc::get_mut(&mut bytes).expect("nobody else has it yet"), place.offset)?;
        self.verify(table, kind, place.offset, bytes)
    }

    pub(crate) fn verify(&self, table: u64, kind: Kind, offset: u64, bytes: Arc<[u8]>) -> Result<Block, Failure> {
        let verified = Block::verify(bytes, kind, block::seed(self.store, table, offset));
        verified.map_err(|reason| damage(table, offset, reason).into())
    }

    pub(crate) fn read(&self, table: u64, bytes: &mut [u8], offset: u64) -> Result<(), Failure> {
        let failed = |action, error: io::Error| {
            let reason = format!("{}: {error}", self.files.path(&file_name(table)).display());
            Failure::Retry(KvError::Io { action, reason })
        };
        let file = self.handle(table).map_err(|error| failed("open a table", error))?;
        self.files.read_at(&file, bytes, offset).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => damage(table, offset, "the file is shorter than it was").into(),
            _ => failed("read a table", error),
        })
    }

    fn handle(&self, table: u64) -> io::Result<Arc<File>> {
        if let Some(file) = self.handles.get(&table) {
            return Ok(file);
        }
        let open = || self.files.open(&file_name(table));
        let file = open().or_else(|error| match error.raw_os_error().map(Errno::from_raw_os_error) {
            // The limit is the process's. The files that are open here are the ones that can be closed.
            Some(Errno::MFILE | Errno::NFILE) => {
                self.handles.clear();
                open()
            }
            _ => Err(error),
        })?;
        let file = Arc::new(file);
        self.handles.insert(table, file.clone());
        Ok(file)
    }

    pub(crate) fn bytes_on_disk(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn count_new(&self, file_bytes: u64) {
        self.bytes.fetch_add(file_bytes, Ordering::Relaxed);
    }

    /// Notes that the last user of a table that no manifest names is gone. Its file is removed by another thread: this
    /// one may be a reader's.
    pub(crate) fn add_unneeded(&self, table: u64, file_bytes: u64) {
        self.lock_unneeded().push(Unneeded { table, file_bytes, reported: false });
        self.signal.files_unneeded();
    }

    /// Removes the files of unneeded tables. Returns whether some stay because that failed: they are tried again the next
    /// time, which can be soon and often, so each is reported once.
    pub(crate) fn remove_unneeded(&self) -> bool {
        let unneeded = std::mem::take(&mut *self.lock_unneeded());
        let mut stay = false;
        for Unneeded { table, file_bytes, reported } in unneeded {
            self.handles.remove(&table);
            match self.files.remove(&file_name(table)) {
                Ok(()) => {
                    self.bytes.fetch_sub(file_bytes, Ordering::Relaxed);
                }
                Err(error) => {
                    if !reported {
                        let error = KvError::from(error);
                        tracing::warn!(table, file_bytes, %error, "a table that nobody needs stays until it can be removed");
                    }
                    stay = true;
                    self.lock_unneeded().push(Unneeded { table, file_bytes, reported: true });
                }
            }
        }
        stay
    }

    fn lock_unneeded(&self) -> MutexGuard<'_, Vec<Unneeded>> {
        self.unneeded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Damage whose keys are not known yet.
pub(crate) fn damage(table: u64, offset: u64, reason: &'static str) -> Damage {
    Damage { table, file: file_name(table), offset, reason, keys: KeyRange::all(), effect: Effect::Lost }
}

#[derive(Clone)]
struct BlockWeight;

impl Weighter<BlockKey, Block> for BlockWeight {
    fn weight(&self, _: &BlockKey, block: &Block) -> u64 {
        /// The cache's own memory for an entry, about.
        const ENTRY_BYTES: u64 = 96;
        block.bytes() as u64 + ENTRY_BYTES
    }
}

/// Hashes a few whole numbers, each by one multiplication.
#[derive(Clone, Copy, Default)]
struct Mix;

struct MixState(u64);

impl BuildHasher for Mix {
    type Hasher = MixState;

    fn build_hasher(&self) -> MixState {
        MixState(0)
    }
}

impl Hasher for MixState {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, number: u64) {
        let product = u128::from(self.0 ^ number ^ 0x9e37_79b9_7f4a_7c15) * 0xff51_afd7_ed55_8ccd_u128;
        #[allow(clippy::cast_possible_truncation, reason = "both halves of the product are mixed")]
        let (low, high) = (product as u64, (product >> 64) as u64);
        self.0 = low ^ high;
    }
}
