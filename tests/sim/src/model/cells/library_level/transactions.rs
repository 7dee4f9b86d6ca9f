//! Interactive transactions: every call compared with what the view held plus own writes, and the commit with what
//! others have changed since.

mod open;

use std::collections::BTreeSet;

use contract::limits::TRANSACTION_AGE_MAX;
use contract::{CellRejection, Deleted, Error, Initialised, ListPage, Rejection, Swapped, Value, Written};
use kernel::{CellAct, OpOutcome, ValueRef};
use statehouse::Isolation;

use super::clock::STEP_US;
use super::{Place, Stretch};
use crate::model::cells::command::{self, Op};
use crate::model::cells::compare::any_name;
use crate::model::cells::generator;
use crate::model::cells::names::{PREFIXES, known};
use crate::model::compare::same;
use crate::model::instance::text;
use crate::model::reference::{Cell, Reference};
use crate::model::tally::add;
use open::{Open, RangeRead, Seen};

impl Stretch<'_> {
    /// A whole transaction, with writes of others in between. Gives how many operations that were.
    pub(super) fn transaction(&mut self) -> Result<u64, String> {
        let place = self.place();
        let mut open = self.begin(place)?;
        let calls = 1 + self.random.below(8);
        let mut others = 0;
        for _ in 0..calls {
            if self.random.one_in(3) {
                let place = if !self.random.one_in(4) { place } else { self.place() };
                self.write(place)?;
                others += 1;
            }
            let what = self.call(&mut open);
            what.map_err(|what| format!("{what}\n  in a transaction on {place:?} with {:?}", open.own))?;
        }
        add(&self.tally.transactions, 1);
        match self.random.below(30) {
            0..=2 => open.transaction.rollback(),
            3 => self.grow_too_old(open)?,
            _ => self.commit(open)?,
        }
        Ok(calls + others + 1)
    }

    fn begin(&mut self, place: Place) -> Result<Open, String> {
        let space = self.space(place);
        let only = generator::name(&mut self.random);
        let (isolation, transaction) = match place.group {
            None => (Isolation::Serialisable, space.cells().begin()),
            Some(group) => {
                let snapshot = self.random.one_in(4);
                let isolation = if snapshot { Isolation::Snapshot } else { Isolation::Serialisable };
                (isolation, space.group(group).begin_with(isolation))
            }
        };
        let seen = |cell: &Cell| Seen { counter: cell.newest(), versioned: cell.versioned() };
        let members = self.reference.members(place.space, place.branch, place.group);
        Ok(Open {
            transaction: transaction.map_err(text)?,
            isolation,
            place,
            only,
            commit: self.reference.commit,
            cells: members.into_iter().map(|(name, cell)| (known(name), seen(cell))).collect(),
            own: Vec::new(),
            names_read: BTreeSet::new(),
            ranges_read: Vec::new(),
        })
    }

    fn call(&mut self, open: &mut Open) -> Result<(), String> {
        if self.random.one_in(5) {
            return self.call_list(open);
        }
        let name = match open.place.group {
            None => open.only,
            Some(group) if self.random.one_in(8) => group,
            Some(_) => generator::name(&mut self.random),
        };
        self.refuse_second_group(open)?;
        if self.random.one_in(3) {
            let found = open.transaction.get_versioned(name).map_err(text)?;
            return same(|| format!("get_versioned {name:?}"), &found, &open.read(name).versioned);
        }
        let value = generator::value(&mut self.random);
        self.call_write(open, name, value)
    }

    fn call_write(&mut self, open: &mut Open, name: &'static str, value: Value) -> Result<(), String> {
        let code = |error: Error| error.code();
        // What would be refused is refused at once, and the transaction goes on without it.
        let bytes = kernel::Op::Cell(name, CellAct::Set(ValueRef::from(&value))).value_bytes();
        let allowed = if bytes > self.reference.limits.value_bytes_max as usize { Err("SH-1002") } else { Ok(()) };
        match self.random.below(10) {
            0..=1 => {
                let found = open.transaction.init(name, value.clone()).map_err(code);
                let expected = match open.read(name).versioned {
                    Some(there) => Ok(Initialised { version: there.version, created: false }),
                    None => allowed.map(|()| {
                        let version = open.write(Op::Init(name, value));
                        Initialised { version, created: true }
                    }),
                };
                same(|| format!("init {name:?}"), &found, &expected)
            }
            2..=4 => {
                let found = open.transaction.set(name, value.clone()).map_err(code);
                let expected = allowed.map(|()| _ = open.write(Op::Set(name, value)));
                same(|| format!("set {name:?}"), &found, &expected)
            }
            5 => {
                let found = open.transaction.set_versioned(name, value.clone()).map_err(code);
                open.read(name);
                let expected = allowed.map(|()| open.write(Op::Set(name, value)));
                same(|| format!("set_versioned {name:?}"), &found, &expected)
            }
            6..=7 => {
                let current = open.read(name).versioned.map(|there| there.version);
                let wrong = self.random.one_in(3).then(|| self.random.below(5));
                let expected = if self.random.one_in(4) { wrong } else { current };
                let given = expected.map_or(contract::Expected::Absent, contract::Expected::Version);
                let found = open.transaction.cas(name, given, value.clone()).map_err(code);
                let should_be = match expected == current {
                    true => allowed.map(|()| {
                        let version = open.write(Op::Cas(name, expected, value));
                        Swapped::Written(Written { version, commit: 0 })
                    }),
                    false => Ok(Swapped::Conflict { current }),
                };
                same(|| format!("cas {name:?} {expected:?}"), &found, &should_be)
            }
            _ => {
                let found = open.transaction.delete(name).map_err(text)?;
                let exists = open.read(name).versioned.is_some();
                let version = exists.then(|| open.write(Op::Delete(name)));
                same(|| format!("delete {name:?}"), &found, &Deleted { version })
            }
        }
    }

    fn call_list(&mut self, open: &mut Open) -> Result<(), String> {
        let prefix = *self.random.choose(&PREFIXES);
        let after = self.random.one_in(4).then(|| any_name(&mut self.random));
        let page = ListPage { after: after.clone(), limit: *self.random.choose(&[1, 3, 100]) };
        let found = open.transaction.list(prefix, page.clone());
        if open.place.group.is_none() {
            let code = found.map_err(|error| error.code());
            return same(|| "a list without a group".into(), &code, &Err("SH-1012"));
        }
        let expected = open.list(prefix, &page);
        let upto = expected.next_after.as_ref().map(|upto| upto.name.clone());
        let from = after.map(|after| (after.name.clone(), open.named(&after.name) > after));
        open.ranges_read.push(RangeRead { prefix, from, upto });
        same(|| format!("list {prefix:?} {page:?}"), &found.map_err(text)?, &expected)
    }

    /// Without a group, a second name is another group.
    fn refuse_second_group(&mut self, open: &mut Open) -> Result<(), String> {
        let touched = !open.names_read.is_empty() || !open.own.is_empty();
        if open.place.group.is_some() || !touched || !self.random.one_in(4) {
            return Ok(());
        }
        let other = if open.only == "a" { "ab" } else { "a" };
        let refused = open.transaction.get(other).map_err(|error| error.code());
        same(|| "a second group in a transaction".into(), &refused, &Err("SH-1004"))
    }

    /// A transaction that was open too long answers so, and changes nothing.
    fn grow_too_old(&mut self, mut open: Open) -> Result<(), String> {
        let max_us = u64::try_from(TRANSACTION_AGE_MAX.as_micros()).expect("a minute");
        self.clock.pass(max_us / STEP_US * STEP_US + STEP_US);
        let late = open.transaction.get(open.only).map_err(|error| error.code());
        same(|| "a read in a transaction that is too old".into(), &late, &Err("SH-1011"))?;
        let late = open.transaction.commit().map_err(|error| error.code());
        same(|| "the commit of a transaction that is too old".into(), &late.map(|c| c.commit), &Err("SH-1011"))
    }

    fn commit(&mut self, open: Open) -> Result<(), String> {
        let Open { transaction, isolation, place, commit, own, names_read, ranges_read, .. } = open;
        let answered = transaction.commit().map(|committed| committed.commit);
        if own.is_empty() {
            return same(|| "the commit of a transaction that only read".into(), &answered, &Ok(commit));
        }
        let changed = changed_since(&self.reference, place, commit);
        let ops = own;
        let written: BTreeSet<_> = ops.iter().map(Op::name).collect();
        let (must, may): (Vec<_>, Vec<_>) = match isolation {
            Isolation::Serialisable => {
                let seen =
                    |name: &&str| names_read.contains(*name) || ranges_read.iter().any(|range| range.has_seen(name));
                let guarded =
                    |name: &&str| names_read.contains(*name) || ranges_read.iter().any(|range| range.may_guard(name));
                (changed.iter().copied().filter(seen).collect(), changed.iter().copied().filter(guarded).collect())
            }
            Isolation::Snapshot => {
                let both: Vec<_> = changed.intersection(&written).copied().collect();
                (both.clone(), both)
            }
        };
        let last = *written.iter().next_back().expect("it wrote something");
        let Place { space, branch, group } = place;
        let command = command::Transaction { space, branch, group, guards: Vec::new(), ops };
        let context = || format!("commit of {command:?} on {place:?}, {isolation:?}, changed since {changed:?}");
        match answered {
            Ok(commit) if must.is_empty() => {
                self.learn_stamp(place, last, Some(commit))?;
                let outcomes = self.reference.transact_cells(&command.as_kernel());
                let all_written = outcomes
                    .as_ref()
                    .is_ok_and(|outcomes| outcomes.iter().all(|outcome| matches!(outcome, OpOutcome::Written(_))));
                if all_written { Ok(()) } else { Err(format!("{}: {outcomes:?}", context())) }
            }
            Err(Error::Rejected(Rejection::Cell(CellRejection::Conflict { cell, current })))
                if may.contains(&cell.as_str()) =>
            {
                add(&self.tally.conflicts, 1);
                self.reference.commit += 1;
                let name = may.iter().find(|name| **name == cell).expect("it was just found");
                let live = self.reference.cell(&place.cell(name)).live_version();
                same(|| format!("{}: version of {cell:?}", context()), &current, &live)
            }
            other => Err(format!("{}\n  answered {other:?}\n  must conflict on {must:?}", context())),
        }
    }
}

/// The cells of a place that were written after a commit.
fn changed_since(reference: &Reference, place: Place, commit: u64) -> BTreeSet<&'static str> {
    let members = reference.members(place.space, place.branch, place.group);
    let newest = |cell: &Cell| cell.writes.last().map_or(0, |write| write.commit);
    members.into_iter().filter(|(_, cell)| newest(cell) > commit).map(|(name, _)| known(name)).collect()
}
