//! What comes back for a command: the machine's answer, or a refusal of the session machine.

use kv::{DecodeError, Reader, Writer};

const ANSWER: u8 = 0;
const SESSION_EXPIRED: u8 = 1;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reply {
    /// The machine's answer, in its own encoding.
    Answer(Vec<u8>),
    /// The session is not known. The command was not executed.
    SessionExpired,
}

impl Reply {
    /// The reply's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        match self {
            Reply::Answer(answer) => writer.u8(ANSWER).raw(answer),
            Reply::SessionExpired => writer.u8(SESSION_EXPIRED),
        };
        writer.finish()
    }

    /// Reads a reply that fills `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        match reader.u8()? {
            ANSWER => Ok(Reply::Answer(reader.rest().to_vec())),
            SESSION_EXPIRED => reader.end().map(|()| Reply::SessionExpired),
            _ => Err(DecodeError { what: "a reply of an unknown kind" }),
        }
    }
}
