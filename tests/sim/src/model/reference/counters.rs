//! The counters of the reference, and its own record of what was executed.

use std::collections::{BTreeMap, BTreeSet};

use kv::Writer;
use session::Refused;
use session::user::{USER_KEY_BYTES_MAX, USER_VALUE_BYTES_MAX};

use crate::model::sessions::machine::{Act, Deed, Ended, TooLong, added, news, payload, summed};

/// What becomes of a body.
pub(crate) struct Done {
    /// The bytes that it is answered.
    pub(crate) answer: Vec<u8>,
    /// Whether it was executed; otherwise it was refused and changed nothing.
    pub(crate) executed: bool,
    pub(crate) pushes: Vec<(u64, Vec<u8>)>,
}

impl Done {
    /// The framework says no.
    pub(crate) fn refused(refused: Refused) -> Self {
        let mut answer = Writer::new();
        match refused {
            Refused::Undecodable => answer.u8(1),
            Refused::KeyTooLong { got } => answer.u8(2).u64(got),
            Refused::ValueTooLong { got } => answer.u8(3).u64(got),
        };
        Self { answer: answer.finish(), executed: false, pushes: Vec::new() }
    }

    fn responded(response: &[u8]) -> Self {
        Self { answer: [&[0], response].concat(), executed: true, pushes: Vec::new() }
    }
}

/// The counters of the reference.
#[derive(Default)]
pub(crate) struct ReferenceCounters {
    pub(crate) values: BTreeMap<Vec<u8>, i64>,
    /// The executed requests of sessions that are known.
    pub(crate) executed: BTreeSet<(u64, u64)>,
    pub(crate) newest: u64,
    pub(crate) ended: Ended,
}

impl ReferenceCounters {
    pub(crate) fn apply(&mut self, act: &Act, commit: u64) -> Done {
        if let Deed::TooLong { what, .. } = &act.deed {
            return Done::refused(match what {
                TooLong::Key => Refused::KeyTooLong { got: USER_KEY_BYTES_MAX as u64 + 1 },
                TooLong::Value => Refused::ValueTooLong { got: USER_VALUE_BYTES_MAX as u64 + 1 },
            });
        }
        if let Some(ticket) = act.ticket {
            self.executed.insert(ticket);
        }
        match &act.deed {
            Deed::Add { counter, by, answer_bytes, pushes } => {
                let value = self.values.entry(counter.clone()).or_default();
                *value = value.wrapping_add(*by);
                let pushes = pushes.iter().map(|(session, bytes)| (*session, payload(commit, *bytes))).collect();
                Done { pushes, ..Done::responded(&added(*value, commit, *answer_bytes)) }
            }
            Deed::Remove { counter } => {
                Done::responded(&added(self.values.remove(counter).unwrap_or_default(), commit, 0))
            }
            Deed::Sum { prefix } => {
                let found = self.values.iter().filter(|(name, _)| name.starts_with(prefix)).map(|(_, value)| *value);
                Done::responded(&summed(found.clone().count() as u64, found.fold(0, i64::wrapping_add)))
            }
            Deed::TooLong { .. } => unreachable!("refused above"),
        }
    }

    /// A session begins. Gives what is pushed.
    pub(crate) fn begin(&mut self, session: u64) -> Vec<(u64, Vec<u8>)> {
        let before = std::mem::replace(&mut self.newest, session);
        vec![(before, news(session, true))]
    }

    /// A session ends. Gives what is pushed.
    pub(crate) fn end(&mut self, session: u64) -> Vec<(u64, Vec<u8>)> {
        let requests: Vec<_> = self.executed.range((session, 0)..=(session, u64::MAX)).copied().collect();
        for request in &requests {
            self.executed.remove(request);
        }
        self.ended.requests += requests.len() as u64;
        vec![(self.newest, news(session, false))]
    }
}
