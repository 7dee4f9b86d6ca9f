//! Word count by event time, exactly once: a crash, and a worker that goes on after it was replaced.
//!
//! Sentences come in two partitions, out of order. Words are counted by minutes of event time; a minute that is over becomes a file.
//! Counts, input positions and the watermark are in one commit, so whoever takes over replays what was not committed, and nothing
//! else. The file of a minute is written before its counts are removed: after a crash in between, it is written again, the same. The
//! crash is one: another process aborts in the middle of its work.
//!
//! Run with `cargo run --example word_count -p statehouse`.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::process::Command;

use statehouse::Statehouse;
use statehouse::keyed::{KeysRange, Merge, OwnedPartition};
use statehouse::records::ClaimOptions;
use statehouse::stream::sinks::{FileSink, Sink};
use statehouse::stream::{Arrival, Watermarks, Windows};

/// What the source holds: sentences with their event times in seconds. It can be read again from any position.
const SOURCE: [&[(i64, &str)]; 2] = [
    &[
        (3, "to be or not to be"),
        (50, "that is the question"),
        (62, "to sleep"),
        (41, "to dream"),
        (130, "no more"),
        (2, "to die"),
    ],
    &[(10, "to be"), (95, "be all my sins remembered"), (70, "or not"), (200, "to die to sleep")],
];
const MINUTE: i64 = 60;
/// A sentence may be as much older than the newest one.
const LATENESS: i64 = 30;
/// Sentences in a commit.
const BATCH: usize = 2;
/// Counts that are read at once, or removed in one commit. Small, so that this example needs several; 1,000 are allowed.
const PAGE: usize = 4;

/// Keys with their counts.
type Counts = Vec<(Vec<u8>, i64)>;

/// Keys of the state: counts are below a window's key.
const COUNTS: &[u8] = b"count/";
const HIGHEST: &[u8] = b"highest";
const LATE: &[u8] = b"late";
const WRITTEN: &[u8] = b"written";

/// The owner of a partition, which reads the partition of the source with the same number.
struct Counter {
    partition: OwnedPartition,
    input: String,
    position: usize,
    windows: Windows,
    watermarks: Watermarks,
    sink: FileSink,
}

impl Counter {
    /// Takes the partition from whoever has it, and goes on from the last commit.
    fn take_over(house: &Statehouse, number: usize, worker: &str, out: &Path) -> Result<Self, Box<dyn Error>> {
        let partition = house.keyed("wordcount").partition(number.try_into()?);
        let partition = partition.acquire_by_force(&ClaimOptions::worker(worker))?;
        let input = format!("sentences-{number}");
        let position = partition.input_position(&input)?.map_or(0, |at| at.position);
        let mut watermarks = Watermarks::new([&input], LATENESS);
        if let Some(highest) = partition.get(HIGHEST)?.and_then(|found| found.value.as_integer()) {
            watermarks.restore(&input, highest);
        }
        println!("{worker} owns partition {number} and reads on at sentence {position}");
        let (windows, sink) = (Windows::tumbling(MINUTE)?, FileSink::open(out)?);
        Ok(Self { partition, input, position: position.try_into()?, windows, watermarks, sink })
    }

    /// Counts the next sentences in one commit; false if there are none.
    fn count(&mut self) -> Result<bool, Box<dyn Error>> {
        let source = SOURCE[self.partition.number() as usize];
        let batch = source.iter().skip(self.position).take(BATCH);
        let after = self.position + batch.len();
        let mut commit = self.partition.commit();
        for (time, sentence) in batch {
            if self.watermarks.observe(&self.input, *time) == Arrival::Late {
                commit = commit.merge(LATE, Merge::Add, 1);
                continue;
            }
            commit = commit.merge(HIGHEST, Merge::Max, *time);
            for window in self.windows.of(*time) {
                for word in sentence.split(' ') {
                    commit = commit.merge(&[COUNTS, &window.key(), word.as_bytes()].concat(), Merge::Add, 1);
                }
            }
        }
        commit.advance(&self.input, after as u64).run()?;
        self.position = after;
        Ok(after < source.len())
    }

    /// Writes the windows that are over to the sink, and removes their counts.
    fn emit_closed(&mut self) -> Result<(), Box<dyn Error>> {
        let Some(watermark) = self.watermarks.watermark() else { return Ok(()) };
        let open = [COUNTS, &self.windows.first_open(watermark).key()].concat();
        let closed = KeysRange::with_prefix(COUNTS).to(&open).limit(1);
        while let Some((key, _)) = self.partition.scan(&closed)?.keys.first() {
            let (window, _) = self.windows.of_key(&key[COUNTS.len()..]).expect("the key of a count");
            let begin = [COUNTS, &window.key()].concat();
            let counts = self.all_counts(&begin)?;
            // Its counts are removed in several commits: after a crash between them, the rest is no batch.
            if self.number(WRITTEN)? < Some(window.start) {
                let line = |(key, count): &(Vec<u8>, i64)| {
                    format!("{} {count}\n", String::from_utf8_lossy(&key[begin.len()..]))
                };
                let lines: String = counts.iter().map(line).collect();
                self.sink.write(&format!("{}.{:04}", self.input, window.start), lines.as_bytes())?;
            }
            for page in counts.chunks(PAGE) {
                let commit = self.partition.commit().merge(WRITTEN, Merge::Max, window.start);
                page.iter().fold(commit, |commit, (key, _)| commit.remove(key)).run()?;
            }
        }
        Ok(())
    }

    /// All counts of a window, however many there are: a part of them would be another batch.
    fn all_counts(&self, begin: &[u8]) -> Result<Counts, Box<dyn Error>> {
        let (mut counts, mut range) = (Vec::new(), KeysRange::with_prefix(begin).limit(PAGE));
        loop {
            let page = self.partition.scan(&range)?;
            let found = page.keys.into_iter().map(|(key, count)| (key, count.value.as_integer().expect("a sum")));
            counts.extend(found);
            match page.next_after {
                Some(last) => range = range.after(&last),
                None => return Ok(counts),
            }
        }
    }

    /// The number that a key of the state holds.
    fn number(&self, key: &[u8]) -> Result<Option<i64>, statehouse::Error> {
        Ok(self.partition.get(key)?.and_then(|found| found.value.as_integer()))
    }

    /// Counts and emits up to the end of the source. Returns how many sentences were late.
    fn work_to_the_end(mut self) -> Result<i64, Box<dyn Error>> {
        while self.count()? {
            self.emit_closed()?;
        }
        self.watermarks.finish(&self.input);
        self.emit_closed()?;
        Ok(self.number(LATE)?.unwrap_or(0))
    }
}

/// What the process does that crashes: two commits, and then it is gone.
fn crash(store: &Path, out: &Path) -> Result<(), Box<dyn Error>> {
    let house = Statehouse::open(store)?;
    let mut ann = Counter::take_over(&house, 0, "ann", out)?;
    ann.count()?;
    ann.count()?;
    std::process::abort();
}

fn main() -> Result<(), Box<dyn Error>> {
    if let [_, store, out] = std::env::args().collect::<Vec<_>>().as_slice() {
        return crash(Path::new(store), Path::new(out));
    }
    let path = std::env::temp_dir().join(format!("statehouse-example-word-count-{}", std::process::id()));
    let (store, out) = (path.join("house"), path.join("out"));

    // Partition 0: its worker crashes after the second commit, without closing anything.
    let crashed = Command::new(std::env::current_exe()?).args([&store, &out]).status()?;
    assert!(!crashed.success(), "it aborts");
    let house = Statehouse::open(&store)?;
    let bob = Counter::take_over(&house, 0, "bob", &out)?;
    assert_eq!(bob.position, 4, "two commits are there");
    assert_eq!(bob.work_to_the_end()?, 1, "one sentence was late");

    // Partition 1: another takes over while the first goes on.
    let mut first = Counter::take_over(&house, 1, "ann", &out)?;
    first.count()?;
    let second = Counter::take_over(&house, 1, "bob", &out)?;
    let refused = first.count().expect_err("it was replaced");
    println!("ann is refused: {refused}");
    assert!(refused.downcast_ref::<statehouse::Error>().is_some_and(|refused| refused.code() == "SH-4002"));
    assert_eq!(second.work_to_the_end()?, 0, "nothing was late");

    let mut counts: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    for file in FileSink::open(&out)?.ids()? {
        let (_, minute) = file.rsplit_once('.').expect("the id of a batch");
        for line in std::fs::read_to_string(out.join(&file))?.lines() {
            let (word, count) = line.split_once(' ').expect("a word and its count");
            *counts.entry(minute.to_owned()).or_default().entry(word.to_owned()).or_default() +=
                count.parse::<u64>()?;
        }
    }
    for (minute, words) in &counts {
        println!("from second {minute}: {words:?}");
    }
    // All but the sentence that came too late, once.
    let expected = [
        ("0000", "be 3, dream 1, is 1, not 1, or 1, question 1, that 1, the 1, to 4"),
        ("0060", "all 1, be 1, my 1, not 1, or 1, remembered 1, sins 1, sleep 1, to 1"),
        ("0120", "more 1, no 1"),
        ("0180", "die 1, sleep 1, to 2"),
    ];
    let shown = |words: &BTreeMap<String, u64>| {
        words.iter().map(|(word, count)| format!("{word} {count}")).collect::<Vec<_>>().join(", ")
    };
    let found: Vec<_> = counts.iter().map(|(minute, words)| (minute.as_str(), shown(words))).collect();
    assert_eq!(found, expected.map(|(minute, words)| (minute, words.to_owned())));
    house.close()?;
    std::fs::remove_dir_all(&path)?;
    Ok(())
}
