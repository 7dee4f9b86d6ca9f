//! Owners of partitions that go on after somebody else has acquired them: every kind of write is refused, and changes nothing.
//!
//! `sim keyed-zombies --attempts N`: half of them in the library, half over HTTP. In each attempt a partition changes hands: by force,
//! after a release, or after the end of a lease. Whoever had it before tries one kind of write; the change feed and the owner stay
//! as they are, and the new owner's count goes on without a gap. In the library some partitions change hands while commits are on
//! their way. Would see broken: O1, and a write that forgets its fence.
//! The canary is the same with the kernel's fences switched off: some writes must then come through, although handles refuse most
//! of them.

mod in_library;
mod over_http;

use contract::guards::OWNER_RECORD;
use statehouse::keyed::Partition;
use statehouse::records::{Filter, Record, ScanOptions};
use statehouse::{Followed, Group, Statehouse};
use testkit::arguments::Arguments;
use testkit::report::Report;

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
    /// The version of the owner's record: a claim, an extension and a release raise it.
    owner: u64,
}

impl<'house> Before<'house> {
    fn look(house: &'house Statehouse, partition: &Partition) -> Self {
        let group = partition.group();
        let commit = house.changes().newest().expect("a commit");
        let owner = owner_record(&group).version;
        Self { house, group, commit, owner }
    }

    /// Compares, after it was refused.
    fn compare(&self, what: &str, code: &str, tally: &mut Tally) {
        tally.tried += 1;
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

/// Runs both, then both without fences.
pub(crate) fn run(arguments: &Arguments) -> Report {
    let attempts = arguments.number("attempts", 10_000);
    let mut report = Report::new("keyed");
    let tries = [("library", in_library::run as fn(u64) -> Tally), ("http", over_http::run)];
    for (name, run) in tries {
        let Tally { tried, kinds, wrong } = run(attempts / 2);
        wrong.iter().take(20).for_each(|wrong| println!("keyed-zombies: {name}: {wrong}"));
        let figure = format!("{tried}-writes-of-{kinds}-kinds-{}-wrong", wrong.len());
        let ok = wrong.is_empty() && tried >= attempts / 2 && tried >= kinds as u64;
        report.add(&format!("zombies.{name}"), figure, "each is refused with SH-4002, and changes nothing", ok);
    }
    kernel::canary::skip_fences(true);
    let seen = tries.map(|(_, run)| run(100).wrong.len());
    kernel::canary::skip_fences(false);
    let figure = format!("{}-in-library-{}-over-http", seen[0], seen[1]);
    report.add("zombies.canary", figure, "writes that come through with fences off", seen.iter().all(|seen| *seen > 0));
    report
}
