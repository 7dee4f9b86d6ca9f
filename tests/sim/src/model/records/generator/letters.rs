//! Draws what is done with messages that were refused.

use kernel::{Body, DeadLetterAct, DeadLetterCommand};

use super::Generator;
use crate::model::drawn::Drawn;
use crate::model::places::GROUPS;

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
        let (fences, force) = (Vec::new(), self.random.one_in(4));
        Drawn::plain(&Body::DeadLetter(DeadLetterCommand { space, branch, group, fences, force, number, act }))
    }
}
