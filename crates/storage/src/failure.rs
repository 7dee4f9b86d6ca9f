//! Why an operation of the store did not finish, sorted by what may happen next.

use kv::{Key, KvError};

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

/// A part of a table that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The number of the table.
    pub table: u64,
    /// The name of its file.
    pub file: String,
    /// Where the damaged part starts.
    pub offset: u64,
    /// What is wrong with it.
    pub reason: &'static str,
    /// Every key in the part is greater than this one. None: the part may start before all keys of the table.
    pub keys_after: Option<Key>,
    /// Every key in the part is at most this one. None: the part may reach to the end of the table.
    pub keys_upto: Option<Key>,
}

impl Damage {
    fn keys(&self) -> String {
        match (&self.keys_after, &self.keys_upto) {
            (None, None) => "any key of the table".into(),
            (None, Some(upto)) => format!("keys up to {upto:?}"),
            (Some(after), None) => format!("keys after {after:?}"),
            (Some(after), Some(upto)) => format!("keys after {after:?} up to {upto:?}"),
        }
    }
}

impl From<Damage> for KvError {
    fn from(damage: Damage) -> Self {
        KvError::Corrupt {
            place: format!("{} at byte {}", damage.file, damage.offset),
            reason: format!("{}; it may hold {}", damage.reason, damage.keys()),
        }
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
