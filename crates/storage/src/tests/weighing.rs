//! What a look at a stack finds, compared with the rows themselves.

use std::sync::Arc;

use testkit::random::Random;

use super::directory;
use super::tables::{Rows, open, shared, write};
use crate::failure::Failure;
use crate::merger::sizes_of;
use crate::table_facts::RowCounts;
use crate::table_files::TableFiles;
use crate::table_writer::file_name;
use crate::version::Version;
use crate::weigh::Weights;

fn key(number: u64) -> Vec<u8> {
    format!("key-{number:06}").into_bytes()
}

/// Rows of which some are large, and some tombstones.
fn rows(random: &mut Random, numbers: impl Iterator<Item = u64>, large: usize) -> Rows {
    let value = |random: &mut Random| {
        let bytes = if random.one_in(20) { large } else { random.index(60) };
        (!random.one_in(6)).then(|| vec![7; bytes])
    };
    numbers.map(|number| (key(number), value(random))).collect()
}

fn with_flush(version: &Version, shared: &Arc<TableFiles>, number: u64, rows: &Rows) -> Version {
    let facts = write(shared, number, rows);
    version.with_flush(&open(shared, &facts), &[facts.rows])
}

fn weigh(weights: &mut Weights, version: &Version) -> Result<Vec<u64>, Failure> {
    let mut sizes = sizes_of(version);
    weights.weigh(version, &mut sizes, u64::MAX, &|| false)?;
    Ok(sizes[0].iter().map(|slice| slice.replaced_bytes).collect())
}

fn bytes_of<'row>(rows: impl Iterator<Item = (&'row Vec<u8>, &'row Option<Vec<u8>>)>) -> u64 {
    let mut counts = RowCounts::default();
    rows.for_each(|(key, value)| counts.add_row(key, value.as_deref()));
    counts.bytes()
}

#[test]
fn every_replaced_row_is_found_once_and_what_is_known_stays_known() {
    for seed in 0..10 {
        let mut random = Random::new(seed);
        let directory = directory();
        let shared = shared(&directory);
        let large = random.pick(&[300, 3_000, 20_000]);
        let bottom = rows(&mut random, 0..5_000, large);
        let middle = rows(&mut random, (0..5_000).filter(|number| number % 13 == 0), 100);
        let top: Rows = (0..5_000).filter(|number| number % 39 < 2).map(|number| (key(number), None)).collect();
        let mut version = Version::empty();
        let mut weights = Weights::default();
        for (number, rows) in [&bottom, &middle, &top].into_iter().enumerate() {
            version = with_flush(&version, &shared, number as u64 + 1, rows);
            assert_eq!(
                weigh(&mut weights, &version).expect("weighed"),
                weigh(&mut Weights::default(), &version).expect("weighed"),
                "seed {seed}: step by step or at once"
            );
        }
        let found = weigh(&mut weights, &version).expect("weighed");
        let in_middle = bytes_of(middle.iter().filter(|(key, _)| top.contains_key(*key)));
        let in_bottom = bytes_of(bottom.iter().filter(|(key, _)| top.contains_key(*key) || middle.contains_key(*key)));
        assert_eq!(found[0], 0, "seed {seed}: nothing lies above");
        assert_eq!(found[1], in_middle, "seed {seed}: small rows are counted one by one");
        // A large row counts with its block, and the small rows before it there do not count.
        assert!(found[2].abs_diff(in_bottom) < in_bottom / 5, "seed {seed}: {} of {in_bottom}", found[2]);
    }
}

#[test]
fn damage_that_is_met_ends_the_look() {
    let directory = directory();
    let shared = shared(&directory);
    let bottom = rows(&mut Random::new(1), 0..5_000, 3_000);
    let top: Rows = (0..400).map(|number| (key(number), Some(vec![8; 10]))).collect();
    let version = with_flush(&with_flush(&Version::empty(), &shared, 1, &bottom), &shared, 2, &top);
    let path = directory.path().join(file_name(2));
    let mut bytes = std::fs::read(&path).expect("read");
    bytes[3_000] ^= 1;
    std::fs::write(&path, bytes).expect("written");
    assert!(matches!(weigh(&mut Weights::default(), &version), Err(Failure::Damaged(_))));
    assert_eq!(weigh(&mut Weights::default(), &version).expect("left alone"), [0, 0], "it is known now");
}
