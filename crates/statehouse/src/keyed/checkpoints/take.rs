//! Taking a checkpoint of a partition: from one view, while commits go on.
//!
//! Touches: objects, and the numbers under which the kernel notes removed keys. Keeps: the store is told that a checkpoint is there
//! only when it is. Never: reads more than the pace allows.

use std::io::Write;
use std::thread;
use std::time::Duration;

use contract::KeyedRejection;
use contract::keyed::Policy;
use kernel::keyed::checkpoint::{self, Base};
use kernel::keyed::restore::{RestoredCounts, RestoredMap};
use kernel::keyed::rows::ContentRow;
use node::clock::Clock;

use super::Checkpoints;
use super::error::CheckpointError;
use super::manifest::Part;
use super::names::Series;
use super::rows::RowsWriter;
use super::series::{AtPlace, CheckpointInfo};
use crate::keyed::commit::OwnKeyedOp;
use crate::keyed::reads::InView;
use crate::keyed::{OwnedPartition, Partition};
use crate::transfer::KEYS;

/// How a checkpoint is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckpointOptions {
    /// How many incremental checkpoints may follow a full one. With 0, each is full.
    pub changes_max: u32,
    /// How many committed checkpoints of the series are kept, with those that they build on.
    pub keep: usize,
    /// The bytes a second that are written at most, so that commits are not slowed down; none for no limit.
    pub bytes_per_second: Option<u64>,
}

impl Default for CheckpointOptions {
    fn default() -> Self {
        Self { changes_max: 8, keep: 3, bytes_per_second: None }
    }
}

impl CheckpointOptions {
    /// Sets [`changes_max`](Self::changes_max).
    pub fn changes_max(mut self, changes_max: u32) -> Self {
        self.changes_max = changes_max;
        self
    }

    /// Sets [`keep`](Self::keep).
    pub fn keep(mut self, keep: usize) -> Self {
        self.keep = keep;
        self
    }

    /// Sets [`bytes_per_second`](Self::bytes_per_second).
    pub fn bytes_per_second(mut self, bytes: u64) -> Self {
        self.bytes_per_second = Some(bytes);
        self
    }
}

impl OwnedPartition {
    /// Takes a checkpoint of the partition alone, and removes those that are not kept. Commits go on meanwhile, through this handle
    /// in another thread or not; they are not in it.
    ///
    /// It is a full one, or an incremental one: what has changed since the one before ([`CheckpointOptions::changes_max`]).
    pub fn checkpoint(&self, to: &Checkpoints, options: &CheckpointOptions) -> Result<CheckpointInfo, CheckpointError> {
        self.start_checkpoint(to)?.finish(options)
    }

    /// Begins a checkpoint of the partition alone; [`StartedCheckpoint::finish`] takes it, in another thread or not. Whoever has lost
    /// the partition is refused here, before anything is written.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
    /// use statehouse::keyed::{CheckpointOptions, Checkpoints, Merge};
    /// use statehouse::records::ClaimOptions;
    /// let checkpoints = Checkpoints::open(directory.path().join("checkpoints").to_str().unwrap())?;
    /// let mut partition = house.keyed("wordcount").partition(3).acquire(&ClaimOptions::worker("w1"))?;
    /// partition.commit().merge(b"hello", Merge::Add, 2).run()?;
    /// let started = partition.start_checkpoint(&checkpoints)?;
    /// let number = started.number();
    /// let taken = std::thread::spawn(|| started.finish(&CheckpointOptions::default()));
    /// partition.commit().merge(b"hello", Merge::Add, 1).run()?; // goes on meanwhile
    /// assert_eq!(taken.join().unwrap()?.number, number);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn start_checkpoint(&self, to: &Checkpoints) -> Result<StartedCheckpoint, CheckpointError> {
        let place = AtPlace::new(to, self.operator(), Series::Alone(self.number()))?;
        let begun = self.begin_checkpoint()?;
        let number = place.begin(&[self.number()], self.now_us())?;
        Ok(StartedCheckpoint { by: self.again(), place, number, begun })
    }

    /// Writes the part of this partition in a checkpoint of several.
    pub(super) fn write_part(
        &self,
        place: &AtPlace,
        number: u64,
        options: &CheckpointOptions,
    ) -> Result<(Part, u64), CheckpointError> {
        self.write_part_of(place, number, self.begin_checkpoint()?, options)
    }

    fn write_part_of(
        &self,
        place: &AtPlace,
        number: u64,
        begun: u64,
        options: &CheckpointOptions,
    ) -> Result<(Part, u64), CheckpointError> {
        let base = place.base_for(number, self.number())?.filter(|(_, part)| part.depth < options.changes_max);
        let base = base.as_ref().map(|(number, part)| (*number, part));
        let written = self.group().maps().read_with(self.map(), |found| {
            // Whoever was replaced since it was begun would write what the next owner has done.
            self.owned_group().check_owned_in(&*found.view)?;
            let part = self.write_rows(found, begun, base, place, number, options)?;
            // That took its time: the next owner may have restored the partition meanwhile.
            self.owned_group().check_owned()?;
            place.write_part(number, &part)
        })?;
        written.ok_or_else(|| KeyedRejection::NoSuchMap { map: self.map().to_owned() })?;
        let written = place.part(number, self.number())?;
        written.ok_or_else(|| CheckpointError::damaged(&place.name(number, "part"), "it was removed meanwhile"))
    }

    fn write_rows(
        &self,
        found: &InView<'_>,
        begun: u64,
        base: Option<(u64, &Part)>,
        place: &AtPlace,
        number: u64,
        options: &CheckpointOptions,
    ) -> Result<Part, CheckpointError> {
        let InView { view, keys, map, head } = found;
        let (store, mut follows) = (self.operator().space().scope.shard.id(), None);
        if let Some((number, part)) = base.filter(|(_, part)| part.store == store)
            && checkpoint::can_follow(&**view, keys, map, head, &part.taken)?
        {
            follows = Some((number, part));
        }
        let taken = Base { commit: node::image::applied(&**view, &KEYS)?.commit, begun };
        // Whoever owned the partition before may be writing the same part.
        let rows = format!("part-{}.{:016x}.rows", self.number(), taken.commit ^ self.epoch().rotate_left(40));
        let seed = seed_of(&place.name(number, &rows), taken.commit);
        let mut writer = RowsWriter::new(place.objects.writer(&place.name(number, &rows))?, seed)?;
        let shard = &self.operator().space().scope.shard;
        let mut pace = Pace::new(shard.clock(), options.bytes_per_second);
        let mut take = |row: &ContentRow<'_>| -> Result<(), CheckpointError> {
            pace.after(writer.row(row)?);
            Ok(())
        };
        checkpoint::rows(&**view, keys, map, head, follows.map(|(_, part)| &part.taken), &mut take)?;
        let (mut out, extent) = writer.finish()?;
        out.flush()?;
        out.finish()?;
        let content = &head.content;
        Ok(Part {
            partition: self.number(),
            rows,
            seed,
            extent,
            base: follows.map(|(number, _)| number),
            depth: follows.map_or(0, |(_, part)| part.depth + 1),
            store,
            taken,
            made_us: self.now_us(),
            map: RestoredMap { policy: head.policy, last_number: content.last_number, seal: content.seal },
            counts: RestoredCounts { keys: content.keys, deleted: content.deleted, waiting: content.waiting },
        })
    }

    fn begin_checkpoint(&self) -> Result<u64, CheckpointError> {
        let begin = || OwnKeyedOp::BeginCheckpoint(self.map().to_owned());
        match self.owned_group().commit().with_op(begin()).run() {
            // Whoever owns a partition may not have committed yet; a partition that nobody owns may not be meant at all.
            Err(error) if error.code() == "SH-8001" && self.epoch() > 0 => {
                let create = OwnKeyedOp::Create(self.map().to_owned(), Policy::default());
                Ok(self.owned_group().commit().with_op(create).with_op(begin()).run()?.commit)
            }
            begun => Ok(begun?.commit),
        }
    }

    /// Tells the store that a checkpoint is there: what was noted for those before it is not needed any more.
    pub(super) fn end_checkpoint(&self, begun: u64) -> Result<(), CheckpointError> {
        let commit = self.owned_group().commit().with_op(OwnKeyedOp::EndCheckpoint(self.map().to_owned(), begun));
        match commit.run() {
            Ok(_) => Ok(()),
            // Too much was removed meanwhile to be noted, or the partition was restored: the next one is full.
            Err(error) if error.code() == "SH-8014" => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn now_us(&self) -> u64 {
        self.operator().space().scope.shard.clock().wall_us()
    }
}

impl Partition {
    /// Begins a checkpoint without owning the partition, which a guarded one refuses unless the handle is
    /// [forced](crate::Space::forced): for whoever looks after it from outside.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
    /// use statehouse::keyed::{CheckpointOptions, Checkpoints, Merge};
    /// use statehouse::records::ClaimOptions;
    /// let checkpoints = Checkpoints::open(directory.path().join("checkpoints").to_str().unwrap())?;
    /// let mut owned = house.keyed("wordcount").partition(3).acquire(&ClaimOptions::worker("w1"))?;
    /// owned.commit().merge(b"hello", Merge::Add, 2).run()?;
    /// let space = house.space("default");
    /// let refused = space.keyed("wordcount").partition(3).start_checkpoint(&checkpoints).err().unwrap();
    /// assert_eq!(refused.code(), Some("SH-4003"));
    /// let started = space.forced().keyed("wordcount").partition(3).start_checkpoint(&checkpoints)?;
    /// assert_eq!(started.finish(&CheckpointOptions::default())?.keys, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn start_checkpoint(&self, to: &Checkpoints) -> Result<StartedCheckpoint, CheckpointError> {
        self.unowned().start_checkpoint(to)
    }
}

/// A checkpoint of a partition that was begun: its number is known, and nobody else takes it.
pub struct StartedCheckpoint {
    by: OwnedPartition,
    place: AtPlace,
    number: u64,
    /// The commit that began it.
    begun: u64,
}

impl StartedCheckpoint {
    /// Its number in the series of the partition.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Takes it, and removes those that are not kept. Commits of the partition go on meanwhile.
    pub fn finish(self, options: &CheckpointOptions) -> Result<CheckpointInfo, CheckpointError> {
        let Self { by, place, number, begun } = self;
        let part = by.write_part_of(&place, number, begun, options)?;
        let begun = part.0.taken.begun;
        by.owned_group().check_owned()?;
        let whole = place.commit(number, &[part], by.now_us())?;
        // It is there, whatever becomes of this: what stays is removed with the next one.
        let removed = by.end_checkpoint(begun).and_then(|()| place.retire(options.keep));
        Ok(whole.info_after(removed))
    }
}

/// What the checksums of the blocks begin with: rows that were copied to another name, or from another checkpoint, do not fit.
fn seed_of(name: &str, commit: u64) -> u64 {
    xxhash_rust::xxh3::xxh3_64_with_seed(name.as_bytes(), commit)
}

/// Waits as long as more was written than the limit allows.
struct Pace<'clock> {
    clock: &'clock dyn Clock,
    bytes_per_second: Option<u64>,
    started_us: u64,
    paced: u64,
}

/// Written between two looks at the clock.
const LOOK_BYTES: u64 = 64 << 10;

impl<'clock> Pace<'clock> {
    fn new(clock: &'clock dyn Clock, bytes_per_second: Option<u64>) -> Self {
        Self { clock, bytes_per_second, started_us: clock.monotonic_us(), paced: 0 }
    }

    fn after(&mut self, written: u64) {
        let Some(limit) = self.bytes_per_second.filter(|_| written >= self.paced + LOOK_BYTES) else { return };
        self.paced = written;
        let meant_us = u128::from(written) * 1_000_000 / u128::from(limit.max(1));
        let passed_us = u128::from(self.clock.monotonic_us().saturating_sub(self.started_us));
        let ahead_us = u64::try_from(meant_us.saturating_sub(passed_us)).unwrap_or(u64::MAX);
        if ahead_us > 0 {
            thread::sleep(Duration::from_micros(ahead_us));
        }
    }
}
