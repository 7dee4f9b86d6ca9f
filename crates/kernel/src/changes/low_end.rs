//! The start of the feed: the rows that retention has removed, and the row that records it, the *floor*.
//!
//! The floor is a commit number: changes up to it are no longer kept, all later ones are. It moves in the same batch as
//! the removed rows.
//!
//! Touches: the floor and the oldest rows of changes. Keeps: what is removed depends on the stored state alone, never
//! on when this process started: the rows in memory are exactly the oldest rows of the state. Never: removes more than
//! [`REMOVED_ROWS_MAX`] rows for each added one.

use std::collections::VecDeque;

use contract::Limits;
use kv::{DecodeError, KvError, Order, Reader, Staging, View, skip_set_apart};
use session::Halt;

use super::row::RowReader;
use crate::applied::Applied;
use crate::keys::Keys;

const FORMAT: u8 = 1;

/// Rows that one entry removes: more than the one it adds, so that a backlog shrinks.
const REMOVED_ROWS_MAX: usize = 2;

/// Rows read at once when none is in memory: a scan per entry would cost more than applying it.
pub(super) const KNOWN_ROWS_MAX: usize = 64;

/// The feed of a new shard: keeps all changes from the first command on.
pub(crate) fn begin(state: &mut Staging, keys: &Keys) {
    put_floor(state, keys, 0);
}

/// The feed of a shard that starts after a commit, without earlier changes.
pub(crate) fn begin_after(state: &mut Staging, keys: &Keys, commit: u64) {
    put_floor(state, keys, commit);
}

/// The commit up to which changes are not kept. A shard from before the feed existed has none of the earlier changes.
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

/// A kept row.
struct Kept {
    commit: u64,
    wall_us: u64,
}

/// The oldest rows of the feed, and its floor.
pub(super) struct LowEnd {
    floor: u64,
    /// The stored floor; none if its row does not exist yet.
    stored_floor: Option<u64>,
    /// The oldest rows, in order.
    oldest: VecDeque<Kept>,
    /// Whether `oldest` contains all rows.
    is_all: bool,
}

impl LowEnd {
    /// As the state has it, before a row is added.
    pub(super) fn load(state: &Staging, keys: &Keys) -> Result<Self, Halt> {
        let stored_floor = match state.get(&keys.changes_floor()) {
            // The oldest row that can be read says as much, and the floor is written again.
            Err(KvError::Damaged(damaged)) if damaged.is_set_apart => {
                let mut low_end = Self { floor: 0, stored_floor: None, oldest: VecDeque::new(), is_all: false };
                low_end.know_more(state, keys)?;
                low_end.floor = low_end.oldest.front().map_or(0, |row| row.commit - 1);
                return Ok(low_end);
            }
            row => row?.map(|row| decode_floor(&row)).transpose()?,
        };
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
        // Rows in a damaged range are behind the floor once it has passed them.
        let rows = skip_set_apart(state.scan(&keys.changes_from(self.floor + 1), Order::Ascending));
        for row in rows.take(KNOWN_ROWS_MAX) {
            let (key, row) = row?;
            let commit = keys.commit_of_changes(&key);
            let commit = commit.ok_or_else(|| Halt::Inconsistent("a foreign key among changes".into()))?;
            self.oldest.push_back(Kept { commit, wall_us: RowReader::open(&row, commit)?.wall_us() });
        }
        self.is_all = self.oldest.len() < KNOWN_ROWS_MAX;
        Ok(())
    }

    /// A row was added at the end.
    pub(super) fn row_added(&mut self, commit: u64, wall_us: u64) {
        self.is_all &= self.oldest.len() < KNOWN_ROWS_MAX;
        if self.is_all {
            self.oldest.push_back(Kept { commit, wall_us });
        }
    }

    /// Removes some of the rows beyond retention, given the number and time of the newest command.
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
