//! Updates of keys, and what became of them.

use contract::keyed::{LogicalTime, Merge, UpdateOutcome, Updated};
use serde::de::{self, Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Value as JsonValue, json};

use super::key::MapKey;
use super::version::Version;
use crate::error::{DecodeError, pass};
use crate::reader::from_json_text;
use crate::schema::{Described, Schemas, object, words};
use crate::transactions::operation::{OperationHead, Operations, operations};
use crate::values::UserJson;

object! {
    /// Puts a value, if its version is newer than that of the key.
    request KeyPut {
        /// The key.
        key: MapKey,
        /// Its value.
        value: UserJson,
        /// The version of the value.
        version: Version,
    }

    /// Deletes a key that was put, if the version is newer than that of the key.
    request KeyDelete {
        /// The key.
        key: MapKey,
        /// The version of the deletion.
        version: Version,
    }

    /// Removes a merged key.
    request KeyRemove {
        /// The key.
        key: MapKey,
    }

    /// Adds to an integer.
    request KeyAdd {
        /// The key.
        key: MapKey,
        /// What is added.
        value: i64,
        /// The version, in an ordered map; none in others.
        version: Option<Version>,
    }

    /// Keeps the smaller of two integers.
    request KeyMin {
        /// The key.
        key: MapKey,
        /// The integer to compare with.
        value: i64,
        /// The version, in an ordered map; none in others.
        version: Option<Version>,
    }

    /// Keeps the larger of two integers.
    request KeyMax {
        /// The key.
        key: MapKey,
        /// The integer to compare with.
        value: i64,
        /// The version, in an ordered map; none in others.
        version: Option<Version>,
    }

    /// An update that was not applied.
    answer NotApplied {
        /// Its place in the list of updates, from 0.
        at: u32,
        /// What became of it.
        outcome: UpdateWord,
        /// For a stale one: the version of the key, or the seal if that is newer.
        current["Option::is_none"]: Option<Version>,
    }

    /// What became of updates.
    answer MapUpdated {
        /// How many there were.
        updates: u64,
        /// How many were applied; in an ordered map they are when the seal reaches their versions.
        applied: u64,
        /// The others, by their places.
        not_applied: Vec<NotApplied>,
    }
}

operations! {
    /// An update of one key.
    KeyUpdate {
        /// Puts a value, if its version is newer than that of the key.
        Put(KeyPut) = "put",
        /// Deletes a key that was put, if the version is newer than that of the key.
        Delete(KeyDelete) = "delete",
        /// Removes a merged key.
        Remove(KeyRemove) = "remove",
        /// Adds to an integer.
        Add(KeyAdd) = "add",
        /// Keeps the smaller of two integers.
        Min(KeyMin) = "min",
        /// Keeps the larger of two integers.
        Max(KeyMax) = "max",
    }
}

words! {
    /// What became of an update.
    UpdateWord {
        /// It was applied; in an ordered map, it will be, or was, when the seal reaches its version.
        Applied = "applied",
        /// It was applied before.
        Duplicate = "duplicate",
        /// Something newer was applied before, or the version is sealed.
        Stale = "stale",
        /// The key has this version with another value, which stays.
        VersionConflict = "version_conflict",
        /// Something newer than this release.
        Other = "other",
    }
}

impl KeyUpdate {
    /// Puts a value with a version.
    pub fn put(key: impl Into<Vec<u8>>, value: impl Into<contract::Value>, version: impl Into<LogicalTime>) -> Self {
        Self::Put(KeyPut { key: MapKey(key.into()), value: UserJson(value.into()), version: Version(version.into()) })
    }

    /// Deletes a key with a version.
    pub fn delete(key: impl Into<Vec<u8>>, version: impl Into<LogicalTime>) -> Self {
        Self::Delete(KeyDelete { key: MapKey(key.into()), version: Version(version.into()) })
    }

    /// Removes a merged key.
    pub fn remove(key: impl Into<Vec<u8>>) -> Self {
        Self::Remove(KeyRemove { key: MapKey(key.into()) })
    }

    /// Merges an integer into a key, in a numbered commit.
    pub fn merge(key: impl Into<Vec<u8>>, merge: Merge, value: i64) -> Self {
        Self::merging(key.into(), merge, value, None)
    }

    /// Merges an integer into a key with a version, in an ordered map.
    pub fn merge_at(key: impl Into<Vec<u8>>, merge: Merge, value: i64, version: impl Into<LogicalTime>) -> Self {
        Self::merging(key.into(), merge, value, Some(Version(version.into())))
    }

    fn merging(key: Vec<u8>, merge: Merge, value: i64, version: Option<Version>) -> Self {
        let key = MapKey(key);
        match merge {
            Merge::Min => Self::Min(KeyMin { key, value, version }),
            Merge::Max => Self::Max(KeyMax { key, value, version }),
            _ => Self::Add(KeyAdd { key, value, version }),
        }
    }
}

impl<'de> Deserialize<'de> for KeyUpdate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&'de RawValue>::deserialize(deserializer)?.get();
        update_of(raw).map_err(pass)
    }
}

fn update_of(raw: &str) -> Result<KeyUpdate, DecodeError> {
    let OperationHead { op } = from_json_text(raw)?;
    let unknown = || Err(<DecodeError as de::Error>::unknown_variant(&op, KeyUpdate::NAMES).in_member("op"));
    KeyUpdate::read(&op, raw).unwrap_or_else(unknown)
}

impl Described for KeyUpdate {
    fn schema(schemas: &mut Schemas) -> JsonValue {
        json!({ "oneOf": <Self as Operations>::schemas(schemas) })
    }
}

/// The word for an outcome, and the version that is current instead.
pub fn outcome_of(outcome: UpdateOutcome) -> (UpdateWord, Option<Version>) {
    match outcome {
        UpdateOutcome::Applied => (UpdateWord::Applied, None),
        UpdateOutcome::Duplicate => (UpdateWord::Duplicate, None),
        UpdateOutcome::Stale { current } => (UpdateWord::Stale, Some(Version(current))),
        UpdateOutcome::VersionConflict => (UpdateWord::VersionConflict, None),
        _ => (UpdateWord::Other, None),
    }
}

impl From<&Updated> for MapUpdated {
    fn from(updated: &Updated) -> Self {
        let not_applied = updated.others().iter().map(|(at, outcome)| {
            let (outcome, current) = outcome_of(*outcome);
            NotApplied { at: *at, outcome, current }
        });
        Self { updates: updated.count() as u64, applied: updated.applied() as u64, not_applied: not_applied.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_is_read_as_it_is_written() {
        let updates = [
            KeyUpdate::put("a", contract::Value::Null, 7),
            KeyUpdate::delete([0xff], LogicalTime::new(1, 7)),
            KeyUpdate::remove("a"),
            KeyUpdate::merge("a", Merge::Add, -1),
            KeyUpdate::merge("a", Merge::Min, i64::MIN),
            KeyUpdate::merge_at("a", Merge::Max, i64::MAX, 7),
        ];
        for update in updates {
            let written = serde_json::to_string(&update).expect("JSON");
            assert_eq!(from_json_text::<KeyUpdate>(&written), Ok(update), "{written}");
        }
        let put = serde_json::to_string(&KeyUpdate::put("a", 1, 7)).expect("JSON");
        assert_eq!(put, r#"{"op":"put","key":"a","value":1,"version":7}"#);
    }

    #[test]
    fn what_is_no_update_is_refused_by_name() {
        let refused = |raw: &str| from_json_text::<KeyUpdate>(raw).expect_err(raw).to_string();
        assert_eq!(
            refused(r#"{"op":"putt","key":"a","value":1,"version":7}"#),
            r#""op": "putt" is unknown; did you mean "put"?"#
        );
        assert_eq!(refused(r#"{"op":"put","key":"a","value":1}"#), r#""version" is missing"#);
        assert_eq!(
            refused(r#"{"op":"put","key":"a","value":1,"versoin":7}"#),
            r#""versoin" is unknown; did you mean "version"?"#
        );
        assert!(refused(r#"{"op":"add","key":"a","value":"1"}"#).starts_with("\"value\": "));
        assert!(refused(r#"{"op":"add","key":"a","value":9223372036854775808}"#).starts_with("\"value\": "));
        assert_eq!(refused(r#"{"op":"remove","key":"a","version":7}"#), r#""version" is unknown"#);
    }

    #[test]
    fn outcomes_keep_their_places() {
        let others = vec![(1, UpdateOutcome::Duplicate), (2, UpdateOutcome::Stale { current: 9.into() })];
        let updated = MapUpdated::from(&Updated::new(3, others));
        let written = serde_json::to_string(&updated).expect("JSON");
        assert_eq!(
            written,
            r#"{"updates":3,"applied":1,"not_applied":[{"at":1,"outcome":"duplicate"},{"at":2,"outcome":"stale","current":9}]}"#
        );
    }
}
