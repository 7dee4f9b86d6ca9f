//! A state backend in memory: a hash map.
//!
//! Keeps: a restore replaces the map in one step, after all of the snapshot was read. Never: survives the process; a snapshot does.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::{Mutex, MutexGuard, PoisonError};

use contract::UpdateOutcome;
use contract::keyed::LogicalTime;
use contract::keyed::backend::{BackendError, ExactlyOnceStateBackend, StateVersion, VersionedStateBackend};

use super::encoding::{Encodings, decode_key, decode_value, encode_key, encode_value};
use super::entry::{Entry, judge, passed, takes_over};
use super::snapshot::Snapshot;
use super::{StateKey, StateValue, check_entry, put_once, version_of};

/// State in memory, in which each update counts once.
///
/// ```
/// use statehouse::keyed::UpdateOutcome;
/// use statehouse::keyed::backends::{ExactlyOnceStateBackend, HashMapStateBackend, VersionedStateBackend};
/// let mut prices = HashMapStateBackend::<String, u32, u64>::new();
/// prices.put("apple".to_owned(), 30, 7)?;
/// prices.put("apple".to_owned(), 29, 6)?; // an old update, late: it changes nothing
/// assert_eq!(prices.get(&"apple".to_owned())?, Some((30, 7)));
/// let checkpoint = prices.snapshot()?;
/// assert_eq!(prices.delete("apple".to_owned(), 8)?, UpdateOutcome::Applied);
/// prices.restore(&checkpoint)?;
/// assert_eq!(prices.get(&"apple".to_owned())?, Some((30, 7)));
/// # Ok::<(), statehouse::keyed::backends::BackendError>(())
/// ```
pub struct HashMapStateBackend<K, V, Ver> {
    content: Mutex<Content<K>>,
    types: PhantomData<fn() -> (V, Ver)>,
}

struct Content<K> {
    seal: Option<LogicalTime>,
    entries: HashMap<K, Entry>,
}

impl<K, V, Ver> Default for HashMapStateBackend<K, V, Ver> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, V, Ver> HashMapStateBackend<K, V, Ver> {
    /// Without keys.
    pub fn new() -> Self {
        Self { content: Mutex::new(Content { seal: None, entries: HashMap::new() }), types: PhantomData }
    }

    /// The content. A panic of another thread leaves it whole: an entry is replaced in one step.
    fn content(&self) -> MutexGuard<'_, Content<K>> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: StateKey, V: StateValue, Ver: StateVersion> HashMapStateBackend<K, V, Ver> {
    fn update(&self, key: K, after: Entry) -> Result<UpdateOutcome, BackendError> {
        encode_key(&key)?;
        let mut content = self.content();
        let outcome = judge(content.entries.get(&key), content.seal, &after);
        if outcome == UpdateOutcome::Applied {
            content.entries.insert(key, after);
        }
        Ok(outcome)
    }
}

impl<K: StateKey, V: StateValue, Ver: StateVersion> ExactlyOnceStateBackend for HashMapStateBackend<K, V, Ver> {
    type Key = K;
    type Value = V;
    type Version = Ver;

    fn put(&self, key: K, value: V, version: Ver) -> Result<(), BackendError> {
        put_once(self, key, value, version)
    }

    fn get(&self, key: &K) -> Result<Option<(V, Ver)>, BackendError> {
        let content = self.content();
        let Some(Entry { version, value: Some(value) }) = content.entries.get(key) else { return Ok(None) };
        Ok(Some((decode_value(value)?, version_of(*version)?)))
    }

    fn snapshot(&self) -> Result<Vec<u8>, BackendError> {
        let content = self.content();
        let entries = content.entries.iter().filter(|(_, entry)| !entry.is_forgotten(content.seal));
        let entries = entries.map(|(key, entry)| Ok((encode_key(key)?, entry.clone())));
        let entries = entries.collect::<Result<_, BackendError>>()?;
        Ok(Snapshot { is_part: false, encodings: Encodings::of::<K, V>(), seal: content.seal, entries }.encode())
    }

    fn restore(&mut self, data: &[u8]) -> Result<(), BackendError> {
        let snapshot = Snapshot::decode_whole(data, Encodings::of::<K, V>())?;
        let entries = snapshot.entries.into_iter().map(|(key, entry)| {
            check_entry::<V, Ver>(&entry)?;
            Ok((decode_key(&key)?, entry))
        });
        let entries = entries.collect::<Result<_, BackendError>>()?;
        *self.content() = Content { seal: snapshot.seal, entries };
        Ok(())
    }
}

impl<K: StateKey, V: StateValue, Ver: StateVersion> VersionedStateBackend for HashMapStateBackend<K, V, Ver> {
    fn put_outcome(&self, key: K, value: V, version: Ver) -> Result<UpdateOutcome, BackendError> {
        self.update(key, Entry { version: version.into(), value: Some(encode_value(&value)?) })
    }

    fn delete(&self, key: K, version: Ver) -> Result<UpdateOutcome, BackendError> {
        self.update(key, Entry { version: version.into(), value: None })
    }

    fn passed(&self, key: &K) -> Result<Option<Ver>, BackendError> {
        let content = self.content();
        passed(content.entries.get(key).map(|entry| entry.version), content.seal).map(version_of).transpose()
    }

    fn seal(&self, version: Ver) -> Result<(), BackendError> {
        let mut content = self.content();
        let seal = content.seal.max(Some(version.into()));
        content.seal = seal;
        content.entries.retain(|_, entry| !entry.is_forgotten(seal));
        Ok(())
    }

    fn snapshot_for_keys(&self, keys: &[K]) -> Result<Vec<u8>, BackendError> {
        let content = self.content();
        let entries = keys.iter().filter_map(|key| Some((key, content.entries.get(key)?)));
        let entries = entries.map(|(key, entry)| Ok((encode_key(key)?, entry.clone())));
        let entries = entries.collect::<Result<_, BackendError>>()?;
        Ok(Snapshot { is_part: true, encodings: Encodings::of::<K, V>(), seal: None, entries }.encode())
    }

    fn restore_keys(&mut self, data: &[u8]) -> Result<(), BackendError> {
        let snapshot = Snapshot::decode(data, Encodings::of::<K, V>())?;
        let mut content = self.content();
        let mut newer = Vec::new();
        for (bytes, moved) in snapshot.entries {
            check_entry::<V, Ver>(&moved)?;
            let key: K = decode_key(&bytes)?;
            if takes_over(&bytes, content.entries.get(&key), content.seal, &moved)? {
                newer.push((key, moved));
            }
        }
        content.entries.extend(newer);
        Ok(())
    }
}
