//! A state backend over this library: a map of an open directory, which other handles can read meanwhile.
//!
//! Touches: one map, through its handle. Keeps: a put is durable when it returns; a snapshot is one view of the map; a restore, and keys
//! that move in, take effect in one commit, and keys that move in leave input positions and the last numbered commit as they are. Never:
//! keeps those across a restore of everything; they are not part of a snapshot.

use std::collections::BTreeMap;

use contract::keyed::backend::{BackendError, ExactlyOnceStateBackend, StateVersion, VersionedStateBackend};
use contract::keyed::limits::KEYED_UPDATES_MAX;
use contract::keyed::{LogicalTime, Policy, shown_key};
use contract::{Error, Failure, FailureKind, KeyedRejection, Rejection, UpdateOutcome};
use kernel::ValueRef;
use kernel::keyed::checkpoint;
use kernel::keyed::entry::{Entry as StoredEntry, KeyState, Waiting};
use kernel::keyed::restore::{RestoredCounts, RestoredMap};
use kernel::keyed::rows::ContentRow;
use kernel::keys::Keys;
use kv::{Order, Writer};
use session::Halt;

use super::encoding::{Encodings, decode_value, encode_key, encode_value, from_library_value, to_library_value};
use super::entry::{Entry, passed, takes_over};
use super::snapshot::Snapshot;
use super::{StateKey, StateValue, Types, check_entry, put_once, version_of};
use crate::keyed::Maps;
use crate::keyed::checkpoints::Restoring;
use crate::keyed::reads::InView;
use crate::keyed::updates::MapUpdates;

/// State in a map of an open directory, in which each update counts once.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
/// use statehouse::keyed::backends::{ExactlyOnceStateBackend, HouseStateBackend};
/// let mut prices = HouseStateBackend::<String, u32, u64>::new(house.maps(), "prices")?;
/// prices.put("apple".to_owned(), 30, 7)?; // durable when it returns
/// let checkpoint = prices.snapshot()?;
/// prices.put("apple".to_owned(), 31, 8)?;
/// assert_eq!(house.maps().get("prices", b"apple")?.map(|found| found.value), Some(31.into()));
/// prices.restore(&checkpoint)?;
/// assert_eq!(prices.get(&"apple".to_owned())?, Some((30, 7)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct HouseStateBackend<K, V, Ver> {
    maps: Maps,
    map: String,
    types: Types<K, V, Ver>,
}

/// What a map holds, encoded as in a snapshot.
struct Content {
    seal: Option<LogicalTime>,
    entries: BTreeMap<Vec<u8>, Entry>,
}

impl<K: StateKey, V: StateValue, Ver: StateVersion> HouseStateBackend<K, V, Ver> {
    /// The state in a map, which is created if it does not exist. A map with the policy ordered is refused.
    pub fn new(maps: Maps, map: impl Into<String>) -> Result<Self, BackendError> {
        let map = map.into();
        maps.create(&map, Policy::Monotonic)?;
        Ok(Self { maps, map, types: Types::default() })
    }

    /// The name of the map.
    pub fn map(&self) -> &str {
        &self.map
    }

    fn encodings() -> Encodings {
        Encodings::of::<K, V>()
    }

    /// What is stored of a key.
    fn known(&self, found: &InView<'_>, key: &[u8]) -> Result<Option<Entry>, BackendError> {
        let prefix = found.keys.entry_prefix(&found.map, found.head.content.number);
        let row = found.view.get(&Keys::entry_at(&prefix, key)).map_err(|error| halted(&error.into()))?;
        row.map_or(Ok(None), |row| self.read_entry(key, &row))
    }

    fn read_entry(&self, key: &[u8], row: &[u8]) -> Result<Option<Entry>, BackendError> {
        let stored = StoredEntry::decode(row).map_err(|halt| halted(&halt))?;
        match stored.state {
            KeyState::Deleted(version) => Ok(Some(Entry { version, value: None })),
            KeyState::Put { version, .. } => {
                let value = stored.value().map_err(|halt| halted(&halt))?;
                let value =
                    value.map(|value| from_library_value(Self::encodings().values, value.to_value())).transpose()?;
                Ok(Some(Entry { version, value }))
            }
            KeyState::Merged(_) => {
                let reason = format!("key {:?} of map {:?} is merged, and has no version", shown_key(key), self.map);
                Err(BackendError::Unstorable { what: "a merged key", reason })
            }
            KeyState::Nothing(_) => Ok(None),
        }
    }

    /// Some keys of the map, or all, at one view.
    fn read(&self, which: Option<&[K]>) -> Result<Content, BackendError> {
        let which = which.map(|keys| keys.iter().map(encode_key).collect::<Result<Vec<_>, _>>()).transpose()?;
        let content = self.maps.read_with(&self.map, |found| {
            let mut entries = BTreeMap::new();
            let seal = found.head.content.seal;
            let mut add = |key: &[u8], entry: Option<Entry>| {
                let entry = entry.filter(|entry| !entry.is_forgotten(seal));
                entries.extend(entry.map(|entry| (key.to_vec(), entry)));
            };
            match &which {
                Some(keys) => {
                    for key in keys {
                        add(key, self.known(found, key)?);
                    }
                }
                None => {
                    let prefix = found.keys.entry_prefix(&found.map, found.head.content.number);
                    for row in found.view.scan(&kv::KeyRange::prefix(&prefix), Order::Ascending) {
                        let (row_key, row) = row.map_err(|error| halted(&error.into()))?;
                        let key = &row_key[prefix.len()..];
                        add(key, self.read_entry(key, &row)?);
                    }
                }
            }
            Ok::<_, BackendError>(Content { seal, entries })
        })?;
        Ok(content.unwrap_or(Content { seal: None, entries: BTreeMap::new() }))
    }

    fn updates_of<'entry>(
        &self,
        entries: impl IntoIterator<Item = (&'entry Vec<u8>, &'entry Entry)>,
    ) -> Result<MapUpdates, BackendError> {
        let mut updates = MapUpdates::new();
        for (key, entry) in entries {
            match &entry.value {
                Some(value) => {
                    let value = to_library_value(Self::encodings().values, value.clone())?;
                    updates.add_put(key, &value, entry.version);
                }
                None => updates.add_delete(key, entry.version),
            }
        }
        Ok(updates)
    }

    /// Replaces all that the map holds: it is put aside in steps, and takes the place of what is there in one.
    fn replace(&self, content: &Content) -> Result<(), BackendError> {
        let begin = || self.maps.commit();
        let restored = RestoredMap { policy: Policy::Monotonic, last_number: 0, seal: content.seal };
        let deleted = content.entries.values().filter(|entry| entry.value.is_none()).count() as u64;
        let counts = RestoredCounts { keys: content.entries.len() as u64 - deleted, deleted, waiting: 0 };
        Restoring::begin(&begin, &self.map, restored)?.finish(counts, |rows| {
            let mut entries = content.entries.iter();
            entries.try_for_each(|(key, entry)| Ok(rows.add(&Self::row_of(key, entry)?).map(drop)?))
        })
    }

    /// Puts entries that are newer than what the map holds in one update. Returns false if they are too many for one.
    fn put_in_one_update(&self, newer: &BTreeMap<Vec<u8>, Entry>) -> Result<bool, BackendError> {
        if newer.len() > KEYED_UPDATES_MAX {
            return Ok(false);
        }
        match self.maps.update(&self.map, &self.updates_of(newer)?) {
            Err(Error::Rejected(Rejection::LimitExceeded { limit: "transaction_bytes_max", .. })) => Ok(false),
            updated => Ok(updated.map(|_| true)?),
        }
    }

    /// Replaces what the map holds by the same with these entries: all rows are copied aside, whatever they are, and take the place
    /// of what is there in one step. For what no update can do: too many entries, or versions that are sealed.
    fn replace_entries(&self, found: &InView<'_>, newer: &BTreeMap<Vec<u8>, Entry>) -> Result<(), BackendError> {
        let InView { view, keys, map, head } = found;
        let content = &head.content;
        let restored = RestoredMap { policy: head.policy, last_number: content.last_number, seal: content.seal };
        let mut counts = RestoredCounts { keys: content.keys, deleted: content.deleted, waiting: content.waiting };
        for (key, entry) in newer {
            match self.known(found, key)? {
                Some(Entry { value: Some(_), .. }) => counts.keys -= 1,
                Some(Entry { value: None, .. }) => counts.deleted -= 1,
                None => {}
            }
            match &entry.value {
                Some(_) => counts.keys += 1,
                None => counts.deleted += 1,
            }
        }
        let (begin, mut copied) = (|| self.maps.commit(), Writer::new());
        Restoring::begin(&begin, &self.map, restored)?.finish(counts, |rows| {
            let mut copy = |row: &ContentRow<'_>| match row {
                ContentRow::Key(key, _) if newer.contains_key(*key) => Ok(()),
                row => {
                    copied.clear();
                    row.encode(&mut copied);
                    rows.add(copied.as_slice()).map(drop).map_err(|error| Uncopied(error.into()))
                }
            };
            checkpoint::rows(&**view, keys, map, head, None, &mut copy).map_err(|Uncopied(error)| error)?;
            for (key, entry) in newer {
                rows.add(&Self::row_of(key, entry)?)?;
            }
            // What another handle has written since would be lost.
            match self.maps.summary(&self.map)? {
                Some(summary) if summary.commit == head.commit => Ok(()),
                _ => {
                    let message = format!("map {:?} was changed while keys moved in; nothing was moved", self.map);
                    Err(BackendError::Store(Failure::not_applied(FailureKind::Busy, message).into()))
                }
            }
        })
    }

    /// The row of an entry, as a restore takes it.
    fn row_of(key: &[u8], entry: &Entry) -> Result<Vec<u8>, BackendError> {
        let (mut value, mut stored, mut row) = (Writer::new(), Writer::new(), Writer::new());
        let state = match &entry.value {
            Some(bytes) => {
                ValueRef::from(&to_library_value(Self::encodings().values, bytes.clone())?).encode(&mut value);
                KeyState::Put { version: entry.version, value: value.as_slice() }
            }
            None => KeyState::Deleted(entry.version),
        };
        StoredEntry { commit: 0, waiting: Waiting::default(), state }.encode(&mut stored);
        ContentRow::Key(key, stored.as_slice()).encode(&mut row);
        Ok(row.finish())
    }
}

impl<K: StateKey, V: StateValue, Ver: StateVersion> ExactlyOnceStateBackend for HouseStateBackend<K, V, Ver> {
    type Key = K;
    type Value = V;
    type Version = Ver;

    fn put(&self, key: K, value: V, version: Ver) -> Result<(), BackendError> {
        put_once(self, key, value, version)
    }

    fn get(&self, key: &K) -> Result<Option<(V, Ver)>, BackendError> {
        let key = encode_key(key)?;
        let found = self.maps.read_with(&self.map, |found| self.known(found, &key))?;
        let Some(Entry { version, value: Some(value) }) = found.flatten() else { return Ok(None) };
        Ok(Some((decode_value(&value)?, version_of(version)?)))
    }

    fn snapshot(&self) -> Result<Vec<u8>, BackendError> {
        let Content { seal, entries } = self.read(None)?;
        Ok(Snapshot { is_part: false, encodings: Self::encodings(), seal, entries }.encode())
    }

    fn restore(&mut self, data: &[u8]) -> Result<(), BackendError> {
        let Snapshot { seal, entries, .. } = Snapshot::decode_whole(data, Self::encodings())?;
        entries.values().try_for_each(check_entry::<V, Ver>)?;
        self.replace(&Content { seal, entries })
    }
}

impl<K: StateKey, V: StateValue, Ver: StateVersion> VersionedStateBackend for HouseStateBackend<K, V, Ver> {
    fn put_outcome(&self, key: K, value: V, version: Ver) -> Result<UpdateOutcome, BackendError> {
        let value = to_library_value(Self::encodings().values, encode_value(&value)?)?;
        Ok(self.maps.put(&self.map, &encode_key(&key)?, value, version)?)
    }

    fn delete(&self, key: K, version: Ver) -> Result<UpdateOutcome, BackendError> {
        Ok(self.maps.delete(&self.map, &encode_key(&key)?, version)?)
    }

    fn passed(&self, key: &K) -> Result<Option<Ver>, BackendError> {
        let key = encode_key(key)?;
        let found = self.maps.read_with(&self.map, |found| {
            let known = self.known(found, &key)?;
            Ok::<_, BackendError>(passed(known.map(|entry| entry.version), found.head.content.seal))
        })?;
        found.flatten().map(version_of).transpose()
    }

    fn seal(&self, version: Ver) -> Result<(), BackendError> {
        Ok(self.maps.seal(&self.map, version)?)
    }

    fn snapshot_for_keys(&self, keys: &[K]) -> Result<Vec<u8>, BackendError> {
        let Content { entries, .. } = self.read(Some(keys))?;
        Ok(Snapshot { is_part: true, encodings: Self::encodings(), seal: None, entries }.encode())
    }

    fn restore_keys(&mut self, data: &[u8]) -> Result<(), BackendError> {
        let snapshot = Snapshot::decode(data, Self::encodings())?;
        snapshot.entries.values().try_for_each(check_entry::<V, Ver>)?;
        // Unless it was deleted meanwhile, it exists.
        self.maps.create(&self.map, Policy::Monotonic)?;
        let moved = self.maps.read_with(&self.map, |found| {
            let (seal, mut newer, mut is_sealed) = (found.head.content.seal, BTreeMap::new(), false);
            for (key, moved) in snapshot.entries {
                if takes_over(&key, self.known(found, &key)?.as_ref(), seal, &moved)? {
                    is_sealed |= Some(moved.version) <= seal;
                    newer.insert(key, moved);
                }
            }
            // No update is applied at or below the seal.
            let done = newer.is_empty() || !is_sealed && self.put_in_one_update(&newer)?;
            if done { Ok(()) } else { self.replace_entries(found, &newer) }
        })?;
        moved.ok_or_else(|| Rejection::from(KeyedRejection::NoSuchMap { map: self.map.clone() }).into())
    }
}

/// Why a row was not copied.
struct Uncopied(BackendError);

impl From<Halt> for Uncopied {
    fn from(halt: Halt) -> Self {
        Self(halted(&halt))
    }
}

fn halted(halt: &Halt) -> BackendError {
    let error: Error = node::error::from_halt(halt);
    BackendError::Store(error)
}
