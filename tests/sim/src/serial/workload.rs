//! The transactions: read-modify-write, write skew over points and ranges, deletions and creations, blind writes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use contract::{Error, HistoryPage, ListPage, Rejection, Retention};
use statehouse::{Isolation, Options, Statehouse, Transaction};
use testkit::random::Random;

use super::THREADS;
use super::record::{CELLS, CellIndex, Committed, GROUP, Ran, Read, Version, Write};

/// Runs all threads for a while in a new directory.
pub(super) fn run(seed: u64, length: Duration, isolation: Isolation) -> Result<Ran, String> {
    let directory = tempfile::tempdir().map_err(text)?;
    let mut options = Options::default().replay_bytes_max(1 << 20);
    // Small tables, so that reads also come from flushed ones.
    options.overlay = options.overlay.table_bytes_max(1 << 20);
    let house = options.open(directory.path().join("house")).map_err(text)?;
    house.space(statehouse::DEFAULT_SPACE).set_retention(Retention::ALL).map_err(text)?;
    let answered = AtomicU64::new(0);
    let deadline = Instant::now() + length;
    let mut ran =
        Ran { committed: Vec::new(), conflicts: 0, skew_conflicts: 0, histories: Vec::new(), errors: Vec::new() };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|number| {
                let (house, answered) = (house.clone(), &answered);
                let random = Random::new(seed.wrapping_mul(1_000) + number);
                let worker = Worker { number, random, isolation, house, answered, written: 0 };
                scope.spawn(move || worker.run(deadline))
            })
            .collect();
        for thread in threads {
            match thread.join() {
                Err(_) => ran.errors.push("a thread panicked".into()),
                Ok(part) => {
                    ran.committed.extend(part.committed);
                    ran.conflicts += part.conflicts;
                    ran.skew_conflicts += part.skew_conflicts;
                    ran.errors.extend(part.errors);
                }
            }
        }
    });
    ran.histories = histories(&house)?;
    house.close().map_err(text)?;
    Ok(ran)
}

struct Worker<'run> {
    number: u64,
    random: Random,
    isolation: Isolation,
    house: Statehouse,
    /// The highest commit number that anybody was answered.
    answered: &'run AtomicU64,
    written: u64,
}

/// A transaction that is under way.
struct Attempt {
    transaction: Transaction,
    reads: Vec<Read>,
    writes: Vec<Write>,
}

impl Worker<'_> {
    fn run(mut self, deadline: Instant) -> Ran {
        let mut ran =
            Ran { committed: Vec::new(), conflicts: 0, skew_conflicts: 0, histories: Vec::new(), errors: Vec::new() };
        while Instant::now() < deadline && ran.errors.is_empty() {
            let floor = self.answered.load(Ordering::SeqCst);
            match self.attempt() {
                Err(error) => ran.errors.push(error.to_string()),
                Ok(Attempt { transaction, reads, writes }) => match transaction.commit() {
                    Ok(committed) => {
                        self.answered.fetch_max(committed.commit, Ordering::SeqCst);
                        let (thread, commit) = (self.number, committed.commit);
                        ran.committed.push(Committed { thread, commit, floor, reads, writes });
                    }
                    Err(Error::Rejected(Rejection::Conflict { .. })) => {
                        ran.conflicts += 1;
                        let written = |cell| writes.iter().any(|write| write.cell == cell);
                        let is_skew = reads.iter().any(|read| !written(read.cell));
                        ran.skew_conflicts += u64::from(is_skew);
                    }
                    Err(error) => ran.errors.push(error.to_string()),
                },
            }
        }
        ran
    }

    /// Reads and writes; all reads come first, so that none is of an own write.
    fn attempt(&mut self) -> Result<Attempt, Error> {
        let transaction = self.house.group(GROUP).begin_with(self.isolation)?;
        let mut attempt = Attempt { transaction, reads: Vec::new(), writes: Vec::new() };
        let (x, y) = (self.random.index(CELLS.len()), self.random.index(CELLS.len()));
        match self.random.below(12) {
            // Read, modify, write.
            0..=1 => {
                attempt.read(x)?;
                self.set(&mut attempt, x)?;
            }
            // Write skew: two cells are read, one is written.
            2..=4 => {
                attempt.read(x)?;
                attempt.read(y)?;
                self.set(&mut attempt, x)?;
            }
            // Write skew over a range.
            5..=6 => {
                let prefix = *self.random.choose(&["a", "b", "", "a0"]);
                attempt.list(prefix, 100)?;
                self.set(&mut attempt, x)?;
            }
            // A page of a range, and what comes into or goes out of it.
            7 => {
                attempt.list("", 1 + self.random.index(5))?;
                self.flip(&mut attempt, x)?;
            }
            // Deletes what is there, creates what is not.
            8..=9 => {
                self.flip(&mut attempt, x)?;
            }
            // Blind writes, one of them twice.
            10 => {
                attempt.read(y)?;
                self.set(&mut attempt, x)?;
                self.set(&mut attempt, y)?;
                self.set(&mut attempt, x)?;
            }
            // Only reads.
            _ => {
                attempt.read(x)?;
                attempt.list("", 100)?;
            }
        }
        Ok(attempt)
    }

    fn set(&mut self, attempt: &mut Attempt, cell: CellIndex) -> Result<(), Error> {
        let value = self.unique();
        attempt.transaction.set(CELLS[cell], value.as_str())?;
        attempt.writes.push(Write { cell, value: Some(value) });
        Ok(())
    }

    fn flip(&mut self, attempt: &mut Attempt, cell: CellIndex) -> Result<(), Error> {
        if attempt.read(cell)? {
            attempt.transaction.delete(CELLS[cell])?;
            attempt.writes.push(Write { cell, value: None });
        } else {
            let value = self.unique();
            attempt.transaction.init(CELLS[cell], value.as_str())?;
            attempt.writes.push(Write { cell, value: Some(value) });
        }
        Ok(())
    }

    /// A text that is written once.
    fn unique(&mut self) -> String {
        self.written += 1;
        format!("{}.{}", self.number, self.written)
    }
}

impl Attempt {
    /// Reads a cell; whether it exists.
    fn read(&mut self, cell: CellIndex) -> Result<bool, Error> {
        let found = self.transaction.get_versioned(CELLS[cell])?;
        let version = found.map(|found| found.version);
        self.reads.push(Read { cell, version });
        Ok(version.is_some())
    }

    /// Reads a page of a range: the cells that are in it and those that could be.
    fn list(&mut self, prefix: &str, limit: usize) -> Result<(), Error> {
        let listed = self.transaction.list(prefix, ListPage { after: None, limit })?;
        let upto = listed.next_after.as_ref().map(|upto| upto.name.as_str());
        for (cell, name) in CELLS.iter().enumerate() {
            let is_seen = name.starts_with(prefix) && upto.is_none_or(|upto| *name <= upto);
            let found = listed.cells.iter().find(|(found, _)| found.name == *name);
            assert!(found.is_none() || is_seen, "a list holds only what it was asked for");
            if is_seen {
                self.reads.push(Read { cell, version: found.map(|(_, found)| found.version) });
            }
        }
        Ok(())
    }
}

/// Every version of every cell.
fn histories(house: &Statehouse) -> Result<Vec<Vec<Version>>, String> {
    let cells = house.group(GROUP).cells();
    CELLS
        .iter()
        .map(|cell| {
            let mut versions = Vec::new();
            let mut page = HistoryPage { before: None, limit: 1_000 };
            loop {
                let history = cells.history(cell, page).map_err(text)?;
                versions.extend(history.versions.into_iter().map(|past| Version {
                    commit: past.commit,
                    value: past.value.and_then(|value| value.as_text().map(str::to_owned)),
                }));
                page.before = history.next_before;
                if page.before.is_none() {
                    versions.reverse();
                    return Ok(versions);
                }
            }
        })
        .collect()
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
