//! The commands of sessions themselves, and their answers, as bytes; `docs/formats/sessions.md`.
//!
//! They carry no request number: repeating one of them is harmless. A repeated creation makes two sessions; the client
//! uses one and the other expires.

use kv::{DecodeError, Reader, Writer};

use crate::owner::{self, SessionOwner};
use crate::secret_digest::SecretDigest;

/// This machine's number (0) and the version of its commands (1).
pub const SESSIONS: u32 = 0x0000_0001;

/// A command of the session machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionCommand {
    /// Creates a session. Its number says by which command, and in which shard.
    Create {
        /// For how long it lives without a sign of its client, in µs.
        timeout_us: u64,
        /// Of its secret, which only its client knows.
        secret: SecretDigest,
        /// The client's description of itself.
        capabilities: Vec<(String, Vec<u8>)>,
        /// Whose it is, if it is known.
        owner: Option<SessionOwner>,
    },
    /// The client has dealt with the pushes up to this one.
    Acknowledge {
        /// The session.
        session: u64,
        /// The last push.
        upto: u64,
    },
    /// Ends these sessions, with everything stored for them.
    Expire {
        /// The sessions.
        sessions: Vec<u64>,
    },
    /// Takes the pushes last sent before a time, and marks them as sent now.
    RequestsForRetry {
        /// Wall time in µs.
        sent_before_us: u64,
        /// Maximum number of pushes.
        limit: u32,
    },
}

/// The answer of the session machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionAnswer {
    /// The session with this number was created.
    Created(u64),
    /// Done; the number of affected sessions or pushes.
    Done(u64),
    /// Pushes to be sent again.
    Retry(Vec<PendingPush>),
}

/// A push that its session has not acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingPush {
    /// The session.
    pub session: u64,
    /// Its number in the session, from 1.
    pub number: u64,
    /// When it was last sent, initially when it was created. Wall time in µs.
    pub last_sent_us: u64,
    /// Its content.
    pub payload: Vec<u8>,
}

const CREATE: u8 = 1;
const ACKNOWLEDGE: u8 = 2;
const EXPIRE: u8 = 3;
const REQUESTS_FOR_RETRY: u8 = 4;

impl SessionCommand {
    /// Appends the command's bytes.
    pub fn encode(&self, writer: &mut Writer) {
        match self {
            SessionCommand::Create { timeout_us, secret, capabilities, owner } => {
                writer.u8(CREATE).u64(*timeout_us);
                secret.encode(writer);
                encode_capabilities(writer, capabilities);
                // Earlier releases wrote nothing here.
                if owner.is_some() {
                    owner::encode(writer, owner.as_ref());
                }
            }
            SessionCommand::Acknowledge { session, upto } => {
                writer.u8(ACKNOWLEDGE).u64(*session).u64(*upto);
            }
            SessionCommand::Expire { sessions } => {
                writer.u8(EXPIRE).varint(sessions.len() as u64);
                for session in sessions {
                    writer.u64(*session);
                }
            }
            SessionCommand::RequestsForRetry { sent_before_us, limit } => {
                writer.u8(REQUESTS_FOR_RETRY).u64(*sent_before_us).u32(*limit);
            }
        }
    }

    /// Reads a command that fills `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let command = match reader.u8()? {
            CREATE => SessionCommand::Create {
                timeout_us: reader.u64()?,
                secret: SecretDigest::decode(&mut reader)?,
                capabilities: decode_capabilities(&mut reader)?,
                owner: if reader.rest().is_empty() { None } else { owner::decode(&mut reader)? },
            },
            ACKNOWLEDGE => SessionCommand::Acknowledge { session: reader.u64()?, upto: reader.u64()? },
            EXPIRE => {
                let mut sessions = Vec::new();
                for _ in 0..reader.varint()? {
                    sessions.push(reader.u64()?);
                }
                SessionCommand::Expire { sessions }
            }
            REQUESTS_FOR_RETRY => {
                SessionCommand::RequestsForRetry { sent_before_us: reader.u64()?, limit: reader.u32()? }
            }
            _ => {
                return Err(DecodeError { what: "a command of sessions of an unknown kind" });
            }
        };
        reader.end().map(|()| command)
    }
}

pub(crate) fn encode_capabilities(writer: &mut Writer, capabilities: &[(String, Vec<u8>)]) {
    writer.varint(capabilities.len() as u64);
    for (name, value) in capabilities {
        writer.bytes(name.as_bytes()).bytes(value);
    }
}

pub(crate) fn decode_capabilities(reader: &mut Reader<'_>) -> Result<Vec<(String, Vec<u8>)>, DecodeError> {
    let mut capabilities = Vec::new();
    for _ in 0..reader.varint()? {
        capabilities.push((reader.text()?.to_owned(), reader.bytes()?.to_vec()));
    }
    Ok(capabilities)
}

const CREATED: u8 = 1;
const DONE: u8 = 2;
const RETRY: u8 = 3;

impl SessionAnswer {
    /// Appends the answer's bytes.
    pub fn encode(&self, writer: &mut Writer) {
        match self {
            SessionAnswer::Created(session) => {
                writer.u8(CREATED).u64(*session);
            }
            SessionAnswer::Done(count) => {
                writer.u8(DONE).u64(*count);
            }
            SessionAnswer::Retry(pushes) => {
                writer.u8(RETRY).varint(pushes.len() as u64);
                for push in pushes {
                    writer.u64(push.session).u64(push.number).u64(push.last_sent_us).bytes(&push.payload);
                }
            }
        }
    }

    /// Reads an answer that fills `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let answer = match reader.u8()? {
            CREATED => SessionAnswer::Created(reader.u64()?),
            DONE => SessionAnswer::Done(reader.u64()?),
            RETRY => {
                let mut pushes = Vec::new();
                for _ in 0..reader.varint()? {
                    pushes.push(PendingPush {
                        session: reader.u64()?,
                        number: reader.u64()?,
                        last_sent_us: reader.u64()?,
                        payload: reader.bytes()?.to_vec(),
                    });
                }
                SessionAnswer::Retry(pushes)
            }
            _ => {
                return Err(DecodeError { what: "an answer of sessions of an unknown kind" });
            }
        };
        reader.end().map(|()| answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The bytes of `docs/formats/sessions.md`. A change here is a change of the format.
    #[test]
    fn golden_commands() {
        let commands = [
            (
                SessionCommand::Create {
                    timeout_us: 10,
                    secret: SecretDigest::new([0xcd; 32]),
                    capabilities: vec![("v".into(), b"2".to_vec())],
                    owner: None,
                },
                "010a00000000000000".to_owned() + &"cd".repeat(32) + "0101000000760100000032",
            ),
            (
                SessionCommand::Create {
                    timeout_us: 10,
                    secret: SecretDigest::new([0xcd; 32]),
                    capabilities: Vec::new(),
                    owner: Some(SessionOwner { principal: "me".into(), space: Some("s".into()) }),
                },
                "010a00000000000000".to_owned() + &"cd".repeat(32) + "00" + "0201020000006d65020100000073",
            ),
            (SessionCommand::Acknowledge { session: 7, upto: 3 }, "0207000000000000000300000000000000".to_owned()),
            (SessionCommand::Expire { sessions: vec![7] }, "03010700000000000000".to_owned()),
            (SessionCommand::RequestsForRetry { sent_before_us: 5, limit: 9 }, "04050000000000000009000000".to_owned()),
        ];
        for (command, expected) in commands {
            let mut writer = Writer::new();
            command.encode(&mut writer);
            assert_eq!(hex(writer.as_slice()), expected);
            assert_eq!(SessionCommand::decode(writer.as_slice()), Ok(command));
        }
    }

    #[test]
    fn golden_answers() {
        let push = PendingPush { session: 7, number: 1, last_sent_us: 2, payload: b"p".to_vec() };
        let answers = [
            (SessionAnswer::Created(7), "010700000000000000".to_owned()),
            (SessionAnswer::Done(2), "020200000000000000".to_owned()),
            (
                SessionAnswer::Retry(vec![push]),
                "0301070000000000000001000000000000000200000000000000".to_owned() + "0100000070",
            ),
        ];
        for (answer, expected) in answers {
            let mut writer = Writer::new();
            answer.encode(&mut writer);
            assert_eq!(hex(writer.as_slice()), expected);
            assert_eq!(SessionAnswer::decode(writer.as_slice()), Ok(answer));
        }
    }
}
