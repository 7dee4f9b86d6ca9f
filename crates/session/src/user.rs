//! A machine supplied by a user: typed commands and its own state, without any knowledge of sessions, images or bytes
//! on disk.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use kv::{Bytes, DecodeError, Key, KeyRange, KvError, Order, Reader, Rows, Staging, View, Writer};

use crate::machine::{Call, Halt, SessionEvent};
use crate::pushes::Pushes;

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

/// Bytes of a key of a user's machine.
pub const USER_KEY_BYTES_MAX: usize = 1024;
/// Bytes of a value of a user's machine.
pub const USER_VALUE_BYTES_MAX: usize = 1 << 20;
/// Rows of a page of a user's machine.
pub const USER_PAGE_ROWS_MAX: usize = 1_000;
/// Bytes of keys and values after which a page of a user's machine ends.
pub const USER_PAGE_BYTES_MAX: usize = 4 << 20;

/// Why a command of a user's machine was refused by the framework. It changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The machine cannot read it.
    Undecodable,
    /// The machine tried to write a key that is too long.
    KeyTooLong {
        /// Its bytes.
        got: u64,
    },
    /// The machine tried to write a value that is too long.
    ValueTooLong {
        /// Its bytes.
        got: u64,
    },
}

/// The keys of a user's machine.
struct Own {
    prefix: Key,
}

impl Own {
    fn key(&self, key: &[u8]) -> Key {
        let mut whole = self.prefix.clone();
        whole.extend_from_slice(key);
        whole
    }

    fn range(&self, prefix: &[u8]) -> KeyRange {
        KeyRange::prefix(&self.key(prefix))
    }

    /// Rows with the machine's own keys.
    fn rows<'rows>(&self, rows: Rows<'rows>) -> impl Iterator<Item = Result<(Vec<u8>, Bytes), KvError>> + use<'rows> {
        let prefix = self.prefix.len();
        rows.map(move |row| row.map(|(key, value)| (key[prefix..].to_vec(), value)))
    }
}

/// The state of a user's machine: rows by keys of its choice, separate from everything else.
pub struct UserState<'state> {
    state: &'state mut Staging,
    own: Own,
    refused: Option<Refused>,
}

impl<'state> UserState<'state> {
    /// The state below a prefix.
    pub fn new(state: &'state mut Staging, prefix: Key) -> Self {
        Self { state, own: Own { prefix }, refused: None }
    }

    /// The value at a key.
    pub fn get(&self, key: &[u8]) -> Result<Option<Bytes>, KvError> {
        self.state.get(&self.own.key(key))
    }

    /// Writes a value. If it or its key is too long, the whole command is refused and changes nothing; when a session
    /// starts or ends, where nobody could be told, the value is left out.
    pub fn put(&mut self, key: &[u8], value: &[u8]) {
        if key.len() > USER_KEY_BYTES_MAX {
            self.refused.get_or_insert(Refused::KeyTooLong { got: key.len() as u64 });
        } else if value.len() > USER_VALUE_BYTES_MAX {
            self.refused.get_or_insert(Refused::ValueTooLong { got: value.len() as u64 });
        } else {
            self.state.put(self.own.key(key), value);
        }
    }

    /// Removes a value.
    pub fn delete(&mut self, key: &[u8]) {
        self.state.delete(self.own.key(key));
    }

    /// The rows whose keys start with `prefix`, in key order. They are read one by one; to write in between, read
    /// [pages](Self::page).
    pub fn scan(&self, prefix: &[u8]) -> impl Iterator<Item = Result<(Vec<u8>, Bytes), KvError>> + '_ {
        self.own.rows(self.state.scan(&self.own.range(prefix), Order::Ascending))
    }

    /// The next rows whose keys start with `prefix` and come after the key `after`, or the first ones, in key order; none at the end. A page
    /// ends after [`USER_PAGE_ROWS_MAX`] rows, or with the row that reaches [`USER_PAGE_BYTES_MAX`].
    ///
    /// ```
    /// use kv::KvError;
    /// use statehouse_session::UserState;
    ///
    /// fn forget_all(state: &mut UserState<'_>, prefix: &[u8]) -> Result<(), KvError> {
    ///     let mut after = None;
    ///     loop {
    ///         let page = state.page(prefix, after.as_deref())?;
    ///         let Some((last, _)) = page.last() else { return Ok(()) };
    ///         after = Some(last.clone());
    ///         page.iter().for_each(|(key, _)| state.delete(key));
    ///     }
    /// }
    /// ```
    pub fn page(&self, prefix: &[u8], after: Option<&[u8]>) -> Result<Vec<(Vec<u8>, Bytes)>, KvError> {
        let range = self.own.range(prefix);
        let range = match after {
            None => range,
            Some(after) => range.after(&self.own.key(after)),
        };
        let mut page = Vec::new();
        let mut bytes = 0;
        for row in self.own.rows(self.state.scan(&range, Order::Ascending)).take(USER_PAGE_ROWS_MAX) {
            let (key, value) = row?;
            bytes += key.len() + value.len();
            page.push((key, value));
            if bytes >= USER_PAGE_BYTES_MAX {
                break;
            }
        }
        Ok(page)
    }
}

/// The state of a user's machine as one view has it.
pub struct UserView<V> {
    view: V,
    own: Own,
}

impl<V: std::ops::Deref<Target = dyn View>> UserView<V> {
    /// The rows of a view below a prefix.
    pub fn new(view: V, prefix: Key) -> Self {
        Self { view, own: Own { prefix } }
    }

    /// The value at a key.
    pub fn get(&self, key: &[u8]) -> Result<Option<Bytes>, KvError> {
        self.view.get(&self.own.key(key))
    }

    /// The rows whose keys start with `prefix`, in key order.
    pub fn scan(&self, prefix: &[u8]) -> impl Iterator<Item = Result<(Vec<u8>, Bytes), KvError>> + '_ {
        self.own.rows(self.view.scan(&self.own.range(prefix), Order::Ascending))
    }
}

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

const RESPONSE: u8 = 0;
const REFUSED_UNDECODABLE: u8 = 1;
const REFUSED_KEY: u8 = 2;
const REFUSED_VALUE: u8 = 3;

/// The answer to a command of a user's machine, as bytes; `docs/formats/sessions.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserAnswer<'bytes> {
    /// The machine's response, in its own encoding.
    Response(&'bytes [u8]),
    /// The framework refused it.
    Refused(Refused),
}

impl<'bytes> UserAnswer<'bytes> {
    fn encode(&self, writer: &mut Writer) {
        match self {
            UserAnswer::Response(response) => writer.u8(RESPONSE).raw(response),
            UserAnswer::Refused(Refused::Undecodable) => writer.u8(REFUSED_UNDECODABLE),
            UserAnswer::Refused(Refused::KeyTooLong { got }) => writer.u8(REFUSED_KEY).u64(*got),
            UserAnswer::Refused(Refused::ValueTooLong { got }) => writer.u8(REFUSED_VALUE).u64(*got),
        };
    }

    /// Reads an answer that fills `bytes`.
    pub fn decode(bytes: &'bytes [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let refused = match reader.u8()? {
            RESPONSE => return Ok(UserAnswer::Response(reader.rest())),
            REFUSED_UNDECODABLE => Refused::Undecodable,
            REFUSED_KEY => Refused::KeyTooLong { got: reader.u64()? },
            REFUSED_VALUE => Refused::ValueTooLong { got: reader.u64()? },
            _ => {
                return Err(DecodeError { what: "an answer of an unknown kind" });
            }
        };
        reader.end().map(|()| UserAnswer::Refused(refused))
    }
}

#[cfg(test)]
mod tests;
