//! Attempts: claim, extend, release, complete, fail and rescue.

use contract::guards::{OWNER, OWNER_RECORD};
use contract::records::types::StateKind;
use contract::{RecordRejection, Rejection};
use kernel::{OpOutcome, RecordAct};

use super::acts::{no_record, owned, written};
use super::moves::{micros, wrong_state};
use super::{Declared, Id, Kept, Outcome, Place, Reference};

impl Reference {
    /// What only a worker does.
    pub(super) fn attempt(&mut self, id: &Id, act: &RecordAct<'_>, force: bool) -> Result<Outcome, Rejection> {
        match act {
            RecordAct::Claim { worker, lease_us } => self.claim(id, worker, *lease_us, force),
            RecordAct::Extend { attempt, lease_us } => {
                let (mut draft, declared) = self.attempted(id, *attempt)?;
                self.lease(&mut draft, &declared, *lease_us);
                Ok(written(self.store(id, draft)))
            }
            RecordAct::Release { attempt } => {
                let (mut draft, declared) = self.attempted(id, *attempt)?;
                self.give_back(&mut draft, 0);
                draft.live_mut().state = declared.definition.states[0].name.clone();
                Ok(written(self.store(id, draft)))
            }
            RecordAct::Complete { attempt, fields } => {
                let (mut draft, declared) = self.attempted(id, *attempt)?;
                let before = draft.live_mut().state.clone();
                self.write_fields(id, &mut draft, Some(&declared), &owned(fields), false)?;
                let state = draft.live_mut().state.clone();
                if state != declared.definition.completed && declared.kind(&state) != StateKind::Held {
                    return Err(wrong_state(id, &before));
                }
                self.move_to(id, &mut draft, &declared, &declared.definition.completed, false)?;
                Ok(written(self.store(id, draft)))
            }
            RecordAct::Fail { attempt, fields } => {
                let (mut draft, declared) = self.attempted(id, *attempt)?;
                let before = draft.live_mut().state.clone();
                self.write_fields(id, &mut draft, Some(&declared), &owned(fields), false)?;
                if declared.kind(&draft.live_mut().state) == StateKind::Terminal {
                    return Err(wrong_state(id, &before));
                }
                self.end_attempt(id, draft, &declared, false)
            }
            _ => unreachable!("that needs no attempt"),
        }
    }

    /// The owner of a group is there as soon as it is claimed, and by force it is taken from whoever has it.
    pub(super) fn claim(
        &mut self,
        id: &Id,
        worker: &str,
        lease_us: Option<u64>,
        force: bool,
    ) -> Result<Outcome, Rejection> {
        if !self.exists(id) && id.name != OWNER_RECORD {
            return Err(no_record(id));
        }
        let mut draft = self.draft(id);
        if !self.exists(id) {
            let live = draft.live_mut();
            (live.record_type, live.state) =
                (Some(OWNER.to_owned()), self.owner_type.definition.states[0].name.clone());
        }
        let takes_over = force && id.name == OWNER_RECORD;
        let live = draft.live_mut();
        let Some(declared) = self.declared(id, live).cloned() else {
            return Err(Rejection::Record(RecordRejection::NoSuchType { name: id.name.clone() }));
        };
        let pauses = live.waiting && live.ready_us > self.wall_us;
        if let (StateKind::Held, Some(lease_us), false) = (declared.kind(&live.state), live.lease_us, takes_over) {
            let until_us = i128::from(self.wall_us) + i128::from(lease_us) - i128::from(self.cluster_us);
            let until_us = u64::try_from(until_us.max(0)).unwrap_or(u64::MAX);
            let (record, holder) = (id.name.clone(), live.worker.clone());
            let attempt = draft.attempt;
            return Err(RecordRejection::Held { record, attempt, holder, until_ms: until_us / 1_000 }.into());
        }
        if pauses || (declared.kind(&live.state) != StateKind::Ready && !takes_over) {
            return Err(wrong_state(id, &live.state));
        }
        self.begin_attempt(&mut draft, &declared, lease_us);
        self.hold(&mut draft, &declared);
        draft.live_mut().worker = Some(worker.to_owned()).filter(|worker| !worker.is_empty());
        self.store(id, draft);
        let record = self.record(id).expect("it was just claimed");
        Ok(Outcome::Claimed(id.clone(), Box::new(record)))
    }

    /// The record of a live attempt, about to be written.
    fn attempted(&self, id: &Id, attempt: u64) -> Result<(Kept, Declared), Rejection> {
        self.check_attempt(id, attempt)?;
        let draft = self.draft(id);
        let live = draft.live.as_ref().expect("it is held");
        let declared = self.declared(id, live).expect("only records of a type are held").clone();
        Ok((draft, declared))
    }

    /// Refuses an attempt that is not the live one.
    pub(super) fn check_attempt(&self, id: &Id, given: u64) -> Result<(), Rejection> {
        let kept = self.records.get(id);
        let live = kept.and_then(|kept| kept.live.as_ref());
        let held = live.is_some_and(|live| live.lease_us.is_some());
        let floor = self.floors.get(&self.bucket(id)).map_or(0, |floor| floor.attempt);
        let attempt = kept.map_or(floor, |kept| kept.attempt);
        if held && attempt == given {
            return Ok(());
        }
        let state = match live {
            None => "gone".to_owned(),
            Some(live) if live.record_type.is_none() => "not of a type that can be claimed".to_owned(),
            Some(live) => live.state.clone(),
        };
        let holder = live.filter(|_| held).and_then(|live| live.worker.clone());
        Err(Rejection::Record(RecordRejection::Fenced { record: id.name.clone(), given, attempt, state, holder }))
    }

    pub(super) fn end_attempt(
        &mut self,
        id: &Id,
        mut draft: Kept,
        declared: &Declared,
        is_rescue: bool,
    ) -> Result<Outcome, Rejection> {
        let definition = &declared.definition;
        draft.live_mut().failures += 1;
        let (failures, attempt) = (draft.live_mut().failures, draft.attempt);
        if failures >= definition.attempts_max {
            self.move_to(id, &mut draft, declared, &definition.failed, false)?;
            let version = self.store(id, draft);
            self.tell(id, definition.exhausted_to.as_deref(), attempt, "exhausted");
            return Ok(Outcome::Is(OpOutcome::Exhausted { version }));
        }
        let mut pause = definition.backoff.first;
        for _ in 1..failures {
            pause = (pause * 2).min(definition.backoff.max);
        }
        let pause_us = micros(pause.min(definition.backoff.max));
        self.give_back(&mut draft, pause_us);
        draft.live_mut().state = definition.states[0].name.clone();
        let version = self.store(id, draft);
        if is_rescue {
            self.tell(id, definition.rescued_to.as_deref(), attempt, "rescued");
        }
        Ok(Outcome::Is(OpOutcome::Retried { version, pause_us }))
    }

    /// Order and time of a record that can be claimed, its own time over or not.
    pub(super) fn ready_place(&self, id: &Id) -> Option<Place> {
        let live = self.records.get(id)?.live.as_ref()?;
        let declared = self.declared(id, live)?;
        if live.waiting || live.by_name || declared.kind(&live.state) != StateKind::Ready {
            return None;
        }
        let order = match &declared.definition.ready_order {
            contract::records::types::ReadyOrder::Oldest => 0,
            contract::records::types::ReadyOrder::Field(field) => match live.fields.get(field) {
                Some((contract::Value::Integer(order), _)) => *order,
                _ => 0,
            },
        };
        Some((order, live.ready_us))
    }
}
