//! State backends for stream processors: three stores behind one contract.
//!
//! - [`HashMapStateBackend`]: in memory.
//! - [`KvStateBackend`]: over any ordered store of bytes.
//! - [`HouseStateBackend`]: a map of an open directory.
//!
//! `encoding`: keys and values as bytes. `entry`: what is known of a key, and what becomes of an update. `snapshot`: the bytes of
//! a snapshot, which are the same for all three, so that one restores what another has written.
//!
//! Keeps: D1 and D3 as in maps: [`ExactlyOnceStateBackend`] and [`VersionedStateBackend`] list the duties. Never: shares its keys
//! with a second backend that writes; readers may be many.

mod any_kv;
mod encoding;
mod entry;
mod house;
mod kv_rows;
mod memory;
mod snapshot;

pub use any_kv::KvStateBackend;
pub use contract::{BackendError, ExactlyOnceStateBackend, StateVersion, VersionedStateBackend};
pub use house::HouseStateBackend;
pub use memory::HashMapStateBackend;

use std::hash::Hash;
use std::marker::PhantomData;

use contract::keyed::{LogicalTime, shown_key};
use serde::Serialize;
use serde::de::DeserializeOwned;

use encoding::{decode_value, encode_key};
use entry::Entry;

/// A key that a backend can store. Equal keys must have equal JSON.
pub trait StateKey: Hash + Eq + Clone + Send + Serialize + DeserializeOwned + 'static {}

impl<K: Hash + Eq + Clone + Send + Serialize + DeserializeOwned + 'static> StateKey for K {}

/// A value that a backend can store. A repeated put is recognised by its JSON, so equal values must have equal JSON: a `BTreeMap`
/// has, a `HashMap` has not. One whose JSON cannot be read back is refused: a float that is infinite, or not a number.
pub trait StateValue: Send + Serialize + DeserializeOwned + 'static {}

impl<V: Send + Serialize + DeserializeOwned + 'static> StateValue for V {}

/// The types of a backend that holds none of them: it is `Send` and `Sync` whatever they are.
type Types<K, V, Ver> = PhantomData<fn() -> (K, V, Ver)>;

/// A put in the words of the portable contract: only a conflict is an error.
fn put_once<B>(backend: &B, key: B::Key, value: B::Value, version: B::Version) -> Result<(), BackendError>
where
    B: VersionedStateBackend<Key: StateKey, Version: StateVersion>,
{
    let outcome = backend.put_outcome(key.clone(), value, version.clone())?;
    BackendError::unless_conflict(outcome, version, || {
        encode_key(&key).map_or_else(|_| String::new(), |key| shown_key(&key))
    })
}

/// Checks that an entry of a snapshot can be read by a backend of these types.
fn check_entry<V: StateValue, Ver: StateVersion>(entry: &Entry) -> Result<(), BackendError> {
    version_of::<Ver>(entry.version)?;
    entry.value.as_deref().map_or(Ok(()), |value| decode_value::<V>(value).map(drop))
}

/// A stored version in the words of the backend.
fn version_of<Ver: StateVersion>(time: LogicalTime) -> Result<Ver, BackendError> {
    Ver::try_from(time).map_err(|_| BackendError::Unstorable {
        what: "a version",
        reason: format!("{time} cannot be expressed in the versions of this backend"),
    })
}
