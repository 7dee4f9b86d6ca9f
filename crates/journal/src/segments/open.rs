//! Creating and opening a journal: walks the batches, tells a torn tail from rot, compares everything with the
//! watermark, and makes what it found durable.
//!
//! Keeps: J3. A refused open has changed nothing, and an open needs no space. Never: trusts a batch before it is
//! durable, or a directory before its entries are.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::batch::{BATCH_HEADER_BYTES_MIN, SEGMENT_HEADER_BYTES, segment_header};
use crate::disk::{Disk, DiskDirectory, DiskFile};
use crate::error::JournalError;
use crate::frame::ShardId;
use crate::segment::{Segment, cannot_read, number_of, path_of};
use crate::tail_scan::{evidence_in, holds_entries};
use crate::watermark::{Known, Watermark};

use super::sizes::PublishedSizes;
use super::spares::SPARES_MAX;
use super::walk::Walked;
use super::{SegmentFiles, SegmentOptions, State};

impl<D: Disk> SegmentFiles<D> {
    /// [`create`](SegmentFiles::create) on a given file system.
    pub fn create_on(disk: Arc<D>, directory: &Path, id: u64, options: &SegmentOptions) -> Result<Self, JournalError> {
        let path = directory.join("segments");
        disk.create_directory(&path).map_err(|error| JournalError::io("create the directory of segments", error))?;
        let handle = lock_directory(&*disk, &path)?;
        // Checked before anything is written: the watermark of a journal with entries guards them. The remains of an
        // interrupted creation hold none.
        let guards_entries =
            Watermark::open(disk.clone(), directory, id).is_ok_and(|watermark| !watermark.known().marks.is_empty());
        let mut holds_any = guards_entries;
        for number in segment_numbers(&*disk, &path)? {
            let segment = open_segment(&*disk, &path, number).map_err(cannot_read)?;
            holds_any |= holds_entries(&segment).map_err(cannot_read)?;
        }
        if holds_any {
            let what = "cannot create a journal here: this one holds entries";
            return Err(JournalError::damaged(directory.display(), what));
        }
        let watermark = Watermark::create(disk.clone(), directory, id)?;
        let files = Self::new(disk, directory, handle, watermark, id, options);
        let first = files.first_segment().map_err(|error| JournalError::io("create a segment", error))?;
        let mut state = files.lock();
        state.segments.push_back(first);
        files.prepare_spare(&mut state)?;
        files.sync_all_names(directory, &mut state)?;
        files.sizes.publish(&state);
        drop(state);
        Ok(files)
    }

    /// [`open`](SegmentFiles::open) on a given file system.
    pub fn open_on(disk: Arc<D>, directory: &Path, id: u64, options: &SegmentOptions) -> Result<Self, JournalError> {
        let path = directory.join("segments");
        let handle = lock_directory(&*disk, &path)?;
        let watermark = Watermark::open(disk.clone(), directory, id)?;
        let numbers = segment_numbers(&*disk, &path)?;
        let files = Self::new(disk, directory, handle, watermark, id, options);
        files.recover(directory, &numbers)?;
        Ok(files)
    }

    fn new(
        disk: Arc<D>,
        directory: &Path,
        handle: D::Directory,
        watermark: Watermark<D>,
        id: u64,
        options: &SegmentOptions,
    ) -> Self {
        let state = State {
            shards: BTreeMap::new(),
            watermark,
            segments: VecDeque::new(),
            spares: VecDeque::new(),
            spares_max: SPARES_MAX,
            sequence: 1,
            kept_from: None,
            refused_at: None,
            rolled: false,
            spare_retry_at: 0,
            failure: None,
            buffer: Vec::new(),
            framed: Vec::new(),
        };
        // A segment has room for something.
        let segment_bytes_target = options.file_bytes_target.max(1 << 10).next_multiple_of(8);
        let path = directory.join("segments");
        let sizes = PublishedSizes::default();
        Self { disk, path, directory: handle, id, segment_bytes_target, sizes, state: Mutex::new(state) }
    }

    fn recover(&self, directory: &Path, numbers: &[u64]) -> Result<(), JournalError> {
        let mut state = self.lock();
        let state = &mut *state;
        let known = state.watermark.known().clone();
        let kept: Vec<u64> = numbers.iter().copied().filter(|number| *number >= known.first_segment).collect();
        let mut segments = Vec::with_capacity(kept.len());
        for number in &kept {
            segments.push(open_segment(&*self.disk, &self.path, *number).map_err(cannot_read)?);
        }
        if kept.first() != Some(&known.first_segment) {
            let place = path_of(&self.path, known.first_segment);
            let what = "a file is missing: entries are kept from there on";
            return Err(JournalError::damaged(place.display(), what));
        }
        let mut walked = self.walk(&mut segments, &known)?;
        self.find_torn_batch(&mut segments, &mut walked)?;
        self.refuse_evidence(&segments, &walked)?;
        self.compare(&known, &mut walked)?;
        self.read_last_entries(&segments, &mut walked)?;

        // From here on nothing is refused any more.
        state.watermark.settle()?;
        self.settle_batches(&segments, &walked)?;
        let used = walked.last.as_ref().map_or(0, |last| last.segment) + 1;
        let last_number = kept[used - 1];
        state.sequence = match (&walked.torn, &walked.last) {
            (Some(torn), _) => torn.header.sequence,
            (None, last) => last.as_ref().map_or(1, |last| last.header.sequence + 1),
        };
        state.shards = walked.shards;
        let mut segments = VecDeque::from(segments);
        let unused = segments.split_off(used);
        let mut base = 0;
        for segment in &mut segments {
            segment.base = base;
            base += segment.end;
        }
        state.segments = segments;
        let follow = |(segment, number): &(Segment<_>, u64)| segment.number == *number;
        let spares = unused.into_iter().zip(last_number + 1..).take_while(follow);
        state.spares = spares.map(|(segment, _)| segment).collect();
        for shard in state.shards.keys().copied().collect::<Vec<_>>() {
            self.find_first_kept(state, shard);
        }
        state.find_kept_from();
        self.sync_all_names(directory, state)?;
        let stale = numbers.iter().filter(|number| {
            let spare_last = last_number + state.spares.len() as u64;
            **number < known.first_segment || **number > spare_last
        });
        for number in stale {
            // It takes space and nothing else. The next open tries again.
            let _ = self.disk.remove(&path_of(&self.path, *number));
        }
        self.sizes.publish(state);
        Ok(())
    }

    /// Makes the names of all files durable, and a watermark of everything that is there.
    fn sync_all_names(&self, directory: &Path, state: &mut State<D>) -> Result<(), JournalError> {
        let failed = |error| JournalError::io("sync the journal's directory", error);
        self.directory.sync().map_err(failed)?;
        self.write_watermark(state)?;
        self.disk.open_directory(directory).and_then(|directory| directory.sync()).map_err(failed)
    }

    /// Refuses if something behind the end was written after the end was durable.
    fn refuse_evidence(&self, segments: &[Segment<D::File>], walked: &Walked) -> Result<(), JournalError> {
        let last_kept = |shard: ShardId| walked.shards.get(&shard).map_or(0, |index| index.last_index);
        let (end_segment, end) = match (&walked.torn, &walked.last) {
            // Its own header proves nothing.
            (Some(torn), _) => (torn.segment, torn.offset + torn.header.header_bytes() as u64),
            (None, Some(last)) => (last.segment, last.offset + last.header.bytes()),
            (None, None) => (0, 0),
        };
        let mut buffer = Vec::new();
        for (position, segment) in segments.iter().enumerate().skip(end_segment) {
            let from = if position == end_segment { end } else { 0 };
            let evidence = evidence_in(segment, from, self.id, last_kept, &mut buffer).map_err(cannot_read)?;
            if let Some(evidence) = evidence {
                let damage = self.path_at(&segments[end_segment], walked.torn.as_ref().map_or(end, |torn| torn.offset));
                let place = self.path_at(segment, evidence.offset);
                return Err(JournalError::damaged(damage, format!("{} ({place})", evidence.what)));
            }
        }
        Ok(())
    }

    /// Refuses if something is missing that was known to be durable, and gives up what was given up.
    fn compare(&self, known: &Known, walked: &mut Walked) -> Result<(), JournalError> {
        for (shard, mark) in &known.marks {
            let index = walked.shards.get_mut(shard);
            let (first, last) = index.as_ref().map_or((0, 0), |index| (index.first_index, index.last_index));
            if last < mark.last {
                let what =
                    format!("entry {} of shard {shard} was durable, but the readable entries end at {last}", mark.last);
                return Err(JournalError::damaged(self.path.display(), what));
            }
            if first > mark.first_kept {
                let kept = mark.first_kept;
                let what = format!("entry {kept} of shard {shard} was kept, but the entries start at {first}");
                return Err(JournalError::damaged(self.path.display(), what));
            }
            if let Some(index) = index {
                index.cut(mark.first_kept);
            }
        }
        Ok(())
    }

    /// Makes the last batch durable, and a torn one invalid. A killed process may have left the last batch in memory
    /// only, and it is about to be trusted. It is written again because a failed sync may have left the file looking
    /// clean. The header of a torn batch would be taken for evidence once the next batch is in another segment.
    fn settle_batches(&self, segments: &[Segment<D::File>], walked: &Walked) -> Result<(), JournalError> {
        let settle = |segment: &Segment<D::File>, bytes: &[u8], offset: u64| {
            let written = segment.file.write_at(bytes, offset).and_then(|()| segment.file.sync_data());
            written.map_err(|error| JournalError::io("sync recovered entries", error))
        };
        if let Some(torn) = &walked.torn {
            settle(&segments[torn.segment], &[0; BATCH_HEADER_BYTES_MIN], torn.offset)?;
        }
        if let Some(last) = &walked.last {
            let segment = &segments[last.segment];
            // The segment's header is settled with the first batch, as it was written.
            let is_first = last.offset == SEGMENT_HEADER_BYTES as u64;
            let mut batch = Vec::new();
            if is_first {
                batch.extend_from_slice(&segment_header(self.id, segment.number));
            }
            let start = batch.len();
            batch.resize(start + last.header.header_bytes(), 0);
            last.header.encode_to(&mut batch[start..], segment.place(self.id, last.offset));
            let mut body = Vec::new();
            segment.read_body(last.offset, &last.header, &mut body).map_err(cannot_read)?;
            batch.extend_from_slice(&body);
            settle(segment, &batch, if is_first { 0 } else { last.offset })?;
        }
        Ok(())
    }
}

fn lock_directory<D: Disk>(disk: &D, path: &Path) -> Result<D::Directory, JournalError> {
    let handle = match disk.open_directory(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(JournalError::damaged(path.display(), "the directory of segments is missing"));
        }
        opened => opened.map_err(|error| JournalError::io("open the directory of segments", error))?,
    };
    match handle.try_lock() {
        Ok(false) => Err(JournalError::Locked { path: path.display().to_string() }),
        Ok(true) => Ok(handle),
        Err(error) => {
            // Some file systems cannot lock a directory. Whoever opens the journal has a lock of their own.
            tracing::debug!(%error, "the journal's directory cannot be locked");
            Ok(handle)
        }
    }
}

/// The numbers of the segments in a directory, lowest first.
fn segment_numbers<D: Disk>(disk: &D, path: &Path) -> Result<Vec<u64>, JournalError> {
    let names = disk.list(path).map_err(|error| JournalError::io("list segments", error))?;
    let mut numbers: Vec<u64> = names.iter().filter_map(|name| number_of(name)).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

fn open_segment<D: Disk>(disk: &D, path: &Path, number: u64) -> io::Result<Segment<D::File>> {
    let file = disk.open(&path_of(path, number))?;
    let length = file.length()?;
    Ok(Segment::empty(number, file, length))
}
