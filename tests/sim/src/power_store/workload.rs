//! The process that is traced: a few threads write cells, with bounds so small that within a second the store is
//! flushed, merged, its journal rolled and cut many times; it is closed and opened again in between.
//!
//! Keeps: each cell has one writer, who knows its version; an intent is recorded before its command is submitted,
//! an answer after it has come.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use statehouse::{Error, Expected, Options, Retention, Statehouse, Swapped, Value};
use testkit::random::Random;

use super::records::{Cell, Record, Token, Write};
use testkit::arguments::Arguments;

const THREADS: u64 = 3;
const CELLS: u64 = 6;

/// The group in which all threads count together: the cell [`COUNT`], and one cell for each thread.
pub(super) const SHARED_GROUP: &str = "shared";
pub(super) const COUNT: &str = "count";

/// How the store is opened, by the traced process and by whoever looks at what it left.
pub(super) fn options() -> Options {
    let mut options = Options::default().buckets(8).replay_bytes_max(40 << 10);
    options.storage.cache_bytes_max = 4 << 20;
    options.storage.table_bytes_target = 48 << 10;
    options.storage.unmerged_tables_max = 2;
    options.storage.unmerged_tables_stall = 6;
    options.overlay.table_bytes_max = 32 << 10;
    options.journal_files.file_bytes_target = 64 << 10;
    options.journal.watermark_age_max = Duration::from_millis(30);
    options
}

/// Does the work and says what it did.
pub(super) fn run(arguments: &Arguments) -> Result<(), Error> {
    let directory = Path::new(arguments.text("directory").expect("--directory"));
    let life = arguments.number("life", 0);
    let (sessions, writes) = (arguments.number("sessions", 3), arguments.number("writes", 100));
    let records = Records::new(Path::new(arguments.text("records").expect("--records")), life);
    let seed = arguments.number("seed", 1) ^ life << 32;
    let mut workers: Vec<_> = (0..THREADS).map(|thread| Worker::new(life, thread, seed)).collect();
    if let Some(image) = arguments.text("restore") {
        restore(directory, Path::new(image), &records, &mut workers[0])?;
    }
    for session in 0..sessions {
        let house = options().open(directory)?;
        let status = house.status()?;
        records.add(&Record::Opened { index: status.applied_index, hash: status.effects_hash });
        if session == 0 {
            house.space("default").set_retention(Retention::versions(12))?;
        }
        std::thread::scope(|scope| {
            let (house, records) = (&house, &records);
            let spawn = |worker: &'_ mut Worker| {
                let mut worker = std::mem::replace(worker, Worker::new(life, 0, 0));
                scope.spawn(move || {
                    for _ in 0..writes {
                        worker.step(house, records)?;
                    }
                    Ok::<_, Error>(worker)
                })
            };
            let threads: Vec<_> = workers.iter_mut().map(spawn).collect();
            let mut random = Random::new(seed ^ session);
            while threads.iter().any(|thread| !thread.is_finished()) {
                observe(house, records, random.one_in(4))?;
                std::thread::sleep(Duration::from_millis(random.below(20)));
            }
            for (worker, thread) in workers.iter_mut().zip(threads) {
                *worker = thread.join().expect("no thread panics")?;
            }
            Ok::<_, Error>(())
        })?;
        let index = house.status()?.applied_index;
        house.close()?;
        records.add(&Record::Flushed { index });
    }
    Ok(())
}

fn observe(house: &Statehouse, records: &Records, flush: bool) -> Result<(), Error> {
    let status = house.status()?;
    records.add(&Record::Status { index: status.applied_index, hash: status.effects_hash });
    if flush {
        house.flush()?;
        records.add(&Record::Flushed { index: status.applied_index });
    }
    Ok(())
}

/// Makes an image of a few cells, and the directory from that image. The directory beside the image is not traced.
fn restore(directory: &Path, image: &Path, records: &Records, worker: &mut Worker) -> Result<(), Error> {
    let source = options().buckets(16).open(image.with_extension("source"))?;
    let mut bytes = Vec::new();
    let mut intents = Vec::new();
    for _ in 0..20 {
        let intent = worker.next_set();
        source.cells().set(&intent.cell.name, worker.value(&intent))?;
        intents.push(intent);
    }
    source.write_image(&mut bytes)?;
    source.close()?;
    std::fs::write(image, &bytes).expect("the image is kept");
    let intended: Vec<_> = intents.into_iter().map(|intent| records.intend(vec![intent])).collect();
    Statehouse::restore_image(directory, &mut bytes.as_slice())?;
    for number in intended {
        records.add(&Record::Answered { number, commit: None });
    }
    Ok(())
}

/// The file that records are written to, each by one call.
struct Records {
    file: File,
    next: AtomicU64,
}

impl Records {
    fn new(path: &Path, life: u64) -> Self {
        let file = OpenOptions::new().append(true).create(true).open(path).expect("the records can be written");
        Self { file, next: AtomicU64::new(life << 32) }
    }

    fn add(&self, record: &Record) {
        let line = format!("{record}\n");
        let written = (&self.file).write(line.as_bytes()).expect("the records can be written");
        assert_eq!(written, line.len(), "a record is written whole");
    }

    fn intend(&self, writes: Vec<Write>) -> u64 {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.add(&Record::Intended { number, writes });
        number
    }
}

/// The only writer of its cells.
struct Worker {
    life: u64,
    thread: u64,
    random: Random,
    sequence: u64,
    /// The version of each cell, and whether it exists.
    cells: BTreeMap<Cell, (u64, bool)>,
}

impl Worker {
    fn new(life: u64, thread: u64, seed: u64) -> Self {
        let random = Random::new(seed.wrapping_mul(31).wrapping_add(thread));
        Self { life, thread, random, sequence: 0, cells: BTreeMap::new() }
    }

    fn step(&mut self, house: &Statehouse, records: &Records) -> Result<(), Error> {
        match self.random.below(20) {
            0..=7 => self.set(house, records),
            8..=9 => self.delete(house, records),
            10 => self.swap(house, records),
            11..=13 => self.set_many(house, records),
            14..=16 => self.set_pair(house, records),
            _ => self.count(house, records),
        }
    }

    fn set(&mut self, house: &Statehouse, records: &Records) -> Result<(), Error> {
        let write = self.next_set();
        let number = records.intend(vec![write.clone()]);
        let written = house.cells().set(&write.cell.name, self.value(&write))?;
        assert_eq!(written.version, write.version, "{}", write.cell);
        records.add(&Record::Answered { number, commit: Some(written.commit) });
        Ok(())
    }

    fn delete(&mut self, house: &Statehouse, records: &Records) -> Result<(), Error> {
        let cell = self.own_cell();
        let (version, exists) = self.cells.get(&cell).copied().unwrap_or_default();
        if !exists {
            return self.set(house, records);
        }
        self.cells.insert(cell.clone(), (version + 1, false));
        let number = records.intend(vec![Write { cell: cell.clone(), version: version + 1, token: None }]);
        let deleted = house.cells().delete(&cell.name)?;
        assert_eq!(deleted.version, Some(version + 1), "{cell}");
        records.add(&Record::Answered { number, commit: None });
        Ok(())
    }

    fn swap(&mut self, house: &Statehouse, records: &Records) -> Result<(), Error> {
        let cell = self.own_cell();
        let expected = match self.cells.get(&cell) {
            Some((version, true)) => Expected::Version(*version),
            _ => Expected::Absent,
        };
        let write = self.write(cell);
        let number = records.intend(vec![write.clone()]);
        match house.cells().cas(&write.cell.name, expected, self.value(&write))? {
            Swapped::Written(written) => {
                assert_eq!(written.version, write.version, "{}", write.cell);
                records.add(&Record::Answered { number, commit: Some(written.commit) });
            }
            Swapped::Conflict { current } => panic!("{} is at {current:?}, which nobody wrote", write.cell),
        }
        Ok(())
    }

    /// Several writes at once, so that they share entries.
    fn set_many(&mut self, house: &Statehouse, records: &Records) -> Result<(), Error> {
        let mut pending = Vec::new();
        for _ in 0..1 + self.random.below(6) {
            let write = self.next_set();
            let number = records.intend(vec![write.clone()]);
            let value = self.value(&write);
            pending.push((number, house.cells().set_later(&write.cell.name, value)));
        }
        for (number, pending) in pending {
            let commit = Some(pending.wait()?.commit);
            records.add(&Record::Answered { number, commit });
        }
        Ok(())
    }

    /// Two cells of one group in one transaction, always with the same value.
    fn set_pair(&mut self, house: &Statehouse, records: &Records) -> Result<(), Error> {
        let group = format!("pair-{}-{}", self.life, self.thread);
        let left = self.write(Cell { group: Some(group.clone()), name: "left".into() });
        let right_version = self.write(Cell { group: Some(group.clone()), name: "right".into() });
        let right = Write { token: left.token, ..right_version };
        let value = self.value(&left);
        let number = records.intend(vec![left, right]);
        let mut transaction = house.group(group).begin()?;
        transaction.set("left", value.clone())?;
        transaction.set("right", value)?;
        let commit = Some(transaction.commit()?.commit);
        records.add(&Record::Answered { number, commit });
        Ok(())
    }

    /// Counts up the cell that all threads share, and one of its own beside it.
    fn count(&mut self, house: &Statehouse, records: &Records) -> Result<(), Error> {
        let name = format!("{COUNT}-{}-{}", self.life, self.thread);
        let own = self.write(Cell { group: Some(SHARED_GROUP.into()), name });
        let value = self.value(&own);
        let number = records.intend(vec![own.clone()]);
        house.group(SHARED_GROUP).transact(|transaction| {
            let count = transaction.get(COUNT)?.and_then(|count| count.as_integer()).unwrap_or(0);
            transaction.set(COUNT, count + 1)?;
            transaction.set(&own.cell.name, value.clone())
        })?;
        records.add(&Record::Answered { number, commit: None });
        Ok(())
    }

    fn own_cell(&mut self) -> Cell {
        let (life, thread, cell) = (self.life, self.thread, self.random.below(CELLS));
        Cell { group: None, name: format!("cell-{life}-{thread}-{cell}") }
    }

    fn next_set(&mut self) -> Write {
        let cell = self.own_cell();
        self.write(cell)
    }

    fn write(&mut self, cell: Cell) -> Write {
        let version = self.cells.get(&cell).map_or(0, |(version, _)| *version) + 1;
        self.cells.insert(cell.clone(), (version, true));
        self.sequence += 1;
        let bytes = match self.random.below(40) {
            0 => 20_000,
            1..=4 => 3_000,
            _ => 400,
        };
        let bytes = self.random.index(bytes);
        let token = Token { life: self.life, thread: self.thread, sequence: self.sequence, bytes };
        Write { cell, version, token: Some(token) }
    }

    fn value(&self, write: &Write) -> Value {
        write.token.expect("this write is not a deletion").value()
    }
}
