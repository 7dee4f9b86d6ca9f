//! What a deterministic machine is: a function of state, time and command.

use kv::{DecodeError, KvError, Staging, Writer};

/// The two times of an entry, in µs; see `ARCHITECTURE.md`, Time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// UTC, strictly rising.
    pub wall_us: u64,
    /// Stands still while nobody leads.
    pub cluster_us: u64,
}

/// One command as a machine sees it.
#[derive(Clone, Copy, Debug)]
pub struct Call<'command> {
    /// Which machine, and which version of it, the command was made for.
    pub machine: u32,
    /// The catalogue revision that the command was checked against.
    pub catalogue_revision: u64,
    /// What to do, in the machine's own encoding.
    pub body: &'command [u8],
    /// When.
    pub stamp: Stamp,
    /// The number of this command among all that were applied.
    pub commit: u64,
}

/// A deterministic machine.
///
/// # Duties
/// - The answer and the staged writes depend on the state and the call alone: no clock, no randomness, no hash order.
/// - A rejected command leaves nothing staged.
/// - A command that the machine does not know halts it. Skipping one would make replicas differ.
pub trait Machine {
    /// Applies a command and writes the bytes of its answer.
    fn apply(&mut self, state: &mut Staging, call: &Call<'_>, answer: &mut Writer) -> Result<(), Halt>;
}

/// The machine cannot go on: the state could not be read, or the command is from another release.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Halt {
    /// The store below failed.
    #[error(transparent)]
    Store(#[from] KvError),
    /// A command, an entry or a stored row could not be decoded.
    #[error("{what} cannot be read: {error}")]
    Undecodable {
        /// What was being read.
        what: &'static str,
        /// What is wrong with it.
        error: DecodeError,
    },
    /// Made by a newer release.
    #[error("{what} {found} is newer than this release knows ({known}); run the newer release")]
    Newer {
        /// What is newer.
        what: &'static str,
        /// Its number.
        found: u32,
        /// The highest number that is known here.
        known: u32,
    },
    /// Stored state contradicts itself.
    #[error("stored state contradicts itself: {0}")]
    Inconsistent(String),
}

impl From<DecodeError> for Halt {
    fn from(error: DecodeError) -> Self {
        Halt::Undecodable { what: "a command", error }
    }
}
