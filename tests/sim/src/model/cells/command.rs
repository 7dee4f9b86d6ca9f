//! Transactions on cells, with values of their own.

use contract::Value;
use kernel::{Guard, ValueRef};

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
            Op::Init(name, value) => kernel::Op::Cell(name, kernel::CellAct::Init(ValueRef::from(value))),
            Op::Set(name, value) => kernel::Op::Cell(name, kernel::CellAct::Set(ValueRef::from(value))),
            Op::Cas(name, expected, value) => {
                kernel::Op::Cell(name, kernel::CellAct::Cas(*expected, ValueRef::from(value)))
            }
            Op::Delete(name) => kernel::Op::Cell(name, kernel::CellAct::Delete),
        }
    }
}

impl Transaction {
    /// As the kernel has it.
    pub(crate) fn as_kernel(&self) -> kernel::Transact<'_> {
        let Self { space, branch, group, guards, ops } = self;
        let ops = ops.iter().map(Op::borrowed).collect();
        kernel::Transact { guards: guards.clone(), ..kernel::Transact::new(*space, *branch, *group, ops) }
    }
}
