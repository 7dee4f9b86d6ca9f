//! A machine supplied by a user: typed commands and its own state, without any knowledge of sessions, images or bytes
//! on disk.

mod answer;
mod bytes_machine;
mod state;

use kv::{DecodeError, KvError, Writer};

use crate::machine::{Call, SessionEvent};
use crate::pushes::Pushes;

pub use answer::{Refused, UserAnswer};
pub use bytes_machine::{BytesMachine, panic_message};
pub use state::{
    USER_KEY_BYTES_MAX, USER_PAGE_BYTES_MAX, USER_PAGE_ROWS_MAX, USER_VALUE_BYTES_MAX, UserState, UserView,
};

/// A command of a machine, with its response type and the encoding of both.
pub trait Command: Sized {
    /// The response. Errors are part of it: a machine has no other way to refuse.
    type Response;

    /// Appends the command's bytes.
    fn encode(&self, writer: &mut Writer);

    /// Reads a command that fills `bytes`.
    fn decode(bytes: &[u8]) -> Result<Self, DecodeError>;

    /// Appends a response's bytes.
    fn encode_response(response: &Self::Response, writer: &mut Writer);

    /// Reads a response that fills `bytes`.
    fn decode_response(bytes: &[u8]) -> Result<Self::Response, DecodeError>;
}

/// A deterministic machine that somebody brings: each of its commands is executed once, whatever is lost on the way.
///
/// # Duties
/// - The response, writes and pushes of a method depend only on its state and its arguments: no clock (the time is in
///   [`UserCall`]), no randomness, no hash order, no other state.
/// - The only error is one that the state gave.
pub trait UserMachine: Send + Sync + 'static {
    /// The machine's number, above 255; chosen once, never changed.
    const NUMBER: u16;
    /// The version of its commands and its behaviour. A newer one must understand the commands of older ones.
    const VERSION: u16;

    /// Its commands.
    type Command: Command;

    /// Applies a command and returns the response.
    fn apply(
        &self,
        state: &mut UserState<'_>,
        call: &UserCall,
        command: Self::Command,
        pushes: &mut Pushes,
    ) -> Result<<Self::Command as Command>::Response, KvError>;

    /// A session is new to this state. A machine that does not care leaves this out.
    fn on_session_created(
        &self,
        _state: &mut UserState<'_>,
        _call: &UserCall,
        _session: &NewSession<'_>,
        _pushes: &mut Pushes,
    ) -> Result<(), KvError> {
        Ok(())
    }

    /// A session that this state has seen has ended. Pushes to it are dropped, those to others arrive. A machine that keeps
    /// nothing for a session leaves this out.
    fn on_session_expired(
        &self,
        _state: &mut UserState<'_>,
        _call: &UserCall,
        _session: u64,
        _pushes: &mut Pushes,
    ) -> Result<(), KvError> {
        Ok(())
    }
}

/// A session that a machine has not seen before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewSession<'row> {
    /// Its number.
    pub number: u64,
    /// The client's description of itself: names and values.
    pub capabilities: &'row [(String, Vec<u8>)],
}

/// The circumstances of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserCall {
    /// The session that sent it, if one did.
    pub session: Option<u64>,
    /// The time, UTC in µs, the same on every replica.
    pub wall_us: u64,
    /// The number of the command among all applied ones.
    pub commit: u64,
    /// The version of the machine that the command was made for.
    pub version: u16,
}

impl UserCall {
    /// The circumstances of a call.
    pub fn of(call: &Call<'_>) -> Self {
        let version = (call.machine & 0xffff) as u16;
        Self { session: call.session, wall_us: call.stamp.wall_us, commit: call.commit, version }
    }

    /// The circumstances of the start or end of a session.
    pub fn of_event(event: &SessionEvent<'_>, version: u16) -> Self {
        Self { session: Some(event.session), wall_us: event.stamp.wall_us, commit: event.commit, version }
    }
}

/// The number of a machine and its version, as envelopes have it.
pub fn machine_id(number: u16, version: u16) -> u32 {
    u32::from(number) << 16 | u32::from(version)
}
