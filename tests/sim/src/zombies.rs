//! Owners of partitions that go on after somebody else has acquired them: every kind of write is refused, and changes nothing.
//!
//! `sim keyed-zombies --attempts N`: half of them in the library, half over HTTP. In each attempt a partition changes hands: by force,
//! after a release, or after the end of a lease. Whoever had it before tries one kind of write; the change feed and the owner stay
//! as they are, and the new owner's count goes on without a gap. In the library some partitions change hands while commits are on
//! their way. Would see broken: O1, and a write that forgets its fence.
//! A quarter of the attempts each: in the library and over HTTP, refused by the handle, which looks at who owns the partition; and
//! the same with that look switched off, so that each write comes to the store and is refused there.
//! The canary is every kind of write once more, each in a partition of its own, with nothing that refuses it: each must come
//! through. An extension and a release name their attempt themselves, so the store still refuses them.

mod checkpoints;
mod in_library;
mod over_http;

use contract::guards::OWNER_RECORD;
use statehouse::keyed::Partition;
use statehouse::records::{Filter, Record, ScanOptions};
use statehouse::{Followed, Group, Statehouse};
use testkit::arguments::Arguments;
use testkit::report::Report;

use crate::fences;

/// Things that are there, so that deleting them would be seen.
const CELL: &str = "cell";
const RECORD: &str = "record";
const RUN: &str = "run";
/// Partitions that change hands in turn.
const PARTITIONS: u32 = 8;

/// What was tried, and what came out otherwise than it must.
#[derive(Default)]
struct Tally {
    tried: u64,
    kinds: usize,
    /// Writes that have come to the store: its journal has become longer.
    in_store: u64,
    wrong: Vec<String>,
}

/// How a partition changes hands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Force,
    Release,
    EndOfLease,
}

impl Change {
    /// That of an attempt. Leases are waited for, so few of them end.
    fn of(attempt: u64) -> Self {
        match attempt % 20 {
            0 => Change::EndOfLease,
            odd if odd % 2 == 1 => Change::Release,
            _ => Change::Force,
        }
    }
}

/// A group before somebody writes who must not.
struct Before<'house> {
    house: &'house Statehouse,
    group: Group,
    commit: u64,
    index: u64,
    /// The version of the owner's record: a claim, an extension and a release raise it.
    owner: u64,
}

impl<'house> Before<'house> {
    fn look(house: &'house Statehouse, partition: &Partition) -> Self {
        let group = partition.group();
        let commit = house.changes().newest().expect("a commit");
        let owner = owner_record(&group).version;
        Self { house, group, commit, index: index(house), owner }
    }

    /// Compares, after it was refused.
    fn compare(&self, what: &str, code: &str, tally: &mut Tally) {
        tally.tried += 1;
        tally.in_store += u64::from(index(self.house) > self.index);
        if code != "SH-4002" {
            tally.wrong.push(format!("{what}: {code}, not SH-4002"));
        }
        match self.house.changes().read(self.commit, 100).expect("the feed") {
            Followed::Page(page) if page.changes.is_empty() => {}
            other => tally.wrong.push(format!("{what} has changed something: {other:?}")),
        }
        if owner_record(&self.group).version != self.owner {
            tally.wrong.push(format!("{what} has changed the owner"));
        }
    }
}

/// The record of who owns a group, which the store keeps there.
fn owner_record(group: &Group) -> Record {
    let page = group.records().scan(OWNER_RECORD, &Filter::all(), &ScanOptions::default());
    let (_, record) = page.expect("a scan").records.swap_remove(0);
    record
}

/// How long the journal is.
fn index(house: &Statehouse) -> u64 {
    house.status().expect("a status").applied_index
}

/// Writes that name their attempt themselves.
const NAME_THEIR_ATTEMPT: [&str; 2] = ["an extension", "a release"];

/// What becomes of each kind of write when nothing refuses it.
#[derive(Default)]
struct Unfenced {
    through: usize,
    wrong: Vec<String>,
}

impl Unfenced {
    fn note(&mut self, what: &str, name: &str, code: &str) {
        let expected = if NAME_THEIR_ATTEMPT.contains(&name) { "SH-4002" } else { "done" };
        self.through += usize::from(code == "done");
        if code != expected {
            self.wrong.push(format!("{what} without fences: {code}, not {expected}"));
        }
    }
}

/// Runs both, refused by the handle and by the store, then both without fences.
pub(crate) fn run(arguments: &Arguments) -> Report {
    let attempts = arguments.number("attempts", 10_000).div_ceil(4);
    let mut report = Report::new("keyed");
    let tries = [("library", in_library::run as fn(u64) -> Tally), ("http", over_http::run)];
    for (name, run) in tries {
        add_line(&mut report, name, attempts, run(attempts), false);
        let in_store = fences::in_store_alone(|| run(attempts));
        add_line(&mut report, &format!("{name}-in-store"), attempts, in_store, true);
    }
    let unfenced = fences::skipped(|| [in_library::without_fences(), over_http::without_fences()]);
    unfenced.iter().flat_map(|unfenced| &unfenced.wrong).for_each(|wrong| println!("keyed-zombies: {wrong}"));
    let [library, http] = &unfenced;
    let figure = format!("{}-kinds-in-library-{}-over-http", library.through, http.through);
    let ok = unfenced.iter().all(|unfenced| unfenced.through > 0 && unfenced.wrong.is_empty());
    report.add("zombies.canary", figure, "every kind of write comes through with fences off", ok);
    report
}

fn add_line(report: &mut Report, name: &str, attempts: u64, found: Tally, all_in_store: bool) {
    let Tally { tried, kinds, in_store, wrong } = found;
    wrong.iter().take(20).for_each(|wrong| println!("keyed-zombies: {name}: {wrong}"));
    let figure = format!("{tried}-writes-of-{kinds}-kinds-{in_store}-in-store-{}-wrong", wrong.len());
    let is_enough = tried >= attempts && tried >= kinds as u64;
    // The end of a checkpoint is refused in the view that its rows are read from.
    let ok = wrong.is_empty() && is_enough && (!all_in_store || in_store + tried / kinds as u64 + 1 >= tried);
    let by = if all_in_store { "the store refuses each" } else { "each is refused" };
    report.add(&format!("zombies.{name}"), figure, &format!("{by} with SH-4002, and it changes nothing"), ok);
}
