//! Publishing: sends messages to brokers in the order they were sent, after their commit.
//!
//! A message waits in the store until its broker has taken it and that is committed. After a crash in between, the
//! broker sees it again, with the same number: a broker that remembers the highest number of each source takes each
//! message once.

mod publisher;

pub(crate) use publisher::{Outbox, Publisher};

/// A message for a broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message<'message> {
    /// The broker's queue.
    pub topic: &'message str,
    /// Its content.
    pub payload: &'message [u8],
    /// The group that sent it.
    pub source: &'message str,
    /// Its number, which rises with every message of its source.
    pub number: MessageNumber,
}

impl<'message> Message<'message> {
    /// A message, for tests of a broker.
    pub fn new(topic: &'message str, payload: &'message [u8], source: &'message str, number: MessageNumber) -> Self {
        Self { topic, payload, source, number }
    }
}

/// The number of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MessageNumber {
    /// The command that sent it, or that released it when it was due.
    pub commit: u64,
    /// Its place among that command's messages.
    pub ordinal: u32,
}

/// A broker.
///
/// # Duties
/// - When [`publish`](Self::publish) returns, the message is as safe as the broker makes it.
/// - A message of a source whose number is not above the last one taken from that source was taken before.
pub trait Publish: Send + Sync + 'static {
    /// Takes a message. After an error it is retried after a pause; later messages wait.
    fn publish(&self, message: &Message<'_>) -> Result<(), PublishError>;
}

/// The broker could not take a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the broker did not take a message for {topic:?}: {reason}")]
pub struct PublishError {
    /// The message's queue.
    pub topic: String,
    /// Why not.
    pub reason: String,
}
