//! What the model does to maps, with its own bytes.

use contract::keyed::{LogicalTime, Policy};
use kernel::KeyedAct;
use kernel::keyed::command::Commit;
use kernel::keyed::restore::{RestoredCounts, RestoredMap};
use kernel::keyed::rows::ContentWriter;
use kernel::keyed::updates::UpdatesWriter;

/// What is done to a map.
#[derive(Debug)]
pub(crate) enum Act {
    Update(UpdatesWriter),
    Commit(NewCommit),
    Seal(LogicalTime),
    Create(Policy),
    Delete,
    BeginRestore(RestoredMap),
    RestoreRows(u32, ContentWriter),
    EndRestore(u32, RestoredCounts),
    AbandonRestore(u32),
    BeginCheckpoint,
    EndCheckpoint(u64),
}

/// A numbered commit.
#[derive(Debug)]
pub(crate) struct NewCommit {
    pub(crate) number: u64,
    pub(crate) positions: Vec<(&'static str, u64)>,
    pub(crate) seal: Option<LogicalTime>,
    pub(crate) updates: UpdatesWriter,
}

impl Act {
    pub(crate) fn as_kernel_act(&self) -> KeyedAct<'_> {
        match self {
            Act::Update(updates) => KeyedAct::Update(updates.updates()),
            Act::Commit(NewCommit { number, positions, seal, updates }) => {
                let (number, positions, seal) = (*number, positions.clone(), *seal);
                KeyedAct::Commit(Commit { number, positions, seal, updates: updates.updates() })
            }
            Act::Seal(version) => KeyedAct::Seal(*version),
            Act::Create(policy) => KeyedAct::Create(*policy),
            Act::Delete => KeyedAct::Delete,
            Act::BeginRestore(restored) => KeyedAct::BeginRestore(*restored),
            Act::RestoreRows(number, rows) => KeyedAct::RestoreRows(*number, rows.rows()),
            Act::EndRestore(number, counts) => KeyedAct::EndRestore(*number, *counts),
            Act::AbandonRestore(number) => KeyedAct::AbandonRestore(*number),
            Act::BeginCheckpoint => KeyedAct::BeginCheckpoint,
            Act::EndCheckpoint(begun) => KeyedAct::EndCheckpoint(*begun),
        }
    }
}
