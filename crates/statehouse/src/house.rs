//! The handle on an open directory.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use contract::catalogue::{DEFAULT_SPACE, MAIN_BRANCH};
use contract::limits::SCAN_ROWS_MAX;
use contract::{Error, Limits, names};
use kernel::outbox::waiting::{WaitingMessage, list_waiting};
use kernel::{CatalogueChange, MessageCounts};
use node::backup_times::BackupTimes;
use node::damage::FoundDamage;
use node::error::from_halt;
use node::sessions::requests::Numbers;
use node::shard::Shard;
use node::space::disk::{DiskReserve, DiskSpace};
use node::space::waits::StoreWait;

use crate::Authority;
use crate::admission::Scope;
use crate::group::Group;
use crate::options::Options;
use crate::paging::check_page;
use crate::sender::{Sender, change};

/// An open directory. Clones share it; it closes when the last handle of any kind is dropped.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("house");
/// let house = statehouse::Statehouse::open(&path)?;
/// let worker = { let house = house.clone(); std::thread::spawn(move || house.cells().set("seen", true)) };
/// worker.join().unwrap()?;
/// assert!(statehouse::Statehouse::open(&path).is_err(), "a directory has one opener at a time");
/// house.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Statehouse {
    pub(crate) shard: Arc<Shard>,
    /// Who sends what its handles send, if it is known.
    pub(crate) sender: Option<Sender>,
}

/// The state of an open directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// The number of the last applied command.
    pub commit: u64,
    /// The last applied entry of the journal.
    pub applied_index: u64,
    /// A hash over everything ever applied.
    pub effects_hash: u64,
    /// Rows written by commands since the directory was opened, without those written once per entry.
    pub command_rows: u64,
    /// Bytes of the journal's files.
    pub journal_bytes: u64,
    /// Bytes of the store's tables.
    pub store_bytes: u64,
    /// Bytes that wait in memory for the store.
    pub memory_bytes: usize,
    /// Runs whose projections were compared with their events since the directory was opened.
    pub runs_verified: u64,
    /// Those that differed. Any number but 0 is a bug: keep the directory, and report it.
    pub run_differences: u64,
}

impl Statehouse {
    /// Opens the directory at `path`, or creates it.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Options::default().open(path)
    }

    /// Handles on a shard that was opened elsewhere: one that has taken over from another node, for example.
    pub fn over(shard: Arc<Shard>) -> Self {
        Self { shard, sender: None }
    }

    /// The same store, for a request of somebody: what the handles made from it send is sent by this one.
    pub fn sent_by(&self, sender: Sender) -> Self {
        Self { sender: Some(sender), ..self.clone() }
    }

    /// Messages that wait, at most `limit`, those to publish first.
    pub fn waiting_messages(&self, limit: usize) -> Result<Vec<WaitingMessage>, Error> {
        check_page(limit)?;
        let (view, catalogue) = self.shard.view()?;
        let found = list_waiting(&*view, &self.shard.keys(), &catalogue, limit, SCAN_ROWS_MAX);
        found.map_err(|halt| from_halt(&halt))
    }

    /// Whether [`Options::publish_to`] was given a broker. Without one, messages for brokers wait.
    pub fn has_broker(&self) -> bool {
        self.shard.has_broker
    }

    /// The number of waiting messages: for their time or to be applied in a group, and to be published.
    pub fn messages_waiting(&self) -> Result<MessageCounts, Error> {
        let (view, _) = self.shard.view()?;
        kernel::outbox::waiting::waiting(&*view, &self.shard.keys()).map_err(|halt| from_halt(&halt))
    }

    /// A group of the space `default`, branch `main`: everything in it can change in one transaction.
    pub fn group(&self, name: impl Into<String>) -> Group {
        self.default_space().group(name)
    }

    pub(crate) fn default_space(&self) -> Space {
        self.space(DEFAULT_SPACE)
    }

    /// A space by name, at its branch `main`. That it exists is checked when it is used.
    pub fn space(&self, name: &str) -> Space {
        let scope = Scope {
            shard: self.shard.clone(),
            space: name.into(),
            branch: MAIN_BRANCH.into(),
            pinned: None,
            session: None,
            authority: Authority::default(),
            sender: self.sender.clone(),
        };
        Space { scope }
    }

    /// Creates a space with the branch `main`.
    pub fn create_space(&self, name: &str) -> Result<Space, Error> {
        names::check_space(name)?;
        change(&self.shard, self.sender.as_ref(), CatalogueChange::CreateSpace { name: name.to_owned() })?;
        Ok(self.space(name))
    }

    /// The names of all spaces.
    pub fn spaces(&self) -> Result<Vec<String>, Error> {
        let (_, catalogue) = self.shard.view()?;
        Ok(catalogue.spaces_of_users().map(|(_, space)| space.name.clone()).collect())
    }

    /// The limits that change how a command is applied.
    pub fn limits(&self) -> Result<Limits, Error> {
        Ok(self.shard.view()?.1.limits)
    }

    /// Sets those limits.
    pub fn set_limits(&self, limits: Limits) -> Result<(), Error> {
        change(&self.shard, self.sender.as_ref(), CatalogueChange::SetLimits(limits))
    }

    /// The identity of the directory, drawn at random when it was created. A restored or imported directory has its
    /// own: a cursor or a commit number of one store means nothing in another.
    pub fn id(&self) -> u64 {
        self.shard.id()
    }

    /// The history that tokens of attempts are of: that of the log, which whoever takes a shard over goes on with. In a
    /// directory with a log of its own it is [`id`](Self::id).
    pub fn history(&self) -> u64 {
        self.shard.history()
    }

    /// When backups were taken and verified; this outlives the process.
    pub fn backup_times(&self) -> BackupTimes {
        self.shard.backups.times()
    }

    /// Notes that a backup was taken whole, at a time in µs since 1970 in UTC.
    pub fn note_backup_taken(&self, at_us: u64) {
        self.shard.backups.note(|times| times.taken_us = Some(at_us));
    }

    /// Notes that a backup of this store was verified.
    pub fn note_backup_verified(&self, at_us: u64) {
        self.shard.backups.note(|times| times.verified_us = Some(at_us));
    }

    /// Its current state.
    pub fn status(&self) -> Result<Status, Error> {
        let (view, _) = self.shard.view()?;
        let applied = node::image::applied(&*view, &self.shard.keys())?;
        Ok(Status {
            commit: applied.commit,
            applied_index: applied.index,
            effects_hash: applied.hash,
            command_rows: self.shard.shared.command_rows.load(Ordering::Relaxed),
            journal_bytes: self.shard.journal_bytes(),
            store_bytes: self.shard.store_bytes(),
            memory_bytes: self.shard.memory_bytes(),
            runs_verified: self.shard.shared.beside.runs.findings.verified.load(Ordering::Relaxed),
            run_differences: self.shard.shared.beside.runs.findings.differences.load(Ordering::Relaxed),
        })
    }

    /// How much of the disk is free, and how much is kept free; none if the system does not tell.
    pub fn disk(&self) -> Option<DiskSpace> {
        self.shard.disk_space()
    }

    /// Changes how much of the disk is kept free, until the directory is closed.
    pub fn set_disk_reserve(&self, reserve: Option<DiskReserve>) {
        self.shard.set_disk_reserve(reserve);
    }

    /// What waits for the disk now, the more urgent first.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
    /// assert_eq!(house.store_waits(), [], "there is space, and the disk works");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn store_waits(&self) -> Vec<StoreWait> {
        self.shard.store_waits()
    }

    /// Reads the whole store now, without a pause, to find damage. Returns the number of bytes read.
    pub fn scrub_now(&self) -> Result<u64, Error> {
        self.shard.scrub_now()
    }

    /// Damage found so far, by reads, merges or the scrub, and what was set apart before.
    pub fn damage(&self) -> Result<Vec<FoundDamage>, Error> {
        self.shard.damage()
    }

    /// Makes everything so far durable in the store, so that nothing is left to replay. Answers are durable without it:
    /// they are in the journal.
    pub fn flush(&self) -> Result<(), Error> {
        self.shard.flush()
    }

    /// Waits until the store has nothing to merge.
    pub fn settle(&self) -> Result<(), Error> {
        self.shard.settle()
    }

    /// Looks for history to discard now, instead of at the next turn.
    pub fn walk_retention(&self) {
        self.shard.wake_walker();
    }

    /// Reads the whole journal and checks every entry. Returns the number of entries.
    pub fn verify_journal(&self) -> Result<u64, Error> {
        Ok(self.shard.verify_journal()?.entries)
    }

    /// Writes everything committed so far as one image. Returns the number of rows.
    pub fn write_image(&self, out: &mut dyn std::io::Write) -> Result<u64, Error> {
        let (view, _) = self.shard.view()?;
        node::image::write_view(&*view, &self.shard.keys(), out)
    }

    /// Creates a new directory at `path` from an image.
    pub fn restore_image(path: impl AsRef<Path>, input: &mut dyn std::io::Read) -> Result<(), Error> {
        crate::restore::restore(path.as_ref(), &Options::default(), input)
    }

    /// Answers submitted commands, stops and flushes. Other handles get `Closed` from then on; another opener can open
    /// the directory when the last handle of any kind is dropped.
    pub fn close(&self) -> Result<(), Error> {
        self.shard.close()
    }
}

/// One branch of a space: `main` unless another was chosen.
#[derive(Clone)]
pub struct Space {
    pub(crate) scope: Scope,
}

impl Space {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.scope.space
    }

    /// The name of the branch that this handle is on.
    pub fn branch_name(&self) -> &str {
        &self.scope.branch
    }

    /// The same space at another branch. That it exists is checked when it is used.
    pub fn branch(&self, name: &str) -> Space {
        Space { scope: Scope { branch: name.into(), pinned: None, ..self.scope.clone() } }
    }

    /// Whether a request of a session got a stored answer. Known once its answer is there, for a space from
    /// [`Sessions::request_in`](crate::Sessions::request_in) or [`Session::request`](crate::Session::request).
    pub fn was_replayed(&self) -> bool {
        let numbers = self.scope.session.as_ref().map(|session| &session.numbers);
        matches!(numbers, Some(Numbers::Exactly { replayed, .. }) if replayed.load(Ordering::Relaxed))
    }

    /// A group of this branch: everything in it can change in one transaction.
    pub fn group(&self, name: impl Into<String>) -> Group {
        Group::new(self.scope.clone(), name.into())
    }
}
