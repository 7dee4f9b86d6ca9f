//! Machines of users in bytes: commands are decoded, responses encoded, and panics named.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use kv::{Key, KvError, Staging, Writer};

use super::answer::{RESPONSE, Refused, UserAnswer};
use super::state::UserState;
use super::{Command, NewSession, UserCall, UserMachine};
use crate::machine::Halt;
use crate::pushes::Pushes;

/// A [`UserMachine`] in bytes, so that machines of different types can be stored together.
pub trait BytesMachine: Send + Sync {
    /// The machine's number.
    fn number(&self) -> u16;

    /// Its version.
    fn version(&self) -> u16;

    /// Reads a command, applies it and appends a [`UserAnswer`].
    fn apply_bytes(
        &self,
        state: &mut Staging,
        prefix: &Key,
        call: &UserCall,
        body: &[u8],
        pushes: &mut Pushes,
        answer: &mut Writer,
    ) -> Result<(), Halt>;

    /// A session is new to the state below `prefix`.
    fn created(
        &self,
        state: &mut Staging,
        prefix: &Key,
        call: &UserCall,
        session: &NewSession<'_>,
        pushes: &mut Pushes,
    ) -> Result<(), Halt>;

    /// A session that the state below `prefix` has seen has ended.
    fn expired(&self, state: &mut Staging, prefix: &Key, call: &UserCall, pushes: &mut Pushes) -> Result<(), Halt>;
}

impl<M: UserMachine> BytesMachine for M {
    fn number(&self) -> u16 {
        M::NUMBER
    }

    fn version(&self) -> u16 {
        M::VERSION
    }

    fn apply_bytes(
        &self,
        state: &mut Staging,
        prefix: &Key,
        call: &UserCall,
        body: &[u8],
        pushes: &mut Pushes,
        answer: &mut Writer,
    ) -> Result<(), Halt> {
        let Ok(command) = named_if_it_panics::<M, _>(|| Ok(M::Command::decode(body)))? else {
            UserAnswer::Refused(Refused::Undecodable).encode(answer);
            return Ok(());
        };
        let pushed = pushes.count();
        let mut own = UserState::new(state, prefix.clone());
        let response = named_if_it_panics::<M, _>(|| self.apply(&mut own, call, command, pushes))?;
        if let Some(refused) = own.refused {
            state.undo();
            pushes.truncate(pushed);
            UserAnswer::Refused(refused).encode(answer);
            return Ok(());
        }
        answer.u8(RESPONSE);
        named_if_it_panics::<M, _>(|| {
            M::Command::encode_response(&response, answer);
            Ok(())
        })
    }

    fn created(
        &self,
        state: &mut Staging,
        prefix: &Key,
        call: &UserCall,
        session: &NewSession<'_>,
        pushes: &mut Pushes,
    ) -> Result<(), Halt> {
        let mut own = UserState::new(state, prefix.clone());
        named_if_it_panics::<M, _>(|| self.on_session_created(&mut own, call, session, pushes))
    }

    fn expired(&self, state: &mut Staging, prefix: &Key, call: &UserCall, pushes: &mut Pushes) -> Result<(), Halt> {
        let session = call.session.expect("an event is of a session");
        let mut own = UserState::new(state, prefix.clone());
        named_if_it_panics::<M, _>(|| self.on_session_expired(&mut own, call, session, pushes))
    }
}

/// Calls a user's machine. Its panic halts the store like any other, but names the machine: whoever is on call must not
/// look for the fault in the store.
fn named_if_it_panics<M: UserMachine, T>(call: impl FnOnce() -> Result<T, KvError>) -> Result<T, Halt> {
    // The half-finished work of the call is never used: nothing is applied after a halt.
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(done) => Ok(done?),
        Err(panic) => {
            Err(Halt::MachinePanicked { number: M::NUMBER, version: M::VERSION, message: panic_message(&*panic) })
        }
    }
}

/// The message of a panic.
pub fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("it gave no message").to_owned()
}
