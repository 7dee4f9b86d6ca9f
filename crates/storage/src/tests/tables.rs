//! A table alone: what was written is read, and no damage is taken for rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use kv::Order;
use testkit::random::Random;

use super::directory;
use crate::Options;
use crate::bloom::KeyHash;
use crate::failure::{Effect, Failure};
use crate::files::Files;
use crate::merge_cursor::MergeCursor;
use crate::signal::Signal;
use crate::table::Table;
use crate::table_cursor::TableCursor;
use crate::table_facts::TableFacts;
use crate::table_files::TableFiles;
use crate::table_writer::{TableWriter, file_name};

pub(super) const STORE: u64 = 0x5354_4f52;

pub(super) type Rows = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

pub(super) fn shared(directory: &tempfile::TempDir) -> Arc<TableFiles> {
    let files = Arc::new(Files::new(directory.path()));
    Arc::new(TableFiles::new(files, STORE, Arc::new(Signal::default()), &Options::default()))
}

pub(super) fn write(shared: &Arc<TableFiles>, number: u64, rows: &Rows) -> TableFacts {
    let mut writer = TableWriter::create(&shared.files, STORE, number).expect("created");
    rows.iter().for_each(|(key, value)| writer.add(key, value.as_deref()).expect("added"));
    writer.finish().expect("finished")
}

pub(super) fn open(shared: &Arc<TableFiles>, facts: &TableFacts) -> Arc<Table> {
    let table = Table::new(facts.clone(), shared.clone());
    table.set_named(true);
    table
}

pub(super) fn random_rows(random: &mut Random, count: usize, value_bytes: usize) -> Rows {
    let row = |random: &mut Random| {
        let (length, bytes) = (random.index(20), random.index(value_bytes));
        let key = random.bytes(length).into_iter().map(|byte| byte % 5).collect();
        (key, (!random.one_in(5)).then(|| random.bytes(bytes)))
    };
    (0..count).map(|_| row(random)).collect()
}

fn row(cursor: &TableCursor) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
    (!cursor.is_at_end() && cursor.barrier().is_none())
        .then(|| (cursor.key().to_vec(), cursor.value().map(<[u8]>::to_vec)))
}

/// Every row by a get, all rows by cursors in both directions; a failure ends it.
fn check(table: &Arc<Table>, rows: &Rows) -> Result<(), Failure> {
    for (key, value) in rows {
        let found = table.get(key, KeyHash::of(key))?.expect("the row is found");
        assert_eq!(found.as_deref(), value.as_deref());
    }
    for mut cursor in [TableCursor::cached(table.clone()), TableCursor::reading_ahead(table.clone())] {
        let stopped = |cursor: &TableCursor| match cursor.barrier() {
            Some(part) => Err(Failure::Damaged(part.damage.clone())),
            None => Ok(()),
        };
        cursor.seek(&[])?;
        for (key, value) in rows {
            stopped(&cursor)?;
            assert_eq!(row(&cursor), Some((key.clone(), value.clone())));
            cursor.next()?;
        }
        assert_eq!(row(&cursor), None);
        cursor.seek_before(None)?;
        for (key, value) in rows.iter().rev() {
            stopped(&cursor)?;
            assert_eq!(row(&cursor), Some((key.clone(), value.clone())));
            cursor.previous()?;
        }
        assert_eq!(row(&cursor), None);
    }
    Ok(())
}

/// Damage of one block must never cost a row and its second copy.
#[test]
fn second_copies_share_no_block_with_other_rows() {
    let directory = directory();
    let shared = shared(&directory);
    let row = |key: &[u8]| (key.to_vec(), Some(vec![7; 3]));
    let rows = Rows::from([row(&[0, 0, 0, 0, 1]), row(&[0, 0, 0, 0, 2]), row(&[0, 0, 0, 1, 1]), row(&[0, 0, 0, 2, 1])]);
    let facts = write(&shared, 1, &rows);
    check(&open(&shared, &facts), &rows).expect("no failure");
    let bytes = std::fs::read(directory.path().join(file_name(1))).expect("read");
    let (mut offset, mut data_blocks) = (0, 0);
    while matches!(bytes[offset], 1..=5) {
        data_blocks += usize::from(bytes[offset] == 1);
        offset += 16 + u32::from_le_bytes(bytes[offset + 4..offset + 8].try_into().expect("four bytes")) as usize;
    }
    assert_eq!(data_blocks, 2, "one of copies, one of the rest");
}

#[test]
fn what_was_written_is_read_in_every_way() {
    for seed in 0..8 {
        let mut random = Random::new(seed);
        let directory = directory();
        let shared = shared(&directory);
        let (count, value_bytes) = random.pick(&[(1, 10), (300, 100), (2_000, 400), (3_000, 2_000), (40, 100_000)]);
        let rows = random_rows(&mut random, count, value_bytes);
        let facts = write(&shared, seed, &rows);
        assert_eq!((facts.rows.rows, &*facts.smallest), (rows.len() as u64, rows.keys().next().unwrap().as_slice()));
        let table = open(&shared, &facts);
        check(&table, &rows).expect("no failure");
        let mut cursor = TableCursor::cached(table.clone());
        for _ in 0..300 {
            let length = random.index(6);
            let target: Vec<u8> = random.bytes(length).into_iter().map(|byte| byte % 6).collect();
            let row_of = |(key, value): (&Vec<u8>, &Option<Vec<u8>>)| (key.clone(), value.clone());
            cursor.seek(&target).expect("a seek");
            assert_eq!(row(&cursor), rows.range(target.clone()..).next().map(row_of), "seed {seed}");
            cursor.seek_before(Some(&target)).expect("a seek");
            assert_eq!(row(&cursor), rows.range(..target.clone()).next_back().map(row_of), "seed {seed}");
            let found = table.get(&target, KeyHash::of(&target)).expect("a get");
            assert_eq!(found.map(|value| value.map(|value| value.to_vec())), rows.get(&target).cloned());
        }
    }
}

#[test]
fn a_merge_reads_the_newest_row_of_each_key_in_both_directions() {
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let directory = directory();
        let shared = shared(&directory);
        let mut expected = Rows::new();
        let mut tables = Vec::new();
        for number in 0..1 + random.below(7) {
            let count = 1 + random.index(500);
            let rows = random_rows(&mut random, count, 50);
            tables.insert(0, open(&shared, &write(&shared, number, &rows)));
            expected.extend(rows);
        }
        for order in [Order::Ascending, Order::Descending] {
            let cursors = tables.iter().map(|table| {
                let mut cursor = TableCursor::cached(table.clone());
                let moved = if order == Order::Ascending { cursor.seek(&[]) } else { cursor.seek_before(None) };
                moved.expect("moved");
                cursor
            });
            let mut merge = MergeCursor::new(cursors.collect(), order);
            let mut found = Vec::new();
            while let Some(key) = merge.key() {
                found.push((key.to_vec(), merge.value().map(<[u8]>::to_vec)));
                merge.advance().expect("advanced");
            }
            if order == Order::Descending {
                found.reverse();
            }
            assert!(found.into_iter().eq(expected.clone()), "seed {seed}");
        }
    }
}

/// The table with other bytes, read as after opening.
fn check_changed(rows: &Rows, facts: &TableFacts, bytes: &[u8]) -> Result<(), Failure> {
    let directory = directory();
    let shared = shared(&directory);
    std::fs::write(shared.files.path(&file_name(facts.number)), bytes).expect("written");
    check(&open(&shared, facts), rows)?;
    match shared.lock_noticed().values().next() {
        Some(damage) => Err(damage.clone().into()),
        None => Ok(()),
    }
}

/// Where the data blocks are.
fn data_blocks(bytes: &[u8]) -> Vec<std::ops::Range<usize>> {
    let (mut blocks, mut start) = (Vec::new(), 0);
    while start < bytes.len() - crate::table_writer::TAIL_BYTES {
        let length = u32::from_le_bytes(bytes[start + 4..start + 8].try_into().expect("four bytes")) as usize;
        let end = start + length + crate::block::FRAME_BYTES;
        if bytes[start] == crate::block::Kind::Data as u8 {
            blocks.push(start..end);
        }
        start = end;
    }
    blocks
}

#[test]
fn every_flipped_byte_and_every_lost_end_is_found() {
    let mut random = Random::new(11);
    let directory = directory();
    let shared = shared(&directory);
    let rows = random_rows(&mut random, 60, 20);
    let facts = write(&shared, 1, &rows);
    let bytes = std::fs::read(shared.files.path(&file_name(1))).expect("read");
    assert_eq!(bytes.len() as u64, facts.file_bytes);
    check_changed(&rows, &facts, &bytes).expect("the table is whole");
    let data = data_blocks(&bytes);
    for place in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[place] ^= 1 << random.below(8);
        let checked = check_changed(&rows, &facts, &changed);
        let Err(Failure::Damaged(damage)) = checked else { panic!("byte {place} of {}: {checked:?}", bytes.len()) };
        // Only data is nowhere else.
        assert_eq!(damage.effect == Effect::Healed, !data.iter().any(|block| block.contains(&place)), "{damage:?}");
        let checked = check_changed(&rows, &facts, &bytes[..place]);
        assert!(matches!(checked, Err(Failure::Damaged(_))), "cut at {place}: {checked:?}");
    }
}

#[test]
fn damage_names_the_keys_it_may_hold() {
    let mut random = Random::new(12);
    let directory = directory();
    let shared = shared(&directory);
    let rows: Rows = (0..60_000_u32).map(|key| (key.to_be_bytes().to_vec(), Some(random.bytes(100)))).collect();
    let facts = write(&shared, 1, &rows);
    let path = shared.files.path(&file_name(1));
    let mut bytes = std::fs::read(&path).expect("read");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, &bytes).expect("written");
    let table = open(&shared, &facts);
    let mut damaged = Vec::new();
    for (key, value) in &rows {
        match table.get(key, KeyHash::of(key)) {
            Ok(found) => assert_eq!(found.flatten().as_deref(), value.as_deref()),
            Err(Failure::Damaged(damage)) => damaged.push((key, damage)),
            Err(other) => panic!("{other:?}"),
        }
    }
    let (first, damage) = damaged.first().expect("some rows are lost");
    assert!(damaged.len() < 200 && damaged.iter().all(|(_, other)| other == damage), "one block is lost");
    let before = rows.range(..(*first).clone()).next_back().expect("a row before").0;
    assert_eq!(damage.keys.start, crate::table::after(before));
    assert_eq!(damage.keys.end, Some(crate::table::after(damaged.last().expect("a row").0)));
    let middle = middle as u64;
    assert!(damage.offset <= middle && middle < damage.offset + 20_000, "{damage:?}");
}

#[test]
fn a_table_of_another_number_or_store_is_not_read() {
    let directory = directory();
    let shared = shared(&directory);
    let rows = random_rows(&mut Random::new(1), 50, 20);
    let facts = write(&shared, 1, &rows);
    std::fs::copy(shared.files.path(&file_name(1)), shared.files.path(&file_name(2))).expect("copied");
    let other = open(&shared, &TableFacts { number: 2, ..facts.clone() });
    assert!(matches!(check(&other, &rows), Err(Failure::Damaged(_))));
    let files = Arc::new(Files::new(directory.path()));
    let foreign = TableFiles::new(files, STORE + 1, Arc::new(Signal::default()), &Options::default());
    assert!(matches!(check(&open(&Arc::new(foreign), &facts), &rows), Err(Failure::Damaged(_))));
}
