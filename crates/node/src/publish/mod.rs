//! Publishing: sends messages to brokers in the order they were sent, after their commit.
//!
//! A message waits in the store until its broker has taken it and that is committed. After a crash in between, the
//! broker sees it again, with the same number: a broker that remembers the highest number of each history and bucket
//! takes each message once.

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
    /// Its number, which rises with every message that is published from the bucket of its source.
    pub number: MessageNumber,
}

impl<'message> Message<'message> {
    /// A message, for tests of a broker.
    pub fn new(topic: &'message str, payload: &'message [u8], source: &'message str, number: MessageNumber) -> Self {
        Self { topic, payload, source, number }
    }
}

/// The number of a message: no two messages have the same, and it rises in each bucket of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MessageNumber {
    /// The history of the store. A store that was restored from a backup has another one: it gives numbers again that
    /// the store before has given since the backup, to other messages.
    pub history: u64,
    /// The bucket of the group that sent it. A group stays in its bucket, and a bucket has many groups.
    pub bucket: u16,
    /// Its number among the messages of that bucket. Numbers can be skipped.
    pub number: u64,
}

/// A broker.
///
/// # Duties
/// - When [`publish`](Self::publish) returns, the message is as safe as the broker makes it.
/// - A message whose number is not above the last one taken from the same bucket of the same history was taken before.
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
