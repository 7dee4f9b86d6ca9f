//! Commands as the model test makes them: read by the reference as they are, by the kernel as bytes.

use contract::Value;
use kernel::machine::MACHINE;
use kernel::trim::TrimStep;
use kernel::{Body, CatalogueChange, Guard, ValueRef};
use kv::Writer;
use session::Envelope;

/// A command and what its envelope says.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    pub(crate) session: Option<u64>,
    pub(crate) revision: u64,
    pub(crate) action: Action,
}

/// What a command asks for.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    Transact(Transaction),
    Change(CatalogueChange),
    Trim(Vec<TrimStep>),
    Level,
}

/// Guards and operations in one group.
#[derive(Clone, Debug)]
pub(crate) struct Transaction {
    pub(crate) space: u32,
    pub(crate) branch: u32,
    pub(crate) group: Option<&'static str>,
    pub(crate) guards: Vec<Guard<'static>>,
    pub(crate) ops: Vec<Op>,
}

/// One operation, with a value of its own.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Init(&'static str, Value),
    Set(&'static str, Value),
    Cas(&'static str, Option<u64>, Value),
    Delete(&'static str),
}

impl Op {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Op::Init(name, _) | Op::Set(name, _) | Op::Cas(name, _, _) | Op::Delete(name) => name,
        }
    }

    pub(crate) fn value(&self) -> Option<&Value> {
        match self {
            Op::Init(_, value) | Op::Set(_, value) | Op::Cas(_, _, value) => Some(value),
            Op::Delete(_) => None,
        }
    }

    fn borrowed(&self) -> kernel::Op<'_> {
        match self {
            Op::Init(name, value) => kernel::Op::CellInit(name, ValueRef::from(value)),
            Op::Set(name, value) => kernel::Op::CellSet(name, ValueRef::from(value)),
            Op::Cas(name, expected, value) => kernel::Op::CellCas(name, *expected, ValueRef::from(value)),
            Op::Delete(name) => kernel::Op::CellDelete(name),
        }
    }
}

impl Command {
    /// How many operations it counts as.
    pub(crate) fn operations(&self) -> u64 {
        match &self.action {
            Action::Transact(transaction) => transaction.ops.len().max(1) as u64,
            Action::Change(_) | Action::Trim(_) | Action::Level => 1,
        }
    }

    /// The body's bytes.
    pub(crate) fn body(&self) -> Vec<u8> {
        let body = match &self.action {
            Action::Transact(transaction) => Body::Transact(kernel::Transact {
                space: transaction.space,
                branch: transaction.branch,
                group: transaction.group,
                fence: None,
                guards: transaction.guards.clone(),
                ops: transaction.ops.iter().map(Op::borrowed).collect(),
            }),
            Action::Change(change) => Body::Catalogue(change.clone()),
            Action::Trim(steps) => Body::Trim(steps.clone()),
            Action::Level => Body::Level(kernel::LEVEL),
        };
        let mut writer = Writer::new();
        body.encode(&mut writer);
        writer.finish()
    }

    /// The bytes of the envelope around this body.
    pub(crate) fn envelope(&self, body: &[u8]) -> Vec<u8> {
        let envelope = Envelope {
            machine: MACHINE,
            session: self.session,
            request: 1,
            lowest_pending: 1,
            catalogue_revision: self.revision,
            identity: b"someone",
            body,
        };
        let mut writer = Writer::new();
        envelope.encode(&mut writer);
        writer.finish()
    }
}
