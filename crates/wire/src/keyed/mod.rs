//! Requests and answers of the routes for keyed state: maps, and the partitions of operators.
//!
//! - [`key`], [`version`]: how keys and versions are written. [`updates`]: updates of keys, and what became of them.
//! - [`operations`]: maps in transactions. [`operators`]: partitions and their owners. [`checkpoints`]: their checkpoints.

pub mod checkpoints;
pub mod key;
pub mod operations;
pub mod operators;
pub mod updates;
pub mod version;

use contract::keyed::Policy;

use crate::schema::{left_out, object, words};
use crate::values::{Members, PageCursor, UserJson};
use key::{KeyText, MapKey};
use updates::{KeyUpdate, NotApplied, UpdateWord};
use version::{Version, VersionText};

pub use operations::{MapGuard, MapOperation};
pub use updates::MapUpdated;

object! {
    /// Selects maps to list.
    request ListMaps {
        /// Only names with this prefix.
        prefix: Option<String>,
        /// The cursor of the previous page.
        cursor: Option<PageCursor>,
        /// Maximum number of maps.
        limit: Option<u64>,
    }

    /// A map as a whole.
    answer ShownMap {
        /// Its name.
        name: String,
        /// Its group, in a listing, if it has one.
        group["Option::is_none"]: Option<String>,
        /// Keys that have a value.
        keys: u64,
        /// Deleted keys whose versions are remembered until the seal passes them.
        deleted: u64,
        /// How its updates are applied.
        policy: PolicyText,
        /// Updates that wait for the seal.
        waiting: u64,
        /// The number of the last numbered commit; 0 if there was none.
        last_number: u64,
        /// The version up to which the source has finished.
        seal: Option<Version>,
        /// The commit of the last change.
        commit: u64,
        /// The commit of its last restore; null if there was none. A restore that fails leaves it as it is.
        restored: Option<u64>,
        /// When it was changed.
        updated_at: String,
    }

    /// A page of maps, from one view.
    answer MapList {
        /// The maps, by name and then by group.
        maps: Vec<ShownMap>,
        /// Where the next page starts, if there is one.
        cursor: Option<PageCursor>,
    }

    /// Creates a map, unless it exists with the same policy.
    request CreateMap {
        /// How its updates are applied; `monotonic` by default.
        policy: Option<PolicyText>,
    }

    /// A map that now exists.
    answer CreatedMap {
        /// Its name.
        name: String,
        /// How its updates are applied.
        policy: PolicyText,
        /// Whether this request created it.
        created: bool,
    }

    /// A map that was deleted.
    answer DeletedMap {
        /// Its name.
        name: String,
        /// The commit.
        commit: u64,
    }

    /// Updates keys, each with its version.
    request UpdateMap {
        /// The updates, in order.
        updates: Vec<KeyUpdate>,
    }

    /// A numbered commit of a map: updates, positions of inputs, and a seal, all or nothing.
    request CommitMap {
        /// Its number: one more than that of the commit before; the first is 1. Sent again, it gets its first answer.
        number: u64,
        /// The updates, in order: another order is another commit.
        updates: Option<Vec<KeyUpdate>>,
        /// How far each input was read with it, in any order. Positions never go back.
        positions: Option<Members<u64>>,
        /// The version up to which the source has finished, once this is committed.
        seal: Option<Version>,
    }

    /// A committed one.
    answer MapCommitted {
        /// The commit, which orders it among all writes of the store.
        commit: u64,
        /// Its number in the map.
        number: u64,
        /// How many updates there were.
        updates: u64,
        /// How many were applied; in an ordered map they are when the seal reaches their versions.
        applied: u64,
        /// The others, by their places.
        not_applied: Vec<NotApplied>,
    }

    /// Raises the seal.
    request SealMap {
        /// The version up to which the source has finished: an update that arrives later with a version at or below it changes nothing.
        version: Version,
    }

    /// A sealed map.
    answer SealedMap {
        /// Its name.
        name: String,
        /// Whether this request raised the seal; it is as high or higher otherwise.
        raised: bool,
    }

    /// With which version a key is written.
    request WriteKey {
        /// The version, `7`, or an epoch and a round, `1:7`: the key is written only if it is newer.
        version: VersionText,
    }

    /// What became of the write of a key.
    answer KeyWritten {
        /// The map.
        map: String,
        /// The key.
        key: MapKey,
        /// What became of it.
        outcome: UpdateWord,
        /// For a stale one: the version of the key, or the seal if that is newer.
        current["Option::is_none"]: Option<Version>,
    }

    /// A key with its value.
    answer KeyEntry {
        /// The key.
        key: MapKey,
        /// Its value.
        value: UserJson,
        /// The version that it was put with; null if it was merged.
        version: Option<Version>,
        /// The commit that wrote it.
        commit: u64,
    }

    /// Selects keys, in the order of their bytes.
    request ScanKeys {
        /// Only keys with this prefix.
        prefix: Option<KeyText>,
        /// Only keys from this one on.
        from: Option<KeyText>,
        /// Only keys before this one.
        to: Option<KeyText>,
        /// The cursor of the previous page.
        cursor: Option<PageCursor>,
        /// Maximum number of keys.
        limit: Option<u64>,
    }

    /// A page of keys, from one view.
    answer KeyPage {
        /// The keys, in the order of their bytes.
        keys: Vec<KeyEntry>,
        /// Where the next page starts, if there may be one.
        cursor: Option<PageCursor>,
    }

    /// Selects inputs.
    request ReadPositions {
        /// Only inputs after this one.
        after: Option<String>,
        /// Maximum number of inputs.
        limit: Option<u64>,
    }

    /// How far an input was read.
    answer ShownPosition {
        /// The input.
        input: String,
        /// Its position.
        position: u64,
        /// The commit that wrote it.
        commit: u64,
        /// When it was committed.
        updated_at: String,
    }

    /// How far inputs were read.
    answer Positions {
        /// The inputs, in name order.
        positions: Vec<ShownPosition>,
        /// Where the next page starts, if there may be one.
        next_after: Option<String>,
    }
}

left_out! {
    ListMaps { prefix, cursor, limit }
    CreateMap { policy }
    ScanKeys { prefix, from, to, cursor, limit }
    ReadPositions { after, limit }
}

words! {
    /// How the updates of a map are applied.
    PolicyText {
        /// At once, if they are newer than the key.
        Monotonic = "monotonic",
        /// In the order of their versions, once the seal reaches them.
        Ordered = "ordered",
    }
}

impl From<Policy> for PolicyText {
    fn from(policy: Policy) -> Self {
        match policy {
            Policy::Ordered => PolicyText::Ordered,
            _ => PolicyText::Monotonic,
        }
    }
}

impl From<PolicyText> for Policy {
    fn from(text: PolicyText) -> Self {
        match text {
            PolicyText::Monotonic => Policy::Monotonic,
            PolicyText::Ordered => Policy::Ordered,
        }
    }
}

impl CommitMap {
    /// The commit of this number, empty.
    pub fn numbered(number: u64) -> Self {
        Self { number, updates: None, positions: None, seal: None }
    }

    /// Adds an update.
    pub fn update(mut self, update: KeyUpdate) -> Self {
        self.updates.get_or_insert_default().push(update);
        self
    }

    /// Says how far an input was read with it.
    pub fn advance(mut self, input: impl Into<String>, position: u64) -> Self {
        self.positions.get_or_insert_default().0.push((input.into(), position));
        self
    }

    /// Raises the seal, after the updates.
    pub fn seal(mut self, version: impl Into<Version>) -> Self {
        self.seal = Some(version.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_has_its_word() {
        for (policy, word) in Policy::WORDS {
            assert_eq!((PolicyText::from(policy).as_str(), Policy::from(PolicyText::from(policy))), (word, policy));
        }
    }
}
