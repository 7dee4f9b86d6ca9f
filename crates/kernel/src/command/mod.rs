//! The body of a command: a transaction in one group, or a command of the shard; `docs/formats/entry.md`.
//!
//! A body borrows its bytes: it is decoded once, when it is applied.

pub mod act;
pub(crate) mod digest;
pub mod fence;
pub mod hosted;
mod op;
pub mod trim_step;

use contract::access::audit::Decision;
use kv::{DecodeError, Reader, Writer};

pub use self::fence::Fence;
pub use self::op::*;
use self::trim_step::TrimStep;
use crate::catalogue::CatalogueChange;
use crate::outbox::command::{DeadLetterAct, DeadLetterCommand, Deliver, Delivered, Target};

/// The number of the contracts' machine (1) and the version of its commands (1).
pub const MACHINE: u32 = 0x0001_0001;

/// The body of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body<'bytes> {
    /// Operations in one group, all or nothing.
    Transact(Transact<'bytes>),
    /// A change of the catalogue.
    Catalogue(CatalogueChange),
    /// Discards history, and the remains of deleted branches.
    Trim(Vec<TrimStep>),
    /// Raises the level of behaviour.
    Level(u32),
    /// Does due work, up to a limit.
    Tick,
    /// Claims ready records for a worker, each in a separate step.
    ClaimNext(ClaimNext<'bytes>),
    /// Forgets published messages, each by bucket and number.
    Published(Vec<(u16, u64)>),
    /// Applies a message from another shard, once.
    Deliver(Deliver<'bytes>),
    /// Forgets messages that other shards have received.
    Delivered(Delivered),
    /// Sends a dead letter again, or drops it.
    DeadLetter(DeadLetterCommand<'bytes>),
    /// Records something in the audit.
    Audit(AuditNote<'bytes>),
}

/// Something to record in the audit, by its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditNote<'bytes> {
    /// What is done: `backup.create`.
    pub act: &'bytes str,
    /// To what: names, as a JSON object.
    pub on: &'bytes str,
    /// What becomes of it.
    pub decision: Decision,
}

/// Claims the first ready records of all queues whose names start with a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimNext<'bytes> {
    /// The space.
    pub space: u32,
    /// The branch.
    pub branch: u32,
    /// The prefix of the queues.
    pub prefix: &'bytes str,
    /// Maximum number of records.
    pub records_max: u32,
    /// The worker's name; may be empty.
    pub worker: &'bytes str,
    /// The lease in µs, if it differs from the type's.
    pub lease_us: Option<u64>,
    /// Whether its sender waits for a record. Then one that finds nothing is not answered for good: it is sent again.
    pub waits: bool,
}

/// Operations in one group, applied in order, all or nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transact<'bytes> {
    /// The space.
    pub space: u32,
    /// The branch.
    pub branch: u32,
    /// The group, or none if it is the name of the one thing touched.
    pub group: Option<&'bytes str>,
    /// The attempts that it belongs to.
    pub fences: Vec<Fence<'bytes>>,
    /// Whether it may write where only the owner of a group may.
    pub force: bool,
    /// The guards.
    pub guards: Vec<Guard<'bytes>>,
    /// The operations.
    pub ops: Vec<Op<'bytes>>,
}

const TRANSACT: u8 = 1;
const CATALOGUE: u8 = 2;
const TRIM: u8 = 3;
const LEVEL: u8 = 4;
const TICK: u8 = 5;
const CLAIM_NEXT: u8 = 6;
const PUBLISHED: u8 = 7;
const DELIVER: u8 = 8;
const DELIVERED: u8 = 9;
const DEAD_LETTER: u8 = 10;
const AUDIT: u8 = 11;

impl<'bytes> Body<'bytes> {
    /// Appends the body's bytes.
    pub fn encode(&self, writer: &mut Writer) {
        match self {
            Body::Transact(transact) => transact.encode(writer.u8(TRANSACT)),
            Body::Catalogue(change) => change.encode(writer.u8(CATALOGUE)),
            Body::Trim(steps) => {
                writer.u8(TRIM).u32(count(steps.len()));
                for step in steps {
                    step.encode(writer);
                }
            }
            Body::Level(level) => {
                writer.u8(LEVEL).u32(*level);
            }
            Body::Tick => {
                writer.u8(TICK);
            }
            Body::ClaimNext(claim) => {
                writer.u8(CLAIM_NEXT).u32(claim.space).u32(claim.branch).bytes(claim.prefix.as_bytes());
                writer.u32(claim.records_max).bytes(claim.worker.as_bytes()).optional_u64(claim.lease_us);
                writer.bool(claim.waits);
            }
            Body::Published(messages) => {
                writer.u8(PUBLISHED).u32(count(messages.len()));
                for (bucket, number) in messages {
                    writer.u16(*bucket).u64(*number);
                }
            }
            Body::Deliver(deliver) => deliver.encode(writer.u8(DELIVER)),
            Body::Delivered(delivered) => delivered.encode(writer.u8(DELIVERED)),
            Body::DeadLetter(letter) => letter.encode(writer.u8(DEAD_LETTER)),
            Body::Audit(AuditNote { act, on, decision }) => {
                writer.u8(AUDIT).bytes(act.as_bytes()).bytes(on.as_bytes()).u8(*decision as u8);
            }
        }
    }

    /// Whether it makes the store larger. Freeing space, claiming jobs and finishing them does not.
    pub fn grows(&self) -> bool {
        match self {
            Body::Transact(transact) => transact.ops.iter().any(Op::grows),
            Body::Trim(steps) => steps.iter().any(TrimStep::grows),
            Body::Deliver(deliver) => match deliver.message.send.target {
                // Anything but a transaction is refused.
                Target::Transact(body) => {
                    matches!(Body::decode(body), Ok(Body::Transact(transact)) if transact.ops.iter().any(Op::grows))
                }
                Target::Topic { .. } => false,
            },
            Body::Catalogue(_) | Body::Level(_) | Body::Tick | Body::ClaimNext(_) => false,
            // What is done must be recorded also where space is short.
            Body::Published(_) | Body::Delivered(_) | Body::Audit(_) => false,
            // What the letter would write is not known here.
            Body::DeadLetter(letter) => letter.act != DeadLetterAct::Drop,
        }
    }

    /// Reads a body that fills `bytes`.
    pub fn decode(bytes: &'bytes [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let body = match reader.u8()? {
            TRANSACT => Body::Transact(Transact::decode(&mut reader)?),
            CATALOGUE => Body::Catalogue(CatalogueChange::decode(&mut reader)?),
            TRIM => {
                let mut steps = Vec::new();
                for _ in 0..reader.u32()? {
                    steps.push(TrimStep::decode(&mut reader)?);
                }
                Body::Trim(steps)
            }
            LEVEL => Body::Level(reader.u32()?),
            TICK => Body::Tick,
            CLAIM_NEXT => Body::ClaimNext(ClaimNext {
                space: reader.u32()?,
                branch: reader.u32()?,
                prefix: reader.text()?,
                records_max: reader.u32()?,
                worker: reader.text()?,
                lease_us: reader.optional_u64()?,
                waits: reader.bool()?,
            }),
            PUBLISHED => {
                let mut messages = Vec::new();
                for _ in 0..reader.u32()? {
                    messages.push((reader.u16()?, reader.u64()?));
                }
                Body::Published(messages)
            }
            DELIVER => Body::Deliver(Deliver::decode(&mut reader)?),
            DELIVERED => Body::Delivered(Delivered::decode(&mut reader)?),
            DEAD_LETTER => Body::DeadLetter(DeadLetterCommand::decode(&mut reader)?),
            AUDIT => {
                let (act, on, decision) = (reader.text()?, reader.text()?, usize::from(reader.u8()?));
                let decision = Decision::ALL.get(decision).copied();
                let decision = decision.ok_or(DecodeError { what: "a decision of an unknown number" })?;
                Body::Audit(AuditNote { act, on, decision })
            }
            _ => {
                return Err(DecodeError { what: "a command of an unknown kind" });
            }
        };
        reader.end()?;
        Ok(body)
    }
}

pub(crate) fn count(length: usize) -> u32 {
    u32::try_from(length).expect("lists are bounded far below that")
}

impl<'bytes> Transact<'bytes> {
    /// Operations in a group, without conditions.
    pub fn new(space: u32, branch: u32, group: Option<&'bytes str>, ops: Vec<Op<'bytes>>) -> Self {
        Self { space, branch, group, fences: Vec::new(), force: false, guards: Vec::new(), ops }
    }

    fn encode(&self, writer: &mut Writer) {
        writer.u32(self.space).u32(self.branch);
        writer.optional_text(self.group);
        fence::encode(writer, &self.fences, self.force);
        writer.u32(count(self.guards.len()));
        for guard in &self.guards {
            guard.encode(writer);
        }
        writer.u32(count(self.ops.len()));
        for op in &self.ops {
            op.encode(writer);
        }
    }

    fn decode(reader: &mut Reader<'bytes>) -> Result<Self, DecodeError> {
        let space = reader.u32()?;
        let branch = reader.u32()?;
        let group = reader.optional_text()?;
        let (fences, force) = fence::decode(reader)?;
        let mut guards = Vec::new();
        for _ in 0..reader.u32()? {
            guards.push(Guard::decode(reader)?);
        }
        let mut ops = Vec::new();
        for _ in 0..reader.u32()? {
            ops.push(Op::decode(reader)?);
        }
        Ok(Self { space, branch, group, fences, force, guards, ops })
    }
}

#[cfg(test)]
mod tests;
