//! A kernel with the store below it, which can be restarted, made anew from an image, and replayed.

use std::sync::Arc;

use kernel::{Buckets, EntryPlace, Kernel, Keys, NextDue, image};
use kv::{Batch, Committed, KeyRange, MemoryStore, Order, Overlay, OverlayOptions, Store, View};
use session::{ChangedSessions, Halt, canary};
use storage::TreeStore;
use tempfile::TempDir;
use testkit::random::Random;

use super::sessions::machine::machines;
use crate::directories::fast_directory;

/// What is below the kernel, and how often it is flushed.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    below: Below,
    /// A table of the overlay is flushed when it has this many bytes.
    table_bytes_max: usize,
    /// Tables that lie unmerged.
    unmerged_tables_max: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Below {
    /// A store in memory alone.
    Memory,
    /// An overlay above one.
    OverMemory,
    /// An overlay above a tree on disk.
    OverTree,
}

impl Plan {
    /// Any of them.
    pub(crate) fn draw(random: &mut Random) -> Self {
        let below = match random.below(8) {
            0 => Below::Memory,
            1..=2 => Below::OverMemory,
            _ => Below::OverTree,
        };
        let table_bytes_max = *random.choose(&[1_500, 20_000, 60_000, 200_000, 1 << 30]);
        let unmerged_tables_max = *random.choose(&[2, 4, 8]);
        Self { below, table_bytes_max, unmerged_tables_max }
    }

    /// A store in memory alone.
    pub(crate) fn memory() -> Self {
        Self { below: Below::Memory, table_bytes_max: 0, unmerged_tables_max: 4 }
    }

    fn storage(&self) -> storage::Options {
        let mut options = storage::Options::default().cache_bytes_max(4 << 20);
        options.unmerged_tables_max = self.unmerged_tables_max;
        options.table_bytes_target = 64 << 10;
        options
    }
}

/// A running kernel.
pub(crate) struct Instance {
    plan: Plan,
    pub(crate) keys: Keys,
    pub(crate) kernel: Kernel,
    /// When the next thing is due, as the last entry said.
    pub(crate) next_due: NextDue,
    /// What the last entry changed in sessions.
    pub(crate) changed_sessions: ChangedSessions,
    store: Arc<dyn Store>,
    below: Arc<dyn Store>,
    /// Where the tree is; last, so that it goes after the tree.
    directory: Option<TempDir>,
}

type Fill<'fill> = &'fill mut dyn FnMut(&dyn Store) -> Result<(), String>;

impl Instance {
    /// A new shard.
    pub(crate) fn genesis(plan: &Plan, keys: Keys, buckets: Buckets) -> Result<Self, String> {
        Self::create(plan, keys, &mut |store| {
            let batch = Kernel::genesis(store.view().map_err(text)?, keys, buckets);
            store.commit(batch).map_err(text).map(|_| ())
        })
    }

    /// What an image holds, under other keys.
    pub(crate) fn restore(plan: &Plan, keys: Keys, mut bytes: &[u8]) -> Result<Self, String> {
        let instance =
            Self::create(plan, keys, &mut |store| image::restore(&mut bytes, store, &keys).map_err(text).map(|_| ()))?;
        if !bytes.is_empty() {
            return Err(format!("the restore left {} bytes of the image unread", bytes.len()));
        }
        Ok(instance)
    }

    fn create(plan: &Plan, keys: Keys, fill: Fill<'_>) -> Result<Self, String> {
        let (below, directory): (Arc<dyn Store>, _) = match plan.below {
            Below::Memory | Below::OverMemory => (Arc::new(MemoryStore::new()), None),
            Below::OverTree => {
                let directory = fast_directory().map_err(text)?;
                let path = directory.path().join("store");
                let tree = TreeStore::create(&path, &plan.storage()).map_err(text)?;
                (Arc::new(tree), Some(directory))
            }
        };
        fill(&*below)?;
        Self::start(plan.clone(), keys, below, directory)
    }

    fn start(plan: Plan, keys: Keys, below: Arc<dyn Store>, directory: Option<TempDir>) -> Result<Self, String> {
        let store: Arc<dyn Store> = match plan.below {
            Below::Memory => below.clone(),
            Below::OverMemory | Below::OverTree => {
                let options = OverlayOptions::default().table_bytes_max(plan.table_bytes_max);
                Arc::new(Overlay::new(below.clone(), options).map_err(text)?)
            }
        };
        let view = store.view().map_err(text)?;
        let kernel = Kernel::load_with(&*view, keys, machines()).map_err(text)?;
        let kernel = kernel.ok_or("a store that was filled holds no state")?;
        Ok(Self {
            plan,
            keys,
            kernel,
            next_due: NextDue::default(),
            changed_sessions: ChangedSessions::default(),
            store,
            below,
            directory,
        })
    }

    /// Loses what is only in memory, opens again what is below, and applies what was lost.
    pub(crate) fn restart(self, entries: &[Vec<u8>]) -> Result<Self, String> {
        let Self { plan, keys, store, below, directory, .. } = self;
        drop(store);
        let below = match &directory {
            None => below,
            Some(directory) => {
                drop(below);
                let path = directory.path().join("store");
                Arc::new(TreeStore::open(&path, &plan.storage()).map_err(text)?)
            }
        };
        let mut instance = Self::start(plan, keys, below, directory)?;
        instance.replay(entries)?;
        Ok(instance)
    }

    /// Loads the kernel again, which forgets what it has in memory only. The store goes on.
    pub(crate) fn reload(&mut self) -> Result<(), String> {
        let kernel = Kernel::load_with(&*self.view()?, self.keys, machines()).map_err(text)?;
        self.kernel = kernel.ok_or("a store that was filled holds no state")?;
        Ok(())
    }

    /// Applies the entries that are still missing; the first of all has index 1.
    pub(crate) fn replay(&mut self, entries: &[Vec<u8>]) -> Result<(), String> {
        let applied = usize::try_from(self.kernel.applied().index).expect("it fits");
        for entry in &entries[applied..] {
            self.apply(entry)?;
        }
        Ok(())
    }

    /// Applies the next entry. Gives the replies to its commands.
    pub(crate) fn apply(&mut self, payload: &[u8]) -> Result<Vec<Vec<u8>>, String> {
        let place = EntryPlace::without_log(self.kernel.applied().index + 1);
        let effects = self.kernel.apply(self.view()?, &place, payload).map_err(text)?;
        self.next_due = effects.next_due;
        self.changed_sessions = effects.sessions;
        match self.store.commit(effects.batch).map_err(text)? {
            Committed::Applied(_) => Ok(effects.replies),
            Committed::ConditionFailed => Err("a batch without a condition was refused".into()),
        }
    }

    pub(crate) fn view(&self) -> Result<Arc<dyn View>, String> {
        self.store.view().map_err(text)
    }

    /// The answers that are stored for sessions are lost: a bug that the sessions' model must find.
    pub(crate) fn forget_answers(&mut self) -> Result<(), String> {
        let (view, keys) = (self.view()?, self.keys.sessions());
        let mut rows = Vec::new();
        for row in view.scan(&KeyRange::prefix(keys.prefix()), Order::Ascending) {
            let (key, row) = row.map_err(text)?;
            let without = canary::without_answers(&keys, &key, row.to_vec()).map_err(text)?;
            rows.push((key, Some(without.into())));
        }
        self.store.commit(Batch::from_sorted(rows)).map_err(text)?;
        self.reload()
    }

    /// Makes everything durable.
    pub(crate) fn flush(&self) -> Result<(), String> {
        self.store.persist().map_err(text).map(|_| ())
    }

    /// Everything as bytes, and how many rows that are beside those of the change feed.
    pub(crate) fn image(&self) -> Result<(Vec<u8>, u64), String> {
        write_image(&*self.view()?, self.keys)
    }

    /// What the store looks like, for a message.
    pub(crate) fn describe(&self) -> String {
        format!("{:?}, applied {:?}", self.plan, self.kernel.applied())
    }
}

/// The image of a view, and how many rows it has beside those of the change feed.
pub(crate) fn write_image(view: &dyn View, keys: Keys) -> Result<(Vec<u8>, u64), String> {
    let mut bytes = Vec::new();
    let rows = image::write(view, &keys, &mut bytes).map_err(text)?;
    let fed = view.scan(&KeyRange::prefix(&keys.changes_floor()), Order::Ascending).count();
    Ok((bytes, rows - fed as u64))
}

/// How many rows an image has beside those of the change feed.
pub(crate) fn rows_beside_feed(mut image: &[u8]) -> Result<u64, String> {
    let (store, keys) = (MemoryStore::new(), Keys::new(1, kernel::BucketRange::ALL));
    image::restore(&mut image, &store, &keys).map_err(text)?;
    Ok(write_image(&*store.view().map_err(text)?, keys)?.1)
}

/// What went wrong, as text.
pub(crate) fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// The error of a read of the kernel.
pub(crate) fn halted(halt: Halt) -> String {
    format!("a read halted: {halt}")
}
