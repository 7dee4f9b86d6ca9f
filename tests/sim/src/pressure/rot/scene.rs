//! A store of many things, as a killed process leaves it, with a list of every line of its export; and copies of it with
//! one flipped bit.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use statehouse::records::{ClaimOptions, Put};
use statehouse::runs::NewEvent;
use statehouse::{Json, Options, Pending, Statehouse, export};
use testkit::random::Random;

/// Commands that wait for their answers at a time.
const AT_ONCE: usize = 256;

/// Few, so that a small store has blocks with many things of one kind.
pub(super) const BUCKETS: u16 = 8;

/// What follows the blocks of a table.
const TRAILER_BYTES: usize = 48;

/// Small tables and caches, so that a small store has many of both.
pub(super) fn options() -> Options {
    let mut options = Options::default().memory_bytes(4 << 20).buckets(BUCKETS).scrub_bytes_per_second(0);
    options.storage.cache_bytes_max = 256 << 10;
    options.storage.table_bytes_target = 512 << 10;
    options.overlay.table_bytes_max = 256 << 10;
    options
}

pub(super) fn cell(number: u64) -> String {
    format!("cell/{number:07}")
}

pub(super) fn value(number: u64) -> String {
    format!("value {number} {}", "x".repeat(usize::try_from(number % 90).expect("small")))
}

/// The whole store.
pub(super) struct Scene {
    path: PathBuf,
    /// The number of cells; there are fewer records and runs.
    pub(super) cells: u64,
    /// Every line of an export, by its hash.
    pub(super) lines: BTreeMap<u64, String>,
    places: BTreeMap<&'static str, Vec<(PathBuf, Range<u64>)>>,
    tables: usize,
}

/// One bit of one file.
#[derive(Debug)]
pub(super) struct Flip {
    /// The part of the store.
    pub(super) part: &'static str,
    /// The file, within the directory.
    pub(super) file: PathBuf,
    pub(super) offset: u64,
    pub(super) bit: u8,
    /// Whether the store is open when it happens.
    pub(super) under_load: bool,
}

impl Scene {
    pub(super) fn make(path: &Path, seed: u64, things: u64) -> Self {
        let live = path.join("live");
        let house = options().open(&live).expect("opened");
        let cells = things * 6 / 10;
        fill(&house, seed, cells, things * 3 / 10, things / 10);
        // Everything is merged, and some newer rows lie on top, as in a store at work.
        house.settle().expect("merged");
        for _ in 0..2 {
            let mut pending = Vec::new();
            for number in (0..cells).step_by(5) {
                ask(&mut pending, house.cells().set_later(&cell(number), value(number)));
            }
            answered(&mut pending);
            house.flush().expect("flushed");
        }
        let mut lines = Vec::new();
        export::write(&house, None, &mut lines, &mut |_| {}).expect("exported");
        let kept = path.join("kept");
        super::trial::copy_of_one_moment(&live, &kept).expect("copied");
        drop(house);
        let text = String::from_utf8(lines).expect("lines of JSON");
        let lines = text.lines().map(|line| (hash(line), line.to_owned())).collect();
        let mut scene = Self { path: kept, cells, lines, places: BTreeMap::new(), tables: 0 };
        scene.survey();
        scene
    }

    pub(super) fn tables(&self) -> usize {
        self.tables
    }

    pub(super) fn places(&self) -> usize {
        self.places.values().map(Vec::len).sum()
    }

    /// Finds the blocks of all tables, by their headers.
    fn survey(&mut self) {
        let mut add = |part, file: &Path, range| self.places.entry(part).or_default().push((file.to_owned(), range));
        for entry in std::fs::read_dir(self.path.join("store")).expect("a store") {
            let entry = entry.expect("an entry");
            let file = Path::new("store").join(entry.file_name());
            let mut bytes = Vec::new();
            File::open(entry.path()).expect("opened").read_to_end(&mut bytes).expect("read");
            let length = bytes.len() as u64;
            if entry.file_name() == "manifest" {
                add("the manifest", &file, 0..length);
                continue;
            }
            self.tables += 1;
            for (part, range) in blocks_of(&bytes) {
                add(part, &file, range.start as u64..range.end as u64);
            }
            add("the end of a table", &file, length - TRAILER_BYTES as u64..length);
        }
    }

    pub(super) fn draw(&self, random: &mut Random) -> Flip {
        // Half of the flips hit data, which is most of the bytes and all that can be lost.
        let parts: Vec<&&str> = self.places.keys().collect();
        let part = if random.one_in(2) { "data" } else { **random.choose(&parts) };
        let (file, range) = random.choose(&self.places[part]);
        let offset = range.start + random.below(range.end - range.start);
        let bit = u8::try_from(random.below(8)).expect("small");
        Flip { part, file: file.clone(), offset, bit, under_load: random.one_in(2) }
    }

    /// Copies the store to `to`; what never changes and is not flipped is shared.
    pub(super) fn copy_for(&self, flip: &Flip, to: &Path) {
        let is_shared = |file: &Path| file.extension().is_some_and(|end| end == "table") && !file.ends_with(&flip.file);
        copy(&self.path, to, &is_shared);
    }
}

impl Flip {
    /// Changes the bit, in place. Doing it twice changes nothing.
    pub(super) fn apply(&self, directory: &Path) -> std::io::Result<()> {
        let mut file = File::options().read(true).write(true).open(directory.join(&self.file))?;
        let mut byte = [0];
        file.seek(SeekFrom::Start(self.offset))?;
        file.read_exact(&mut byte)?;
        byte[0] ^= 1 << self.bit;
        file.seek(SeekFrom::Start(self.offset))?;
        file.write_all(&byte)
    }
}

/// The blocks of a table, by their headers, and what each is.
pub(in super::super) fn blocks_of(table: &[u8]) -> impl Iterator<Item = (&'static str, Range<usize>)> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let header = table[..table.len() - TRAILER_BYTES].get(start..start + 16)?;
        let content = u32::from_le_bytes(header[4..8].try_into().expect("four bytes")) as usize;
        let part = match header[0] {
            1 => "data",
            2 => "an index",
            3 => "a filter",
            _ => "the end of a table",
        };
        let range = start..start + 16 + content;
        start = range.end;
        Some((part, range))
    })
}

/// Copies a directory but for its lock; files that are shared get a second name.
pub(in super::super) fn copy(from: &Path, to: &Path, is_shared: &dyn Fn(&Path) -> bool) {
    std::fs::create_dir_all(to).expect("created");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type().expect("a type").is_dir() {
            copy(&source, &target, is_shared);
        } else if is_shared(&source) {
            std::fs::hard_link(&source, &target).expect("linked");
        } else if entry.file_name() != "LOCK" {
            // A merge may remove a file meanwhile; a killed process would have left it.
            std::fs::copy(&source, &target).map(drop).unwrap_or_default();
        }
    }
}

pub(super) fn hash(line: &str) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    line.hash(&mut hasher);
    hasher.finish()
}

/// Adds a request to those under way, and waits for their answers when there are as many as may be.
fn ask<T>(pending: &mut Vec<Pending<T>>, next: Pending<T>) {
    pending.push(next);
    if pending.len() >= AT_ONCE {
        answered(pending);
    }
}

fn answered<T>(pending: &mut Vec<Pending<T>>) {
    for pending in pending.drain(..) {
        pending.wait().expect("answered");
    }
}

fn fill(house: &Statehouse, seed: u64, cells: u64, records: u64, runs: u64) {
    let mut random = Random::new(seed);
    let mut pending = Vec::new();
    for number in 0..cells {
        ask(&mut pending, house.cells().set_later(&cell(number), value(number)));
        if random.one_in(4) {
            // Newer rows above older ones.
            let again = random.below(number + 1);
            ask(&mut pending, house.cells().set_later(&cell(again), value(again)));
        }
    }
    answered(&mut pending);
    let mut pending = Vec::new();
    for number in 0..records {
        let name = format!("queue.{}.{number:07}", number % 10);
        let fields = [("text", value(number)), ("other", format!("field of {number}"))];
        ask(&mut pending, house.records().put_later(&name, fields, Put::typed("task")));
    }
    answered(&mut pending);
    let mut pending = Vec::new();
    for number in 0..runs {
        let event = |key: u64| {
            let data = Json::new(format!("{{\"of\":{number}}}")).expect("JSON");
            NewEvent::new("A", format!("k{key}"), "2026-02-11T10:00:00Z", data)
        };
        let events = [event(1), event(2), event(3)];
        let options = statehouse::runs::AppendOptions::default();
        ask(&mut pending, house.runs().append_all_later(&format!("run/{number:06}"), &events, &options));
    }
    answered(&mut pending);
    let _ = house.records().claim_next("queue.3.", 5, &ClaimOptions::worker("w")).expect("claimed");
}
