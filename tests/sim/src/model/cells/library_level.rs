//! One stretch of random calls of the library in a directory with a journal, against the same reference.
//!
//! One thread drives it with a clock that it sets by hand. Commit numbers are known beforehand; the time of a write is
//! learned from its cell and checked against the clock.

mod clock;
mod reads;
mod transactions;
mod upkeep;

use std::path::PathBuf;
use std::sync::Arc;

use contract::catalogue::MAIN_BRANCH;
use contract::{CellRejection, Error, Expected, HistoryPage, Limits, Rejection, Swapped};
use kernel::{Buckets, OpOutcome};
use statehouse::{Cells, Options, Space, Statehouse};
use tempfile::TempDir;
use testkit::random::Random;

use super::command::{Op, Transaction};
use super::generator;
use super::names::GROUPS;
use crate::directories::fast_directory;
use crate::model::compare::same;
use crate::model::instance::text;
use crate::model::reference::{Cell, Id, Reference};
use crate::model::tally::{Tally, add};
use clock::ManualClock;

/// How far stamps may run ahead of a clock that stands still: by one for every entry.
const STAMP_AHEAD_US_MAX: u64 = 4_000;

/// Runs one stretch on the library, in a directory.
pub(crate) fn run(seed: u64, operations: u64, tally: &Tally) -> Result<(), String> {
    let mut random = Random::new(seed);
    let clock = Arc::new(ManualClock::new(1_700_000_000_000_000));
    let parent = fast_directory().map_err(text)?;
    let path = parent.path().join("first");
    let options = upkeep::options(&mut random, &clock);
    let open = Some(options.open(&path).map_err(text)?);
    let reference = Reference::new(Buckets::default(), Limits::default());
    let mut stretch = Stretch { random, tally, clock, reference, options, path, directories: 1, open, parent };
    let mut done = 0;
    while done < operations {
        let operations = stretch.step().map_err(|what| stretch.explain(&what))?;
        add(&tally.operations, operations);
        done += operations;
    }
    stretch.finish().map_err(|what| stretch.explain(&what))
}

struct Stretch<'tally> {
    random: Random,
    tally: &'tally Tally,
    clock: Arc<ManualClock>,
    reference: Reference,
    options: Options,
    path: PathBuf,
    directories: u32,
    /// None only while it is being reopened.
    open: Option<Statehouse>,
    /// Last, so that it goes after what is open in it.
    parent: TempDir,
}

/// A branch, and a group of it or none.
#[derive(Clone, Copy, Debug)]
struct Place {
    space: u32,
    branch: u32,
    group: Option<&'static str>,
}

impl Place {
    fn cell(self, name: &'static str) -> Id {
        Id::new(self.space, self.branch, self.group, name)
    }
}

impl Stretch<'_> {
    fn house(&self) -> &Statehouse {
        self.open.as_ref().expect("open but while it is reopened")
    }

    fn explain(&self, what: &str) -> String {
        let status = self.open.as_ref().map(Statehouse::status);
        let commit = self.reference.commit;
        format!("{what}\n  at commit {commit} in the library, {status:?}")
    }

    /// Does something, and gives how many operations that were.
    fn step(&mut self) -> Result<u64, String> {
        if self.random.one_in(8) {
            self.clock.advance(&mut self.random);
        }
        match self.random.below(1_000) {
            0..=549 => {
                let place = self.place();
                self.write(place).map(|()| 1)
            }
            550..=699 => self.read(),
            700..=879 => self.transaction(),
            880..=919 => self.burst(),
            920..=959 => self.change_catalogue().map(|()| 1),
            960..=969 => self.refused_names().map(|()| 1),
            970..=971 => self.walk().map(|()| 1),
            972..=974 => self.compare_everything(),
            975..=979 => self.reopen().map(|()| 1),
            980 => self.change_over().map(|()| 1),
            981..=990 => self.maintain().map(|()| 1),
            _ => self.check_status().map(|()| 1),
        }
    }

    fn place(&mut self) -> Place {
        let (space, branch) = *self.random.choose(&self.reference.live_places());
        let group = (!self.random.one_in(3)).then(|| *self.random.choose(&GROUPS));
        Place { space, branch, group }
    }

    fn space(&self, place: Place) -> Space {
        let space = &self.reference.spaces[&place.space];
        self.house().space(&space.name).branch(&space.branches[&place.branch].name)
    }

    fn cells(&self, place: Place) -> Cells {
        let space = self.space(place);
        place.group.map_or_else(|| space.cells(), |group| space.group(group).cells())
    }

    fn draw_op(&mut self, place: Place) -> Op {
        let random = &mut self.random;
        let name = match place.group {
            Some(group) if random.one_in(8) => group,
            _ => generator::name(random),
        };
        let current = self.reference.cells.get(&place.cell(name)).and_then(Cell::live_version);
        match random.below(10) {
            0..=1 => Op::Init(name, generator::value(random)),
            2..=5 => Op::Set(name, generator::value(random)),
            6..=7 => {
                let expected = if random.one_in(5) { Some(random.below(6)) } else { current };
                Op::Cas(name, expected, generator::value(random))
            }
            _ => Op::Delete(name),
        }
    }

    /// One write by itself.
    fn write(&mut self, place: Place) -> Result<(), String> {
        let op = self.draw_op(place);
        let cells = self.cells(place);
        let answered = answer(&cells, &op);
        let transaction = Transaction {
            space: place.space,
            branch: place.branch,
            group: place.group,
            guards: Vec::new(),
            ops: vec![op.clone()],
        };
        let expected = match &answered {
            Err(Error::Rejected(Rejection::LimitExceeded { .. })) => {
                self.reference.transact_cells(&transaction.as_kernel())
            }
            Ok((OpOutcome::Written(_), commit)) => {
                self.learn_stamp(place, op.name(), *commit)?;
                self.reference.transact_cells(&transaction.as_kernel())
            }
            _ => {
                self.reference.commit += 1;
                self.reference.transact_cells(&transaction.as_kernel())
            }
        };
        compare_answer(&format!("{op:?} in {place:?}"), answered, expected)
    }

    /// Takes commit number and time of the newest write of a cell into the reference, if they can be right.
    fn learn_stamp(&mut self, place: Place, name: &'static str, commit: Option<u64>) -> Result<(), String> {
        let page = HistoryPage { before: None, limit: 1 };
        let history = self.cells(place).history(name, page).map_err(text)?;
        let newest = history.versions.first().ok_or("a cell that was written has no history")?;
        let expected = self.reference.commit + 1;
        let what = |what: &str| format!("the commit number {what} of {name:?} in {place:?}");
        same(|| what("in the history"), &newest.commit, &expected)?;
        if let Some(commit) = commit {
            same(|| what("in the answer"), &commit, &expected)?;
        }
        self.learn(newest.commit, newest.updated_at)
    }

    fn learn(&mut self, commit: u64, at_us: u64) -> Result<(), String> {
        let earliest = self.clock.now_us().max(self.reference.wall_us);
        if !(earliest..=earliest + STAMP_AHEAD_US_MAX).contains(&at_us) {
            return Err(format!("commit {commit} is stamped {at_us}, not at or just after {earliest}"));
        }
        self.reference.commit = commit;
        self.reference.wall_us = at_us;
        Ok(())
    }

    /// Several writes of different cells that are under way at once.
    fn burst(&mut self) -> Result<u64, String> {
        let mut sets: Vec<(Place, &'static str, contract::Value)> = Vec::new();
        for _ in 0..2 + self.random.below(7) {
            let (place, name) = (self.place(), generator::name(&mut self.random));
            let is_new = sets.iter().all(|(other, other_name, _)| other.cell(other_name) != place.cell(name));
            if is_new {
                let value = contract::Value::Integer(self.random.next().cast_signed());
                sets.push((place, name, value));
            }
        }
        let pending: Vec<_> =
            sets.iter().map(|(place, name, value)| self.cells(*place).set_later(name, value.clone())).collect();
        let answers: Vec<_> = pending.into_iter().map(statehouse::Pending::wait).collect();
        for ((place, name, value), answer) in sets.iter().zip(answers) {
            let written = answer.map_err(text)?;
            self.learn_stamp(*place, name, Some(written.commit))?;
            let transaction = Transaction {
                space: place.space,
                branch: place.branch,
                group: place.group,
                guards: Vec::new(),
                ops: vec![Op::Set(name, value.clone())],
            };
            let expected = self.reference.transact_cells(&transaction.as_kernel());
            let answered = Ok((OpOutcome::Written(written.version), Some(written.commit)));
            compare_answer(&format!("a pending set of {name:?} in {place:?}"), answered, expected)?;
        }
        Ok(sets.len() as u64)
    }

    /// Names that are not allowed are refused without a trace.
    fn refused_names(&mut self) -> Result<(), String> {
        let long = "x".repeat(1_025);
        let bad = *self.random.choose(&["", "a\0b", "_strata", "_statehouse/x", &long]);
        let cells = self.house().cells();
        let group = self.house().group(bad).cells();
        let refusals = [
            cells.set(bad, 1).map(drop),
            cells.get(bad).map(drop),
            group.delete("a").map(drop),
            self.house().group(bad).begin().map(drop),
            self.house().create_space(bad).map(drop),
            self.house().space(MAIN_BRANCH).cells().get("a").map(drop),
        ];
        let codes = refusals.map(|refusal| refusal.map_or_else(|error| error.code(), |()| "none"));
        let name = if bad.len() > 1_024 { "SH-1002" } else { "SH-1001" };
        same(|| format!("refusals of {bad:?}"), &codes, &[name, name, name, name, name, "SH-1005"])?;
        self.check_status()
    }

    fn check_status(&self) -> Result<(), String> {
        let status = self.house().status().map_err(text)?;
        same(|| "the status's commit number".into(), &status.commit, &self.reference.commit)
    }

    fn finish(&mut self) -> Result<(), String> {
        self.walk()?;
        self.compare_everything()?;
        self.house().verify_journal().map_err(text)?;
        self.house().close().map_err(text)
    }
}

/// What an operation by itself did, and its commit number if it tells.
type Answered = Result<(OpOutcome, Option<u64>), Error>;

fn answer(cells: &Cells, op: &Op) -> Answered {
    Ok(match op {
        Op::Init(name, value) => {
            let initialised = cells.init(name, value.clone())?;
            match initialised.created {
                true => (OpOutcome::Written(initialised.version), None),
                false => (OpOutcome::Existing(initialised.version), None),
            }
        }
        Op::Set(name, value) => {
            let written = cells.set(name, value.clone())?;
            (OpOutcome::Written(written.version), Some(written.commit))
        }
        Op::Cas(name, expected, value) => {
            let expected = expected.map_or(Expected::Absent, Expected::Version);
            match cells.cas(name, expected, value.clone())? {
                Swapped::Written(written) => (OpOutcome::Written(written.version), Some(written.commit)),
                Swapped::Conflict { current } => {
                    return Err(Rejection::Cell(CellRejection::Conflict { cell: (*name).to_owned(), current }).into());
                }
            }
        }
        Op::Delete(name) => match cells.delete(name)?.version {
            Some(version) => (OpOutcome::Written(version), None),
            None => (OpOutcome::Nothing, None),
        },
    })
}

fn compare_answer(
    what: &str,
    answered: Answered,
    expected: Result<Vec<OpOutcome>, Vec<Rejection>>,
) -> Result<(), String> {
    let as_expected = match (&answered, &expected) {
        (Ok((outcome, _)), Ok(outcomes)) => outcomes.as_slice() == std::slice::from_ref(outcome),
        (Err(Error::Rejected(rejection)), Err(any_of)) => any_of.contains(rejection),
        _ => false,
    };
    if as_expected {
        return Ok(());
    }
    Err(format!("{what}\n  answered {answered:?}\n  expected {expected:?}"))
}
