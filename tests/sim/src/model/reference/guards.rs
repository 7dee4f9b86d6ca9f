//! Guarded groups: only their owners write them. What the store does by itself does not come by here.

use contract::catalogue::MAIN_BRANCH;
use contract::guards::{GroupGuard, OWNER_RECORD};
use contract::{Rejection, Value};
use kernel::{CellAct, Op, RecordAct, RunAct, Transact};

use super::{ANY_REASON, Id, Kept, Reference};
use crate::model::drawn::MachineFence;

impl Reference {
    /// The guard of a group: the one with the longest prefix of its name.
    pub(crate) fn guard_of(&self, space: u32, group: &str) -> Option<&GroupGuard> {
        let guards = self.spaces.get(&space)?.guards.iter();
        let (_, guard) =
            guards.filter(|(prefix, _)| group.starts_with(prefix.as_str())).max_by_key(|(prefix, _)| prefix.len())?;
        Some(guard)
    }

    /// The guard that a transaction must obey. That its fences hold was checked.
    pub(super) fn obeyed_guard(&self, transact: &Transact<'_>, home: Option<&str>) -> Option<GroupGuard> {
        let owns = transact.fences.iter().any(|fence| fence.record == OWNER_RECORD);
        let may_write = transact.force || self.from_its_own_group || owns;
        let guard = self.guard_of(transact.space, home.unwrap_or_default());
        guard.filter(|_| !may_write).cloned()
    }

    /// Refuses what only the owner of the group may do.
    pub(super) fn check_guarded(&self, guard: &GroupGuard, id: &Id, op: &Op<'_>) -> Result<(), Rejection> {
        let is_open = guard.is_open(&id.name);
        let is_free = match op {
            // A claim is refused while another has it, and the others name their attempt.
            Op::Record(name, RecordAct::Claim { .. } | RecordAct::Extend { .. } | RecordAct::Release { .. })
                if *name == OWNER_RECORD =>
            {
                true
            }
            // Who creates or appends.
            Op::Cell(_, CellAct::Init(_) | CellAct::Cas(None, _)) | Op::Run(_, RunAct::Append(_)) => is_open,
            Op::Cell(_, CellAct::Set(_)) => is_open && self.cell_version(id).is_none(),
            Op::Record(_, RecordAct::Put { .. } | RecordAct::Patch { must_exist: false, .. })
            | Op::Record(_, RecordAct::Swap { expected: None, .. } | RecordAct::Increment { .. }) => {
                is_open && !self.exists(id)
            }
            _ => false,
        };
        if is_free { Ok(()) } else { Err(self.unfenced(id)) }
    }

    /// A write in the group of a thing, by somebody who does not own it.
    pub(super) fn unfenced(&self, id: &Id) -> Rejection {
        let owner = self.record(&id.sibling(OWNER_RECORD)).filter(|owner| owner.holder.is_some());
        let until = owner.as_ref().and_then(|owner| owner.value("timeout_at").cloned());
        let until_ms = match until {
            Some(Value::Integer(ms)) => Some(u64::try_from(ms).unwrap_or_default()),
            _ => None,
        };
        let holder = owner.and_then(|owner| owner.holder).and_then(|holder| holder.worker);
        unfenced(id.home(), holder, until_ms)
    }

    /// The same for a users' machine. Who owns the group in the branch `main` owns its state.
    pub(super) fn check_guarded_machine(
        &self,
        space: u32,
        group: &str,
        fence: Option<&MachineFence>,
    ) -> Result<(), Rejection> {
        if self.guard_of(space, group).is_none() {
            return Ok(());
        }
        let main = self.spaces[&space].branches.iter().find(|(_, branch)| branch.name == MAIN_BRANCH);
        let main = *main.expect("it is never deleted").0;
        let owns = fence.is_some_and(|fence| fence.branch == main && fence.record == OWNER_RECORD);
        if owns { Ok(()) } else { Err(self.unfenced(&Id::new(space, main, Some(group), OWNER_RECORD))) }
    }

    /// An owner is claimed, extended and released, and nothing else.
    pub(super) fn check_owner_act(&self, id: &Id, act: &RecordAct<'_>) -> Result<(), Rejection> {
        match act {
            RecordAct::Claim { .. } | RecordAct::Extend { .. } | RecordAct::Release { .. } => Ok(()),
            _ if id.name == OWNER_RECORD => {
                let what = format!("a write to record {:?}", id.name);
                Err(Rejection::InvalidDeclaration { what, reason: ANY_REASON })
            }
            _ => Ok(()),
        }
    }

    /// A record in a guarded group stands in no queue, and an owner in none at all.
    pub(super) fn set_by_name(&self, id: &Id, kept: &mut Kept) {
        let by_name = id.name == OWNER_RECORD || self.guard_of(id.space, id.home()).is_some();
        if let Some(live) = &mut kept.live {
            live.by_name = by_name;
        }
    }

    /// Takes a record out of its queue that was there before its group had a guard.
    pub(super) fn pass_over(&mut self, id: &Id) {
        if self.exists(id) {
            let mut kept = self.records[id].clone();
            kept.live_mut().by_name = true;
            self.set_record(id, Some(kept));
        }
    }
}

/// A write in a guarded group without a fence, and who owns it until when.
pub(super) fn unfenced(group: &str, holder: Option<String>, until_ms: Option<u64>) -> Rejection {
    Rejection::Unfenced { what: "group", name: group.to_owned(), holder, until_ms }
}
