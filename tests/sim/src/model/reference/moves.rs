//! Moves between states, and writes of fields.

use contract::records::types::{RecordType, StateKind};
use contract::{RecordRejection, Rejection, Value};

use super::{ANY_KIND, ANY_REASON, Declared, Id, Kept, Reference};

pub(super) fn micros(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_micros()).expect("short")
}

fn first_of(definition: &RecordType, kind: StateKind) -> String {
    definition.states.iter().find(|state| state.kind == kind).expect("it has one").name.clone()
}

pub(super) fn wrong_state(id: &Id, state: &str) -> Rejection {
    Rejection::Record(RecordRejection::WrongState {
        record: id.name.clone(),
        state: state.to_owned(),
        reason: ANY_REASON,
    })
}

pub(super) fn wrong_kind(id: &Id, field: &str) -> Rejection {
    Rejection::Record(RecordRejection::WrongKind { record: id.name.clone(), field: field.to_owned(), wanted: ANY_KIND })
}

impl Reference {
    /// The record begins anew as one of a type.
    pub(super) fn assign(&self, draft: &mut Kept, declared: Option<&Declared>) {
        let wall_us = self.wall_us;
        let live = draft.live_mut();
        live.record_type = declared.map(|declared| declared.definition.name.clone());
        live.state = declared.map_or(String::new(), |declared| declared.definition.states[0].name.clone());
        (live.lease_us, live.holder, live.worker, live.failures, live.waiting) = (None, None, None, 0, false);
        live.ready_us = if declared.is_some() { wall_us } else { 0 };
    }

    pub(super) fn begin_attempt(&self, draft: &mut Kept, declared: &Declared, lease_us: Option<u64>) {
        draft.attempt += 1;
        let session = self.session;
        let live = draft.live_mut();
        live.holder = session;
        (live.ready_us, live.waiting) = (0, false);
        self.lease(draft, declared, lease_us);
    }

    pub(super) fn lease(&self, draft: &mut Kept, declared: &Declared, lease_us: Option<u64>) {
        let lease_us = lease_us.unwrap_or(micros(declared.definition.lease)).max(1);
        draft.live_mut().lease_us = Some(self.cluster_us.saturating_add(lease_us));
    }

    pub(super) fn hold(&self, draft: &mut Kept, declared: &Declared) {
        draft.live_mut().state = first_of(&declared.definition, StateKind::Held);
    }

    /// Ready again, after a pause. The state is the caller's.
    pub(super) fn give_back(&self, draft: &mut Kept, pause_us: u64) {
        let ready_us = self.wall_us + pause_us;
        let live = draft.live_mut();
        (live.lease_us, live.holder, live.worker) = (None, None, None);
        (live.ready_us, live.waiting) = (ready_us, pause_us > 0);
    }

    pub(super) fn move_to(
        &self,
        id: &Id,
        draft: &mut Kept,
        declared: &Declared,
        target: &str,
        is_claim: bool,
    ) -> Result<(), Rejection> {
        use StateKind::{Held, Ready, Terminal};
        let from = draft.live_mut().state.clone();
        if from == target {
            return Ok(());
        }
        match (declared.kind(&from), declared.kind(target)) {
            (Terminal, _) => return Err(wrong_state(id, &from)),
            (Ready, Held) if !is_claim => return Err(wrong_state(id, &from)),
            (Ready, Terminal) if target == declared.definition.completed => return Err(wrong_state(id, &from)),
            (Ready, Held) => self.begin_attempt(draft, declared, None),
            (Held, Held) => {}
            (Ready, Ready) if draft.live_mut().waiting && draft.live_mut().ready_us > self.wall_us => {}
            (Ready | Held, Ready) => self.give_back(draft, 0),
            (Ready | Held, Terminal) => {
                let live = draft.live_mut();
                (live.lease_us, live.holder, live.ready_us, live.waiting) = (None, None, 0, false);
                if let Some(ttl) = declared.definition.terminal_ttl {
                    draft.expires_us = Some(self.wall_us + micros(ttl));
                }
            }
        }
        draft.live_mut().state = target.to_owned();
        Ok(())
    }

    /// Writes fields, also those that the store keeps for records of a type.
    pub(super) fn write_fields(
        &self,
        id: &Id,
        draft: &mut Kept,
        declared: Option<&Declared>,
        fields: &[(String, Option<Value>)],
        is_claim: bool,
    ) -> Result<(), Rejection> {
        for (field, value) in fields {
            let Some(declared) = declared else {
                put_field(draft, field, value.clone());
                continue;
            };
            match (field.as_str(), value) {
                (name, value) if name == declared.definition.state_field => {
                    let Some(Value::Text(state)) = value else {
                        return Err(wrong_kind(id, field));
                    };
                    if !declared.definition.states.iter().any(|known| known.name == *state) {
                        return Err(wrong_kind(id, field));
                    }
                    self.move_to(id, draft, declared, state, is_claim)?;
                }
                ("created_at" | "updated_at", _) | ("timeout_at", None) => {}
                ("timeout_at", Some(Value::Integer(ms))) => {
                    let until = self.lease_until(*ms).clamp(1, i128::from(u64::MAX));
                    let live = draft.live_mut();
                    if live.lease_us.is_some() {
                        live.lease_us = Some(u64::try_from(until).expect("it was clamped"));
                    }
                }
                ("worker", None) => draft.live_mut().worker = None,
                ("worker", Some(Value::Text(worker))) => {
                    draft.live_mut().worker = Some(worker.clone()).filter(|worker| !worker.is_empty());
                }
                ("timeout_at" | "worker", Some(_)) => return Err(wrong_kind(id, field)),
                (_, value) => put_field(draft, field, value.clone()),
            }
        }
        let (max, got) = (self.limits.record_fields_max as usize, draft.live_mut().fields.len());
        if got > max { Err(Rejection::too_large("record_fields_max", max, got)) } else { Ok(()) }
    }
}

fn put_field(draft: &mut Kept, field: &str, value: Option<Value>) {
    let version = draft.version;
    let fields = &mut draft.live_mut().fields;
    match value {
        None => drop(fields.remove(field)),
        Some(value) => drop(fields.insert(field.to_owned(), (value, version))),
    }
}
