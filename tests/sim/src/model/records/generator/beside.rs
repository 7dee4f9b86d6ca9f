//! Draws what is done beside records in the same group: to runs, to maps, to its owner, and pushes to sessions.

use contract::guards::OWNER_RECORD;

use super::Generator;
use crate::model::clients::some_session;
use crate::model::drawn::Drawn;
use crate::model::reference::Id;
use crate::model::runs::command::Act;
use crate::model::{keyed, runs};

impl Generator<'_> {
    pub(super) fn is_guarded(&self, target: &Id) -> bool {
        self.reference.guard_of(target.space, target.home()).is_some()
    }

    /// What is done to maps of the same group.
    pub(super) fn map_acts(&mut self, target: &Id, wide: bool) -> Vec<(Id, keyed::Act)> {
        let Some((_, habits)) = self.beside else {
            return Vec::new();
        };
        let mut generator = keyed::Generator { random: self.random, habits, reference: self.reference };
        let mut acts = Vec::new();
        while acts.len() < 3 && generator.random.one_in(4) {
            let map = if wide { target.sibling(generator.map_name()) } else { target.clone() };
            let act = generator.act(&map);
            acts.push((map, act));
        }
        acts
    }

    /// What is done to runs of the same group.
    pub(super) fn run_acts(&mut self, target: &Id, wide: bool) -> Vec<(String, Act)> {
        let Some((habits, _)) = self.beside else {
            return Vec::new();
        };
        let mut generator = runs::Generator { random: self.random, habits, reference: self.reference };
        let mut acts = Vec::new();
        while acts.len() < 4 && generator.random.one_in(2) {
            let run = if wide { generator.sibling(target) } else { target.clone() };
            let act = generator.act(&run);
            acts.push((run.name, act));
        }
        acts
    }

    /// The sessions that something is pushed to.
    pub(super) fn pushes(&mut self) -> Vec<u64> {
        let mut sessions = Vec::new();
        while self.beside.is_some() && self.random.one_in(6) {
            sessions.push(some_session(self.reference, self.random));
        }
        sessions
    }

    /// Somebody owns a group, or no longer; or a guard is set or removed.
    pub(super) fn owner(&mut self) -> Drawn {
        if self.random.one_in(4) {
            return keyed::generator::set_guard(self.random);
        }
        let target = self.target();
        let habits = self.beside.expect("owners are beside").1;
        let (random, reference) = (&mut *self.random, self.reference);
        keyed::Generator { random, habits, reference }.owner_of(&target.sibling(OWNER_RECORD))
    }
}
