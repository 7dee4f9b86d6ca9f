//! Maps in a transaction: operations on them, and conditions on keys and on positions.

use super::PolicyText;
use super::key::MapKey;
use super::updates::KeyUpdate;
use super::version::Version;
use crate::error::DecodeError;
use crate::schema::object;
use crate::transactions::guards::{guards, only_true};
use crate::transactions::operation::operations;
use crate::values::Members;

object! {
    /// Updates keys of a map, each with its version.
    request MapUpdate {
        /// The map.
        name: String,
        /// The updates, in order.
        updates: Vec<KeyUpdate>,
    }

    /// The numbered commit of a map: the whole transaction, sent again, gets its first answer.
    request MapCommit {
        /// The map.
        name: String,
        /// Its number: one more than that of the commit before; the first is 1.
        number: u64,
        /// The updates, in order: another order is another commit.
        updates: Option<Vec<KeyUpdate>>,
        /// How far each input was read with it, in any order. Positions never go back.
        positions: Option<Members<u64>>,
        /// The version up to which the source has finished, once this is committed.
        seal: Option<Version>,
    }

    /// Raises the seal of a map.
    request MapSeal {
        /// The map.
        name: String,
        /// The version up to which the source has finished.
        version: Version,
    }

    /// Creates a map, unless it exists with the same policy.
    request MapCreate {
        /// The map.
        name: String,
        /// How its updates are applied; `monotonic` by default.
        policy: Option<PolicyText>,
    }

    /// Deletes a map with all that it holds.
    request MapDelete {
        /// The map.
        name: String,
    }

    /// A key of a map.
    request KeyOfMap {
        /// The map.
        map: String,
        /// The key.
        key: MapKey,
    }

    /// The keys of a map from one on.
    request KeysOfMap {
        /// The map.
        map: String,
        /// The first key.
        from: MapKey,
        /// The key before which they end; without it they go to the last.
        before: Option<MapKey>,
    }

    /// An input of a map.
    request InputOfMap {
        /// The map.
        map: String,
        /// The input.
        input: String,
    }
}

operations! {
    /// An operation on a map.
    MapOperation {
        /// Updates keys of a map, each with its version.
        Update(MapUpdate) = "map.update",
        /// The numbered commit of a map.
        Commit(MapCommit) = "map.commit",
        /// Raises the seal of a map.
        Seal(MapSeal) = "map.seal",
        /// Creates a map, unless it exists with the same policy.
        Create(MapCreate) = "map.create",
        /// Deletes a map with all that it holds.
        Delete(MapDelete) = "map.delete",
    }
}

guards! {
    /// The conditions on a key, on a range of keys, or on an input of a map. All of them must hold.
    MapGuard about {
        /// The key of a map.
        key: KeyOfMap = "a key", if version | version_below | absent | exists | unchanged_since;
        /// The range of keys of a map.
        keys: KeysOfMap = "keys", if unchanged_since;
        /// The input of a map.
        input: InputOfMap = "an input", if position | absent;
    } conditions {
        /// The version that the key was put with.
        version: Version;
        /// The key was put with a lower version, or not at all.
        version_below: Version;
        /// `true`: the key has no value; the input has no position.
        absent: bool;
        /// `true`: the key has a value.
        exists: bool;
        /// No commit after this one has changed it; of a range, changed any of it.
        unchanged_since: u64;
        /// How far the input was read.
        position: u64;
    }
}

impl MapGuard {
    fn could_hold(&self) -> Result<(), DecodeError> {
        only_true(&[("absent", self.absent), ("exists", self.exists)])
    }
}
