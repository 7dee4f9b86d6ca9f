//! Draws commands: mostly ones that do something, sometimes ones that must be refused.
//!
//! Never: looks at anything but its random numbers and the reference, so a seed gives the same commands again.

use contract::{Limits, Retention, Value};
use kernel::trim::TrimStep;
use kernel::{Body, CatalogueChange, CellGuard, Guard};
use testkit::random::Random;

use super::command::{Op, Transaction};
use super::names::{BRANCHES, GROUPS, HOT, NAMES, SPACES};
use crate::model::drawn::{Drawn, Sender};
use crate::model::reference::{Cell, Id, Reference};

const SECOND_US: u64 = 1_000_000;
const DAY_US: u64 = 24 * 60 * 60 * SECOND_US;

/// The next command. `due` are steps of the walk that were found and not yet proposed.
pub(crate) fn command(random: &mut Random, reference: &Reference, due: &mut Vec<TrimStep>) -> Drawn {
    let mut drawn = if !due.is_empty() && random.one_in(3) {
        Drawn::plain(&Body::Trim(trim(random, std::mem::take(due))))
    } else if random.one_in(40) {
        Drawn::plain(&Body::Catalogue(change(random, reference)))
    } else if random.one_in(2_000) {
        Drawn::plain(&Body::Level(kernel::LEVEL))
    } else {
        Drawn::plain(&Body::Transact(transaction(random, reference).as_kernel()))
    };
    drawn.revision = match random.below(300) {
        0 => reference.revision + 1 + random.below(3),
        1 => 0,
        _ => reference.revision,
    };
    // There are no sessions.
    drawn.sender = random.one_in(500).then(|| Sender { session: random.below(3), request: 1, lowest_pending: 1 });
    drawn
}

/// How far an entry's wall time is from the one before: mostly ahead by little, sometimes by days, at times behind.
pub(crate) fn wall_us(random: &mut Random, before_us: u64) -> u64 {
    match random.below(20) {
        0 => before_us.saturating_sub(random.below(SECOND_US)),
        1 => before_us,
        2 => before_us + random.below(3 * DAY_US),
        3..=5 => before_us + random.below(3600 * SECOND_US),
        6..=9 => before_us + random.below(10 * SECOND_US),
        _ => before_us + random.below(2_000),
    }
}

/// A name; some are drawn far more often than others.
pub(crate) fn name(random: &mut Random) -> &'static str {
    let names: &[&str] = if random.one_in(2) { &HOT } else { &NAMES };
    names[random.index(names.len())]
}

/// A value of any kind, small as a rule.
pub(crate) fn value(random: &mut Random) -> Value {
    let length = if random.one_in(200) { random.index(3_000) } else { random.index(40) };
    match random.below(8) {
        0 => Value::Null,
        1 => Value::Boolean(random.one_in(2)),
        2 => Value::Integer(*random.choose(&[i64::MIN, -1, 0, 1, i64::MAX])),
        3 => Value::Integer(random.next().cast_signed()),
        4 => Value::Bytes(random.bytes(length)),
        5 => {
            let json = format!("{{\"n\": [{}, null, \"{}\"]}}", random.next(), "é".repeat(length / 2));
            Value::json(json).expect("this is JSON")
        }
        _ => Value::Text((0..length).map(|_| *random.choose(&['a', 'z', ' ', 'é', '\0', '7'])).collect()),
    }
}

/// How much history a space keeps: all, none, a few versions, a short time.
pub(crate) fn retention(random: &mut Random) -> Retention {
    let age_us_max = match random.below(6) {
        0 => 0,
        1 => 1_000,
        2 => 5 * SECOND_US,
        3 => DAY_US,
        _ => u64::MAX,
    };
    let versions_max = match random.below(6) {
        0 => 1,
        1 => 2,
        2 => 3 + random.below(20),
        3 => 100,
        _ => u64::MAX,
    };
    match random.below(8) {
        0 => Retention::ALL,
        1 => Retention::NONE,
        2 => Retention::default(),
        _ => Retention { versions_max, age_us_max },
    }
}

/// Bounds that get in the way now and then; mostly the usual ones, since refusals write nothing.
fn limits(random: &mut Random) -> Limits {
    let mut limits = Limits::default();
    limits.write_trim_rows_max = *random.choose(&[0, 1, 4, 4, 30]);
    limits.spaces_max = *random.choose(&[1, 3, 10_000]);
    limits.branches_per_space_max = *random.choose(&[1, 3, 1_000]);
    limits.changes_commits_max = *random.choose(&[0, 20, 1_000, 1_000_000]);
    limits.changes_age_us_max = *random.choose(&[1_000, DAY_US, u64::MAX]);
    match random.below(10) {
        0 => limits.value_bytes_max = 30,
        1 => limits.transaction_ops_max = 3,
        2 => limits.transaction_bytes_max = 150,
        _ => {}
    }
    limits
}

/// Steps of the walk, at times not all of them or the other way round: each one looks for itself what is left to do.
fn trim(random: &mut Random, mut steps: Vec<TrimStep>) -> Vec<TrimStep> {
    if random.one_in(3) {
        steps.retain(|_| !random.one_in(4));
    }
    if random.one_in(4) {
        steps.reverse();
    }
    steps
}

fn change(random: &mut Random, reference: &Reference) -> CatalogueChange {
    let (space, branch) = place(random, reference);
    match random.below(12) {
        0 => CatalogueChange::CreateSpace { name: (*random.choose(&SPACES)).to_owned() },
        1..=4 => CatalogueChange::CreateBranch { space, name: (*random.choose(&BRANCHES)).to_owned() },
        5..=7 => CatalogueChange::DeleteBranch { space, branch },
        8..=9 => CatalogueChange::SetRetention { space, retention: retention(random) },
        _ => CatalogueChange::SetLimits(limits(random)),
    }
}

/// A branch: as a rule one that exists, else one that was deleted, is another space's or never was.
fn place(random: &mut Random, reference: &Reference) -> (u32, u32) {
    let live = reference.live_places();
    let (space, branch) = *random.choose(&live);
    match random.below(300) {
        0 => (99, branch),
        1 => (space, 9_999),
        2 => (space, u32::try_from(1 + random.below(12)).expect("small")),
        3 => (random.choose(&live).0, branch),
        _ => (space, branch),
    }
}

fn transaction(random: &mut Random, reference: &Reference) -> Transaction {
    let (space, branch) = place(random, reference);
    // Without a group a transaction keeps to one cell.
    let group = (!random.one_in(4)).then(|| *random.choose(&GROUPS));
    let only = name(random);
    let pick = |random: &mut Random| match group {
        None => only,
        Some(group) if random.one_in(8) => group,
        Some(_) => name(random),
    };
    let cell_of = |name| reference.cells.get(&Id::new(space, branch, group, name));
    let mut guards = Vec::new();
    if random.one_in(3) {
        for _ in 0..=random.below(3) {
            let name = pick(random);
            guards.push(match group {
                Some(_) if random.one_in(3) => range_guard(random, reference),
                _ => guard(random, reference, name, cell_of(name)),
            });
        }
    }
    let many = if random.one_in(30) { 12 } else { 3 };
    let ops = (0..random.below(many) + u64::from(guards.is_empty())).map(|_| {
        let name = pick(random);
        op(random, name, cell_of(name))
    });
    let ops = ops.collect();
    Transaction { space, branch, group, guards, ops }
}

fn op(random: &mut Random, name: &'static str, cell: Option<&Cell>) -> Op {
    match random.below(20) {
        0..=3 => Op::Init(name, value(random)),
        4..=10 => Op::Set(name, value(random)),
        11..=16 => {
            let current = cell.and_then(Cell::live_version);
            let expected = match random.below(8) {
                0 => None,
                1 => Some(cell.map_or(0, Cell::newest)),
                2 => Some(current.map_or(1, |version| version + 1)),
                _ => current,
            };
            Op::Cas(name, expected, value(random))
        }
        _ => Op::Delete(name),
    }
}

fn guard(random: &mut Random, reference: &Reference, name: &'static str, cell: Option<&Cell>) -> Guard<'static> {
    let (live, newest) = (cell.and_then(Cell::live_version), cell.map_or(0, Cell::newest));
    let near = |random: &mut Random, version: u64| (version + random.below(3)).saturating_sub(1);
    if random.one_in(2) {
        // One that holds, unless an earlier command of the same entry changes that.
        return match (random.below(4), live) {
            (0, None) => Guard::Cell(CellGuard::Absent(name)),
            (0, Some(_)) => Guard::Cell(CellGuard::Exists(name)),
            (1, Some(version)) => Guard::Cell(CellGuard::VersionIs(name, version)),
            (1 | 2, _) => Guard::Cell(CellGuard::VersionBelow(name, newest + 1)),
            _ => Guard::Cell(CellGuard::UnchangedSince(name, reference.commit)),
        };
    }
    match random.below(5) {
        0 => Guard::Cell(CellGuard::Absent(name)),
        1 => Guard::Cell(CellGuard::Exists(name)),
        2 => Guard::Cell(CellGuard::VersionIs(name, near(random, newest))),
        3 => Guard::Cell(CellGuard::VersionBelow(name, near(random, newest))),
        _ => {
            let written = cell.and_then(|cell| cell.writes.last()).map_or(0, |write| write.commit);
            Guard::Cell(CellGuard::UnchangedSince(name, near(random, written)))
        }
    }
}

/// A range that may be empty, the wrong way round, or end in the middle of a name.
fn range_guard(random: &mut Random, reference: &Reference) -> Guard<'static> {
    const ENDS: [&str; 8] = ["", "a\0", "ac", "g\0", "orders\0", "orders0", "q", "\u{10ffff}"];
    let end = |random: &mut Random| match random.one_in(2) {
        true => *random.choose(&ENDS),
        false => *random.choose(&NAMES),
    };
    let (mut from, mut to) = (end(random), end(random));
    if from > to && !random.one_in(10) {
        std::mem::swap(&mut from, &mut to);
    }
    let to = (!random.one_in(4)).then_some(to);
    let since = match random.below(3) {
        0 => reference.commit,
        1 => reference.commit.saturating_sub(random.below(20)),
        _ => reference.commit.saturating_sub(random.below(400)),
    };
    Guard::Cell(CellGuard::RangeUnchangedSince(from, to, since))
}
