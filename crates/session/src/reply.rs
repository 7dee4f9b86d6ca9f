//! What comes back for a command: the machine's answer, or a refusal of the session machine.

use kv::{DecodeError, Reader, Writer};

const ANSWER: u8 = 0;
const SESSION_EXPIRED: u8 = 1;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reply<'bytes> {
    /// The machine's answer, in its own encoding.
    Answer(&'bytes [u8]),
    /// The session is not known. The command was not executed.
    SessionExpired,
}

impl<'bytes> Reply<'bytes> {
    /// Begins a reply whose rest is the machine's answer.
    pub(crate) fn begin_answer(writer: &mut Writer) {
        writer.u8(ANSWER);
    }

    /// Writes a refusal.
    pub(crate) fn session_expired(writer: &mut Writer) {
        writer.u8(SESSION_EXPIRED);
    }

    /// Reads a reply that fills `bytes`.
    pub fn decode(bytes: &'bytes [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        match reader.u8()? {
            ANSWER => Ok(Reply::Answer(reader.rest())),
            SESSION_EXPIRED => reader.end().map(|()| Reply::SessionExpired),
            _ => Err(DecodeError { what: "a reply of an unknown kind" }),
        }
    }
}
