//! Restoring a partition: what it will hold is put aside in steps, and takes the place of what it holds in one.
//!
//! Touches: the map, through commands of its owner. Keeps: the map is as it was until the last step.

use std::collections::VecDeque;
use std::time::Duration;

use contract::Error;
use contract::keyed::limits::KEYED_UPDATES_MAX;
use contract::limits::PAGE_ROWS_MAX;
use kernel::keyed::restore::{RestoredCounts, RestoredMap};
use node::error::unexpected_answer;
use node::pending::Pending;
use objects::{ObjectReader, ObjectsError};

use super::error::CheckpointError;
use super::manifest::Part;
use super::merge::Merged;
use super::names::Series;
use super::rows::RowsReader;
use super::series::{AtPlace, CheckpointInfo, ListedCheckpoints, Markers};
use super::{CheckpointChoice, Checkpoints};
use crate::commit::{Commit, Committed, Done};
use crate::keyed::commit::{KeyedDone, OwnKeyedOp};
use crate::keyed::{OwnedPartition, Partition};
use crate::paging::check_page;
use crate::records::ClaimOptions;

/// Rows are put aside in commands of about this size, so that commits of others go on between them.
const COMMAND_BYTES: usize = 256 << 10;

/// What is left of the lease while a restore goes on.
const LEASE_LEFT_MIN: Duration = Duration::from_secs(20);

/// Commands that are on their way at once.
const PENDING_MAX: usize = 4;

impl Partition {
    /// Restores the partition from a checkpoint, and owns it. All rows are read and checked first, so what is damaged costs nobody
    /// the partition. Whoever owned it is refused from then on, and the partition is as it was until all rows were read again.
    pub fn restore(
        &self,
        from: &Checkpoints,
        choice: &CheckpointChoice,
        options: &ClaimOptions,
    ) -> Result<OwnedPartition, CheckpointError> {
        let found = self.find_checkpoint(from, choice)?;
        found.check()?;
        let mut owned = self.acquire_by_force(options)?;
        if let Err(error) = owned.restore_to(found) {
            // Nobody has its handle, so the next owner need not wait for the lease. What failed is more telling than this.
            drop(owned.release());
            return Err(error);
        }
        Ok(owned)
    }

    /// Finds a checkpoint and all that it builds on, so that [`OwnedPartition::restore_to`] can restore it: what is missing, or
    /// does not fit its marker, is refused here, before anybody loses the partition.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
    /// use statehouse::keyed::{CheckpointChoice, CheckpointOptions, Checkpoints, Merge};
    /// use statehouse::records::ClaimOptions;
    /// let checkpoints = Checkpoints::open(directory.path().join("checkpoints").to_str().unwrap())?;
    /// let mut owned = house.keyed("wordcount").partition(3).acquire(&ClaimOptions::worker("w1"))?;
    /// owned.commit().merge(b"hello", Merge::Add, 2).run()?;
    /// owned.checkpoint(&checkpoints, &CheckpointOptions::default())?;
    /// owned.commit().merge(b"hello", Merge::Add, 5).run()?;
    /// let found = owned.find_checkpoint(&checkpoints, &CheckpointChoice::latest())?;
    /// assert_eq!(found.number(), 1);
    /// owned.restore_to(found)?; // by whoever owns it already
    /// assert_eq!(owned.get(b"hello")?.map(|found| found.value), Some(2.into()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn find_checkpoint(
        &self,
        from: &Checkpoints,
        choice: &CheckpointChoice,
    ) -> Result<FoundCheckpoint, CheckpointError> {
        let place = self.series(from, choice)?;
        let chain = Markers::new(&place).chain(choice.number, self.number())?;
        let found = FoundCheckpoint { place, chain };
        found.readers().map(|_| found)
    }

    /// The committed checkpoints that this choice is from, from the last to the first.
    pub fn checkpoints(
        &self,
        at: &Checkpoints,
        choice: &CheckpointChoice,
    ) -> Result<Vec<CheckpointInfo>, CheckpointError> {
        let (mut found, mut before) = (Vec::new(), None);
        loop {
            let listed = self.list_checkpoints(at, choice, before, PAGE_ROWS_MAX)?;
            found.extend(listed.checkpoints);
            before = listed.before;
            if before.is_none() {
                return Ok(found);
            }
        }
    }

    /// Those of [`checkpoints`](Self::checkpoints) before a number, at most `limit` (1 to 1,000).
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
    /// use statehouse::keyed::{CheckpointChoice, CheckpointOptions, Checkpoints};
    /// use statehouse::records::ClaimOptions;
    /// let checkpoints = Checkpoints::open(directory.path().join("checkpoints").to_str().unwrap())?;
    /// let mut owned = house.keyed("wordcount").partition(3).acquire(&ClaimOptions::worker("w1"))?;
    /// owned.commit().advance("topic-a", 1).run()?;
    /// owned.checkpoint(&checkpoints, &CheckpointOptions::default())?;
    /// owned.checkpoint(&checkpoints, &CheckpointOptions::default())?;
    /// let choice = CheckpointChoice::latest();
    /// let page = owned.list_checkpoints(&checkpoints, &choice, None, 1)?;
    /// assert_eq!((page.checkpoints[0].number, page.before), (2, Some(2)));
    /// let page = owned.list_checkpoints(&checkpoints, &choice, page.before, 10)?;
    /// assert_eq!((page.checkpoints[0].number, page.before), (1, None));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn list_checkpoints(
        &self,
        at: &Checkpoints,
        choice: &CheckpointChoice,
        before: Option<u64>,
        limit: usize,
    ) -> Result<ListedCheckpoints, CheckpointError> {
        check_page(limit).map_err(Error::from)?;
        let mut listed = self.series(at, choice)?.list(self.number(), before, limit)?;
        listed.checkpoints.retain(|info| choice.number.is_none_or(|number| info.number == number));
        Ok(listed)
    }

    pub(super) fn series(&self, at: &Checkpoints, choice: &CheckpointChoice) -> Result<AtPlace, Error> {
        let series = if choice.together { Series::Together } else { Series::Alone(self.number()) };
        AtPlace::new(at, self.operator(), series)
    }
}

/// A checkpoint that was found with all that it builds on; its rows are checked when they are read.
pub struct FoundCheckpoint {
    place: AtPlace,
    /// The part, and those that it builds on, the newest first; each with the number of its checkpoint.
    chain: Vec<(u64, Part)>,
}

impl FoundCheckpoint {
    /// Its number in its series.
    pub fn number(&self) -> u64 {
        self.newest().0
    }

    /// The bytes of all rows that a restore reads.
    pub fn bytes(&self) -> u64 {
        self.chain.iter().map(|(_, part)| part.extent.bytes).sum()
    }

    /// Reads and checks all rows, without a store. A restore reads them again.
    pub fn check(&self) -> Result<(), CheckpointError> {
        Merged::new(self.readers()?).each(|_| Ok(()))
    }

    fn newest(&self) -> &(u64, Part) {
        self.chain.first().expect("it has itself")
    }

    /// The rows of each, the newest first.
    fn readers(&self) -> Result<Vec<(String, RowsReader<ObjectReader>)>, CheckpointError> {
        let reader = |(number, part): &(u64, Part)| self.place.rows(*number, part);
        self.chain.iter().map(reader).collect()
    }
}

impl OwnedPartition {
    /// Restores the partition, which this handle owns already. It is as it was until all rows were read and checked; commits until
    /// then are gone with what it held.
    pub fn restore_to(&mut self, found: FoundCheckpoint) -> Result<(), CheckpointError> {
        self.restore_telling(found, || {})
    }

    /// [`restore_to`](Self::restore_to), which says when it has begun: from then on until it has ended,
    /// [`is_restoring`](Partition::is_restoring) holds. The lease is extended meanwhile.
    pub fn restore_telling(&mut self, found: FoundCheckpoint, begun: impl FnOnce()) -> Result<(), CheckpointError> {
        let (readers, part) = (found.readers()?, &found.newest().1);
        let begin = || self.owned_group().commit();
        self.owned_group().extend_to(LEASE_LEFT_MIN)?;
        let restoring = Restoring::begin(&begin, self.operator().name(), part.map)?;
        begun();
        restoring.finish(part.counts, |rows| {
            Merged::new(readers).each(|row| {
                if rows.add(row)? {
                    self.owned_group().extend_to(LEASE_LEFT_MIN)?;
                }
                Ok(())
            })
        })?;
        Ok(self.refresh()?)
    }
}

impl AtPlace {
    /// The rows of a part, with the name of their object.
    pub(super) fn rows(&self, number: u64, part: &Part) -> Result<(String, RowsReader<ObjectReader>), CheckpointError> {
        let name = self.name(number, &part.rows);
        let reader = match self.objects.reader(&name) {
            Err(ObjectsError::Missing { .. }) => return Err(CheckpointError::damaged(&name, "it is missing")),
            found => found?,
        };
        Ok((name.clone(), RowsReader::new(reader, name, part.seed, part.extent)?))
    }
}

/// A map while it is being restored.
pub(in crate::keyed) struct Restoring<'restoring> {
    /// Begins a commit that may change the map.
    commit: &'restoring dyn Fn() -> Commit,
    map: &'restoring str,
    number: u32,
    rows: Vec<u8>,
    row_count: usize,
    pending: VecDeque<Pending<(Committed, Vec<Done>)>>,
}

impl<'restoring> Restoring<'restoring> {
    /// Begins to put aside what the map will hold.
    pub(in crate::keyed) fn begin(
        commit: &'restoring dyn Fn() -> Commit,
        map: &'restoring str,
        restored: RestoredMap,
    ) -> Result<Self, Error> {
        let begun = commit().with_op(OwnKeyedOp::BeginRestore(map.to_owned(), restored));
        let number = match begun.run_each_later().wait()?.1.as_slice() {
            [Done::Map(KeyedDone::RestoreBegun { number })] => *number,
            other => return Err(unexpected_answer("the beginning of a restore", &other)),
        };
        Ok(Self { commit, map, number, rows: Vec::new(), row_count: 0, pending: VecDeque::new() })
    }

    /// Puts an encoded row aside. Returns whether those before it took a command.
    pub(in crate::keyed) fn add(&mut self, row: &[u8]) -> Result<bool, Error> {
        // A large row goes alone: with others it could be more than a transaction may have.
        let has_room = self.rows.is_empty()
            || (self.rows.len() + row.len() <= COMMAND_BYTES && self.row_count < KEYED_UPDATES_MAX);
        if !has_room {
            self.send()?;
        }
        self.rows.extend_from_slice(row);
        self.row_count += 1;
        Ok(!has_room)
    }

    fn send(&mut self) -> Result<(), Error> {
        let rows = std::mem::take(&mut self.rows);
        self.row_count = 0;
        let commit = (self.commit)().with_op(OwnKeyedOp::RestoreRows(self.map.to_owned(), self.number, rows));
        self.pending.push_back(commit.run_each_later());
        if self.pending.len() >= PENDING_MAX { self.wait_for_one() } else { Ok(()) }
    }

    fn wait_for_one(&mut self) -> Result<(), Error> {
        self.pending.pop_front().map_or(Ok(()), |pending| pending.wait().map(drop))
    }

    /// Adds all rows, and lets them take the place of what the map holds; if anything fails, they are given up.
    pub(in crate::keyed) fn finish<E: From<Error>>(
        mut self,
        counts: RestoredCounts,
        add: impl FnOnce(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        let ended = add(&mut self).and_then(|()| Ok(self.end(counts)?));
        if ended.is_err() {
            // What failed is more telling than that this did, too; what is left goes with the next restore.
            let abandon = (self.commit)().with_op(OwnKeyedOp::AbandonRestore(self.map.to_owned(), self.number));
            drop(abandon.run());
        }
        ended
    }

    fn end(&mut self, counts: RestoredCounts) -> Result<(), Error> {
        if !self.rows.is_empty() {
            self.send()?;
        }
        while !self.pending.is_empty() {
            self.wait_for_one()?;
        }
        let end = (self.commit)().with_op(OwnKeyedOp::EndRestore(self.map.to_owned(), self.number, counts));
        end.run().map(drop)
    }
}
