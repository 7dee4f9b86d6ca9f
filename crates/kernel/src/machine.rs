//! The data contracts as one deterministic machine.

use contract::Rejection;
use kv::{Staging, Writer};
use session::{Call, Halt, Machine, Stamp};

use crate::answer::{Answer, OpOutcome};
use crate::catalogue::{Catalogue, Space};
use crate::cells::{OpContext, StagedCells};
use crate::command::Body;
use crate::folded::Folded;
use crate::keys::Keys;
use crate::{transact, trim};

/// This machine's number (1) and the version of its commands (1).
pub const MACHINE: u32 = 0x0001_0001;

/// What a command is applied with.
pub(crate) struct Applying<'entry> {
    pub(crate) state: &'entry mut Staging,
    pub(crate) folded: &'entry mut Folded,
    pub(crate) catalogue: &'entry Catalogue,
    pub(crate) keys: Keys,
    pub(crate) call: &'entry Call<'entry>,
}

impl Applying<'_> {
    /// Takes back what the command has done so far.
    pub(crate) fn undo(&mut self) {
        self.state.undo();
        self.folded.undo();
    }

    /// The cells, to be written.
    pub(crate) fn cells(&mut self) -> StagedCells<'_> {
        StagedCells { state: self.state, keys: self.keys, folded: self.folded }
    }

    /// What an operation on a cell of a space needs to know.
    pub(crate) fn cell_context(&self, space: &Space) -> OpContext {
        OpContext {
            commit: self.call.commit,
            wall_us: self.call.stamp.wall_us,
            retention: space.retention,
            limits: self.catalogue.limits,
        }
    }
}

/// See the module.
pub struct Contracts {
    pub(crate) catalogue: Catalogue,
    pub(crate) keys: Keys,
    pub(crate) folded: Folded,
}

impl Contracts {
    /// The machine with this catalogue, at the beginning of an entry.
    pub(crate) fn new(catalogue: Catalogue, keys: Keys) -> Self {
        Self { catalogue, keys, folded: Folded::default() }
    }

    /// Writes what is written once for a whole entry. `commit` is the number of its last command.
    pub(crate) fn finish_entry(&mut self, state: &mut Staging, stamp: Stamp, commit: u64) -> Result<(), Halt> {
        self.folded.write(state, &self.keys, &self.catalogue.limits, stamp, commit)
    }
}

impl Machine for Contracts {
    fn apply(&mut self, state: &mut Staging, call: &Call<'_>, answer: &mut Writer) -> Result<(), Halt> {
        if call.machine != MACHINE {
            return Err(Halt::Newer { what: "machine", found: call.machine, known: MACHINE });
        }
        let have = self.catalogue.revision;
        if call.catalogue_revision > have {
            let behind = Rejection::CatalogueBehind { needed: call.catalogue_revision, have };
            Answer::Rejected(behind).encode_into(answer);
            return Ok(());
        }
        self.folded.savepoint();
        let outcome = match Body::decode(call.body)? {
            Body::Transact(body) => {
                let Self { catalogue, keys, folded } = self;
                transact::transact(&mut Applying { state, folded, catalogue, keys: *keys, call }, &body)?
            }
            Body::Catalogue(change) => match self.catalogue.change(&change, &self.keys, state) {
                Ok(assigned) => Answer::Done {
                    commit: call.commit,
                    outcomes: assigned.map(OpOutcome::Assigned).into_iter().collect(),
                },
                Err(rejection) => Answer::Rejected(rejection),
            },
            Body::Trim(steps) => trim::apply(state, &mut self.folded, &mut self.catalogue, self.keys, call, &steps)?,
            Body::Level(level) => {
                if level > crate::LEVEL {
                    return Err(Halt::Newer { what: "level", found: level, known: crate::LEVEL });
                }
                self.catalogue.raise_level(&self.keys, state, level);
                Answer::Done { commit: call.commit, outcomes: Vec::new() }
            }
        };
        outcome.encode_into(answer);
        Ok(())
    }
}
