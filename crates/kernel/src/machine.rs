//! The data contracts as one deterministic machine.

use contract::Rejection;
use kv::{Staging, Writer};
use session::{Call, Halt, Machine};

use crate::answer::{Answer, OpOutcome};
use crate::catalogue::Catalogue;
use crate::command::Body;
use crate::keys::Keys;
use crate::{transact, trim};

/// This machine's number (1) and the version of its commands (1).
pub const MACHINE: u32 = 0x0001_0001;

/// See the module.
pub struct Contracts {
    pub(crate) catalogue: Catalogue,
    pub(crate) keys: Keys,
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
        let outcome = match Body::decode(call.body)? {
            Body::Transact(body) => transact::transact(state, &self.catalogue, self.keys, call, &body)?,
            Body::Catalogue(change) => match self.catalogue.change(&change, &self.keys, state) {
                Ok(assigned) => Answer::Done {
                    commit: call.commit,
                    outcomes: assigned.map(OpOutcome::Assigned).into_iter().collect(),
                },
                Err(rejection) => Answer::Rejected(rejection),
            },
            Body::Trim(steps) => trim::apply(state, &mut self.catalogue, self.keys, call, &steps)?,
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
