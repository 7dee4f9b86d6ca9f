//! One shard at its owner: its journal, its store, the apply loop between them, and the way of a command through all three.
//!
//! Touches: everything under the directory. Keeps: the order of closing: journal first, then the loop, then a last flush.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use contract::{Error, Failure, FailureKind};
use journal::{EntryLog, LocalJournal, Ownership};
use kernel::{Catalogue, Keys};
use kv::{Readable, Store, View};
use waiting::Waiters;

use crate::access::Access;
use crate::apply::answers::Answers;
use crate::apply::proposer::{DurableEntry, Proposer};
use crate::apply::quarantine::Quarantine;
use crate::apply::{ApplyLoop, Notified};
use crate::background::Background;
use crate::backup_times::BackupLog;
use crate::clock::{Clock, Time};
use crate::error::{cannot_open, from_journal, from_kv};
use crate::follower::{Follower, inconsistent};
use crate::level::raise_level;
use crate::options::Options;
use crate::parts::Parts;
use crate::sessions::keeper::Keeper;
use crate::sessions::register::register_machines;
use crate::shared::Shared;
use crate::space::disk::{Disk, DiskReserve, DiskSpace};
use crate::space::fit::{fit, needed_bytes};
use crate::space::keeper::SpaceKeeper;

/// The term of entries that nobody else could append.
const LOCAL_TERM: u64 = 1;
/// The node that a library is, in its entries.
pub(crate) const LOCAL_NODE: u64 = 0;

/// Entries that wait between the journal and the apply loop. While one waits, the next one grows: a longer queue
/// would only make more and smaller entries (measured at 256 callers: 14 commands an entry with 16 here).
const APPLY_QUEUE_ENTRIES: usize = 1;

/// An open shard, at the node that owns it.
pub struct Shard {
    /// What the apply loop publishes.
    pub shared: Arc<Shared>,
    /// Reads and proposes.
    pub access: Access,
    pub(crate) quarantine: Arc<Quarantine>,
    log: Arc<dyn EntryLog>,
    apply: Mutex<Option<JoinHandle<Option<ApplyLoop>>>>,
    background: Mutex<Option<Background>>,
    /// Claims that wait for something to claim.
    pub waiters: Arc<Waiters>,
    /// Those who wait for one record, by its name.
    pub named_waiters: Arc<Waiters>,
    /// Which sessions are alive.
    pub keeper: Arc<Keeper>,
    closed: AtomicBool,
    /// When backups were taken and verified.
    pub backups: BackupLog,
    /// Whether messages for brokers go anywhere.
    pub has_broker: bool,
    id: u64,
    applied_at_open: u64,
    options: Options,
    /// Gone when the shard has stepped down. Last, so that the lock is released after everything else.
    parts: Mutex<Option<Parts>>,
}

impl Shard {
    /// Opens the directory at `path`, or creates it, and owns its one shard.
    pub fn open(path: &Path, options: &Options) -> Result<Arc<Self>, Error> {
        let options = &fit(options, path);
        Follower::start(Parts::open(path, options)?, options)?.own(LOCAL_TERM)
    }

    /// Starts what an owner has and a follower has not: the journal, the answers, and the threads in the background.
    pub(crate) fn start(follower: Follower, term: u64) -> Result<Arc<Self>, Error> {
        let history = follower.history();
        // First, so that its lock is released last if something fails below.
        let Follower { parts, apply, store, quarantine, applied_at_open, at, options, .. } = follower;
        let Notified { shared, agenda, outbox, waiters, named_waiters, keeper } = apply.notified.clone();
        let time = Arc::new(Time::new(options.clock.clone(), apply.kernel.applied().stamp));
        let view = store.view().map_err(|error| from_kv(&error))?;
        keeper.load(&Readable(&*view), &parts.place.keys, time.now())?;
        let (sender, entries) = sync_channel::<DurableEntry>(APPLY_QUEUE_ENTRIES);
        let proposer = Proposer { time: time.clone(), apply: sender, tenure: parts.tenure.clone(), term, history };
        let owner = Ownership { shard: parts.place.id, after: at, term, node: LOCAL_NODE, history };
        let journal = LocalJournal::start(parts.log.clone(), owner, &options.journal, proposer)
            .map_err(|error| from_journal(&error))?;
        let path = parts.directory.path();
        let access = Access {
            place: parts.place,
            history,
            shared: shared.clone(),
            store,
            tree: parts.tree.clone(),
            journal: Arc::new(journal),
            clock: options.clock.clone(),
            time,
            tenure: parts.tenure.clone(),
            disk: Arc::new(Disk::new(path.to_owned(), needed_bytes(&options), options.disk_reserve)),
        };
        let answers = Answers::start()?;
        let apply = std::thread::Builder::new()
            .name("apply".into())
            .spawn({
                let access = access.clone();
                move || apply.run(&entries, &access, &answers)
            })
            .map_err(|error| cannot_open(format!("could not start the apply thread: {error}")))?;
        let images = parts.images.clone();
        let shard = Arc::new(Self {
            shared,
            access: access.clone(),
            quarantine,
            log: parts.log.clone(),
            apply: Mutex::new(Some(apply)),
            background: Mutex::new(None),
            waiters,
            named_waiters,
            keeper: keeper.clone(),
            closed: AtomicBool::new(false),
            backups: BackupLog::open(path),
            has_broker: options.broker.is_some(),
            id: parts.directory.identity().id,
            applied_at_open,
            options: options.clone(),
            parts: Mutex::new(Some(parts)),
        });
        raise_level(&access)?;
        register_machines(&access, &options)?;
        let space = SpaceKeeper { access: access.clone(), log: shard.log.clone(), applied_at_open };
        let background = Background::start(&access, &options, images, agenda, outbox, keeper, space)?;
        *locked(&shard.background) = Some(background);
        Ok(shard)
    }

    /// A view of everything acknowledged so far, with the catalogue.
    pub fn view(&self) -> Result<(Arc<dyn View>, Arc<Catalogue>), Error> {
        if self.closed.load(Ordering::Acquire) {
            return Err(closed());
        }
        self.access.view()
    }

    /// Reads one thing at a view of everything acknowledged so far.
    pub fn read<T>(&self, read: impl FnOnce(&dyn View, &Arc<Catalogue>) -> Result<T, Error>) -> Result<T, Error> {
        if self.closed.load(Ordering::Acquire) {
            return Err(closed());
        }
        self.access.read(read)
    }

    /// Refuses once this node may not answer for the shard any more. For what is answered without a view.
    pub fn check_tenure(&self) -> Result<(), Error> {
        self.access.tenure.check(self.clock())
    }

    /// The identity of the directory.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The history of the log that its entries belong to: whoever takes the shard over goes on with it, in another directory.
    pub fn history(&self) -> u64 {
        self.access.history
    }

    /// The keys of its rows.
    pub fn keys(&self) -> Keys {
        self.access.keys()
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
        if let Some(background) = &*locked(&self.background) {
            background.wake_walker();
        }
    }

    /// Answers submitted commands, then stops everything and flushes. Closing twice does nothing.
    pub fn close(&self) -> Result<(), Error> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        self.stop_proposing();
        // Entries of the journal are still applied, unless the disk is too full for that.
        self.access.store.stop_retrying();
        let finished = self.stop_applying().and_then(|_| match self.access.journal.failure() {
            Some(failure) => Err(from_journal(&failure)),
            None => self.flush(),
        });
        // Handles may live on, and nothing is written to a closed directory.
        self.access.tree.stop_merging();
        finished
    }

    /// Answers submitted commands, and goes on as a follower: whatever others append next is applied. Handles get `Closed` from
    /// then on.
    pub fn step_down(&self) -> Result<Follower, Error> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return Err(closed());
        }
        self.stop_proposing();
        let mut apply = match self.stop_applying() {
            Ok(apply) => apply,
            Err(error) => {
                // Nobody goes on with the store.
                self.access.store.stop_retrying();
                self.access.tree.stop_merging();
                return Err(error);
            }
        };
        let parts = locked(&self.parts).take().ok_or_else(closed)?;
        apply.notified = Notified::new(apply.kernel.catalogue().clone());
        apply.replays = true;
        Follower::resume(apply, self.quarantine.clone(), self.applied_at_open, self.options.clone(), parts)
    }

    /// Ends everything that proposes.
    fn stop_proposing(&self) {
        let background = locked(&self.background).take();
        drop(background);
        self.waiters.close();
        self.named_waiters.close();
        self.keeper.close();
        self.access.journal.close();
    }

    /// Applies what was proposed, and gives back the loop.
    fn stop_applying(&self) -> Result<ApplyLoop, Error> {
        let apply = locked(&self.apply).take();
        let apply = match apply.map(JoinHandle::join) {
            Some(Ok(apply)) => apply,
            Some(Err(_)) => {
                self.shared.fail(inconsistent("the apply loop panicked".into()));
                None
            }
            None => None,
        };
        match self.shared.failure() {
            Some(failure) => Err(failure),
            None => apply.ok_or_else(closed),
        }
    }
}

impl Drop for Shard {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            tracing::error!(%error, "closing failed; the next opening replays the journal");
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn closed() -> Error {
    Failure::not_applied(FailureKind::Closed, "the store is closed").into()
}
