//! Operations of a transaction that send something: to a topic, to a session, to another group.

use super::Fence;
use super::operation::operations;
use crate::contracts::{Guard, Operation};
use crate::owners::OwnerToken;
use crate::schema::object;
use crate::values::{DurationText, Payload, SessionId};

object! {
    /// Sends a message to a topic.
    request Publish {
        /// The topic.
        topic: String,
        /// The message.
        payload: Payload,
        /// The delay.
        after: Option<DurationText>,
    }

    /// Pushes to a session.
    request Push {
        /// The session.
        session: SessionId,
        /// The message.
        payload: Payload,
    }

    /// Sends a transaction to another group.
    request Send {
        /// The group.
        group: String,
        /// The delay.
        after: Option<DurationText>,
        /// The conditions, checked when it is applied.
        "if" guards: Option<Vec<Guard>>,
        /// The attempt that must be live when it is applied.
        fence: Option<Fence>,
        /// The token of that group's owner, who must still own it when it is applied.
        owner: Option<OwnerToken>,
        /// Whether it is written without the fences that a guard requires.
        force: Option<bool>,
        /// The operations.
        "do" operations: Vec<Operation>,
    }

    /// A message or a push was sent.
    answer Sent {
        /// Always `true`.
        sent: bool,
    }
}

operations! {
    /// An operation that sends something.
    MessageOperation {
        /// Sends a message to a topic.
        Publish(Publish) = "publish",
        /// Pushes to a session.
        Push(Push) = "push",
        /// Sends a transaction to another group.
        Send(Send) = "send",
    }
}
