//! Draws what is done with messages that were refused.

use contract::guards::OWNER_RECORD;
use kernel::{Body, DeadLetterAct, DeadLetterCommand, Fence};

use super::Generator;
use crate::model::drawn::Drawn;
use crate::model::places::GROUPS;
use crate::model::reference::Id;

impl Generator<'_> {
    /// As somebody does who looks at what was refused: mostly a letter that is there, and mostly where it is.
    pub(super) fn dead_letter(&mut self) -> Drawn {
        let keys: Vec<_> = self.reference.letters.keys().copied().collect();
        let known = keys.get(self.random.index(keys.len().max(1))).map(|key| (key.1, &self.reference.letters[key]));
        let (space, branch, group, number) = match known {
            Some((number, letter)) if !self.random.one_in(10) => {
                (letter.space, letter.branch, letter.group.as_str(), number)
            }
            _ => {
                let (space, branch, _) = self.focus.place(self.random, self.reference);
                (space, branch, self.random.pick(&GROUPS), self.random.below(20))
            }
        };
        let act = if self.random.one_in(4) { DeadLetterAct::Drop } else { DeadLetterAct::Retry };
        let force = self.random.one_in(4);
        let owner = self.reference.record(&Id::new(space, branch, Some(group), OWNER_RECORD));
        let attempt = owner.map_or(1, |owner| owner.attempt).saturating_sub(self.random.pick(&[0, 0, 0, 1]));
        let fences = match self.random.one_in(3) {
            true => vec![Fence { record: OWNER_RECORD, attempt }],
            false => Vec::new(),
        };
        Drawn::plain(&Body::DeadLetter(DeadLetterCommand { space, branch, group, fences, force, number, act }))
    }
}
