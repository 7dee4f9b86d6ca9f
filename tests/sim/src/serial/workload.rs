//! The transactions: read-modify-write, write skew over points and ranges, deletions and creations, blind writes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use contract::{CellRejection, Error, HistoryPage, ListPage, RecordRejection, Rejection, Retention, RunRejection};
use statehouse::records::Put;
use statehouse::runs::{AppendOptions, NewEvent, StoredEvent};
use statehouse::{Group, Isolation, Json, Options, Statehouse, Transaction};
use testkit::random::Random;

use super::THREADS;
use super::record::{Committed, GROUP, Kind, REGISTERS, Ran, Read, Register, RegisterIndex, Version, Write};

/// The field of a record that has the value.
const FIELD: &str = "value";

/// Runs all threads for a while in a new directory.
pub(super) fn run(seed: u64, length: Duration, isolation: Isolation) -> Result<Ran, String> {
    let directory = tempfile::tempdir().map_err(text)?;
    let mut options = Options::default().replay_bytes_max(1 << 20);
    // Small tables, so that reads also come from flushed ones.
    options.overlay.table_bytes_max = 1 << 20;
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
    ran.histories = histories(&house, &ran.committed)?;
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
                    Err(Error::Rejected(
                        Rejection::Cell(CellRejection::Conflict { .. })
                        | Rejection::Record(RecordRejection::Conflict { .. })
                        | Rejection::Run(RunRejection::SequenceConflict { .. }),
                    )) => {
                        ran.conflicts += 1;
                        let written = |register| writes.iter().any(|write| write.register == register);
                        let is_skew = reads.iter().any(|read| !written(read.register));
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
        let (x, y) = (self.random.index(REGISTERS.len()), self.random.index(REGISTERS.len()));
        match self.random.below(12) {
            // Read, modify, write.
            0..=1 => {
                attempt.read(x)?;
                self.set(&mut attempt, x)?;
            }
            // Write skew: two registers are read, one is written.
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

    fn set(&mut self, attempt: &mut Attempt, register: RegisterIndex) -> Result<(), Error> {
        let value = self.unique();
        let Register { kind, name } = REGISTERS[register];
        match kind {
            Kind::Cell => attempt.transaction.set(name, value.as_str())?,
            Kind::Record => {
                attempt.transaction.records().put(name, [(FIELD, value.as_str())], Put::default())?;
            }
            Kind::Run => {
                attempt.transaction.runs().append(name, &event(&value), AppendOptions::default())?;
            }
        }
        attempt.writes.push(Write { register, value: Some(value) });
        Ok(())
    }

    fn flip(&mut self, attempt: &mut Attempt, register: RegisterIndex) -> Result<(), Error> {
        let exists = attempt.read(register)?;
        let Register { kind, name } = REGISTERS[register];
        match (kind, exists) {
            // Their versions go on from elsewhere after a deletion.
            (Kind::Record | Kind::Run, _) => self.set(attempt, register)?,
            (Kind::Cell, true) => {
                attempt.transaction.delete(name)?;
                attempt.writes.push(Write { register, value: None });
            }
            (Kind::Cell, false) => {
                let value = self.unique();
                attempt.transaction.init(name, value.as_str())?;
                attempt.writes.push(Write { register, value: Some(value) });
            }
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
    /// Reads a register; whether it exists.
    fn read(&mut self, register: RegisterIndex) -> Result<bool, Error> {
        let Register { kind, name } = REGISTERS[register];
        let version = match kind {
            Kind::Cell => self.transaction.get_versioned(name)?.map(|found| found.version),
            Kind::Record => self.transaction.records().get(name)?.map(|found| found.version),
            Kind::Run => Some(self.transaction.runs().last(name)?).filter(|last| *last > 0),
        };
        self.reads.push(Read { register, version });
        Ok(version.is_some())
    }

    /// Reads a page of a range: the cells that are in it and those that could be.
    fn list(&mut self, prefix: &str, limit: usize) -> Result<(), Error> {
        let listed = self.transaction.list(prefix, ListPage { after: None, limit })?;
        let upto = listed.next_after.as_ref().map(|upto| upto.name.as_str());
        for (register, Register { name, .. }) in cells() {
            let is_seen = name.starts_with(prefix) && upto.is_none_or(|upto| name <= upto);
            let found = listed.cells.iter().find(|(found, _)| found.name == name);
            assert!(found.is_none() || is_seen, "a list holds only what it was asked for");
            if is_seen {
                self.reads.push(Read { register, version: found.map(|(_, found)| found.version) });
            }
        }
        Ok(())
    }
}

/// The cells among the registers.
fn cells() -> impl Iterator<Item = (RegisterIndex, Register)> {
    REGISTERS.into_iter().enumerate().filter(|(_, register)| register.kind == Kind::Cell)
}

fn event(value: &str) -> NewEvent {
    let data = Json::new(format!("\"{value}\"")).expect("JSON");
    NewEvent::new("Set", value, "2026-02-11T10:00:00Z", data)
}

/// Every version of every register.
fn histories(house: &Statehouse, committed: &[Committed]) -> Result<Vec<Vec<Version>>, String> {
    let group = house.group(GROUP);
    REGISTERS
        .iter()
        .enumerate()
        .map(|(place, register)| match register.kind {
            Kind::Cell => history_of_cell(&group, register.name),
            Kind::Record => history_of_record(&group, register.name, place, committed),
            Kind::Run => history_of_run(&group, register.name),
        })
        .collect()
}

fn history_of_cell(group: &Group, cell: &str) -> Result<Vec<Version>, String> {
    let mut versions = Vec::new();
    let mut page = HistoryPage { before: None, limit: 1_000 };
    loop {
        let history = group.cells().history(cell, page).map_err(text)?;
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
}

/// A record keeps its last version only. It must be the last one written, and count them all.
fn history_of_record(
    group: &Group,
    record: &str,
    register: RegisterIndex,
    committed: &[Committed],
) -> Result<Vec<Version>, String> {
    let mut versions = Vec::new();
    for transaction in committed {
        let writes = transaction.writes.iter().filter(|write| write.register == register);
        versions.extend(writes.map(|write| Version { commit: transaction.commit, value: write.value.clone() }));
    }
    // Within a commit they stay in order.
    versions.sort_by_key(|version| version.commit);
    let stored = group.records().get(record).map_err(text)?;
    let stored = stored.map(|stored| {
        let value = stored.value(FIELD).and_then(|value| value.as_text().map(str::to_owned));
        (stored.version, stored.commit, value)
    });
    let last = versions.last().map(|last| (versions.len() as u64, last.commit, last.value.clone()));
    match stored == last {
        true => Ok(versions),
        false => Err(format!("record {record} is {stored:?}, and the last write was {last:?}")),
    }
}

fn history_of_run(group: &Group, run: &str) -> Result<Vec<Version>, String> {
    let mut versions: Vec<Version> = Vec::new();
    loop {
        let fetched = match group.runs().fetch(run, versions.len() as u64, 1_000) {
            Err(Error::Rejected(Rejection::Run(RunRejection::NoSuchRun { .. }))) => return Ok(versions),
            fetched => fetched.map_err(text)?,
        };
        if fetched.events.is_empty() {
            return Ok(versions);
        }
        let version = |event: StoredEvent| Version { commit: event.commit, value: Some(event.event.idempotency_key) };
        versions.extend(fetched.events.into_iter().map(version));
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
