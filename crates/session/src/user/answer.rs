//! The answer to a command of a user's machine, as bytes.

use kv::{DecodeError, Reader, Writer};

/// Before the bytes of a response.
pub(super) const RESPONSE: u8 = 0;
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
    pub(super) fn encode(&self, writer: &mut Writer) {
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
