//! Messages, as encoded in a command; `docs/formats/entry.md`.

use kv::{DecodeError, Reader, Writer};
use session::Digester;

use super::Stored;
use crate::command::fence::{self, Fence};

/// The destination of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'bytes> {
    /// To a group: a transaction there, as the bytes of its body.
    Transact(&'bytes [u8]),
    /// To a queue of a broker.
    Topic {
        /// The queue's name.
        topic: &'bytes str,
        /// Its content.
        payload: &'bytes [u8],
    },
}

/// A message to another group or to a broker, sent with the commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Send<'bytes> {
    /// Where to.
    pub target: Target<'bytes>,
    /// The delay after the sending commit, in µs; none for no delay.
    pub after_us: Option<u64>,
}

impl<'bytes> Send<'bytes> {
    pub(crate) fn encode(&self, writer: &mut Writer) {
        writer.optional_u64(self.after_us);
        match self.target {
            Target::Transact(body) => writer.u8(1).bytes(body),
            Target::Topic { topic, payload } => writer.u8(2).bytes(topic.as_bytes()).bytes(payload),
        };
    }

    pub(crate) fn decode(reader: &mut Reader<'bytes>) -> Result<Self, DecodeError> {
        let after_us = reader.optional_u64()?;
        let target = match reader.u8()? {
            1 => Target::Transact(reader.bytes()?),
            2 => Target::Topic { topic: reader.text()?, payload: reader.bytes()? },
            _ => return Err(DecodeError { what: "a message to an unknown kind of target" }),
        };
        Ok(Self { target, after_us })
    }

    /// Adds what it asks for to a digest. `send` takes the transaction that it sends, if it sends one.
    pub(crate) fn digest(&self, digester: &mut Digester, send: &mut impl FnMut(&'bytes [u8])) {
        let Self { target, after_us } = self;
        match target {
            Target::Transact(body) => {
                digester.text("do", "send");
                send(body);
            }
            Target::Topic { topic, payload } => {
                digester.text("do", "publish").text("topic", topic).member("payload", payload);
            }
        }
        digester.optional_number("after", *after_us);
    }
}

/// A message from another shard to a group of this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deliver<'bytes> {
    /// The bucket of the group that sent it.
    pub source_bucket: u16,
    /// The number that it got there when it was released.
    pub number: u64,
    /// The message.
    pub message: Stored<'bytes>,
}

impl<'bytes> Deliver<'bytes> {
    pub(crate) fn encode(&self, writer: &mut Writer) {
        let mut message = Writer::new();
        self.message.encode(&mut message);
        writer.u16(self.source_bucket).u64(self.number).bytes(message.as_slice());
    }

    pub(crate) fn decode(reader: &mut Reader<'bytes>) -> Result<Self, DecodeError> {
        let (source_bucket, number) = (reader.u16()?, reader.u64()?);
        Ok(Self { source_bucket, number, message: Stored::read(reader.bytes()?)? })
    }
}

/// Something to be done with a message that its group refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetterCommand<'bytes> {
    /// The space of the group.
    pub space: u32,
    /// Its branch.
    pub branch: u32,
    /// The group that refused it.
    pub group: &'bytes str,
    /// The attempts that it belongs to. The letters of a guarded group are its owner's.
    pub fences: Vec<Fence<'bytes>>,
    /// Whether it may do what only the owner of the group may.
    pub force: bool,
    /// The number of the letter.
    pub number: u64,
    /// What is to be done.
    pub act: DeadLetterAct,
}

/// What can be done with a dead letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadLetterAct {
    /// It is applied again, with its own conditions and fences besides those of the command.
    Retry,
    /// It is forgotten.
    Drop,
}

impl<'bytes> DeadLetterCommand<'bytes> {
    pub(crate) fn encode(&self, writer: &mut Writer) {
        let Self { space, branch, group, fences, force, number, act } = self;
        writer.u32(*space).u32(*branch).bytes(group.as_bytes());
        fence::encode(writer, fences, *force);
        writer.u64(*number).u8(match act {
            DeadLetterAct::Retry => 1,
            DeadLetterAct::Drop => 2,
        });
    }

    pub(crate) fn decode(reader: &mut Reader<'bytes>) -> Result<Self, DecodeError> {
        let (space, branch, group) = (reader.u32()?, reader.u32()?, reader.text()?);
        let (fences, force) = fence::decode(reader)?;
        let number = reader.u64()?;
        let act = match reader.u8()? {
            1 => DeadLetterAct::Retry,
            2 => DeadLetterAct::Drop,
            _ => return Err(DecodeError { what: "something unknown to be done with a dead letter" }),
        };
        Ok(Self { space, branch, group, fences, force, number, act })
    }
}

/// Messages that the shard of their group has received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// The bucket that sent them.
    pub bucket: u16,
    /// Their numbers there.
    pub numbers: Vec<u64>,
}

impl Delivered {
    pub(crate) fn encode(&self, writer: &mut Writer) {
        let count = u32::try_from(self.numbers.len()).expect("lists are bounded far below that");
        writer.u16(self.bucket).u32(count);
        for number in &self.numbers {
            writer.u64(*number);
        }
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let bucket = reader.u16()?;
        let numbers = (0..reader.u32()?).map(|_| reader.u64()).collect::<Result<_, _>>()?;
        Ok(Self { bucket, numbers })
    }
}
