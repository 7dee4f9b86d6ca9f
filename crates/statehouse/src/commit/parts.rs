//! The parts of a commit: guards and operations that own their names and values. Each contract has its own.

use std::time::Duration;

use contract::{Error, names};
use kernel::catalogue::types::micros;
use kernel::{Guard, Op, Send, Target};

use super::Commit;

/// A condition of a commit.
pub(crate) trait OwnGuard: std::marker::Send + Sync {
    /// Refuses what nothing can be called: such a condition would say nothing.
    fn check(&self) -> Result<(), Error>;

    fn guard(&self) -> Guard<'_>;
}

/// An operation of a commit.
pub(crate) trait OwnOp: std::marker::Send + Sync {
    /// Refuses what nothing can be called.
    fn check(&self) -> Result<(), Error>;

    fn op(&self) -> Op<'_>;
}

/// What a commit does.
pub(super) enum Part {
    Op(Box<dyn OwnOp>),
    Send { commit: Box<Commit>, after: Option<Duration> },
}

impl Part {
    pub(super) fn check(&self) -> Result<(), Error> {
        match self {
            Part::Op(op) => op.check(),
            // It was checked when it was encoded.
            Part::Send { .. } => Ok(()),
        }
    }

    pub(super) fn op<'commit>(&'commit self, messages: &mut impl Iterator<Item = &'commit Vec<u8>>) -> Op<'commit> {
        match self {
            Part::Op(op) => op.op(),
            Part::Send { after, .. } => {
                let body = messages.next().expect("a body for every message");
                Op::Send(Send { target: Target::Transact(body), after_us: after.map(micros) })
            }
        }
    }
}

/// A message to a broker.
pub(super) struct OwnPublish {
    pub(super) topic: String,
    pub(super) payload: Vec<u8>,
    pub(super) after: Option<Duration>,
}

impl OwnOp for OwnPublish {
    fn check(&self) -> Result<(), Error> {
        Ok(names::check_topic(&self.topic)?)
    }

    fn op(&self) -> Op<'_> {
        let target = Target::Topic { topic: &self.topic, payload: &self.payload };
        Op::Send(Send { target, after_us: self.after.map(micros) })
    }
}

/// Bytes to a session.
pub(super) struct OwnPush {
    pub(super) session: u64,
    pub(super) payload: Vec<u8>,
}

impl OwnOp for OwnPush {
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }

    fn op(&self) -> Op<'_> {
        Op::Push(self.session, &self.payload)
    }
}
