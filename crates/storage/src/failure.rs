//! Why an operation of the store did not finish, sorted by what may happen next.

use kv::{DamagedRange, Key, KeyRange, KvError};

/// The outcome of a failed operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Nothing has changed; a later attempt may succeed.
    Retry(KvError),
    /// A sync failed, so nobody knows what the disk holds. The store accepts no more writes.
    InDoubt(KvError),
    /// Bytes of a table differ from what was written.
    Damaged(Box<Damage>),
    /// The store is closing.
    Stopped,
    /// A merge would have written more than the space it was given.
    OverRoom,
}

/// A part of a file that differs from what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Damage {
    /// The number of the table; 0 for the manifest.
    pub table: u64,
    /// The name of the file.
    pub file: String,
    /// Where the damaged part starts.
    pub offset: u64,
    /// What is wrong with it.
    pub reason: &'static str,
    /// The keys that it may hold; within the table's own.
    pub keys: KeyRange,
    /// What becomes of it.
    pub effect: Effect,
}

/// What damage means for readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effect {
    /// The keys cannot be read.
    Lost,
    /// The keys cannot be read, and stay so, whatever the disk says later.
    SetApart,
    /// Nothing is lost: the part was made again from others.
    Healed,
    /// Nothing is lost: newer tables have replaced whatever the part holds.
    Unused,
}

impl Damage {
    /// As the error of a scan that meets the damage at a key.
    pub(crate) fn met_at(self, at: Key) -> KvError {
        KvError::Damaged(Box::new(DamagedRange {
            place: format!("{} at byte {}", self.file, self.offset),
            reason: self.reason,
            range: self.keys,
            at,
            words: None,
            is_set_apart: self.effect == Effect::SetApart,
        }))
    }
}

impl From<Damage> for KvError {
    fn from(damage: Damage) -> Self {
        let start = damage.keys.start.as_slice().into();
        damage.met_at(start)
    }
}

impl From<Damage> for Failure {
    fn from(damage: Damage) -> Self {
        Failure::Damaged(Box::new(damage))
    }
}

impl From<Failure> for KvError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Retry(error) => error,
            Failure::InDoubt(error) => KvError::Poisoned { first: error.to_string() },
            Failure::Damaged(damage) => (*damage).into(),
            Failure::Stopped => KvError::Closed,
            Failure::OverRoom => {
                KvError::NoSpace { action: "merge tables", bytes_needed: 0, reason: "no room was left".into() }
            }
        }
    }
}
