//! Messages: to another group, or to a broker, sent with the commit that causes them.
//!
//! A message waits in the index of work due by wall time, at its time or at the commit's. A transaction for a group is
//! applied by the tick that finds it, in one step with the removal of its row: exactly once, and in the order of (time,
//! number) for each source. If the group is in another shard, the message becomes outgoing instead: the node hands it to
//! that shard, which remembers the last number of each source bucket and so applies it once, and then has it removed
//! here. A message for a broker moves to the rows waiting to be published; a timed one when a tick finds it due. The node
//! publishes those in order and then has them removed, so a broker may see one again, with the same number.
//!
//! - [`numbers`]: the numbers that each bucket gives to its messages.
//! - `receive`: messages from other shards.
//! - [`dead_letters`]: messages that their group refused.
//!
//! Touches: `DueWall`, `Publish`, `Outgoing`, `Received`, `DeadLetter` and `MessageNumbers` rows. Keeps: R6 (a message is delivered
//! once, in order).

pub mod command;
pub mod dead_letters;
pub(crate) mod deliver;
pub mod numbers;
pub(crate) mod receive;
pub(crate) mod send;
pub mod waiting;

use kv::{DecodeError, Reader, Writer};
use session::Halt;

use self::command::Send;

const FORMAT: u8 = 1;

/// What a waiting message waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageState {
    /// For its time, wall µs, and then to be applied in its group or to be released.
    Due(u64),
    /// For a broker.
    Publish,
    /// For the shard of its group, which is another one.
    Outgoing,
}

impl MessageState {
    /// The word for it in answers and metrics.
    pub fn word(self) -> &'static str {
        match self {
            MessageState::Due(_) => "group",
            MessageState::Publish => "publish",
            MessageState::Outgoing => "outgoing",
        }
    }

    /// When it is due, wall µs; none once it was released.
    pub fn due_us(self) -> Option<u64> {
        match self {
            MessageState::Due(due_us) => Some(due_us),
            MessageState::Publish | MessageState::Outgoing => None,
        }
    }
}

/// A message as stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored<'bytes> {
    /// The space that sent it.
    pub space: u32,
    /// The branch.
    pub branch: u32,
    /// The group that sent it.
    pub source: &'bytes str,
    /// Its content.
    pub send: Send<'bytes>,
}

impl<'bytes> Stored<'bytes> {
    pub(crate) fn encode(&self, writer: &mut Writer) {
        writer.u8(FORMAT).u32(self.space).u32(self.branch).bytes(self.source.as_bytes());
        self.send.encode(writer);
    }

    /// Reads a message's row.
    pub fn decode(bytes: &'bytes [u8]) -> Result<Self, Halt> {
        Self::read(bytes).map_err(|error: DecodeError| Halt::Undecodable { what: "a message", error })
    }

    pub(crate) fn read(bytes: &'bytes [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        reader.format(FORMAT)?;
        let (space, branch, source) = (reader.u32()?, reader.u32()?, reader.text()?);
        let send = Send::decode(&mut reader)?;
        reader.end().map(|()| Self { space, branch, source, send })
    }
}

#[cfg(test)]
mod tests;
