//! The low end of the feed: which rows retention has given up, and the row that says so, the *floor*.
//!
//! The floor is a commit number: changes up to it are not kept, all after it are. It moves in the same batch as the
//! rows that are removed.
//!
//! Touches: the floor and the oldest rows of changes. Keeps: what is removed depends on the stored state alone, never on
//! when this process began: the rows in memory are always the oldest ones of the state, exactly. Never: removes more
//! than [`REMOVED_ROWS_MAX`] rows for one that is added.

use std::collections::VecDeque;

use contract::Limits;
use kv::{DecodeError, Order, Reader, Staging, View};
use session::Halt;

use super::row::RowReader;
use crate::applied::Applied;
use crate::keys::Keys;

const FORMAT: u8 = 1;

/// Rows that one entry removes: more than the one it adds, so that a backlog shrinks.
const REMOVED_ROWS_MAX: usize = 2;

/// Rows that are read at once when none is known: a scan for every entry would cost more than applying it.
pub(super) const KNOWN_ROWS_MAX: usize = 64;

/// The feed of a new shard: all changes from the first command on are kept.
pub(crate) fn begin(state: &mut Staging, keys: &Keys) {
    put_floor(state, keys, 0);
}

/// The feed of a shard that begins after a commit, without what changed up to it.
pub(crate) fn begin_after(state: &mut Staging, keys: &Keys, commit: u64) {
    put_floor(state, keys, commit);
}

/// Up to which commit changes are not kept. A shard from before there was a feed has none of what was applied.
pub(super) fn floor(view: &dyn View, keys: &Keys, applied: &Applied) -> Result<u64, Halt> {
    match view.get(&keys.changes_floor())? {
        Some(row) => decode_floor(&row),
        None => Ok(applied.commit),
    }
}

fn put_floor(state: &mut Staging, keys: &Keys, floor: u64) {
    state.put_encoded(keys.changes_floor(), |writer| {
        writer.u8(FORMAT).u64(floor);
    });
}

fn decode_floor(row: &[u8]) -> Result<u64, Halt> {
    let read = || {
        let mut reader = Reader::new(row);
        reader.format(FORMAT)?;
        let floor = reader.u64()?;
        reader.end().map(|()| floor)
    };
    read().map_err(|error: DecodeError| Halt::Undecodable { what: "the floor of the changes", error })
}

/// A row that is kept.
struct Kept {
    commit: u64,
    wall_us: u64,
}

/// See the module.
pub(super) struct LowEnd {
    floor: u64,
    /// The floor as the state has it; none if it has no such row yet.
    stored_floor: Option<u64>,
    /// The oldest rows, in order.
    oldest: VecDeque<Kept>,
    /// Whether `oldest` is all rows there are.
    is_all: bool,
}

impl LowEnd {
    /// As the state has it, before a row is added.
    pub(super) fn load(state: &Staging, keys: &Keys) -> Result<Self, Halt> {
        let stored_floor = state.get(&keys.changes_floor())?.map(|row| decode_floor(&row)).transpose()?;
        let floor = match (stored_floor, state.get(&keys.applied())?) {
            (Some(floor), _) => floor,
            (None, Some(applied)) => Applied::decode(&applied)?.commit,
            (None, None) => 0,
        };
        let mut low_end = Self { floor, stored_floor, oldest: VecDeque::new(), is_all: false };
        low_end.know_more(state, keys)?;
        Ok(low_end)
    }

    /// Reads the oldest rows, when none is known.
    fn know_more(&mut self, state: &Staging, keys: &Keys) -> Result<(), Halt> {
        for row in state.scan(&keys.changes_from(self.floor + 1), Order::Ascending).take(KNOWN_ROWS_MAX) {
            let (key, row) = row?;
            let commit = keys.commit_of_changes(&key);
            let commit = commit.ok_or_else(|| Halt::Inconsistent("a foreign key among changes".into()))?;
            self.oldest.push_back(Kept { commit, wall_us: RowReader::open(&row, commit)?.wall_us() });
        }
        self.is_all = self.oldest.len() < KNOWN_ROWS_MAX;
        Ok(())
    }

    /// A row was added behind all others.
    pub(super) fn row_added(&mut self, commit: u64, wall_us: u64) {
        self.is_all &= self.oldest.len() < KNOWN_ROWS_MAX;
        if self.is_all {
            self.oldest.push_back(Kept { commit, wall_us });
        }
    }

    /// Removes some of the rows that are beyond retention, now that the newest command has this number and time.
    pub(super) fn trim(
        &mut self,
        state: &mut Staging,
        keys: &Keys,
        limits: &Limits,
        now_us: u64,
        newest: u64,
    ) -> Result<(), Halt> {
        for _ in 0..REMOVED_ROWS_MAX {
            if self.oldest.is_empty() && !self.is_all {
                self.know_more(state, keys)?;
            }
            let beyond = |row: &mut Kept| {
                row.commit.saturating_add(limits.changes_commits_max) <= newest
                    || row.wall_us.saturating_add(limits.changes_age_us_max) < now_us
            };
            let Some(removed) = self.oldest.pop_front_if(beyond) else {
                break;
            };
            state.delete(keys.changes(removed.commit));
            self.floor = removed.commit;
        }
        if self.stored_floor != Some(self.floor) {
            put_floor(state, keys, self.floor);
            self.stored_floor = Some(self.floor);
        }
        Ok(())
    }
}
