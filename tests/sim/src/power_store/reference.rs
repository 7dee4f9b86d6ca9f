//! What the store must be after each entry: the kernel over memory, fed with the entries that the trace shows on
//! their way to the disk.
//!
//! Keeps: what a whole state is, in one number: the sum of a hash of each row. Two states with the same rows have the
//! same sum, in whatever order they were written.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher};

use journal::Entry;
use kernel::{Applied, Buckets, EntryPlace, Kernel, Keys};
use kv::{KeyRange, MemoryStore, Order, Store, View};

use super::operation::{Kind, Operation};
use super::workload;

/// What an entry's frame has after its first eight bytes.
const ENTRY_MAGIC: &[u8] = b"SHentry\x02";
const ENTRY_MAGIC_OFFSET: usize = 8;

/// What one directory's store was to be after each of its entries, by index.
pub(super) type States = BTreeMap<u64, State>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub(super) applied: Applied,
    pub(super) rows: Rows,
}

/// All rows of a store in two numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rows {
    pub(super) count: u64,
    sum: u64,
}

impl Rows {
    /// Everything that a view holds.
    pub(super) fn of(view: &dyn View) -> Result<Self, String> {
        let mut rows = Self::default();
        for row in view.scan(&KeyRange::all(), Order::Ascending) {
            let (key, value) = row.map_err(text)?;
            match Keys::original_of(&key) {
                None => rows.add(&key, &value),
                // Not part of the effects of an entry.
                Some(original) if view.get(original).map_err(text)?.as_ref() == Some(&value) => {}
                Some(original) => return Err(format!("the second copy of {original:02x?} differs")),
            }
        }
        Ok(rows)
    }

    fn add(&mut self, key: &[u8], value: &[u8]) {
        self.count += 1;
        self.sum = self.sum.wrapping_add(hash(key, value));
    }

    fn remove(&mut self, key: &[u8], value: &[u8]) {
        self.count -= 1;
        self.sum = self.sum.wrapping_sub(hash(key, value));
    }
}

fn hash(key: &[u8], value: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write_usize(key.len());
    hasher.write(key);
    hasher.write(value);
    hasher.finish()
}

pub(super) fn keys() -> Keys {
    Keys::new(1, kernel::BucketRange::ALL)
}

/// Follows the entries of one process after the other.
#[derive(Default)]
pub(super) struct Reference {
    /// By the directory's identity.
    pub(super) states: BTreeMap<u64, States>,
    identity: u64,
    machine: Option<Machine>,
}

impl Reference {
    /// Follows a process. A directory that it made from an image begins as `image` says.
    pub(super) fn follow(&mut self, operations: &[Operation], image: Option<&[u8]>) -> Result<(), String> {
        for operation in operations {
            match &operation.kind {
                Kind::Identity(identity) if *identity != self.identity => {
                    self.identity = *identity;
                    let machine = Machine::new(image.map(<[u8]>::to_vec))?;
                    self.states.insert(*identity, States::from([(machine.index(), machine.state())]));
                    self.machine = Some(machine);
                }
                Kind::Write { bytes, .. } => self.follow_write(bytes)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn follow_write(&mut self, bytes: &[u8]) -> Result<(), String> {
        let Some(machine) = &mut self.machine else { return Ok(()) };
        let states = self.states.entry(self.identity).or_default();
        for entry in entries_in(bytes, self.identity) {
            match machine.entries.get(&entry.index) {
                // An entry that holds up the deletion of an old file is written once more.
                Some(known) if *known == entry => continue,
                // One that was never durable, and whose place was given to another.
                Some(_) => {
                    machine.go_back(entry.index)?;
                    states.split_off(&entry.index);
                }
                None => {}
            }
            machine.apply(entry)?;
            states.insert(machine.index(), machine.state());
        }
        Ok(())
    }
}

fn entries_in(bytes: &[u8], identity: u64) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut position = 0;
    while let Some(found) = bytes[position..].windows(ENTRY_MAGIC.len()).position(|bytes| bytes == ENTRY_MAGIC) {
        let magic = position + found;
        position = magic + ENTRY_MAGIC.len();
        let Some(start) = magic.checked_sub(ENTRY_MAGIC_OFFSET) else { continue };
        if let Ok((entry, _, length)) = Entry::decode(&bytes[start..])
            && entry.history == identity
        {
            position = start + length;
            entries.push(entry);
        }
    }
    entries
}

struct Machine {
    image: Option<Vec<u8>>,
    kernel: Kernel,
    store: MemoryStore,
    rows: Rows,
    entries: BTreeMap<u64, Entry>,
}

impl Machine {
    fn new(image: Option<Vec<u8>>) -> Result<Self, String> {
        let store = MemoryStore::new();
        match &image {
            Some(image) => {
                kernel::image::restore(&mut image.as_slice(), &store, &keys()).map_err(text)?;
            }
            None => {
                let buckets = Buckets::new(workload::options().buckets).ok_or("impossible buckets")?;
                let genesis = Kernel::genesis(store.view().map_err(text)?, keys(), buckets);
                store.commit(genesis).map_err(text)?;
            }
        }
        let view = store.view().map_err(text)?;
        let kernel = Kernel::load(&*view, keys()).map_err(text)?.ok_or("a first state without a state")?;
        let rows = Rows::of(&*view)?;
        Ok(Self { image, kernel, store, rows, entries: BTreeMap::new() })
    }

    fn index(&self) -> u64 {
        self.kernel.applied().index
    }

    fn state(&self) -> State {
        State { applied: *self.kernel.applied(), rows: self.rows }
    }

    fn apply(&mut self, entry: Entry) -> Result<(), String> {
        let view = self.store.view().map_err(text)?;
        let Entry { index, term, history, .. } = entry;
        let place = EntryPlace { index, term, history, hash: entry.hash() };
        let effects = self.kernel.apply(view.clone(), &place, &entry.payload).map_err(text)?;
        for (key, value) in effects.batch.writes() {
            if let Some(old) = view.get(key).map_err(text)? {
                self.rows.remove(key, &old);
            }
            if let Some(value) = value {
                self.rows.add(key, value);
            }
        }
        self.store.commit(effects.batch).map_err(text)?;
        self.entries.insert(entry.index, entry);
        Ok(())
    }

    /// Forgets the entries from `index` on.
    fn go_back(&mut self, index: u64) -> Result<(), String> {
        let mut entries = std::mem::take(&mut self.entries);
        entries.split_off(&index);
        *self = Self::new(self.image.take())?;
        entries.into_values().try_for_each(|entry| self.apply(entry))
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
