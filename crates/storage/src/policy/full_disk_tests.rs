//! A disk that is nearly full of tables that all stacks share, and everything on it is deleted.

use std::collections::BTreeMap;

use super::*;

const MIB: u64 = 1 << 20;
const SETTINGS: Settings = Settings { similar_tables: 4, piece_bytes: 48 * MIB, depth_max: 24 };
/// A flush waits for merges with so many tables in a stack.
const STALL: usize = 32;
const ROW_BYTES: u64 = 100_000;
const TOMBSTONE_BYTES: u64 = 50;
const STACKS: u64 = 100;

/// A slice, and the table that it is of: one that was flushed has a slice in every stack, one that was merged has one.
#[derive(Clone, Copy)]
struct Slice {
    table: u64,
    flushed: bool,
    rows: RowCounts,
}

struct Disk {
    bytes: u64,
    reserve: u64,
    stacks: Vec<Vec<Slice>>,
    next_table: u64,
    available_least: u64,
}

impl Disk {
    /// Full of large rows, up to the reserve, in tables that were never merged.
    fn full(bytes: u64, reserve: u64, tables: u64) -> Self {
        let stacks = (0..STACKS).map(|_| Vec::new()).collect();
        let mut disk = Self { bytes, reserve, stacks, next_table: 0, available_least: bytes };
        let rows = (bytes - reserve) / tables / STACKS / ROW_BYTES;
        for _ in 0..tables {
            disk.flush(RowCounts { rows, tombstones: 0, live_bytes: rows * ROW_BYTES, tombstone_bytes: 0 });
        }
        disk
    }

    /// Adds a table with such rows in every stack.
    fn flush(&mut self, rows: RowCounts) {
        self.next_table += 1;
        let slice = Slice { table: self.next_table, flushed: true, rows };
        self.stacks.iter_mut().for_each(|stack| stack.insert(0, slice));
        self.available_least = self.available_least.min(self.available());
    }

    /// How many stacks need each table.
    fn users(&self) -> BTreeMap<u64, u64> {
        let mut users = BTreeMap::new();
        self.stacks.iter().flatten().for_each(|slice| *users.entry(slice.table).or_default() += 1);
        users
    }

    /// The bytes of all tables. A table stays whole until no stack needs it.
    fn taken(&self) -> u64 {
        let whole = |slice: &Slice| slice.rows.bytes() * if slice.flushed { STACKS } else { 1 };
        let tables: BTreeMap<_, _> = self.stacks.iter().flatten().map(|slice| (slice.table, whole(slice))).collect();
        tables.values().sum()
    }

    fn available(&self) -> u64 {
        self.bytes.saturating_sub(self.taken())
    }

    fn sizes(&self) -> Vec<StackSizes> {
        let users = self.users();
        let size = |slice: &Slice| SliceSize {
            rows: slice.rows,
            replaced_bytes: 0,
            looked_up: false,
            shared: users[&slice.table] > 1,
            wasteful: slice.flushed && users[&slice.table] * 2 < STACKS,
            left_alone: false,
        };
        self.stacks.iter().map(|stack| stack.iter().map(size).collect()).collect()
    }

    /// Merges as long as something is due and there is room.
    fn merge(&mut self) {
        for _ in 0..10_000 {
            let room = Room::of(self.available(), self.reserve, Some(0));
            let Some(piece) = next_piece(&self.sizes(), &SETTINGS, Situation::Short(room)) else { return };
            let windows = piece.stacks.clone().zip(&piece.windows);
            let outputs: Vec<_> =
                windows.map(|(place, window)| merged(&self.stacks[place][window.clone()], piece.to_bottom)).collect();
            let written: u64 = outputs.iter().flatten().map(RowCounts::bytes).sum();
            if written > room.for_freeing(piece.bytes_released) {
                return;
            }
            // Both tables are there until the manifest says otherwise.
            self.available_least = self.available_least.min(self.available().saturating_sub(written));
            for ((place, window), output) in piece.stacks.clone().zip(&piece.windows).zip(outputs) {
                self.next_table += 1;
                let output = output.map(|rows| Slice { table: self.next_table, flushed: false, rows });
                self.stacks[place].splice(window.clone(), output);
            }
        }
        panic!("the store does not come to rest");
    }
}

/// What a merge leaves: each tombstone meets a row below it.
fn merged(window: &[Slice], to_bottom: bool) -> Option<RowCounts> {
    let mut total = RowCounts::default();
    window.iter().for_each(|slice| total.add(&slice.rows));
    let values = (total.rows - total.tombstones).saturating_sub(total.tombstones);
    let tombstones = if to_bottom { 0 } else { total.tombstones };
    let rows = RowCounts {
        rows: values + tombstones,
        tombstones,
        live_bytes: values * ROW_BYTES,
        tombstone_bytes: tombstones * TOMBSTONE_BYTES,
    };
    (rows.rows > 0).then_some(rows)
}

#[test]
fn deleting_everything_frees_a_full_disk_whose_tables_are_all_shared() {
    for (gigabytes, tables) in [(1, 8), (2, 20), (6, 20), (6, 26)] {
        let (bytes, reserve) = (gigabytes * 1_000 * MIB, gigabytes * 100 * MIB);
        for parts in [2, 5, 16, 60] {
            let mut disk = Disk::full(bytes, reserve, tables);
            let rows_of_stack: u64 = disk.stacks[0].iter().map(|slice| slice.rows.rows).sum();
            let what = format!("{gigabytes} GB in {tables} tables, deleted in {parts} parts");
            let mut left = rows_of_stack;
            while left > 0 {
                let deleted = rows_of_stack.div_ceil(parts).min(left);
                left -= deleted;
                let depth = disk.stacks.iter().map(Vec::len).max().unwrap_or(0);
                assert!(depth < 2 * STALL, "{what}: no flush with {depth} tables in a stack and {left} rows left");
                let tombstone_bytes = deleted * TOMBSTONE_BYTES;
                disk.flush(RowCounts { rows: deleted, tombstones: deleted, live_bytes: 0, tombstone_bytes });
                disk.merge();
            }
            disk.merge();
            assert!(disk.taken() < bytes / 50, "{what}: {} MiB are left", disk.taken() / MIB);
            assert!(disk.available_least >= reserve / 16, "{what}: {} MiB were free", disk.available_least / MIB);
        }
    }
}
