//! A user's machine alone on a store: the machine, with one place for all of its state.

use kv::{Key, Staging, Writer};

use crate::digest::Digester;
use crate::machine::{Call, CommandDigest, Execution, Halt, Machine, SessionEvent};
use crate::pushes::Pushes;
use crate::user::{BytesMachine, NewSession, UserCall, UserMachine, machine_id};

/// A [`UserMachine`] as the [`Machine`] of its own [`SessionMachine`](crate::SessionMachine), without groups.
pub struct Alone<M> {
    machine: M,
    prefix: Key,
}

impl<M: UserMachine> Alone<M> {
    /// The machine, with its state below a prefix, which must not be one of the keys of sessions.
    pub fn new(machine: M, prefix: Key) -> Self {
        Self { machine, prefix }
    }
}

impl<M: UserMachine> Machine for Alone<M> {
    fn digest(&self, call: &Call<'_>) -> Result<CommandDigest, Halt> {
        Ok(Digester::new("machine").number("machine", M::NUMBER.into()).member("body", call.body).finish())
    }

    fn apply(
        &mut self,
        state: &mut Staging,
        call: &Call<'_>,
        pushes: &mut Pushes,
        answer: &mut Writer,
    ) -> Result<Execution, Halt> {
        let known = machine_id(M::NUMBER, M::VERSION);
        if call.machine > known || call.machine >> 16 != known >> 16 {
            return Err(Halt::Newer { what: "machine", found: call.machine, known });
        }
        self.machine.apply_bytes(state, &self.prefix, &UserCall::of(call), call.body, pushes, answer)?;
        Ok(Execution::Decided { owned: true })
    }

    fn on_session_created(
        &mut self,
        state: &mut Staging,
        event: &SessionEvent<'_>,
        pushes: &mut Pushes,
    ) -> Result<(), Halt> {
        let session = NewSession { number: event.session, capabilities: event.capabilities };
        self.machine.created(state, &self.prefix, &UserCall::of_event(event, M::VERSION), &session, pushes)
    }

    fn on_session_expired(
        &mut self,
        state: &mut Staging,
        event: &SessionEvent<'_>,
        pushes: &mut Pushes,
    ) -> Result<(), Halt> {
        self.machine.expired(state, &self.prefix, &UserCall::of_event(event, M::VERSION), pushes)
    }
}
