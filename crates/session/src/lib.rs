//! The session machine: any deterministic machine, with each request of a session executed exactly once.
//!
//! - [`sessions`]: [`SessionMachine`], which executes, stores answers, and refuses.
//! - [`machine`]: what a deterministic machine is, in bytes. [`user`]: the typed one that somebody brings, and
//!   [`alone`]: such a machine by itself on a store.
//! - [`envelope`]: the fields that every command carries around its body, sessions' included. [`command`]: the commands
//!   of sessions themselves.
//! - [`digest`]: what tells commands apart that are sent with one number.
//! - [`reply`]: what comes back: the machine's answer, or a refusal of the session machine.
//! - [`row`], `head`, [`pushes`]: what is stored of a session; [`status`]: how it is doing. [`keys`]: where. [`limits`]: how much.
//! - [`policy`]: when the next image is due.
//!
//! Touches: the state that it is given. Keeps: E1 to E5 of `ARCHITECTURE.md`. Never: does I/O or reads a clock.

pub mod alone;
#[cfg(feature = "canary")]
pub mod canary;
pub mod command;
pub mod digest;
pub mod envelope;
mod head;
pub mod keys;
pub mod limits;
pub mod machine;
pub mod policy;
pub mod pushes;
pub mod reply;
pub mod row;
pub mod sessions;
pub mod status;
pub mod user;

pub use alone::Alone;
pub use command::{PendingPush, SESSIONS, SessionAnswer, SessionCommand};
pub use digest::Digester;
pub use envelope::Envelope;
pub use keys::SessionKeys;
pub use limits::{Bound, SessionLimits};
pub use machine::{Call, CommandDigest, Execution, Halt, Machine, SessionEvent, Stamp};
pub use policy::{ImagePolicy, SinceImage};
pub use pushes::Pushes;
pub use reply::Reply;
pub use row::SessionRow;
pub use sessions::{ChangedSessions, SessionMachine};
pub use status::SessionStatus;
pub use user::{BytesMachine, Command, NewSession, Refused, UserAnswer, UserCall, UserMachine, UserState, UserView};
