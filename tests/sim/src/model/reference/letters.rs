//! Dead letters: messages that their group refused, until somebody sends them again or drops them, or their time is over.

use contract::Rejection;
use contract::guards::OWNER_RECORD;
use contract::limits::{DEAD_LETTER_AGE_US, DEAD_LETTERS_MAX, DEAD_LETTERS_OF_SPACE_MAX};
use kernel::{Body, DeadLetterAct, DeadLetterCommand, Transact};

use super::time::group_of;
use super::{Id, Message, Outcome, PublishKey, Reference, To, Undo};

/// A message that its group refused.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Letter {
    pub(crate) space: u32,
    pub(crate) branch: u32,
    pub(crate) group: String,
    pub(crate) refused_us: u64,
    pub(crate) sent_number: u64,
    pub(crate) message: Message,
    /// It was refused with one of these.
    pub(crate) refusals: Vec<Rejection>,
}

impl Reference {
    /// Applies a message, or keeps it as a letter.
    pub(super) fn apply_message(&mut self, message: &Message, number: u64, transact: &Transact<'_>) {
        let mark = self.undo.len();
        let Err(refusals) = self.deliver_to_group(message, transact) else { return };
        self.undo_to(mark);
        let Transact { space, branch, .. } = *transact;
        let Some(group) = group_of(transact) else { return };
        let of_space = self.letters.values().filter(|letter| letter.space == space).count();
        let is_full = self.letters.len() >= DEAD_LETTERS_MAX as usize || of_space >= DEAD_LETTERS_OF_SPACE_MAX as usize;
        if !self.is_live(space, branch) || is_full {
            return;
        }
        let bucket = self.buckets.of_group(self.spaces[&space].name.as_bytes(), group.as_bytes());
        let (group, refused_us) = (group.to_owned(), self.wall_us);
        let letter =
            Letter { space, branch, group, refused_us, sent_number: number, message: message.clone(), refusals };
        let key = (bucket, self.next_number(bucket));
        let before = self.letters.insert(key, letter);
        self.undo.push(Undo::Letter(key, before));
    }

    fn deliver_to_group(&mut self, message: &Message, transact: &Transact<'_>) -> Result<Vec<Outcome>, Vec<Rejection>> {
        self.delivers = true;
        self.from_its_own_group = (message.space, message.branch) == (transact.space, transact.branch)
            && group_of(transact) == Some(message.source.as_str());
        // Whoever sends it again: a message is delivered in no session.
        let session = self.session.take();
        let done = self.transact(transact, 0);
        self.session = session;
        (self.delivers, self.from_its_own_group, self.done_before) = (false, false, None);
        done
    }

    /// The letter whose time is over first, and when that is.
    pub(super) fn first_letter(&self) -> Option<(u64, u64, u16)> {
        let ends = |((bucket, number), letter): (&PublishKey, &Letter)| {
            (letter.refused_us + DEAD_LETTER_AGE_US, *number, *bucket)
        };
        self.letters.iter().map(ends).min()
    }

    /// The letters of a branch.
    pub(super) fn letters_of(&self, place: (u32, u32)) -> impl Iterator<Item = &PublishKey> {
        self.letters.iter().filter(move |(_, letter)| (letter.space, letter.branch) == place).map(|(key, _)| key)
    }

    pub(super) fn remove_letter(&mut self, key: PublishKey) {
        let before = self.letters.remove(&key);
        self.undo.push(Undo::Letter(key, before));
    }

    /// Sends a letter again, or drops it.
    pub(super) fn on_letter(&mut self, command: &DeadLetterCommand<'_>) -> Result<Vec<Outcome>, Vec<Rejection>> {
        let DeadLetterCommand { space, branch, group, ref fences, force, number, act } = *command;
        let Some(found) = self.spaces.get(&space) else {
            return Err(vec![Rejection::NoSuchSpace { space: format!("#{space}") }]);
        };
        let bucket = self.buckets.of_group(found.name.as_bytes(), group.as_bytes());
        self.live_branch(space, branch).map_err(|rejection| vec![rejection])?;
        let asks = Transact { fences: fences.clone(), force, ..Transact::new(space, branch, Some(group), Vec::new()) };
        for fence in fences {
            let record = Id::new(space, branch, Some(group), fence.record);
            self.expire(&record);
            self.check_attempt(&record, fence.attempt).map_err(|rejection| vec![rejection])?;
        }
        if self.obeyed_guard(&asks, Some(group)).is_some() {
            return Err(vec![self.unfenced(&Id::new(space, branch, Some(group), OWNER_RECORD))]);
        }
        let key = (bucket, number);
        let known = self.letters.get(&key);
        let known = known.filter(|known| (known.space, known.branch, known.group.as_str()) == (space, branch, group));
        let Some(letter) = known.cloned() else {
            return Err(vec![Rejection::NoSuchDeadLetter { group: group.to_owned(), number }]);
        };
        let outcomes = match act {
            DeadLetterAct::Drop => Vec::new(),
            DeadLetterAct::Retry => {
                let To::Group(body) = &letter.message.to else { panic!("only groups refuse: {letter:?}") };
                let Ok(Body::Transact(mut transact)) = Body::decode(body) else {
                    panic!("a letter that is no transaction was kept: {letter:?}");
                };
                transact.force |= force;
                if !fences.is_empty() {
                    // A fence is on another record than its only thing, so it must say which group both are in.
                    transact.group = Some(group);
                }
                transact.fences.retain(|own| fences.iter().all(|fence| fence.record != own.record));
                transact.fences.extend(fences);
                self.deliver_to_group(&letter.message, &transact)?
            }
        };
        self.remove_letter(key);
        Ok(outcomes)
    }
}
