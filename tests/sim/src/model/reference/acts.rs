//! What is done to one record: put, patch, swap, increment, delete, touch. A record whose time is over is gone first.

use contract::records::types::StateKind;
use contract::{RecordRejection, Rejection, Value};
use kernel::{OpOutcome, RecordAct, TtlArgument, ValueRef};

use super::moves::{micros, wrong_kind, wrong_state};
use super::{ANY_REASON, Declared, Floor, Id, Kept, Live, Outcome, Reference, alarm};

type Fields = Vec<(String, Option<Value>)>;

pub(super) fn owned(fields: &[(&str, Option<ValueRef<'_>>)]) -> Fields {
    fields.iter().map(|(field, value)| ((*field).to_owned(), value.map(ValueRef::to_value))).collect()
}

pub(super) fn no_record(id: &Id) -> Rejection {
    Rejection::Record(RecordRejection::NoSuchRecord { record: id.name.clone() })
}

impl Reference {
    pub(super) fn act(
        &mut self,
        id: &Id,
        act: &RecordAct<'_>,
        fenced: bool,
        force: bool,
    ) -> Result<Outcome, Rejection> {
        self.check_owner_act(id, act)?;
        self.expire(id);
        match act {
            RecordAct::Put { record_type, ttl, fields } => {
                let fields: Fields =
                    fields.iter().map(|(field, value)| ((*field).to_owned(), Some(value.to_value()))).collect();
                self.put(id, *record_type, *ttl, &fields, fenced)
            }
            RecordAct::Patch { must_exist, fields } => {
                if *must_exist && !self.exists(id) {
                    return Err(no_record(id));
                }
                self.patch(id, &owned(fields), false).map(written)
            }
            RecordAct::Swap { field, expected, new } => {
                let current = self.field(id, field);
                if current != expected.map(ValueRef::to_value) {
                    let (record, field) = (id.name.clone(), (*field).to_owned());
                    return Err(Rejection::Record(RecordRejection::FieldConflict { record, field, current }));
                }
                self.patch(id, &owned(&[(field, *new)]), true).map(written)
            }
            RecordAct::Increment { field, by } => {
                let live = self.records.get(id).and_then(|kept| kept.live.as_ref()).filter(|_| self.exists(id));
                let typed = match live {
                    Some(live) => live.record_type.is_some(),
                    None => self.type_of_name(id.space, &id.name).is_some(),
                };
                let held = live.is_some_and(|live| live.lease_us.is_some());
                if typed && (["created_at", "updated_at"].contains(field) || *field == "timeout_at" && !held) {
                    return Err(wrong_kind(id, field));
                }
                let current = match self.field(id, field) {
                    None => 0,
                    Some(Value::Integer(integer)) => integer,
                    Some(_) => return Err(wrong_kind(id, field)),
                };
                let value = current.checked_add(*by).ok_or_else(|| wrong_kind(id, field))?;
                if typed && *field == "timeout_at" && !(1..=i128::from(u64::MAX)).contains(&self.lease_until(value)) {
                    return Err(wrong_kind(id, field));
                }
                let version = self.patch(id, &owned(&[(field, Some(ValueRef::Integer(value)))]), false)?;
                Ok(Outcome::Is(OpOutcome::Counted { version, value }))
            }
            RecordAct::Delete if !self.exists(id) => Ok(Outcome::Is(OpOutcome::Nothing)),
            RecordAct::Delete => Ok(written(self.remove(id))),
            RecordAct::Touch { ttl } => {
                if !self.exists(id) {
                    return Err(no_record(id));
                }
                let mut draft = self.draft(id);
                self.set_ttl(&mut draft, *ttl, true, None)?;
                Ok(written(self.store(id, draft)))
            }
            RecordAct::Claim { .. }
            | RecordAct::Extend { .. }
            | RecordAct::Release { .. }
            | RecordAct::Complete { .. }
            | RecordAct::Fail { .. } => self.attempt(id, act, force),
        }
    }

    fn put(
        &mut self,
        id: &Id,
        record_type: Option<&str>,
        ttl: TtlArgument,
        fields: &Fields,
        fenced: bool,
    ) -> Result<Outcome, Rejection> {
        let declared = match record_type {
            None => self.type_of_name(id.space, &id.name),
            Some(name) => match self.type_named(id.space, name) {
                None => return Err(Rejection::Record(RecordRejection::NoSuchType { name: name.to_owned() })),
                Some(declared) => Some(declared.clone()),
            },
        };
        let existed = self.exists(id);
        let before = self.records.get(id).and_then(|kept| kept.live.clone());
        let keeps_type =
            |old: &Declared| declared.as_ref().is_some_and(|new| new.definition.name == old.definition.name);
        if let Some(old) = before.as_ref().and_then(|live| self.declared(id, live)) {
            let state = &before.as_ref().expect("just seen").state;
            match old.kind(state) {
                StateKind::Terminal => return Err(wrong_state(id, state)),
                StateKind::Held if !fenced || !keeps_type(old) => return Err(wrong_state(id, state)),
                StateKind::Held | StateKind::Ready => {}
            }
        }
        let mut draft = self.draft(id);
        let name = declared.as_ref().map(|declared| declared.definition.name.clone());
        let live = draft.live_mut();
        live.fields.clear();
        if live.lease_us.is_none() {
            // The worker's name is a field like others, unless the store itself put it there.
            live.worker = None;
        }
        if !existed || live.record_type != name {
            self.assign(&mut draft, declared.as_ref());
        }
        self.set_ttl(&mut draft, ttl, existed, self.default_end(declared.as_ref()))?;
        self.write_fields(id, &mut draft, declared.as_ref(), fields, false)?;
        Ok(written(self.store(id, draft)))
    }

    fn set_ttl(
        &self,
        draft: &mut Kept,
        ttl: TtlArgument,
        existed: bool,
        default_us: Option<u64>,
    ) -> Result<(), Rejection> {
        let (expires_us, life) = match (ttl, self.session) {
            (TtlArgument::Keep, _) if existed => return Ok(()),
            (TtlArgument::After(us), _) => (Some(self.wall_us + us), None),
            (TtlArgument::Keep | TtlArgument::Persist, _) => (default_us, None),
            (TtlArgument::WithSession, Some(session)) => (None, Some(session)),
            (TtlArgument::WithSession, None) => {
                let what = "a record that ends with its session".to_owned();
                return Err(Rejection::InvalidDeclaration { what, reason: ANY_REASON });
            }
        };
        draft.expires_us = expires_us;
        draft.live_mut().life = life;
        Ok(())
    }

    /// Writes fields of a record, which is created if there is none. Gives its version.
    fn patch(&mut self, id: &Id, fields: &Fields, is_claim: bool) -> Result<u64, Rejection> {
        let existed = self.exists(id);
        let mut draft = self.draft(id);
        let declared = match existed {
            true => self.declared(id, draft.live_mut()).cloned(),
            false => self.type_of_name(id.space, &id.name),
        };
        if !existed {
            self.assign(&mut draft, declared.as_ref());
            draft.expires_us = self.default_end(declared.as_ref());
        }
        self.write_fields(id, &mut draft, declared.as_ref(), fields, is_claim)?;
        Ok(self.store(id, draft))
    }

    fn default_end(&self, declared: Option<&Declared>) -> Option<u64> {
        let ttl = declared.and_then(|declared| declared.definition.default_ttl)?;
        Some(self.wall_us + micros(ttl))
    }

    /// When a lease would end, in cluster time, that ends at a wall time.
    pub(super) fn lease_until(&self, wall_ms: i64) -> i128 {
        i128::from(self.cluster_us) + i128::from(wall_ms) * 1_000 - i128::from(self.wall_us)
    }

    /// Whether it exists now.
    pub(crate) fn exists(&self, id: &Id) -> bool {
        self.records.get(id).is_some_and(|kept| kept.live.is_some() && !kept.is_over(self.wall_us))
    }

    pub(crate) fn declared(&self, id: &Id, live: &Live) -> Option<&Declared> {
        self.type_named(id.space, live.record_type.as_ref()?)
    }

    /// If its time is over, that is said first.
    pub(super) fn expire(&mut self, id: &Id) {
        if self.records.get(id).is_some_and(|kept| kept.is_over(self.wall_us)) {
            self.remove(id);
        }
    }

    pub(super) fn remove(&mut self, id: &Id) -> u64 {
        let mut draft = self.draft(id);
        draft.live = None;
        draft.expires_us = Some(self.wall_us.saturating_add(self.limits.tombstone_age_us));
        self.store(id, draft)
    }

    /// What the next write of a record begins with. Counters go on from what is known of the name, or from the floor.
    pub(super) fn draft(&self, id: &Id) -> Kept {
        let mut draft = match self.records.get(id) {
            Some(kept) => kept.clone(),
            None => {
                let Floor { version, attempt, .. } = self.floors.get(&self.bucket(id)).copied().unwrap_or_default();
                Kept { version, attempt, ..Kept::default() }
            }
        };
        if draft.live.is_none() {
            (draft.live, draft.expires_us, draft.created_us) = (Some(Live::default()), None, self.wall_us);
        }
        draft.version += 1;
        (draft.commit, draft.updated_us) = (self.commit, self.wall_us);
        draft
    }

    /// Gives the version.
    pub(super) fn store(&mut self, id: &Id, mut draft: Kept) -> u64 {
        self.set_alarms(&mut draft);
        self.set_by_name(id, &mut draft);
        let version = draft.version;
        self.set_record(id, Some(draft));
        version
    }

    pub(super) fn set_alarms(&self, draft: &mut Kept) {
        let lease_us = draft.live.as_ref().and_then(|live| live.lease_us);
        draft.lease_alarm = alarm(draft.lease_alarm, lease_us);
        draft.expiry_alarm = alarm(draft.expiry_alarm, draft.expires_us);
    }
}

pub(super) fn written(version: u64) -> Outcome {
    Outcome::Is(OpOutcome::Written(version))
}
