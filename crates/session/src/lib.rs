//! The session machine: any deterministic machine, with each request of a session executed exactly once.
//!
//! - [`machine`]: what a deterministic machine is.
//! - [`envelope`]: the fields that every command carries around its body, sessions' included.
//! - [`reply`]: what comes back: the machine's answer, or a refusal of the session machine.
//!
//! In this release no session can be opened, so [`SessionMachine`] hands commands without a session to the machine
//! and answers every other one [`Reply::SessionExpired`], which is never executed.
//!
//! Touches: the state that it is given. Never: does I/O or reads a clock.

pub mod envelope;
pub mod machine;
pub mod reply;

pub use envelope::Envelope;
pub use machine::{Call, Halt, Machine, Stamp};
pub use reply::Reply;

use kv::{Staging, Writer};

/// Applies commands to a machine, each at most once.
pub struct SessionMachine<M> {
    machine: M,
}

impl<M: Machine> SessionMachine<M> {
    /// Sessions around `machine`.
    pub fn new(machine: M) -> Self {
        Self { machine }
    }

    /// The machine inside.
    pub fn machine(&self) -> &M {
        &self.machine
    }

    /// The machine inside, for what it does between commands.
    pub fn machine_mut(&mut self) -> &mut M {
        &mut self.machine
    }

    /// Applies one command, given as the bytes of its envelope, and writes the bytes of a [`Reply`].
    pub fn apply(
        &mut self,
        state: &mut Staging,
        stamp: Stamp,
        commit: u64,
        command: &[u8],
        reply: &mut Writer,
    ) -> Result<(), Halt> {
        let envelope = Envelope::decode(command)?;
        if envelope.session.is_some() {
            Reply::session_expired(reply);
            return Ok(());
        }
        let call = Call {
            machine: envelope.machine,
            catalogue_revision: envelope.catalogue_revision,
            body: envelope.body,
            stamp,
            commit,
        };
        Reply::begin_answer(reply);
        self.machine.apply(state, &call, reply)
    }
}
