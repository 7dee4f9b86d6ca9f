//! The promises made at each moment of a recording: what must be true of any image of that moment.

use std::collections::BTreeMap;

use super::operation::{Kind, Moment};
use super::recording::Recording;
use super::records::{Cell, Record, Token};

/// What must be true of an image of some moment.
#[derive(Default)]
pub(super) struct Facts {
    /// The identity of the directory, once it was opened.
    pub(super) identity: Option<u64>,
    /// The newest entry whose effect was seen by anyone.
    pub(super) index_min: u64,
    /// The newest entry that a flush has covered.
    pub(super) flushed_min: u64,
    pub(super) cells: BTreeMap<Cell, CellFacts>,
}

#[derive(Default)]
pub(super) struct CellFacts {
    /// The newest version that was answered.
    pub(super) answered: u64,
    /// Every version that was ever intended.
    pub(super) intended: BTreeMap<u64, Option<Token>>,
}

impl Recording {
    /// What was promised at `moment`.
    pub(super) fn facts_at(&self, moment: Moment) -> Facts {
        let mut facts = Facts::default();
        let mut identity = None;
        let mut intents = BTreeMap::new();
        let mut commit_min = 0;
        for operation in self.operations.iter().filter(|operation| operation.begin < moment) {
            let record = match &operation.kind {
                Kind::Identity(written) => {
                    identity = Some(*written);
                    continue;
                }
                Kind::Record(record) => record,
                _ => continue,
            };
            match record {
                Record::Opened { index, .. } | Record::Status { index, .. } => {
                    facts.identity = identity;
                    facts.index_min = facts.index_min.max(*index);
                }
                Record::Flushed { index } => facts.flushed_min = facts.flushed_min.max(*index),
                Record::Intended { number, writes } => {
                    for write in writes {
                        let cell = facts.cells.entry(write.cell.clone()).or_default();
                        cell.intended.insert(write.version, write.token);
                    }
                    intents.insert(*number, writes);
                }
                Record::Answered { number, commit } => {
                    facts.identity = identity;
                    commit_min = commit_min.max(commit.unwrap_or(0));
                    for write in intents.get(number).into_iter().flat_map(|writes| writes.iter()) {
                        let cell = facts.cells.entry(write.cell.clone()).or_default();
                        cell.answered = cell.answered.max(write.version);
                    }
                }
            }
        }
        let states = facts.identity.and_then(|identity| self.states.get(&identity));
        let committed = states.into_iter().flatten().find(|(_, state)| state.applied.commit >= commit_min);
        facts.index_min = facts.index_min.max(committed.map_or(0, |(index, _)| *index));
        facts
    }
}
