//! One shard: its journal, its store, the apply loop between them, and the way of a command through all three.
//!
//! Touches: everything under the directory. Keeps: the order of opening (identity, journal, store, replay) and of
//! closing (journal first, then the loop, then a last flush).

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use contract::{Error, Failure, FailureKind};
use journal::{Ends, EntryLog, LocalJournal, Position, SegmentFiles};
use kernel::{Buckets, Catalogue, Kernel};
use kv::{Overlay, Readable, Store, View};
use session::Halt;
use storage::TreeStore;
use waiting::Waiters;

use crate::access::Access;
use crate::apply::ApplyLoop;
use crate::apply::adoption::Adoption;
use crate::apply::answers::Answers;
use crate::apply::copies::{ensure_copies, load_kernel};
use crate::apply::journal_cut::JournalCut;
use crate::apply::proposer::{DurableEntry, Proposer};
use crate::apply::quarantine::Quarantine;
use crate::background::Background;
use crate::background::timer::Agenda;
use crate::backup_times::BackupLog;
use crate::clock::{Clock, Time};
use crate::directory::{Directory, FilledBy, Found, Unfinished};
use crate::error::{cannot_open, from_halt, from_journal, from_kv};
use crate::opening::Opening;
use crate::options::Options;
use crate::publish::Outbox;
use crate::runs::feed_looks::LooksAtFeed;
use crate::sessions::keeper::Keeper;
use crate::sessions::register::register_machines;
use crate::shard_keys::keys;
use crate::shared::Shared;
use crate::space::disk::{Disk, DiskReserve, DiskSpace};
use crate::space::fit::{fit, needed_bytes};
use crate::space::keeper::SpaceKeeper;

/// The one shard of a library's directory.
const SHARD: journal::ShardId = 1;

/// The term of entries that nobody else could append.
const LOCAL_TERM: u64 = 1;

/// Entries that wait between the journal and the apply loop. While one waits, the next one grows: a longer queue
/// would only make more and smaller entries (measured at 256 callers: 14 commands an entry with 16 here).
const APPLY_QUEUE_ENTRIES: usize = 1;

/// Bytes of journal read at a time during replay.
const REPLAY_CHUNK_BYTES: usize = 8 << 20;

/// An open shard.
pub struct Shard {
    /// What the apply loop publishes.
    pub shared: Arc<Shared>,
    /// Reads and proposes.
    pub access: Access,
    pub(crate) quarantine: Arc<Quarantine>,
    log: Arc<dyn EntryLog>,
    apply: Mutex<Option<JoinHandle<()>>>,
    background: Mutex<Option<Background>>,
    /// Claims that wait for something to claim.
    pub waiters: Arc<Waiters>,
    /// Which sessions are alive.
    pub keeper: Arc<Keeper>,
    closed: AtomicBool,
    /// When backups were taken and verified.
    pub backups: BackupLog,
    /// When each projector has last looked at the feed.
    pub looks_at_feed: LooksAtFeed,
    /// Whether messages for brokers go anywhere.
    pub has_broker: bool,
    /// Last, so that the lock is released after everything else.
    directory: Directory,
}

/// The store of a directory that is not in use.
pub struct StoreAtRest {
    tree: TreeStore,
    /// Last, so that the lock is released after the store.
    _directory: Directory,
}

impl std::ops::Deref for StoreAtRest {
    type Target = dyn Store;

    fn deref(&self) -> &(dyn Store + 'static) {
        &self.tree
    }
}

impl Shard {
    /// Opens the directory at `path`, or creates it.
    pub fn open(path: &Path, options: &Options) -> Result<Arc<Self>, Error> {
        let buckets = Buckets::new(options.buckets).ok_or_else(|| {
            cannot_open(format!("{} buckets are impossible: use a power of two, at most 4,096", options.buckets))
        })?;
        let options = &fit(options, path);
        let (directory, tree, files) = match Directory::open(path, buckets, FilledBy::Opener)? {
            Found::Whole(directory) => {
                let id = directory.identity().id;
                let files = SegmentFiles::open(&directory.journal_path(), id, &options.journal_files)
                    .map_err(|error| from_journal(&error))?;
                let tree =
                    TreeStore::open(&directory.store_path(), &options.storage).map_err(|error| from_kv(&error))?;
                (directory, tree, files)
            }
            Found::New(unfinished) => {
                let genesis = |store: &dyn Store| {
                    let empty = store.view().map_err(|error| from_kv(&error))?;
                    let batch = Kernel::genesis(empty, keys(), unfinished.directory().identity().buckets);
                    store.commit(batch).map_err(|error| from_kv(&error))?;
                    Ok(())
                };
                let (tree, files) = fill(&unfinished, options, genesis)?;
                (unfinished.finish()?, tree, files)
            }
        };
        Self::start(directory, tree, files, options)
    }

    /// Creates a new directory with an initial state written by `fill_store`.
    pub fn create(
        path: &Path,
        options: &Options,
        filled_by: FilledBy,
        fill_store: impl FnOnce(&dyn Store) -> Result<Buckets, Error>,
    ) -> Result<(), Error> {
        let options = &fit(options, path);
        match Directory::open(path, Buckets::default(), filled_by)? {
            Found::Whole(_) => Err(cannot_open(format!("{} already exists", path.display()))),
            Found::New(mut unfinished) => {
                let mut buckets = Buckets::default();
                let fill_store = |store: &dyn Store| {
                    buckets = fill_store(store)?;
                    Ok(())
                };
                let (tree, files) = fill(&unfinished, options, fill_store)?;
                drop((tree, files));
                unfinished.set_buckets(buckets)?;
                unfinished.finish()?;
                Ok(())
            }
        }
    }

    /// The store of a whole directory, without what only the journal has: nothing runs, nothing is replayed.
    pub fn store_at_rest(path: &Path, options: &Options) -> Result<StoreAtRest, Error> {
        if !path.exists() {
            return Err(cannot_open(format!("{} does not exist", path.display())));
        }
        match Directory::open(path, Buckets::default(), FilledBy::Opener)? {
            Found::New(_) => Err(cannot_open(format!("{} holds no store", path.display()))),
            Found::Whole(directory) => {
                let tree = TreeStore::open(&directory.store_path(), &options.storage);
                Ok(StoreAtRest { tree: tree.map_err(|error| from_kv(&error))?, _directory: directory })
            }
        }
    }

    fn start(
        directory: Directory,
        tree: TreeStore,
        files: SegmentFiles,
        options: &Options,
    ) -> Result<Arc<Self>, Error> {
        let log: Arc<dyn EntryLog> = Arc::new(files);
        let tree = Arc::new(tree);
        ensure_copies(&tree, directory.identity().buckets)?;
        let quarantine = Arc::new(Quarantine::open(directory.path(), directory.identity().id)?);
        let buckets = directory.identity().buckets;
        // Before the overlay, which then sees what this writes again.
        let adoption = Adoption::begin(tree.clone(), quarantine.clone(), buckets, options.machines.clone())?;
        let store = Overlay::new(tree.clone(), options.overlay.clone()).map_err(|error| from_kv(&error))?;
        let store = Arc::new(store);
        let view = store.view().map_err(|error| from_kv(&error))?;
        let kernel = load_kernel(&*view, options.machines.clone()).map_err(|halt| from_halt(&halt))?;
        let mut kernel = kernel.ok_or_else(|| inconsistent("the store holds no state".into()))?;
        kernel.expect_damage(adoption.has_parts());
        let shared = Arc::new(Shared::new(kernel.catalogue().clone()));
        let applied_at_open = kernel.applied().index;
        let agenda = Arc::new(Agenda::default());
        let outbox = Arc::new(Outbox::default());
        let waiters = Arc::<Waiters>::default();
        let keeper = Arc::new(Keeper::default());
        let mut apply_loop = ApplyLoop {
            kernel,
            store: store.clone(),
            shared: shared.clone(),
            answers: Answers::start()?,
            agenda: agenda.clone(),
            outbox: outbox.clone(),
            waiters: waiters.clone(),
            keeper: keeper.clone(),
            adoption,
            replays: true,
            replay_bytes_max: options.replay_bytes_max,
            bytes_since_flush: 0,
            journal_cut: JournalCut::new(applied_at_open),
        };
        let began_us = options.clock.monotonic_us();
        store.accept_unflushed(true);
        let replayed = replay(&*log, &mut apply_loop, &options.opening.clone().unwrap_or_default())?;
        store.accept_unflushed(false);
        let took = Duration::from_micros(options.clock.monotonic_us().saturating_sub(began_us));
        shared.meters.opened(apply_loop.kernel.applied().index, replayed, took);

        apply_loop.replays = false;
        let next_due = |apply_loop: &mut ApplyLoop| {
            let view = store.view().map_err(|error| from_kv(&error))?;
            apply_loop.kernel.next_due(view).map_err(|halt| from_halt(&halt))
        };
        let mut due = next_due(&mut apply_loop);
        while due.is_err() && apply_loop.set_apart_found(apply_loop.kernel.applied().index)? {
            due = next_due(&mut apply_loop);
        }
        agenda.set(due?);
        let time = Arc::new(Time::new(options.clock.clone(), apply_loop.kernel.applied().stamp));
        keeper.load(&Readable(&*store.view().map_err(|error| from_kv(&error))?), time.now())?;
        let (sender, entries) = sync_channel::<DurableEntry>(APPLY_QUEUE_ENTRIES);
        let proposer = Proposer { time: time.clone(), apply: sender };
        let journal = LocalJournal::start(log.clone(), SHARD, LOCAL_TERM, &options.journal, proposer)
            .map_err(|error| from_journal(&error))?;
        let journal = Arc::new(journal);
        let disk = Arc::new(Disk::new(directory.path().to_owned(), needed_bytes(options), options.disk_reserve));
        let clock = options.clock.clone();
        let access = Access { shared: shared.clone(), store, tree, journal, clock, time, disk };
        let apply = std::thread::Builder::new()
            .name("apply".into())
            .spawn({
                let access = access.clone();
                move || apply_loop.run(&entries, &access)
            })
            .map_err(|error| cannot_open(format!("could not start the apply thread: {error}")))?;
        let shard = Arc::new(Self {
            shared,
            access: access.clone(),
            quarantine,
            log,
            apply: Mutex::new(Some(apply)),
            background: Mutex::new(None),
            waiters,
            keeper: keeper.clone(),
            closed: AtomicBool::new(false),
            backups: BackupLog::open(directory.path()),
            looks_at_feed: LooksAtFeed::default(),
            has_broker: options.broker.is_some(),
            directory,
        });
        register_machines(&access, options)?;
        let space = SpaceKeeper { access: access.clone(), log: shard.log.clone(), applied_at_open };
        let background = Background::start(&access, options, agenda, outbox, keeper, space)?;
        *shard.background.lock().unwrap_or_else(PoisonError::into_inner) = Some(background);
        Ok(shard)
    }

    /// A view of everything acknowledged so far, with the catalogue.
    pub fn view(&self) -> Result<(Arc<dyn View>, Arc<Catalogue>), Error> {
        if self.closed.load(Ordering::Acquire) {
            return Err(closed());
        }
        self.access.view()
    }

    /// The identity of the directory.
    pub fn id(&self) -> u64 {
        self.directory.identity().id
    }

    /// The source of time.
    pub fn clock(&self) -> &dyn Clock {
        self.access.clock()
    }

    /// The stamp that an entry would get now.
    pub fn now(&self) -> session::Stamp {
        self.access.time().now()
    }

    /// Why nothing is applied any more.
    pub fn why_stopped(&self) -> Error {
        self.failure().unwrap_or_else(closed)
    }

    /// Why the store has stopped, if it has.
    pub fn failure(&self) -> Option<Error> {
        let failure = self.shared.failure();
        failure.or_else(|| Some(from_journal(&self.access.journal.failure()?)))
    }

    /// Flushes the store, so that nothing is left to replay.
    pub fn flush(&self) -> Result<(), Error> {
        self.access.store.persist().map_err(|error| from_kv(&error))?;
        Ok(())
    }

    /// Reads the whole journal and checks it.
    pub fn verify_journal(&self) -> Result<journal::Verified, Error> {
        self.log.verify().map_err(|error| from_journal(&error))
    }

    /// Bytes of the journal.
    pub fn journal_bytes(&self) -> u64 {
        self.log.bytes()
    }

    /// Bytes of the store's tables.
    pub fn store_bytes(&self) -> u64 {
        self.access.tree.bytes_on_disk()
    }

    /// Bytes that wait in memory for the store.
    pub fn memory_bytes(&self) -> usize {
        self.access.store.bytes_in_memory()
    }

    /// How much of the disk is free, and how much is kept free; none if the system does not tell.
    pub fn disk_space(&self) -> Option<DiskSpace> {
        self.access.disk.space(self.clock())
    }

    /// Changes how much of the disk is kept free, until the shard is closed.
    pub fn set_disk_reserve(&self, reserve: Option<DiskReserve>) {
        self.access.disk.set_reserve(reserve);
    }

    /// Waits until the store has nothing to merge.
    pub fn settle(&self) -> Result<(), Error> {
        self.access.tree.settle().map_err(|error| from_kv(&error))
    }

    /// Looks for history to discard now.
    pub fn wake_walker(&self) {
        if let Some(background) = &*self.background.lock().unwrap_or_else(PoisonError::into_inner) {
            background.wake_walker();
        }
    }

    /// Answers submitted commands, then stops everything and flushes. Closing twice does nothing.
    pub fn close(&self) -> Result<(), Error> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let finished = self.finish();
        // Handles may live on, and nothing is written to a closed directory.
        self.access.tree.stop_merging();
        finished
    }

    /// Ends everything that proposes, applies what was proposed, and flushes.
    fn finish(&self) -> Result<(), Error> {
        let background = self.background.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(background);
        self.waiters.close();
        self.keeper.close();
        self.access.journal.close();
        // Entries of the journal are still applied, unless the disk is too full for that.
        self.access.store.stop_retrying();
        let apply = self.apply.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Err(_)) = apply.map(JoinHandle::join) {
            self.shared.fail(inconsistent("the apply loop panicked".into()));
        }
        if let Some(failure) = self.shared.failure() {
            return Err(failure);
        }
        if let Some(failure) = self.access.journal.failure() {
            return Err(from_journal(&failure));
        }
        self.flush()
    }
}

impl Drop for Shard {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            tracing::error!(%error, "closing failed; the next opening replays the journal");
        }
    }
}

fn fill(
    unfinished: &Unfinished,
    options: &Options,
    fill_store: impl FnOnce(&dyn Store) -> Result<(), Error>,
) -> Result<(TreeStore, SegmentFiles), Error> {
    let directory = unfinished.directory();
    let tree = TreeStore::create(&directory.store_path(), &options.storage).map_err(|error| from_kv(&error))?;
    fill_store(&tree)?;
    let files = SegmentFiles::create(&directory.journal_path(), directory.identity().id, &options.journal_files)
        .map_err(|error| from_journal(&error))?;
    Ok((tree, files))
}

/// Applies the entries that the store does not have yet. Returns how many.
fn replay(log: &dyn EntryLog, apply_loop: &mut ApplyLoop, opening: &Opening) -> Result<u64, Error> {
    let applied = apply_loop.kernel.applied().index;
    let Ends { first_kept, last: Position { index: last, .. } } =
        log.ends(SHARD).map_err(|error| from_journal(&error))?;
    let Some(first) = first_kept else {
        log.start_after(SHARD, Position::without_hash(applied)).map_err(|error| from_journal(&error))?;
        return Ok(0);
    };
    if last < applied || first > applied + 1 {
        return Err(inconsistent(format!(
            "the store has applied entry {applied}, but the journal holds entries {first} to {last}"
        )));
    }
    let mut next = applied + 1;
    opening.begin(last - applied);
    while next <= last {
        let entries = log.read(SHARD, next, REPLAY_CHUNK_BYTES).map_err(|error| from_journal(&error))?;
        for (entry, _) in entries {
            apply_loop.apply_or_fail(entry.index, &entry.payload)?;
            next = entry.index + 1;
            opening.at(entry.index - applied);
        }
    }
    Ok(last - applied)
}

fn closed() -> Error {
    Failure::not_applied(FailureKind::Closed, "the store is closed").into()
}

fn inconsistent(reason: String) -> Error {
    from_halt(&Halt::Inconsistent(reason))
}
