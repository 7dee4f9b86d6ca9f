//! A deterministic machine: a function of state, time and command, notified when sessions start and end.

use crate::envelope::Sender;
use kv::{DamagedRange, DecodeError, KeyRange, KvError, Staging, Writer};

use crate::pushes::Pushes;

/// The two times of an entry, in µs; see `ARCHITECTURE.md`, Time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// UTC, strictly rising.
    pub wall_us: u64,
    /// Stands still while there is no leader.
    pub cluster_us: u64,
}

/// One command as a machine sees it.
#[derive(Clone, Copy, Debug)]
pub struct Call<'command> {
    /// The machine, and its version, that the command was made for.
    pub machine: u32,
    /// The session that sent it, if one did. It exists: commands of sessions that do not are never executed.
    pub session: Option<u64>,
    /// Who sent it, if it is known. What it does must not depend on it.
    pub sender: Option<Sender<'command>>,
    /// The catalogue revision that the command was checked against.
    pub catalogue_revision: u64,
    /// The command, in the machine's own encoding.
    pub body: &'command [u8],
    /// When.
    pub stamp: Stamp,
    /// The number of this command among all applied ones.
    pub commit: u64,
}

/// Tells apart different commands sent with the same number: the same command has the same digest in every release.
pub type CommandDigest = [u8; 16];

/// The result of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Execution {
    /// It was decided: the same command in the same session gets the same answer from now on.
    Decided {
        /// The places where it left something that ends with the session that sent it. What a place is, the machine knows.
        owned: Vec<u16>,
    },
    /// There was nothing to decide yet, and nothing changed. Sent again, it is executed again.
    NotYet,
}

/// Where a session may own something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnedIn {
    /// In these places, in their order.
    Places(Vec<u16>),
    /// Nobody knows: the row that said so is lost.
    Anywhere,
}

/// The start or end of a session.
#[derive(Clone, Debug)]
pub struct SessionEvent<'event> {
    /// The session.
    pub session: u64,
    /// The client's description of itself at the start; empty at the end.
    pub capabilities: &'event [(String, Vec<u8>)],
    /// Where commands of it have left something that ends with it.
    pub owned: OwnedIn,
    /// When.
    pub stamp: Stamp,
    /// The number of the command that caused it.
    pub commit: u64,
}

/// A deterministic machine, in bytes. [`UserMachine`](crate::UserMachine) is the typed one that most people write.
///
/// # Duties
/// - The answer, the staged writes and the pushes depend on the state and the call alone: no clock, no randomness, no
///   hash order.
/// - A rejected command leaves nothing staged.
/// - A command that the machine does not know halts it. Skipping one would make replicas differ.
pub trait Machine {
    /// Identifies a command among all that a session could send with the same number: what it asks for and where, and
    /// nothing that may differ when a client repeats it.
    fn digest(&self, call: &Call<'_>) -> Result<CommandDigest, Halt>;

    /// Applies a command and writes the bytes of its answer.
    fn apply(
        &mut self,
        state: &mut Staging,
        call: &Call<'_>,
        pushes: &mut Pushes,
        answer: &mut Writer,
    ) -> Result<Execution, Halt>;

    /// Names a damaged range of keys: where it begins and where it ends.
    fn name_range(&self, range: &KeyRange) -> (String, String) {
        let name = |key: &[u8]| key.escape_ascii().to_string();
        (name(&range.start), range.end.as_deref().map_or_else(String::new, name))
    }

    /// A session was created.
    fn on_session_created(
        &mut self,
        state: &mut Staging,
        event: &SessionEvent<'_>,
        pushes: &mut Pushes,
    ) -> Result<(), Halt>;

    /// A session has ended: it expired, or its client closed it. Pushes to it are dropped, those to others arrive.
    fn on_session_expired(
        &mut self,
        state: &mut Staging,
        event: &SessionEvent<'_>,
        pushes: &mut Pushes,
    ) -> Result<(), Halt>;
}

/// Why the machine cannot continue: the state could not be read, or the command is from another release.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Halt {
    /// The store below failed.
    #[error(transparent)]
    Store(#[from] KvError),
    /// A command, an entry or a stored row could not be decoded.
    #[error("{what} cannot be read: {error}")]
    Undecodable {
        /// The thing being read.
        what: &'static str,
        /// What is wrong with it.
        error: DecodeError,
    },
    /// Made by a newer release.
    #[error("{what} {found} is newer than this release knows ({known}); run the newer release")]
    Newer {
        /// The newer thing.
        what: &'static str,
        /// Its number.
        found: u32,
        /// The highest number known here.
        known: u32,
    },
    /// A registered user's machine was not supplied, or only in an older version.
    #[error(
        "machine {number} is registered here in version {version}, but {}; open the directory with it", missing(.brought)
    )]
    MachineMissing {
        /// Its number.
        number: u16,
        /// The registered version.
        version: u16,
        /// The supplied version, if any.
        brought: Option<u16>,
    },
    /// A user's machine panicked. The command is in the journal: it will panic again until the machine is repaired.
    #[error(
        "machine {number} (version {version}) panicked: {message}; the fault is in that machine, not in the store: open with a \
         repaired one"
    )]
    MachinePanicked {
        /// Its number.
        number: u16,
        /// The supplied version.
        version: u16,
        /// The message of its panic.
        message: String,
    },
    /// Stored state contradicts itself.
    #[error("stored state contradicts itself: {0}")]
    Inconsistent(String),
}

impl Halt {
    /// The damaged range that a command has met, if it is set apart: the command is refused, and all else goes on.
    pub fn set_apart(&self) -> Option<&DamagedRange> {
        match self {
            Halt::Store(KvError::Damaged(damaged)) if damaged.is_set_apart => Some(damaged),
            _ => None,
        }
    }
}

fn missing(brought: &Option<u16>) -> String {
    brought.map_or_else(|| "it was not supplied".to_owned(), |version| format!("only version {version} was supplied"))
}

impl From<DecodeError> for Halt {
    fn from(error: DecodeError) -> Self {
        Halt::Undecodable { what: "a command", error }
    }
}
