//! Commands: a transaction with its fence, guards and operations, and the commands of the shard.

use contract::{Rejection, Value};
use kernel::trim::TrimStep;
use kernel::{Body, Guard, Op, OpOutcome, Target, Transact, ValueRef};

use super::{ANY_REASON, Cell, Expected, Id, Outcome, Reference};
use crate::model::places::PLACES;

impl Reference {
    /// Does what a command of the contracts asks.
    pub(super) fn execute_body(&mut self, body: &[u8]) -> Expected {
        let done = match Body::decode(body).expect("the generator makes bodies") {
            Body::Transact(transact) => self.transact(&transact),
            Body::Tick => {
                self.tick();
                Ok(Vec::new())
            }
            Body::ClaimNext(claim) => match self.live_branch(claim.space, claim.branch) {
                Ok(()) => Ok(self.claim_next(&claim)),
                Err(rejection) => Err(rejection),
            },
            Body::Published(messages) => {
                for key in messages {
                    self.to_publish.remove(&key);
                }
                Ok(Vec::new())
            }
            Body::Trim(steps) => {
                steps.iter().for_each(|step| self.trim(step));
                Ok(Vec::new())
            }
            Body::Catalogue(change) => self.change(&change),
            other => unreachable!("{other:?} is not drawn"),
        };
        match done {
            Ok(outcomes) => Expected::Done(outcomes),
            Err(rejection) => {
                self.undo_to(0);
                Expected::Rejected(rejection)
            }
        }
    }

    fn trim(&mut self, step: &TrimStep) {
        match step {
            TrimStep::Lanes { space, branch, queue, bucket } => self.trim_lanes(*space, *branch, queue, *bucket),
            TrimStep::ForgetRecord(record) => {
                let id = Id::new(record.space, record.branch, record.group.as_deref(), &record.name);
                if self.records.get(&id).is_some_and(|kept| kept.live.is_none()) {
                    self.forget(&id);
                }
            }
            other => unreachable!("{other:?} is not drawn"),
        }
    }

    fn live_branch(&self, space: u32, branch: u32) -> Result<(), Rejection> {
        match PLACES.contains(&(space, branch)) {
            true => Ok(()),
            false => Err(Rejection::NoSuchBranch { branch: format!("#{branch}") }),
        }
    }

    pub(super) fn transact(&mut self, transact: &Transact<'_>) -> Result<Vec<Outcome>, Rejection> {
        let home = self.home(transact)?;
        let id = |name: &str| {
            self.live_branch(transact.space, transact.branch)?;
            Ok(Id::new(transact.space, transact.branch, transact.group, name))
        };
        let fence = transact.fence.map(|fence| Ok((id(fence.record)?, fence.attempt))).transpose()?;
        let guards = transact.guards.iter().map(|guard| Ok((id(guard.name().expect("no ranges"))?, guard)));
        let guards = guards.collect::<Result<Vec<_>, Rejection>>()?;
        let ops = transact.ops.iter().map(|op| Ok((id(op.name().or(home).unwrap_or_default())?, op)));
        let ops = ops.collect::<Result<Vec<_>, Rejection>>()?;
        if let Some((record, attempt)) = fence {
            self.expire(&record);
            self.check_attempt(&record, attempt)?;
        }
        for (id, guard) in &guards {
            self.check_guard(id, guard)?;
        }
        let mut outcomes = Vec::new();
        for (id, op) in &ops {
            outcomes.push(self.op(transact, id, op)?);
        }
        Ok(outcomes)
    }

    /// The one group of a transaction.
    fn home<'name>(&self, transact: &Transact<'name>) -> Result<Option<&'name str>, Rejection> {
        let fence = transact.fence.map(|fence| fence.record);
        let ops = transact.ops.iter().filter_map(Op::name);
        let guards = transact.guards.iter().filter_map(Guard::name);
        if transact.group.is_some() {
            return Ok(transact.group);
        }
        let named: Vec<&str> = ops.chain(guards).chain(fence).collect();
        let Some(home) = fence.or(named.first().copied()) else {
            let what = "a transaction".to_owned();
            let sends = !transact.ops.is_empty();
            return if sends { Err(Rejection::InvalidDeclaration { what, reason: ANY_REASON }) } else { Ok(None) };
        };
        match named.into_iter().find(|name| *name != home) {
            None => Ok(Some(home)),
            Some(other) => Err(Rejection::TwoGroups { group: home.to_owned(), other: other.to_owned() }),
        }
    }

    fn op(&mut self, transact: &Transact<'_>, id: &Id, op: &Op<'_>) -> Result<Outcome, Rejection> {
        let outcome = match op {
            Op::Record(name, act) => {
                let fenced = transact.fence.is_some_and(|fence| fence.record == *name);
                return self.act(id, act, fenced);
            }
            Op::Send(send) => {
                if let Target::Transact(body) = send.target
                    && !matches!(Body::decode(body), Ok(Body::Transact(_)))
                {
                    return Err(Rejection::InvalidDeclaration { what: "a message".to_owned(), reason: ANY_REASON });
                }
                self.send(id, send);
                OpOutcome::Sent
            }
            Op::Run(_, act) => self.run_act(id, act)?,
            Op::Push(session, payload) => {
                self.push(*session, payload);
                OpOutcome::Sent
            }
            Op::CellInit(_, value) => match self.cell_version(id) {
                Some(version) => OpOutcome::Existing(version),
                None => self.write_cell(id, Some(value.to_value())),
            },
            Op::CellSet(_, value) => self.write_cell(id, Some(value.to_value())),
            Op::CellCas(_, expected, value) => match self.cell_version(id) {
                current if current == *expected => self.write_cell(id, Some(value.to_value())),
                current => return Err(Rejection::Conflict { cell: id.name.clone(), current }),
            },
            Op::CellDelete(_) => match self.cell_version(id) {
                None => OpOutcome::Nothing,
                Some(_) => self.write_cell(id, None),
            },
        };
        Ok(Outcome::Is(outcome))
    }

    fn write_cell(&mut self, id: &Id, value: Option<Value>) -> OpOutcome {
        let version = self.cells.get(id).map_or(0, |cell| cell.version) + 1;
        self.set_cell(id, Cell { version, commit: self.commit, value });
        OpOutcome::Written(version)
    }

    fn cell_version(&self, id: &Id) -> Option<u64> {
        self.cells.get(id).filter(|cell| cell.value.is_some()).map(|cell| cell.version)
    }

    fn check_guard(&self, id: &Id, guard: &Guard<'_>) -> Result<(), Rejection> {
        let cell = self.cell_version(id);
        let kept = self.records.get(id);
        let live = kept.filter(|_| self.exists(id));
        let current = live.map(|kept| kept.version);
        let about_cell = match guard {
            Guard::CellAbsent(_) => Some(cell.is_none()),
            Guard::CellExists(_) => Some(cell.is_some()),
            Guard::CellVersionIs(_, version) => Some(cell == Some(*version)),
            Guard::CellVersionBelow(_, version) => Some(cell.is_none_or(|cell| cell < *version)),
            Guard::CellUnchangedSince(_, commit) => Some(self.cells.get(id).is_none_or(|cell| cell.commit <= *commit)),
            _ => None,
        };
        if let Some(holds) = about_cell {
            let conflict = Rejection::Conflict { cell: id.name.clone(), current: cell };
            return if holds { Ok(()) } else { Err(conflict) };
        }
        let holds = match guard {
            Guard::RecordAbsent(_) => live.is_none(),
            Guard::RecordExists(_) => live.is_some(),
            Guard::RecordVersionIs(_, version) => current == Some(*version),
            Guard::RecordFieldIs(_, field, wanted) => {
                let current = self.field(id, field);
                let (record, field) = (id.name.clone(), (*field).to_owned());
                let holds = current == wanted.map(ValueRef::to_value);
                return if holds { Ok(()) } else { Err(Rejection::FieldConflict { record, field, current }) };
            }
            Guard::RecordStateIn(_, states) => {
                let state = live.and_then(|kept| kept.live.as_ref()).filter(|live| live.record_type.is_some());
                state.is_some_and(|live| states.contains(&live.state.as_str()))
            }
            Guard::RecordAttemptIs(_, attempt) => live.is_some_and(|kept| kept.attempt == *attempt),
            Guard::RecordUnchangedSince(_, commit) => match kept {
                Some(kept) => kept.commit <= *commit && !kept.is_over(self.wall_us),
                None => self.floors.get(&self.bucket(id)).is_none_or(|floor| floor.commit <= *commit),
            },
            other => unreachable!("{other:?} is not drawn"),
        };
        if holds { Ok(()) } else { Err(Rejection::RecordConflict { record: id.name.clone(), current }) }
    }
}
