//! Turns commands that wait for the journal into entries, and hands durable entries to the apply loop.
//!
//! Runs on the journal's writer thread. Keeps: J5, by sending entries on in the order they were written.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use contract::{Error, Failure, FailureKind};
use journal::{Consumer, JournalError, Position, Queued};
use kernel::{EntryHeader, EntryPlace};

use crate::clock::Time;
use crate::error::from_journal;
use crate::pending::Responder;
use crate::tenure::Tenure;

/// A command that waits for the journal.
pub struct Submission {
    pub(crate) envelope: Vec<u8>,
    pub(crate) responder: Responder,
}

impl Queued for Submission {
    fn bytes(&self) -> usize {
        self.envelope.len()
    }
}

/// A durable entry, with those who wait for the answers to its commands.
pub(crate) struct DurableEntry {
    pub(crate) place: EntryPlace,
    pub(crate) payload: Vec<u8>,
    pub(crate) responders: Vec<Responder>,
}

pub(crate) struct Proposer {
    pub(crate) time: Arc<Time>,
    pub(crate) apply: SyncSender<DurableEntry>,
    pub(crate) tenure: Arc<Tenure>,
    /// Of the owner.
    pub(crate) term: u64,
    /// Which it continues.
    pub(crate) history: u64,
}

impl Consumer<Submission> for Proposer {
    fn seal(&mut self, commands: &[Submission]) -> Vec<u8> {
        let header = EntryHeader::new(self.time.stamp());
        header.encode(commands.iter().map(|command| command.envelope.as_slice()))
    }

    fn committed(&mut self, at: Position, payload: Vec<u8>, commands: Vec<Submission>) {
        let responders = commands.into_iter().map(|command| command.responder).collect();
        // If the apply loop has stopped, the responders are dropped and report that the outcome is unknown: the entry
        // is durable and will be applied when the directory is next opened.
        let place = EntryPlace { index: at.index, term: self.term, history: self.history, hash: at.hash };
        let _ = self.apply.send(DurableEntry { place, payload, responders });
    }

    fn lost(&mut self, commands: Vec<Submission>, written: bool, error: &JournalError) {
        let kind = match error {
            JournalError::Deposed { .. }
            | JournalError::Unanswered { .. }
            | JournalError::TailLost { .. }
            | JournalError::OtherHistory { .. } => {
                // First: whoever learns that a write was refused must not read what the next owner has changed.
                self.tenure.end();
                FailureKind::NotOwner
            }
            _ => FailureKind::Stopped,
        };
        for command in commands {
            let message = error.to_string();
            let failure: Error = match (written, error) {
                (true, _) => Failure::unknown(kind, message).into(),
                (false, JournalError::NoSpace { .. }) => from_journal(error),
                (false, _) => Failure::not_applied(kind, message).into(),
            };
            command.responder.give(Err(failure));
        }
    }
}
