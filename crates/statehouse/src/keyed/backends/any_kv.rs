//! A state backend over any ordered store of bytes. `docs/formats/snapshot.md` specifies its rows.
//!
//! Its keys are rows of a numbered *content*. A restore writes the next content aside, in bounded batches, and one batch switches
//! to it; after a crash the store has the one or the other. Rows of other contents are removed before the next restore, and when
//! the backend is opened.
//!
//! Touches: the rows below its prefix. Keeps: a put or a deletion is one batch; a deletion has a row by its version, so that a seal
//! finds those that it passes. Never: makes anything durable by itself; [`KvStateBackend::persist`] does.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use contract::keyed::LogicalTime;
use contract::keyed::backend::{BackendError, ExactlyOnceStateBackend, StateVersion, VersionedStateBackend};
use contract::{Failure, FailureKind, UpdateOutcome};
use kv::{Batch, KeyRange, KvError, Order, Store, View};
use node::error::from_kv;

use super::encoding::{Encodings, decode_value, encode_key, encode_value};
use super::entry::{Entry, judge, passed, takes_over};
use super::kv_rows::{Head, KvRows};
use super::snapshot::Snapshot;
use super::{StateKey, StateValue, Types, check_entry, put_once, version_of};

/// After so many rows, or so many bytes, the rest of a long write goes into the next batch.
const BATCH_ROWS_MAX: usize = 1_000;
const BATCH_BYTES_MAX: usize = 1 << 20;

/// State in any ordered store of bytes, in which each update counts once.
///
/// ```
/// use std::sync::Arc;
/// use kv::MemoryStore;
/// use statehouse::keyed::backends::{ExactlyOnceStateBackend, KvStateBackend};
/// let store = Arc::new(MemoryStore::new());
/// let prices = KvStateBackend::<String, u32, u64>::open(store.clone(), b"prices/")?;
/// prices.put("apple".to_owned(), 30, 7)?;
/// prices.persist()?; // durable from here on
/// drop(prices);
/// let prices = KvStateBackend::<String, u32, u64>::open(store, b"prices/")?;
/// prices.put("apple".to_owned(), 29, 6)?; // an old update, late: it changes nothing
/// assert_eq!(prices.get(&"apple".to_owned())?, Some((30, 7)));
/// # Ok::<(), statehouse::keyed::backends::BackendError>(())
/// ```
pub struct KvStateBackend<K, V, Ver> {
    store: Arc<dyn Store>,
    rows: KvRows,
    /// As it is stored. Whoever writes holds it.
    head: Mutex<Head>,
    types: Types<K, V, Ver>,
}

impl<K: StateKey, V: StateValue, Ver: StateVersion> KvStateBackend<K, V, Ver> {
    /// The state below a prefix of the store; a new one, if there is nothing. All keys of the store that begin with the prefix
    /// belong to it.
    pub fn open(store: Arc<dyn Store>, prefix: &[u8]) -> Result<Self, BackendError> {
        let rows = KvRows::below(prefix);
        let (view, ours) = (store.view().map_err(failed)?, Encodings::of::<K, V>());
        let head = match view.get(&rows.head()).map_err(failed)? {
            Some(row) => Head::decode(&row).map_err(|error| damaged(error.what))?,
            None => {
                let head = Head::new(ours);
                store.commit(Batch::new().put(rows.head(), head.encode())).map_err(failed)?;
                head
            }
        };
        if head.encodings != ours {
            let reason = format!("they were stored as {:?}, and are {ours:?} now", head.encodings);
            return Err(BackendError::Unstorable { what: "keys and values", reason });
        }
        let backend = Self { store, rows, head: Mutex::new(head), types: Types::default() };
        backend.remove_other_contents(&head)?;
        Ok(backend)
    }

    /// Makes everything that was put so far durable.
    pub fn persist(&self) -> Result<(), BackendError> {
        self.store.persist().map(drop).map_err(failed)
    }

    /// The head. A panic of another thread leaves it as it is stored.
    fn head(&self) -> MutexGuard<'_, Head> {
        self.head.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn view(&self) -> Result<Arc<dyn View>, BackendError> {
        self.store.view().map_err(failed)
    }

    fn known(&self, view: &dyn View, head: &Head, key: &[u8]) -> Result<Option<Entry>, BackendError> {
        let row = view.get(&self.rows.entry(head.content, key)).map_err(failed)?;
        row.map(|row| KvRows::decode_entry(&row).map_err(|error| damaged(error.what))).transpose()
    }

    fn update(&self, key: &[u8], after: &Entry) -> Result<UpdateOutcome, BackendError> {
        let head = self.head();
        let known = self.known(&*self.view()?, &head, key)?;
        let outcome = judge(known.as_ref(), head.seal, after);
        if outcome == UpdateOutcome::Applied {
            let batch = self.rows.replace(Batch::new(), head.content, key, known.as_ref(), after);
            self.store.commit(batch).map_err(failed)?;
        }
        Ok(outcome)
    }

    /// Stores the head, with what else is in the batch, and then knows it.
    fn store_head(&self, held: &mut Head, head: Head, batch: Batch) -> Result<(), BackendError> {
        self.store.commit(batch.put(self.rows.head(), head.encode())).map_err(failed)?;
        *held = head;
        Ok(())
    }

    /// Removes what a restore has replaced, and what one that failed has left.
    fn remove_other_contents(&self, head: &Head) -> Result<(), BackendError> {
        self.rows.other_contents(head.content).iter().try_for_each(|range| self.remove(range))
    }

    fn remove(&self, range: &KeyRange) -> Result<(), BackendError> {
        loop {
            let view = self.view()?;
            let rows = view.scan(range, Order::Ascending).take(BATCH_ROWS_MAX);
            let rows =
                rows.map(|row| row.map(|(key, _)| (key, None))).collect::<Result<Vec<_>, _>>().map_err(failed)?;
            let is_last = rows.len() < BATCH_ROWS_MAX;
            if !rows.is_empty() {
                self.store.commit(Batch::from_sorted(rows)).map_err(failed)?;
            }
            if is_last {
                return Ok(());
            }
        }
    }

    /// Writes a content that nobody reads yet.
    fn write_aside<'entry>(
        &self,
        content: u64,
        entries: impl Iterator<Item = (&'entry Vec<u8>, &'entry Entry)>,
    ) -> Result<(), BackendError> {
        let (mut batch, mut rows, mut bytes) = (Batch::new(), 0, 0);
        for (key, entry) in entries {
            batch = self.rows.replace(batch, content, key, None, entry);
            rows += 1;
            bytes += key.len() + entry.value.as_ref().map_or(0, Vec::len);
            if rows == BATCH_ROWS_MAX || bytes >= BATCH_BYTES_MAX {
                self.store.commit(std::mem::take(&mut batch)).map_err(failed)?;
                (rows, bytes) = (0, 0);
            }
        }
        self.store.commit(batch).map(drop).map_err(failed)
    }

    /// Forgets the deletions that the seal has passed. If this fails, they count as forgotten all the same.
    fn forget_sealed(&self, head: &Head, seal: LogicalTime) -> Result<(), BackendError> {
        let range = self.rows.deletions_up_to(head.content, seal);
        loop {
            let view = self.view()?;
            let (mut batch, mut found) = (Batch::new(), 0);
            for row in view.scan(&range, Order::Ascending).take(BATCH_ROWS_MAX) {
                let (row, _) = row.map_err(failed)?;
                batch = batch.delete(self.rows.entry(head.content, self.rows.deleted_key(&row))).delete(row);
                found += 1;
            }
            if found > 0 {
                self.store.commit(batch).map_err(failed)?;
            }
            if found < BATCH_ROWS_MAX {
                return Ok(());
            }
        }
    }
}

impl<K: StateKey, V: StateValue, Ver: StateVersion> ExactlyOnceStateBackend for KvStateBackend<K, V, Ver> {
    type Key = K;
    type Value = V;
    type Version = Ver;

    fn put(&self, key: K, value: V, version: Ver) -> Result<(), BackendError> {
        put_once(self, key, value, version)
    }

    fn get(&self, key: &K) -> Result<Option<(V, Ver)>, BackendError> {
        let (key, head) = (encode_key(key)?, self.head());
        let known = self.known(&*self.view()?, &head, &key)?;
        let Some(Entry { version, value: Some(value) }) = known else { return Ok(None) };
        Ok(Some((decode_value(&value)?, version_of(version)?)))
    }

    fn snapshot(&self) -> Result<Vec<u8>, BackendError> {
        // A writer may go on: the view does not change.
        let (head, view) = {
            let head = self.head();
            (*head, self.view()?)
        };
        let mut entries = std::collections::BTreeMap::new();
        for row in view.scan(&self.rows.entries(head.content), Order::Ascending) {
            let (key, row) = row.map_err(failed)?;
            let entry = KvRows::decode_entry(&row).map_err(|error| damaged(error.what))?;
            if !entry.is_forgotten(head.seal) {
                entries.insert(self.rows.entry_key(&key).to_vec(), entry);
            }
        }
        Ok(Snapshot { is_part: false, encodings: head.encodings, seal: head.seal, entries }.encode())
    }

    fn restore(&mut self, data: &[u8]) -> Result<(), BackendError> {
        let snapshot = Snapshot::decode_whole(data, Encodings::of::<K, V>())?;
        snapshot.entries.values().try_for_each(check_entry::<V, Ver>)?;
        let mut held = self.head();
        self.remove_other_contents(&held)?;
        let content = held.content + 1;
        self.write_aside(content, snapshot.entries.iter())?;
        let head = Head { content, seal: snapshot.seal, ..*held };
        self.store_head(&mut held, head, Batch::new())
    }
}

impl<K: StateKey, V: StateValue, Ver: StateVersion> VersionedStateBackend for KvStateBackend<K, V, Ver> {
    fn put_outcome(&self, key: K, value: V, version: Ver) -> Result<UpdateOutcome, BackendError> {
        let after = Entry { version: version.into(), value: Some(encode_value(&value)?) };
        self.update(&encode_key(&key)?, &after)
    }

    fn delete(&self, key: K, version: Ver) -> Result<UpdateOutcome, BackendError> {
        self.update(&encode_key(&key)?, &Entry { version: version.into(), value: None })
    }

    fn passed(&self, key: &K) -> Result<Option<Ver>, BackendError> {
        let (key, head) = (encode_key(key)?, self.head());
        let known = self.known(&*self.view()?, &head, &key)?;
        passed(known.map(|entry| entry.version), head.seal).map(version_of).transpose()
    }

    fn seal(&self, version: Ver) -> Result<(), BackendError> {
        let (seal, mut held) = (version.into(), self.head());
        if held.seal >= Some(seal) {
            return Ok(());
        }
        let head = Head { seal: Some(seal), ..*held };
        self.store_head(&mut held, head, Batch::new())?;
        self.forget_sealed(&held, seal)
    }

    fn snapshot_for_keys(&self, keys: &[K]) -> Result<Vec<u8>, BackendError> {
        let (head, view) = {
            let head = self.head();
            (*head, self.view()?)
        };
        let mut entries = std::collections::BTreeMap::new();
        for key in keys {
            let key = encode_key(key)?;
            let known = self.known(&*view, &head, &key)?.filter(|entry| !entry.is_forgotten(head.seal));
            entries.extend(known.map(|entry| (key, entry)));
        }
        Ok(Snapshot { is_part: true, encodings: head.encodings, seal: None, entries }.encode())
    }

    fn restore_keys(&mut self, data: &[u8]) -> Result<(), BackendError> {
        let snapshot = Snapshot::decode(data, Encodings::of::<K, V>())?;
        let head = self.head();
        let (view, mut batch) = (self.view()?, Batch::new());
        for (key, moved) in &snapshot.entries {
            check_entry::<V, Ver>(moved)?;
            let known = self.known(&*view, &head, key)?;
            if takes_over(key, known.as_ref(), head.seal, moved)? {
                batch = self.rows.replace(batch, head.content, key, known.as_ref(), moved);
            }
        }
        if batch.is_empty() { Ok(()) } else { self.store.commit(batch).map(drop).map_err(failed) }
    }
}

/// The store below failed. Its damage is not described in the words of a shard's keys, which are others.
fn failed(error: KvError) -> BackendError {
    let error = match error {
        KvError::Damaged(_) => Failure::not_applied(FailureKind::Corrupt, error.to_string()).into(),
        other => from_kv(&other),
    };
    BackendError::Store(error)
}

fn damaged(what: &str) -> BackendError {
    let message = format!("the store of a state backend is damaged: {what}");
    BackendError::Store(Failure::not_applied(FailureKind::Corrupt, message).into())
}
