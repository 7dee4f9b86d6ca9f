//! The settings under test, as names: `STYLE-COMPRESSION-WAY`.
//!
//! - style: `level`, or `universal`, which merges runs of similar size and writes less.
//! - compression: `none` or `lz4`.
//! - way: `ingest`, a sorted file that is written beside the store and linked into it; or `batch`, through a memtable
//!   without a log, which is then flushed.
//!
//! Cache, files and unmerged runs are bounded as in `storage::Options`.

use rocksdb::{
    BlockBasedIndexType, BlockBasedOptions, Cache, DBCompactionStyle, DBCompressionType, MemtableFactory, Options,
    UniversalCompactOptions,
};

const CACHE_BYTES_MAX: usize = 128 << 20;
const OPEN_FILES_MAX: i32 = 512;
const TABLE_BYTES_TARGET: u64 = 64 << 20;
const UNMERGED_RUNS_MAX: i32 = 4;
const UNMERGED_RUNS_STALL: i32 = 24;

/// Larger than any batch, so that a batch is flushed as a whole.
const MEMTABLE_BYTES_MAX: usize = 1 << 30;

/// Of the first level of `level`.
const FIRST_LEVEL_BYTES: u64 = 256 << 20;

/// How much more than its live bytes `universal` may keep before it merges everything.
const AMPLIFICATION_PERCENT_MAX: i32 = 100;

/// How a batch gets into the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// As a sorted file.
    Ingest,
    /// Through a memtable.
    Batch,
}

/// One setting.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    style: DBCompactionStyle,
    compression: DBCompressionType,
    /// How a batch gets into the store.
    pub way: Way,
}

impl Settings {
    /// Reads a name.
    pub fn parse(name: &str) -> Result<Self, String> {
        let parts: Vec<&str> = name.split('-').collect();
        let [style, compression, way] = parts.as_slice() else {
            return Err(format!("{name:?} is not STYLE-COMPRESSION-WAY"));
        };
        Ok(Self {
            style: match *style {
                "level" => DBCompactionStyle::Level,
                "universal" => DBCompactionStyle::Universal,
                other => return Err(format!("{other:?} is neither level nor universal")),
            },
            compression: match *compression {
                "none" => DBCompressionType::None,
                "lz4" => DBCompressionType::Lz4,
                other => return Err(format!("{other:?} is neither none nor lz4")),
            },
            way: match *way {
                "ingest" => Way::Ingest,
                "batch" => Way::Batch,
                other => return Err(format!("{other:?} is neither ingest nor batch")),
            },
        })
    }

    /// The options of RocksDB.
    pub fn options(&self) -> Options {
        let mut options = Options::default();
        options.create_if_missing(true);
        options.set_atomic_flush(true);
        options.set_max_background_jobs(1);
        options.set_max_open_files(OPEN_FILES_MAX);
        options.set_compaction_style(self.style);
        options.set_compression_type(self.compression);
        options.set_target_file_size_base(TABLE_BYTES_TARGET);
        options.set_max_bytes_for_level_base(FIRST_LEVEL_BYTES);
        options.set_level_compaction_dynamic_level_bytes(true);
        options.set_level_zero_file_num_compaction_trigger(UNMERGED_RUNS_MAX);
        options.set_level_zero_slowdown_writes_trigger(UNMERGED_RUNS_STALL);
        options.set_level_zero_stop_writes_trigger(UNMERGED_RUNS_STALL);
        options.set_write_buffer_size(MEMTABLE_BYTES_MAX);
        if self.way == Way::Batch {
            // A batch is sorted already and is flushed at once: a vector takes it at the least cost.
            options.set_allow_concurrent_memtable_write(false);
            options.set_memtable_factory(MemtableFactory::Vector);
        }
        let mut universal = UniversalCompactOptions::default();
        universal.set_max_size_amplification_percent(AMPLIFICATION_PERCENT_MAX);
        options.set_universal_compaction_options(&universal);

        let mut tables = BlockBasedOptions::default();
        tables.set_block_cache(&Cache::new_lru_cache(CACHE_BYTES_MAX).expect("a cache"));
        tables.set_bloom_filter(10.0, false);
        tables.set_format_version(5);
        // Filters and indexes are cached in parts, as in our own store.
        tables.set_cache_index_and_filter_blocks(true);
        tables.set_index_type(BlockBasedIndexType::TwoLevelIndexSearch);
        tables.set_partition_filters(true);
        options.set_block_based_table_factory(&tables);
        options
    }
}
