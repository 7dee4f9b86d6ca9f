//! The session machine: any deterministic machine, with each request of a session executed exactly once.
//!
//! - [`sessions`]: [`SessionMachine`], which executes, stores answers, and refuses.
//! - [`machine`]: a deterministic machine, in bytes. [`user`]: a typed machine supplied by a user.
//! - [`envelope`]: the fields that every command carries around its body, sessions' included. [`command`]: the commands
//!   of sessions themselves.
//! - [`digest`]: tells apart different commands sent with the same number.
//! - [`reply`]: the machine's answer, or a refusal of the session machine.
//! - [`row`], `head`, [`pushes`]: the stored state of a session; [`status`]: reading it. [`keys`]: its keys.
//!   [`limits`]: its limits. [`number`]: what its number says. [`owner`]: whose it is.
//!   [`secret_digest`]: what is stored of its secret.
//! - [`policy`]: when the next image is due.
//!
//! Touches: the state passed to it. Keeps: E1 to E5 of `ARCHITECTURE.md`. Never: does I/O or reads a clock.

#[cfg(feature = "canary")]
pub mod canary;
pub mod command;
pub mod digest;
pub mod envelope;
mod head;
mod heads;
pub mod keys;
pub mod limits;
pub mod machine;
pub mod number;
pub mod owner;
pub mod policy;
pub mod pushes;
pub mod reply;
pub mod row;
pub mod secret_digest;
mod session_commands;
mod session_count;
pub mod sessions;
pub mod status;
pub mod user;

pub use command::{PendingPush, SESSIONS, SessionAnswer, SessionCommand};
pub use digest::Digester;
pub use envelope::{Envelope, Sender};
pub use keys::SessionKeys;
pub use limits::{Bound, SessionLimits};
pub use machine::{Call, CommandDigest, Execution, Halt, Machine, OwnedIn, SessionEvent, Stamp};
pub use number::SessionNumber;
pub use owner::SessionOwner;
pub use policy::{ImagePolicy, SinceImage};
pub use pushes::Pushes;
pub use reply::Reply;
pub use row::SessionRow;
pub use secret_digest::SecretDigest;
pub use sessions::{ChangedSessions, CreatedSession, SessionMachine};
pub use status::SessionStatus;
pub use user::{BytesMachine, Command, NewSession, Refused, UserAnswer, UserCall, UserMachine, UserState, UserView};
