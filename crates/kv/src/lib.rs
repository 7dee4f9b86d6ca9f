//! The ordered, atomic store that the kernel needs, and the layers that need no disk.
//!
//! - [`store`]: the [`Store`] and [`View`] traits with their duties, [`Batch`] and [`KvError`].
//! - [`key`]: the layout of keys.
//! - [`range`]: half-open ranges of keys.
//! - [`codec`]: how integers and byte strings are laid out in stored values.
//! - [`memory`]: a store in memory, for tests and as a model.
//! - [`faulty`]: a store that fails on command.
//! - [`gaps`]: a view with ranges that count as damaged.
//! - [`staging`]: writes in preparation, read together with the state below.
//! - [`overlay`]: an in-memory ordered map above a durable store, flushed in bulk in the background.
//!
//! Never: interprets a key. Only `kernel/src/keys.rs` builds keys.
//!
//! ```
//! use statehouse_kv::{Batch, MemoryStore, Store, View};
//!
//! let store = MemoryStore::new();
//! let before = store.view()?;
//! store.commit(Batch::new().put(b"colour".as_slice(), b"red".as_slice()))?;
//! assert_eq!(store.view()?.get(b"colour")?.as_deref(), Some(b"red".as_slice()));
//! assert_eq!(before.get(b"colour")?, None, "a view outlives later writes unchanged");
//! # Ok::<(), statehouse_kv::KvError>(())
//! ```

pub mod codec;
pub mod faulty;
mod filter;
pub mod gaps;
pub mod key;
pub mod memory;
mod merge;
pub mod overlay;
pub mod range;
pub mod staging;
pub mod store;
mod table;

pub use codec::{DecodeError, Reader, Writer};
pub use faulty::{FaultPlan, FaultyStore};
pub use gaps::Gaps;
pub use key::Key;
pub use memory::MemoryStore;
pub use overlay::{Overlay, OverlayOptions, OverlayView};
pub use range::KeyRange;
pub use staging::Staging;
pub use store::{
    Batch, Bytes, Committed, Condition, DamagedRange, KvError, Order, Readable, Row, Rows, Sequence, Store, View,
    copied, skip_set_apart,
};
