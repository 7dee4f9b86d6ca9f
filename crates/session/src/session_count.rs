//! The number of sessions, kept beside them: a new one is refused when there are too many.
//!
//! Touches: the row of the number. Keeps: at least as many as can end, also if some of their rows are damaged.

use std::collections::BTreeSet;

use kv::{KvError, Order, Reader, Staging, skip_set_apart};

use crate::keys::SessionKeys;
use crate::machine::Halt;

/// The number of sessions after the commands so far.
#[derive(Default)]
pub(crate) struct SessionCount {
    /// Once it was needed.
    known: Option<u64>,
    changed: bool,
}

impl SessionCount {
    /// The number.
    pub(crate) fn get(&mut self, state: &Staging, keys: &SessionKeys) -> Result<u64, Halt> {
        if let Some(count) = self.known {
            return Ok(count);
        }
        let count = match state.get(&keys.count()) {
            Ok(Some(row)) => Reader::new(&row).u64().map_err(|error| Halt::Undecodable { what: "a count", error })?,
            Ok(None) => 0,
            Err(KvError::Damaged(damaged)) if damaged.is_set_apart => counted(state, keys)?,
            Err(error) => return Err(error.into()),
        };
        self.known = Some(count);
        Ok(count)
    }

    /// Changes the number.
    pub(crate) fn add(&mut self, state: &Staging, keys: &SessionKeys, by: i64) -> Result<(), Halt> {
        let count = self.get(state, keys)?.checked_add_signed(by);
        self.known = Some(count.ok_or_else(|| Halt::Inconsistent("E1: fewer than no sessions".into()))?);
        self.changed = true;
        Ok(())
    }

    /// Writes the row, if the number has changed.
    pub(crate) fn write(&mut self, state: &mut Staging, keys: &SessionKeys) {
        if std::mem::take(&mut self.changed) {
            let count = self.known.unwrap_or_default();
            state.put_encoded(keys.count(), |writer| {
                writer.u64(count);
            });
        }
    }
}

/// The sessions of which a row can be read. Only these can end.
fn counted(state: &Staging, keys: &SessionKeys) -> Result<u64, Halt> {
    let mut sessions = BTreeSet::new();
    for range in [keys.sessions(), keys.heads()] {
        for row in skip_set_apart(state.scan(&range, Order::Ascending)) {
            sessions.insert(SessionKeys::last_number(&row?.0));
        }
    }
    Ok(sessions.len() as u64)
}
