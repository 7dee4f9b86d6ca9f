//! Draws commands that are likely to hit existing state: a version that was used, the number of the last commit, an owner
//! that was replaced and goes on.

mod restores;
mod updates;

use contract::guards::OWNER_RECORD;
use contract::keyed::{LogicalTime, Policy};
use kernel::keyed::updates::UpdatesWriter;
use kernel::{Body, CatalogueChange, CellAct, Fence, Guard, KeyedGuard, Op, RecordAct, Transact, ValueRef};
use testkit::random::Random;

use super::command::{Act, NewCommit};
use super::names::{self, INPUTS, MAPS};
use crate::model::drawn::Drawn;
use crate::model::mixed;
use crate::model::reference::{Content, Id, Map, Reference};

/// What a stretch does more or less of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Habits {
    delete_one_in: u64,
    ordered_one_in: u64,
    resend_one_in: u64,
    wide_one_in: u64,
    zombie_one_in: u64,
    restore_one_in: u64,
}

impl Habits {
    pub(crate) fn draw(random: &mut Random) -> Self {
        Self {
            delete_one_in: random.pick(&[20, 80, 400]),
            ordered_one_in: random.pick(&[2, 4, 20]),
            resend_one_in: random.pick(&[3, 6, 12]),
            wide_one_in: random.pick(&[100, 400, 4_000]),
            zombie_one_in: random.pick(&[3, 6]),
            restore_one_in: random.pick(&[8, 20, 200]),
        }
    }
}

/// Draws random commands on maps.
pub(crate) struct Generator<'draw> {
    pub(crate) random: &'draw mut Random,
    pub(crate) habits: Habits,
    pub(crate) reference: &'draw Reference,
}

/// Any key.
pub(crate) fn any_key(random: &mut Random) -> &'static [u8] {
    updates::key(random)
}

/// Who sends a transaction.
struct Authority {
    attempts: Vec<u64>,
    force: bool,
}

impl Generator<'_> {
    pub(crate) fn command(&mut self) -> Drawn {
        match self.random.below(100) {
            0..=11 => Drawn::plain(&Body::Tick),
            12..=21 => self.owner(),
            22..=23 => mixed::upkeep::command(self.random, self.reference),
            24 => set_guard(self.random),
            _ => self.transaction(),
        }
    }

    /// Somebody claims a group, keeps it or gives it back.
    fn owner(&mut self) -> Drawn {
        let (space, branch, group) = names::group(self.random, self.reference);
        self.owner_of(&Id::new(space, branch, Some(group), OWNER_RECORD))
    }

    pub(crate) fn owner_of(&mut self, owner: &Id) -> Drawn {
        let force = self.random.one_in(4);
        let act = owner_act(self.random, self.reference, owner);
        let ops = vec![Op::Record(OWNER_RECORD, act)];
        let transact = Transact { force, ..Transact::new(owner.space, owner.branch, Some(owner.home()), ops) };
        Drawn::plain(&Body::Transact(transact))
    }

    fn transaction(&mut self) -> Drawn {
        let map = self.begun().unwrap_or_else(|| {
            let (space, branch, group) = names::group(self.random, self.reference);
            Id::new(space, branch, Some(group), self.random.pick(&MAPS))
        });
        let (space, branch) = (map.space, map.branch);
        let owner = map.sibling(OWNER_RECORD);
        let is_free = self.reference.record(&owner).is_none_or(|owner| owner.holder.is_none());
        if is_free && self.reference.guard_of(space, map.home()).is_some() && !self.random.one_in(4) {
            // Without an owner, little would be written.
            return self.owner_of(&owner);
        }
        let authority = authority(self.random, self.habits, self.reference, &map);
        let last = self.reference.content(&map).and_then(|content| content.last.as_ref());
        let last = last.filter(|last| !last.transaction.is_empty());
        if let Some(last) = last.filter(|_| self.random.one_in(self.habits.resend_one_in)) {
            // The same transaction, perhaps from somebody else.
            let Ok(Body::Transact(again)) = Body::decode(&last.transaction) else {
                unreachable!("only transactions have numbers");
            };
            return authority.send(again);
        }
        let mut acts = vec![(map.clone(), self.act(&map))];
        while acts.len() < 4 && self.random.one_in(4) {
            let other = if self.random.one_in(3) { map.clone() } else { map.sibling(self.random.pick(&MAPS)) };
            // Two numbers would be refused, mostly.
            let act = match self.act(&other) {
                Act::Commit(_) if !self.random.one_in(30) => Act::Seal(self.version(&other)),
                act => act,
            };
            acts.push((other, act));
        }
        let mut guards = Vec::new();
        while guards.len() < 4 && self.random.one_in(4) {
            let (id, _) = self.random.choose(&acts);
            guards.push(Guard::Map(self.guard(id)));
        }
        let mut ops: Vec<_> = acts.iter().map(|(id, act)| Op::Map(&id.name, act.as_kernel_act())).collect();
        if self.random.one_in(8) {
            ops.push(Op::Cell("last", CellAct::Set(ValueRef::Integer(7))));
        }
        // A map that is its own group is named without one.
        let alone = map.group.is_none() && acts.iter().all(|(id, _)| *id == map) && ops.len() == acts.len();
        let group = Some(map.home()).filter(|_| !alone || !authority.attempts.is_empty());
        let branch = if self.random.one_in(200) { 99 } else { branch };
        authority.send(Transact { guards, ..Transact::new(space, branch, group, ops) })
    }

    /// Sometimes a map that is being restored, or has checkpoints: among many maps, few of these would be finished.
    fn begun(&mut self) -> Option<Id> {
        if !self.random.one_in(3) {
            return None;
        }
        let is_begun = |map: &Map| {
            map.aside.is_some() || map.content.as_ref().is_some_and(|content| content.checkpoints.is_some())
        };
        let begun: Vec<_> = self.reference.maps.iter().filter(|(_, map)| is_begun(map)).map(|(id, _)| id).collect();
        (!begun.is_empty()).then(|| (*self.random.choose(&begun)).clone())
    }

    pub(crate) fn map_name(&mut self) -> &'static str {
        self.random.pick(&MAPS)
    }

    pub(crate) fn act(&mut self, id: &Id) -> Act {
        let content = self.reference.content(id);
        if content.is_none() && self.random.one_in(self.habits.ordered_one_in) {
            return Act::Create(Policy::Ordered);
        }
        if self.random.one_in(self.habits.delete_one_in) {
            return Act::Delete;
        }
        if let Some(act) = self.restore_or_checkpoint(id) {
            return act;
        }
        match self.random.below(20) {
            0 => Act::Create(if self.random.one_in(2) { Policy::Ordered } else { Policy::Monotonic }),
            1..=2 => Act::Seal(self.version(id)),
            3..=8 => Act::Update(self.updates(id, false)),
            _ => Act::Commit(self.commit(id, content)),
        }
    }

    fn commit(&mut self, id: &Id, content: Option<&Content>) -> NewCommit {
        let last = content.map_or(0, Content::last_number);
        let number = match self.random.below(20) {
            // Another one under the number of the last.
            0..=1 => last,
            2 => last + 2,
            3 => self.random.below(last + 1),
            _ => last + 1,
        };
        let mut positions = Vec::new();
        while positions.len() < 4 && self.random.one_in(2) {
            let input = self.random.pick(&INPUTS);
            let known = content.and_then(|content| content.positions.get(input)).map_or(0, |known| known.position);
            let back = u64::from(self.random.one_in(15));
            positions.push((input, (known + self.random.below(5)).saturating_sub(back)));
        }
        let seal = self.random.one_in(5).then(|| self.version(id));
        NewCommit { number, positions, seal, updates: self.updates(id, true) }
    }

    /// A version near the seal.
    fn version(&mut self, id: &Id) -> LogicalTime {
        let LogicalTime { epoch, round } =
            self.reference.content(id).and_then(|content| content.seal).unwrap_or_default();
        match self.random.below(60) {
            0 => LogicalTime::new(epoch + 1, self.random.below(3)),
            1 => LogicalTime::new(epoch.saturating_sub(1), round),
            _ => LogicalTime::new(epoch, (round + self.random.below(14)).saturating_sub(3)),
        }
    }

    fn updates(&mut self, id: &Id, in_commit: bool) -> UpdatesWriter {
        updates::Drawing { random: self.random, content: self.reference.content(id), habits: self.habits }
            .updates(in_commit)
    }

    pub(crate) fn guard<'name>(&mut self, id: &'name Id) -> KeyedGuard<'name> {
        let commit = self.reference.commit.saturating_sub(self.random.below(60));
        let (map, key) = (id.name.as_str(), updates::key(self.random));
        match self.random.below(10) {
            0 => KeyedGuard::Absent(map, key),
            1 => KeyedGuard::Exists(map, key),
            2..=3 => {
                let known = self.reference.content(id).and_then(|content| content.keys.get(key)?.state.version());
                KeyedGuard::VersionIs(map, key, known.unwrap_or_default())
            }
            4 => KeyedGuard::VersionBelow(map, key, self.version(id)),
            5..=6 => KeyedGuard::UnchangedSince(map, key, commit),
            7 => {
                let to = (!self.random.one_in(3)).then(|| updates::key(self.random));
                KeyedGuard::RangeUnchangedSince(map, key, to, commit)
            }
            _ => {
                let input = self.random.pick(&INPUTS);
                let known = self.reference.content(id).and_then(|content| content.positions.get(input));
                let known = known.map(|known| known.position);
                let expected = if self.random.one_in(6) { Some(self.random.below(9)) } else { known };
                KeyedGuard::PositionIs(map, input, expected)
            }
        }
    }
}

/// Mostly who owns the group, in a guarded one; or who owned it before, nobody, or somebody with force.
fn authority(random: &mut Random, habits: Habits, reference: &Reference, map: &Id) -> Authority {
    let owner = reference.records.get(&map.sibling(OWNER_RECORD));
    let (guarded, attempt) =
        (reference.guard_of(map.space, map.home()).is_some(), owner.map_or(0, |owner| owner.attempt));
    let force = random.one_in(if guarded { 8 } else { 40 });
    let attempts = match random.below(12) {
        _ if !guarded && !random.one_in(6) => Vec::new(),
        0 => Vec::new(),
        _ if random.one_in(habits.zombie_one_in) => vec![random.below(attempt + 2)],
        _ => vec![attempt],
    };
    Authority { attempts, force }
}

impl Authority {
    fn send(&self, transact: Transact<'_>) -> Drawn {
        let fence = |attempt: &u64| Fence { record: OWNER_RECORD, attempt: *attempt };
        let fences = self.attempts.iter().map(fence).collect();
        Drawn::plain(&Body::Transact(Transact { fences, force: self.force, ..transact }))
    }
}

/// What is done to the owner of a group.
pub(crate) fn owner_act(random: &mut Random, reference: &Reference, owner: &Id) -> RecordAct<'static> {
    let attempt = reference.records.get(owner).map_or(0, |kept| kept.attempt);
    let attempt = if random.one_in(6) { attempt.saturating_sub(1) } else { attempt };
    let lease_us = random.pick(&[None, Some(300), Some(4_000), Some(40_000), Some(400_000)]);
    match random.below(12) {
        0..=6 => RecordAct::Claim { worker: random.pick(&["", "w1", "w2"]), lease_us },
        7..=9 => RecordAct::Extend { attempt, lease_us },
        10 => RecordAct::Release { attempt },
        _ if random.one_in(2) => RecordAct::Delete,
        _ => RecordAct::Complete { attempt, fields: Vec::new() },
    }
}

/// A guard is set or removed.
pub(crate) fn set_guard(random: &mut Random) -> Drawn {
    let (space, prefix, guard) = names::guard(random);
    Drawn::plain(&Body::Catalogue(CatalogueChange::SetGuard { space, prefix: prefix.to_owned(), guard }))
}
