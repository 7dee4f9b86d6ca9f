//! The data contracts as one deterministic machine.

use contract::Rejection;
use kv::{Bytes, Key, Staging, Writer};
use session::{Call, Halt, Machine, Stamp};

use crate::answer::{Answer, OpOutcome};
use crate::catalogue::{Catalogue, Space};
use crate::cells::{OpContext, StagedCells};
use crate::command::Body;
use crate::folded::Folded;
use crate::keys::Keys;
use crate::keys::records::{DueClock, read_due_suffix};
use crate::records::schedule::Windows;
use crate::records::{send, tick};
use crate::{transact, trim};

/// This machine's number (1) and the version of its commands (1).
pub const MACHINE: u32 = 0x0001_0001;

/// What a command is applied with.
pub(crate) struct Applying<'entry> {
    pub(crate) state: &'entry mut Staging,
    pub(crate) folded: &'entry mut Folded,
    pub(crate) catalogue: &'entry Catalogue,
    pub(crate) keys: Keys,
    pub(crate) windows: &'entry mut Windows,
    pub(crate) call: &'entry Call<'entry>,
    /// The row of the fence's record, for the first operation on it.
    pub(crate) fenced_row: Option<(Key, Bytes)>,
    /// Messages that the command has sent so far.
    pub(crate) messages: u32,
}

impl Applying<'_> {
    /// Takes back what the command has done so far.
    pub(crate) fn undo(&mut self) {
        self.state.undo();
        self.folded.undo();
        self.windows.undo();
    }

    /// What was done so far holds; from here on, [`undo`](Self::undo) comes back to here.
    pub(crate) fn savepoint(&mut self) {
        self.state.savepoint();
        self.folded.savepoint();
        self.windows.settle();
    }

    /// The place of the next message among those of the command.
    pub(crate) fn next_ordinal(&mut self) -> u32 {
        let ordinal = self.messages;
        self.messages =
            ordinal.checked_add(1).expect("the steps and operations of a command are bounded far below that");
        ordinal
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

/// When the next thing is due, by each clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NextDue {
    /// Wall time in µs.
    pub wall_us: Option<u64>,
    /// Cluster time in µs.
    pub cluster_us: Option<u64>,
}

/// See the module.
pub struct Contracts {
    pub(crate) catalogue: Catalogue,
    pub(crate) keys: Keys,
    pub(crate) folded: Folded,
    pub(crate) windows: Windows,
}

impl Contracts {
    /// The machine with this catalogue, at the beginning of an entry.
    pub(crate) fn new(catalogue: Catalogue, keys: Keys) -> Self {
        Self { catalogue, keys, folded: Folded::default(), windows: Windows::default() }
    }

    pub(crate) fn applying<'entry>(
        &'entry mut self,
        state: &'entry mut Staging,
        call: &'entry Call<'entry>,
    ) -> Applying<'entry> {
        let Self { catalogue, keys, folded, windows } = self;
        Applying { state, folded, catalogue, keys: *keys, windows, call, fenced_row: None, messages: 0 }
    }

    /// When the next thing is due: wall and cluster time.
    pub(crate) fn next_due(&mut self, state: &Staging) -> Result<NextDue, Halt> {
        let buckets = self.catalogue.buckets.count();
        let mut next = |clock| {
            let first = self.windows.first_due(state, &self.keys, buckets, clock)?;
            Ok::<_, Halt>(first.and_then(|entry| read_due_suffix(&entry.suffix)).map(|(at_us, _)| at_us))
        };
        Ok(NextDue { wall_us: next(DueClock::Wall)?, cluster_us: next(DueClock::Cluster)? })
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
            Body::Transact(body) => transact::transact(&mut self.applying(state, call), &body)?,
            Body::Catalogue(change) => match self.catalogue.change(&change, &self.keys, state) {
                Ok(assigned) => Answer::Done {
                    commit: call.commit,
                    outcomes: assigned.map(OpOutcome::Assigned).into_iter().collect(),
                },
                Err(rejection) => Answer::Rejected(rejection),
            },
            Body::Trim(steps) => trim::apply(self, state, call, &steps)?,
            Body::Tick => tick::tick(&mut self.applying(state, call))?,
            Body::ClaimNext(claim) => tick::claim_next(&mut self.applying(state, call), &claim)?,
            Body::Published(messages) => {
                send::published(&mut self.applying(state, call), &messages)?;
                Answer::Done { commit: call.commit, outcomes: Vec::new() }
            }
            Body::Level(level) => {
                if level > crate::LEVEL {
                    return Err(Halt::Newer { what: "level", found: level, known: crate::LEVEL });
                }
                self.catalogue.raise_level(&self.keys, state, level);
                Answer::Done { commit: call.commit, outcomes: Vec::new() }
            }
        };
        self.windows.settle();
        outcome.encode_into(answer);
        Ok(())
    }
}
