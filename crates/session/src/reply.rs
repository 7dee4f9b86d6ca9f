//! The reply to a command: the machine's answer, or a refusal of the session machine; `docs/formats/entry.md`.

use kv::{DecodeError, Reader, Writer};

use crate::limits::Bound;

const ANSWER: u8 = 0;
const SESSION_EXPIRED: u8 = 1;
const STORED: u8 = 2;
const EVICTED: u8 = 3;
const BUSY: u8 = 4;
const REUSED: u8 = 5;
const DAMAGED: u8 = 6;
const NUMBERS_EXHAUSTED: u8 = 7;

/// A reply, as the client of a session or of none gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reply<'bytes> {
    /// The machine's answer, in its own encoding.
    Answer(&'bytes [u8]),
    /// The stored answer of the same request. It was not executed again.
    Stored(&'bytes [u8]),
    /// The session is unknown. The command was not executed.
    SessionExpired,
    /// The client no longer waits for this request. The command was not executed now; whether it was executed before is
    /// no longer known.
    Evicted {
        /// The lowest request that is still answered.
        floor: u64,
    },
    /// Another command was executed under this number. This one was not executed.
    Reused,
    /// The session has reached a limit. The command was not executed; it may be repeated.
    Busy {
        /// Which.
        bound: Bound,
        /// The value of the limit.
        max: u64,
    },
    /// What the session machine needs for the command is damaged. The command was not executed.
    Damaged {
        /// Where the damaged range begins, in the machine's words.
        from: &'bytes str,
        /// Where it ends.
        to: &'bytes str,
    },
    /// The shard has no numbers for new sessions any more. None was created.
    NumbersExhausted {
        /// The command that would have been its number.
        commit: u64,
    },
}

impl<'bytes> Reply<'bytes> {
    /// Begins a reply whose rest is the machine's answer.
    pub(crate) fn begin_answer(writer: &mut Writer) {
        writer.u8(ANSWER);
    }

    /// Writes a reply.
    pub(crate) fn encode(&self, writer: &mut Writer) {
        match self {
            Reply::Answer(answer) => writer.u8(ANSWER).raw(answer),
            Reply::Stored(answer) => writer.u8(STORED).raw(answer),
            Reply::SessionExpired => writer.u8(SESSION_EXPIRED),
            Reply::Reused => writer.u8(REUSED),
            Reply::Damaged { from, to } => writer.u8(DAMAGED).bytes(from.as_bytes()).bytes(to.as_bytes()),
            Reply::NumbersExhausted { commit } => writer.u8(NUMBERS_EXHAUSTED).u64(*commit),
            Reply::Evicted { floor } => writer.u8(EVICTED).u64(*floor),
            Reply::Busy { bound, max } => {
                let number = Bound::ALL.iter().position(|one| one == bound).expect("every bound is listed");
                writer.u8(BUSY).u8(u8::try_from(number).expect("there are few")).u64(*max)
            }
        };
    }

    /// Whether the bytes of a reply are the stored answer of the same request.
    pub fn is_stored(bytes: &[u8]) -> bool {
        bytes.first() == Some(&STORED)
    }

    /// Reads a reply that fills `bytes`.
    pub fn decode(bytes: &'bytes [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let reply = match reader.u8()? {
            ANSWER => return Ok(Reply::Answer(reader.rest())),
            STORED => return Ok(Reply::Stored(reader.rest())),
            SESSION_EXPIRED => Reply::SessionExpired,
            REUSED => Reply::Reused,
            DAMAGED => Reply::Damaged { from: reader.text()?, to: reader.text()? },
            NUMBERS_EXHAUSTED => Reply::NumbersExhausted { commit: reader.u64()? },
            EVICTED => Reply::Evicted { floor: reader.u64()? },
            BUSY => {
                let bound = Bound::ALL.get(usize::from(reader.u8()?));
                let bound = *bound.ok_or(DecodeError { what: "an unknown bound of sessions" })?;
                Reply::Busy { bound, max: reader.u64()? }
            }
            _ => {
                return Err(DecodeError { what: "a reply of an unknown kind" });
            }
        };
        reader.end().map(|()| reply)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of `docs/formats/entry.md`. A change here is a change of the format.
    #[test]
    fn golden_replies() {
        let replies = [
            (Reply::Answer(b"a"), "0061"),
            (Reply::SessionExpired, "01"),
            (Reply::Stored(b"a"), "0261"),
            (Reply::Evicted { floor: 7 }, "030700000000000000"),
            (Reply::Reused, "05"),
            (Reply::Damaged { from: "a", to: "bc" }, "060100000061020000006263"),
            (Reply::NumbersExhausted { commit: 1 << 48 }, "070000000000000100"),
            (Reply::Busy { bound: Bound::Answers, max: 256 }, "04010001000000000000"),
        ];
        for (reply, hex) in replies {
            let mut writer = Writer::new();
            reply.encode(&mut writer);
            let bytes = writer.finish();
            assert_eq!(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>(), hex);
            assert_eq!(Reply::decode(&bytes), Ok(reply));
            assert_eq!(Reply::is_stored(&bytes), matches!(reply, Reply::Stored(_)));
        }
    }
}
