//! The heads of sessions while entries are applied: read once, written at the end of an entry.
//!
//! Touches: the heads. Keeps: a head in memory is the one in the rows, with the changes of the entry at hand.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use kv::Staging;

use crate::head::Head;
use crate::keys::SessionKeys;
use crate::machine::Halt;

/// Heads kept in memory between entries.
const HEADS_KEPT_MAX: usize = 2_048;

/// Heads after the commands so far. A head stays in place from entry to entry: a session that sends one request after
/// another is looked up once for each, and nothing is moved.
#[derive(Default)]
pub(crate) struct Heads {
    /// Those of the entry at hand, and some that earlier entries touched, as they are stored.
    kept: BTreeMap<u64, Kept>,
    /// Those of the entry at hand, in the order they were touched. The ones that have changed are written at its end.
    touched: Vec<u64>,
}

pub(crate) struct Kept {
    pub(crate) head: Head,
    /// Whether the entry at hand has touched it.
    touched: bool,
    /// Whether it must be written.
    pub(crate) changed: bool,
}

impl Heads {
    /// The head of a session, if it exists.
    pub(crate) fn find(
        &mut self,
        state: &Staging,
        keys: &SessionKeys,
        session: u64,
    ) -> Result<Option<&mut Kept>, Halt> {
        let Self { kept, touched } = self;
        let kept = match kept.entry(session) {
            Entry::Occupied(kept) => kept.into_mut(),
            Entry::Vacant(vacant) => match state.get(&keys.head(session))? {
                Some(row) => vacant.insert(Kept { head: Head::decode(&row)?, touched: false, changed: false }),
                None => return Ok(None),
            },
        };
        if !kept.touched {
            kept.touched = true;
            touched.push(session);
        }
        Ok(Some(kept))
    }

    /// Adds the head of a new session.
    pub(crate) fn add(&mut self, session: u64) {
        self.kept.insert(session, Kept { head: Head::new(), touched: true, changed: true });
        self.touched.push(session);
    }

    /// Takes the head of a session that ends.
    pub(crate) fn take(&mut self, state: &Staging, keys: &SessionKeys, session: u64) -> Result<Option<Head>, Halt> {
        self.find(state, keys, session)?;
        Ok(self.kept.remove(&session).map(|kept| kept.head))
    }

    /// Writes those that have changed.
    pub(crate) fn write(&mut self, state: &mut Staging, keys: &SessionKeys) {
        for session in self.touched.drain(..) {
            // One that has ended since is not here any more.
            if let Some(kept) = self.kept.get_mut(&session) {
                kept.touched = false;
                if std::mem::take(&mut kept.changed) {
                    kept.head.write(state, keys, session);
                }
            }
        }
        if self.kept.len() > HEADS_KEPT_MAX {
            self.kept.clear();
        }
    }
}
