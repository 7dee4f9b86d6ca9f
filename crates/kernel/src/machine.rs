//! The data contracts as one deterministic machine, with users' machines beside them.

use contract::Rejection;
use contract::access::audit::Decision;
use kv::{KeyRange, Staging, Writer};
use session::{Call, CommandDigest, Execution, Halt, Machine, Pushes, SessionEvent, Stamp};

use crate::answer::{Answer, OpOutcome};
use crate::audit::{self, Recorded};
use crate::catalogue::{Catalogue, CatalogueChange};
use crate::command::digest::{digest, digest_hosted};
use crate::command::hosted::HostedCommand;
use crate::command::{AuditNote, Body, ClaimNext, MACHINE};
use crate::context::Applying;
use crate::damage;
use crate::entry_budget::EntryBudget;
use crate::folded::Folded;
use crate::keys::Keys;
use crate::keys::due::{DueClock, read_due_suffix};
use crate::keys::readable::describe_range;
use crate::outbox::{dead_letters, receive, send};
use crate::records::claims;
use crate::schedule::tick;
use crate::schedule::windows::Windows;
use crate::sessions::brought::{Hosted, check_brought};
use crate::sessions::{hosted, owned};
use crate::{transact, trim};

/// When the next thing is due, by each clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NextDue {
    /// Wall time in µs.
    pub wall_us: Option<u64>,
    /// Cluster time in µs.
    pub cluster_us: Option<u64>,
}

/// The machine of the contracts: cells, records, runs and users' machines.
pub struct Contracts {
    pub(crate) catalogue: Catalogue,
    pub(crate) keys: Keys,
    pub(crate) folded: Folded,
    pub(crate) windows: Windows,
    hosted: Hosted,
    /// Whether some range of keys is set apart.
    pub(crate) expects_damage: bool,
    /// What the commands of the entry may still do for others.
    budget: EntryBudget,
    /// The number above which attempts start.
    attempts_above: u64,
}

impl Contracts {
    /// The machine with this catalogue, before an entry.
    pub(crate) fn new(catalogue: Catalogue, keys: Keys, hosted: Hosted) -> Self {
        let (folded, windows) = (Folded::default(), Windows::default());
        let (expects_damage, budget, attempts_above) = (false, EntryBudget::WHOLE, 0);
        Self { catalogue, keys, folded, windows, hosted, expects_damage, budget, attempts_above }
    }

    /// Begins with an entry, perhaps not for the first time.
    pub(crate) fn begin_entry(&mut self, attempts_above: u64) {
        self.budget = EntryBudget::WHOLE;
        self.attempts_above = attempts_above;
    }

    pub(crate) fn applying<'entry>(
        &'entry mut self,
        state: &'entry mut Staging,
        call: &'entry Call<'entry>,
        pushes: &'entry mut Pushes,
    ) -> Applying<'entry> {
        let Self { catalogue, keys, folded, windows, hosted, .. } = self;
        let Self { expects_damage, budget, attempts_above, .. } = self;
        let pushes_at_savepoint = pushes.count();
        Applying {
            state,
            folded,
            catalogue,
            keys: *keys,
            windows,
            call,
            fence_holds: false,
            fenced_row: None,
            pushes,
            pushes_at_savepoint,
            hosted,
            owned: Vec::new(),
            expects_damage: *expects_damage,
            delivers: false,
            from_its_own_group: false,
            budget,
            attempts_above: *attempts_above,
        }
    }

    /// When the next thing is due: wall and cluster time.
    pub(crate) fn next_due(&mut self, state: &Staging) -> Result<NextDue, Halt> {
        let buckets = self.catalogue.buckets_here();
        let mut next = |clock| {
            let first = self.windows.first_due(state, &self.keys, buckets.clone(), clock)?;
            Ok::<_, Halt>(first.and_then(|entry| read_due_suffix(&entry.suffix)).map(|(at_us, _)| at_us))
        };
        Ok(NextDue { wall_us: next(DueClock::Wall)?, cluster_us: next(DueClock::Cluster)? })
    }

    /// Writes the rows that are written once per entry. `commit` is the number of its last command.
    pub(crate) fn finish_entry(&mut self, state: &mut Staging, stamp: Stamp, commit: u64) -> Result<(), Halt> {
        self.folded.write(state, &self.keys, &self.catalogue.limits, stamp, commit)
    }
}

impl Machine for Contracts {
    fn digest(&self, call: &Call<'_>) -> Result<CommandDigest, Halt> {
        if call.machine == MACHINE {
            return Ok(digest(call.body)?);
        }
        let number = (call.machine >> 16) as u16;
        Ok(digest_hosted(number, &HostedCommand::decode(call.body)?))
    }

    fn apply(
        &mut self,
        state: &mut Staging,
        call: &Call<'_>,
        pushes: &mut Pushes,
        answer: &mut Writer,
    ) -> Result<Execution, Halt> {
        let have = self.catalogue.revision;
        if call.catalogue_revision > have {
            let behind = Rejection::CatalogueBehind { needed: call.catalogue_revision, have };
            Answer::Rejected(behind).encode_into(answer);
            return Ok(Execution::NotYet);
        }
        self.folded.savepoint();
        let pushes_before = pushes.count();
        let applied = if call.machine == MACHINE {
            self.apply_body(state, call, pushes)
        } else {
            let mut applying = self.applying(state, call, pushes);
            let outcome = hosted::apply(&mut applying);
            let owned = std::mem::take(&mut applying.owned);
            outcome.map(|outcome| match outcome {
                Answer::Rejected(Rejection::NotHere { .. }) => (outcome, Execution::NotYet),
                outcome => (outcome, Execution::Decided { owned }),
            })
        };
        let mut applying = self.applying(state, call, pushes);
        applying.pushes_at_savepoint = pushes_before;
        let (outcome, execution) = match applying.undo_if_damaged(applied)? {
            Ok(applied) => applied,
            Err(damaged) => (damage::refused(&damaged, &self.catalogue), Execution::Decided { owned: Vec::new() }),
        };
        self.windows.settle();
        outcome.encode_into(answer);
        Ok(execution)
    }

    fn name_range(&self, range: &KeyRange) -> (String, String) {
        describe_range(range, &self.catalogue)
    }

    fn on_session_created(&mut self, _: &mut Staging, _: &SessionEvent<'_>, _: &mut Pushes) -> Result<(), Halt> {
        // A session owns nothing yet. Users' machines meet it with its first command to them.
        Ok(())
    }

    fn on_session_expired(
        &mut self,
        state: &mut Staging,
        event: &SessionEvent<'_>,
        pushes: &mut Pushes,
    ) -> Result<(), Halt> {
        let (stamp, commit) = (event.stamp, event.commit);
        let call =
            Call { machine: MACHINE, session: None, sender: None, catalogue_revision: 0, body: b"", stamp, commit };
        self.folded.savepoint();
        owned::begin_to_give_back(&mut self.applying(state, &call, pushes), event);
        self.windows.settle();
        Ok(())
    }
}

impl Contracts {
    /// Changes the catalogue, and records it if it is known who does; or about whom it is, which is then known from now on. What
    /// cannot be recorded is not done.
    fn change_catalogue(
        &mut self,
        change: &CatalogueChange,
        state: &mut Staging,
        call: &Call<'_>,
        pushes: &mut Pushes,
    ) -> Result<Result<Option<u32>, Rejection>, Halt> {
        let is_recorded = call.sender.is_some() || matches!(change, CatalogueChange::Access(_));
        // Names are those from before: of what is deleted, too.
        let recorded = is_recorded.then(|| (audit::act_of(&self.catalogue, change), self.catalogue.clone()));
        let assigned = match self.catalogue.change(change, call.stamp.wall_us, &self.keys, state) {
            Ok(assigned) => assigned,
            Err(rejection) => return Ok(Err(rejection)),
        };
        let Some(((act, on), before)) = recorded else { return Ok(Ok(assigned)) };
        let mut applying = self.applying(state, call, pushes);
        let recorded = audit::record(&mut applying, &Recorded { act, on: &on, decision: Decision::Done });
        // Damage is looked for here, since whoever finds it later undoes the rows, and not the catalogue in memory.
        let recorded = applying.undo_if_damaged(recorded).map(|recorded| match recorded {
            Ok(recorded) => recorded,
            Err(damaged) => Err(damage::refusal(&damaged, &before)),
        });
        if !matches!(recorded, Ok(Ok(()))) {
            applying.undo();
            self.catalogue = before;
        }
        Ok(recorded?.map(|()| assigned))
    }

    fn apply_body(
        &mut self,
        state: &mut Staging,
        call: &Call<'_>,
        pushes: &mut Pushes,
    ) -> Result<(Answer, Execution), Halt> {
        let done = |outcomes| Answer::Done { commit: call.commit, outcomes };
        let decided = |answer| (answer, Execution::Decided { owned: Vec::new() });
        let body = Body::decode(call.body)?;
        if let Body::Catalogue(change) = &body {
            let changed = self.change_catalogue(change, state, call, pushes)?;
            check_brought(&self.catalogue, &self.hosted)?;
            return Ok(decided(match changed {
                Ok(assigned) => done(assigned.map(OpOutcome::Assigned).into_iter().collect()),
                Err(rejection) => Answer::Rejected(rejection),
            }));
        }
        if let Body::Level(level) = body {
            if level > crate::LEVEL {
                return Err(Halt::Newer { what: "level", found: level, known: crate::LEVEL });
            }
            self.catalogue.raise_level(&self.keys, state, level);
            return Ok(decided(done(Vec::new())));
        }
        if let Body::Trim(steps) = body {
            return trim::apply(self, state, call, pushes, &steps).map(decided);
        }
        let waits = matches!(body, Body::ClaimNext(ClaimNext { waits: true, .. }));
        let mut applying = self.applying(state, call, pushes);
        let answer = match body {
            Body::Transact(body) => transact::transact(&mut applying, &body)?,
            Body::Tick => tick::tick(&mut applying)?,
            Body::ClaimNext(claim) => claims::claim_next(&mut applying, &claim)?,
            Body::Published(messages) => {
                send::published(&mut applying, &messages)?;
                done(Vec::new())
            }
            Body::Deliver(deliver) => {
                receive::receive(&mut applying, &deliver)?.map_or_else(Answer::Rejected, |()| done(Vec::new()))
            }
            Body::Delivered(delivered) => {
                receive::delivered(&mut applying, &delivered)?.map_or_else(Answer::Rejected, |()| done(Vec::new()))
            }
            Body::DeadLetter(letter) => dead_letters::command(&mut applying, &letter)?,
            Body::Audit(AuditNote { act, on, decision }) => {
                let recorded = audit::record(&mut applying, &Recorded { act, on, decision })?;
                recorded.map_or_else(Answer::Rejected, |()| done(Vec::new()))
            }
            Body::Catalogue(_) | Body::Level(_) | Body::Trim(_) => unreachable!("they were dealt with above"),
        };
        let execution = match &answer {
            // Its sender still waits, and repeats it with the same number when something is ready.
            Answer::Done { outcomes, .. } if waits && outcomes.is_empty() => Execution::NotYet,
            // Another shard decides it, or this one when it owns the bucket.
            Answer::Rejected(Rejection::NotHere { .. }) => Execution::NotYet,
            // It goes on where this one stopped.
            Answer::Done { outcomes, .. } if outcomes.as_slice() == [OpOutcome::Unfinished] => Execution::NotYet,
            _ => Execution::Decided { owned: std::mem::take(&mut applying.owned) },
        };
        Ok((answer, execution))
    }
}
