//! Many writes over few cells: memory, disk and journal must not grow.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::time::Instant;

use statehouse::{Cells, Options, Retention};
use testkit::random::Random;

use bench::resources::{directory_bytes, resident_bytes};
use testkit::arguments::Arguments;
use testkit::report::Report;

const VALUE_BYTES: usize = 200;
const VERSIONS_KEPT: u64 = 10;
const WRITERS: u64 = 4;
const WINDOW: usize = 256;

/// Counts bytes.
struct Counter(u64);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub fn run(arguments: &Arguments) -> Report {
    let sets = arguments.number("sets", 10_000_000);
    let cells_count = arguments.number("cells", 100_000);
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("house");
    let options = Options::default();
    let journal_cap = options.journal.files_bytes_max;
    let house = options.open(&path).expect("a house");
    house.space("default").set_retention(Retention::versions(VERSIONS_KEPT)).expect("retention");
    let cells = house.cells();

    let started = Instant::now();
    let tenth = (sets / 10).max(1);
    let (mut middle, mut end, mut journal_max) = (0, 0, 0);
    for part in 1..=10_u64 {
        write(&cells, tenth, cells_count, part);
        let resident = resident_bytes();
        let status = house.status().expect("status");
        journal_max = journal_max.max(status.journal_bytes);
        let (store, journal) = (directory_bytes(&path.join("store")), directory_bytes(&path.join("journal")));
        journal_max = journal_max.max(journal);
        println!(
            "{:>9} sets: {:>7.0}/s, resident {:>5} MiB, store {:>5} MiB, journal {:>5} MiB, memory {:>4} MiB",
            part * tenth,
            (part * tenth) as f64 / started.elapsed().as_secs_f64(),
            resident >> 20,
            store >> 20,
            journal >> 20,
            status.memory_bytes >> 20
        );
        // One reading is noise; the middle and the end are each the larger of two.
        if part == 5 || part == 6 {
            middle = middle.max(resident);
        }
        if part >= 9 {
            end = end.max(resident);
        }
    }
    house.flush().expect("flush");
    house.settle().expect("settle");
    let mut live = Counter(0);
    let rows = house.write_image(&mut live).expect("an image");
    let store = directory_bytes(&path.join("store"));
    println!("{rows} rows, {} MiB live, {} MiB in the store", live.0 >> 20, store >> 20);

    let mut report = Report::new("cells");
    let growth = end as f64 / middle.max(1) as f64;
    report.add("flat.memory", format!("{growth:.2}x"), "end within 1.2 times the middle", growth <= 1.2);
    let space = store as f64 / live.0 as f64;
    report.add("flat.store", format!("{space:.2}x"), "<=3 times the live bytes", space <= 3.0);
    let share = journal_max as f64 / journal_cap as f64;
    report.add("flat.journal", format!("{share:.2}x"), "within its cap", share <= 1.0);
    report
}

fn write(cells: &Cells, sets: u64, cells_count: u64, seed: u64) {
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            scope.spawn(move || {
                let mut random = Random::new(seed * WRITERS + writer);
                let mut pending = VecDeque::new();
                for _ in 0..sets / WRITERS {
                    let cell = format!("cell-{:09}", random.below(cells_count));
                    pending.push_back(cells.set_later(&cell, random.bytes(VALUE_BYTES)));
                    if pending.len() >= WINDOW {
                        pending.pop_front().expect("one").wait().expect("a set");
                    }
                }
                for answer in pending {
                    answer.wait().expect("a set");
                }
            });
        }
    });
}
