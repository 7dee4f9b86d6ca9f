//! Commands: a transaction with its fence, guards and operations, and the commands of the shard.

use contract::{RecordRejection, Rejection};
use kernel::{Body, CellAct, Guard, Op, OpOutcome, RecordGuard, Send, Target, Transact, ValueRef};

use super::guards::unfenced;
use super::{ANY_REASON, Expected, Id, Outcome, Reference};

impl Reference {
    /// Does what a command of the contracts asks.
    pub(super) fn execute_body(&mut self, body: &[u8]) -> Expected {
        self.done_before = None;
        let done = match Body::decode(body).expect("the generator makes bodies") {
            Body::Transact(transact) => self.transact(&transact, body.len()),
            Body::Tick => {
                self.tick();
                Ok(Vec::new())
            }
            Body::ClaimNext(claim) => match self.live_branch(claim.space, claim.branch) {
                Ok(()) => Ok(self.claim_next(&claim)),
                Err(rejection) => Err(vec![rejection]),
            },
            Body::Published(messages) => {
                for key in messages {
                    self.to_publish.remove(&key);
                }
                Ok(Vec::new())
            }
            Body::Deliver(deliver) => self.receive(&deliver).map(|()| Vec::new()).map_err(|rejection| vec![rejection]),
            // A shard that owns everything has no messages for others.
            Body::Delivered(_) => Ok(Vec::new()),
            // Nobody is known here, so nothing is recorded.
            Body::Audit(_) => Ok(Vec::new()),
            Body::DeadLetter(letter) => self.on_letter(&letter),
            Body::Trim(steps) => {
                steps.iter().for_each(|step| self.trim(step));
                Ok(Vec::new())
            }
            Body::Catalogue(change) => self.change(&change).map_err(|rejection| vec![rejection]),
            Body::Level(_) => {
                self.revision += 1;
                Ok(Vec::new())
            }
        };
        match done {
            Ok(outcomes) => match self.done_before.take() {
                Some(commit) => Expected::DoneBefore(commit, outcomes),
                None => Expected::Done(outcomes),
            },
            Err(rejections) => {
                self.undo_to(0);
                Expected::Rejected(rejections)
            }
        }
    }

    pub(super) fn live_branch(&self, space: u32, branch: u32) -> Result<(), Rejection> {
        match self.is_live(space, branch) {
            true => Ok(()),
            false => Err(Rejection::NoSuchBranch { branch: format!("#{branch}") }),
        }
    }

    /// Guards first, then operations in order. `body_bytes` are those of the command that it came in.
    pub(super) fn transact(
        &mut self,
        transact: &Transact<'_>,
        body_bytes: usize,
    ) -> Result<Vec<Outcome>, Vec<Rejection>> {
        let one = |rejection| vec![rejection];
        let exceeded = self.exceeded_limits(transact, body_bytes);
        if !exceeded.is_empty() {
            return Err(exceeded);
        }
        if !self.spaces.contains_key(&transact.space) {
            return Err(vec![Rejection::NoSuchSpace { space: format!("#{}", transact.space) }]);
        }
        let home = self.home(transact).map_err(one)?;
        let numbered = super::keyed::number_of(transact);
        if let (Err(rejection), []) = (&numbered, transact.fences.as_slice()) {
            return Err(one(rejection.clone()));
        }
        let id = |name: &str| {
            self.live_branch(transact.space, transact.branch).map_err(one)?;
            Ok::<_, Vec<Rejection>>(Id::new(transact.space, transact.branch, transact.group, name))
        };
        let fences = transact.fences.iter().map(|fence| Ok((id(fence.record)?, fence.attempt)));
        let fences = fences.collect::<Result<Vec<_>, Vec<Rejection>>>()?;
        let guards = transact.guards.iter().map(|guard| Ok((id(guard.name().or(home).unwrap_or_default())?, guard)));
        let guards = guards.collect::<Result<Vec<_>, Vec<Rejection>>>()?;
        let ops = transact.ops.iter().map(|op| Ok((id(op.name().or(home).unwrap_or_default())?, op)));
        let ops = ops.collect::<Result<Vec<_>, Vec<Rejection>>>().map_err(|mut rejections| {
            // Nobody owns a group in a branch that is not there; either may be said first.
            let guard = self.obeyed_guard(transact, home);
            rejections.extend(guard.map(|_| unfenced(home.unwrap_or_default(), None, None)));
            rejections
        })?;
        let numbered = match numbered {
            Ok(None) => Ok(None),
            Ok(Some((map, number))) => Ok(Some((id(map)?, number))),
            Err(rejection) => Err(rejection),
        };
        for (record, attempt) in fences {
            self.expire(&record);
            self.check_attempt(&record, attempt).map_err(one)?;
        }
        let numbered = numbered.map_err(one)?;
        let guard = self.obeyed_guard(transact, home);
        if let Some((map, number)) = numbered.as_ref().filter(|_| guard.is_none())
            && let Some((commit, outcomes)) = self.first_answer(map, *number, transact).map_err(one)?
        {
            self.done_before = Some(commit);
            return Ok(outcomes);
        }
        for (id, guard) in &guards {
            let broken = match guard {
                Guard::Cell(guard) => self.check_cell_guard(transact, guard),
                Guard::Record(guard) => self.check_record_guard(id, guard).map_or_else(one, |()| Vec::new()),
                Guard::Run(guard) => self.check_run_guard(id, *guard).map_or_else(one, |()| Vec::new()),
                Guard::Map(guard) => self.check_map_guard(id, guard).map_or_else(one, |()| Vec::new()),
            };
            if !broken.is_empty() {
                return Err(broken);
            }
        }
        let mut outcomes = Vec::new();
        for (id, op) in &ops {
            if let Some(guard) = &guard {
                self.check_guarded(guard, id, op).map_err(one)?;
            }
            outcomes.push(self.op(transact, id, op).map_err(one)?);
        }
        if let Some((map, number)) = &numbered {
            self.keep_answer(map, *number, transact, &outcomes);
        }
        Ok(outcomes)
    }

    fn exceeded_limits(&self, transact: &Transact<'_>, body_bytes: usize) -> Vec<Rejection> {
        let limits = &self.limits;
        let mut asked = vec![
            ("transaction_ops_max", limits.transaction_ops_max, transact.ops.len()),
            ("transaction_bytes_max", limits.transaction_bytes_max, body_bytes),
        ];
        let values = transact.ops.iter().filter_map(|op| match op {
            Op::Cell(_, CellAct::Init(value) | CellAct::Set(value) | CellAct::Cas(_, value)) => {
                Some(value.to_value().len())
            }
            _ => None,
        });
        asked.extend(values.map(|bytes| ("value_bytes_max", limits.value_bytes_max, bytes)));
        asked.retain(|(_, max, got)| *got > *max as usize);
        asked.iter().map(|(limit, max, got)| Rejection::too_large(limit, *max as usize, *got)).collect()
    }

    /// The one group of a transaction.
    pub(super) fn home<'name>(&self, transact: &Transact<'name>) -> Result<Option<&'name str>, Rejection> {
        let fences = transact.fences.iter().map(|fence| fence.record);
        let ops = transact.ops.iter().filter_map(Op::name);
        let guards = transact.guards.iter().filter_map(Guard::name);
        if transact.group.is_some() {
            return Ok(transact.group);
        }
        let named: Vec<&str> = ops.chain(guards).chain(fences.clone()).collect();
        let Some(home) = fences.clone().next().or(named.first().copied()) else {
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
                let fenced = transact.fences.iter().any(|fence| fence.record == *name);
                return self.act(id, act, fenced, transact.force);
            }
            Op::Send(send) => {
                self.check_message(send, 1)?;
                let waiting = self.messages.len() + self.to_publish.len() + 1;
                let max = self.limits.messages_waiting_max as usize;
                if !self.delivers {
                    Rejection::check_limit("messages_waiting_max", max, waiting)?;
                }
                self.send(id, send);
                OpOutcome::Sent
            }
            Op::Run(_, act) => self.run_act(id, act)?,
            Op::Push(session, payload) => {
                self.push(*session, payload);
                OpOutcome::Sent
            }
            Op::Cell(_, act) => self.cell_act(id, act)?,
            Op::Map(_, act) => self.map_act(id, act)?,
        };
        Ok(Outcome::Is(outcome))
    }

    /// A message can be delivered, and so can those that it sends.
    fn check_message(&self, send: &Send<'_>, depth: usize) -> Result<(), Rejection> {
        let Target::Transact(body) = send.target else {
            return Ok(());
        };
        if depth > 8 {
            return Err(Rejection::too_large("message_depth_max", 8, depth));
        }
        let Ok(Body::Transact(inner)) = Body::decode(body) else {
            return Err(Rejection::InvalidDeclaration { what: "a message".to_owned(), reason: ANY_REASON });
        };
        match self.exceeded_limits(&inner, body.len()).into_iter().next() {
            Some(exceeded) => Err(exceeded),
            None => inner.ops.iter().try_for_each(|op| match op {
                Op::Send(sent) => self.check_message(sent, depth + 1),
                _ => Ok(()),
            }),
        }
    }

    fn check_record_guard(&self, id: &Id, guard: &RecordGuard<'_>) -> Result<(), Rejection> {
        let kept = self.records.get(id);
        let live = kept.filter(|_| self.exists(id));
        let current = live.map(|kept| kept.version);
        let holds = match guard {
            RecordGuard::Absent(_) => live.is_none(),
            RecordGuard::Exists(_) => live.is_some(),
            RecordGuard::VersionIs(_, version) => current == Some(*version),
            RecordGuard::FieldIs(_, field, wanted) => {
                let current = self.field(id, field);
                let (record, field) = (id.name.clone(), (*field).to_owned());
                let holds = current == wanted.map(ValueRef::to_value);
                return if holds {
                    Ok(())
                } else {
                    Err(Rejection::Record(RecordRejection::FieldConflict { record, field, current }))
                };
            }
            RecordGuard::StateIn(_, states) => {
                let state = live.and_then(|kept| kept.live.as_ref()).filter(|live| live.record_type.is_some());
                state.is_some_and(|live| states.contains(&live.state.as_str()))
            }
            RecordGuard::AttemptIs(_, attempt) => live.is_some_and(|kept| kept.attempt == *attempt),
            RecordGuard::UnchangedSince(_, commit) => match kept {
                Some(kept) => kept.commit <= *commit && !kept.is_over(self.wall_us),
                None => self.floors.get(&self.bucket(id)).is_none_or(|floor| floor.commit <= *commit),
            },
        };
        if holds {
            Ok(())
        } else {
            Err(Rejection::Record(RecordRejection::Conflict { record: id.name.clone(), current }))
        }
    }
}
