//! What a transaction saw and did, as the checker needs it.

use std::fmt;

/// What holds one value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Cell,
    /// A record; the value is in a field.
    Record,
    /// A run; the value is in its last event.
    Run,
}

/// A thing of a contract that is read and written as a whole.
#[derive(Clone, Copy)]
pub(super) struct Register {
    pub(super) kind: Kind,
    pub(super) name: &'static str,
}

impl fmt::Display for Register {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Cell => "cell",
            Kind::Record => "record",
            Kind::Run => "run",
        };
        write!(out, "{kind} {}", self.name)
    }
}

/// The registers, all of one group. Some have the group's name, and are stored apart from the others; some have the name of
/// another of another kind.
pub(super) const REGISTERS: [Register; 14] = {
    const fn cell(name: &'static str) -> Register {
        Register { kind: Kind::Cell, name }
    }
    const fn record(name: &'static str) -> Register {
        Register { kind: Kind::Record, name }
    }
    const fn run(name: &'static str) -> Register {
        Register { kind: Kind::Run, name }
    }
    [
        cell("a0"),
        cell("a1"),
        cell("a2"),
        cell("a3"),
        cell("b0"),
        cell("b1"),
        cell("b2"),
        cell("b3"),
        record("a0"),
        record("b1"),
        record("c0"),
        run("a0"),
        run("b1"),
        run("c0"),
    ]
};

/// Their group.
pub(super) const GROUP: &str = "b1";

/// A register's place in [`REGISTERS`].
pub(super) type RegisterIndex = usize;

/// A transaction that was answered as committed.
pub(super) struct Committed {
    /// For a message.
    pub(super) thread: u64,
    /// Its commit number; that of the view it read if it wrote nothing.
    pub(super) commit: u64,
    /// The highest commit number that had been answered to anybody before it began.
    pub(super) floor: u64,
    pub(super) reads: Vec<Read>,
    /// In order; a register may be there twice.
    pub(super) writes: Vec<Write>,
}

/// What a transaction saw of one register.
#[derive(Clone, Copy, Debug)]
pub(super) struct Read {
    pub(super) register: RegisterIndex,
    /// None if it did not exist.
    pub(super) version: Option<u64>,
}

/// What a transaction wrote: a text that nobody else writes, or a deletion.
#[derive(Clone, Debug)]
pub(super) struct Write {
    pub(super) register: RegisterIndex,
    pub(super) value: Option<String>,
}

/// One version in a register's final history.
#[derive(Clone, Debug)]
pub(super) struct Version {
    pub(super) commit: u64,
    pub(super) value: Option<String>,
}

/// Everything that a run left.
pub(super) struct Ran {
    pub(super) committed: Vec<Committed>,
    pub(super) conflicts: u64,
    /// Of those, how many had read registers that they did not write.
    pub(super) skew_conflicts: u64,
    /// Each register's versions; the first is version 1.
    pub(super) histories: Vec<Vec<Version>>,
    /// Answers that are neither.
    pub(super) errors: Vec<String>,
}
