//! Creating and opening a journal: walks the batches, tells a torn tail from rot, compares everything with the
//! watermark, and makes what it found durable.
//!
//! Keeps: J3. A refused open has changed nothing, and an open needs no space. Never: trusts a batch before it is
//! durable, or a directory before its entries are.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::batch::{BATCH_HEADER_BYTES, BatchHeader, SEGMENT_HEADER_BYTES, segment_header};
use crate::disk::{Disk, DiskDirectory, DiskFile};
use crate::error::JournalError;
use crate::frame::ShardId;
use crate::segment::{Segment, Window, cannot_read, number_of, path_of};
use crate::shard_index::{BatchPlace, ShardIndex};
use crate::tail_scan::{evidence_in, holds_entries};
use crate::watermark::{Known, Watermark};

use super::sizes::PublishedSizes;
use super::spares::SPARES_MAX;
use super::{SegmentFiles, SegmentOptions, State};

/// A batch, and where it is.
#[derive(Clone, Copy)]
struct FoundBatch {
    /// The position of its segment among those that were found.
    segment: usize,
    offset: u64,
    header: BatchHeader,
}

/// What walking all segments has found.
#[derive(Default)]
struct Walked {
    shards: BTreeMap<ShardId, ShardIndex>,
    /// The last batch of each shard.
    last_batches: BTreeMap<ShardId, FoundBatch>,
    /// The last batch of all.
    last: Option<FoundBatch>,
    /// A torn batch behind it.
    torn: Option<FoundBatch>,
}

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
        let used = walked.last.map_or(0, |last| last.segment) + 1;
        let last_number = kept[used - 1];
        state.sequence = match (walked.torn, walked.last) {
            (Some(torn), _) => torn.header.sequence,
            (None, last) => last.map_or(1, |last| last.header.sequence + 1),
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

    /// Follows the batches from segment to segment; each must be the one after the one before.
    fn walk(&self, segments: &mut [Segment<D::File>], known: &Known) -> Result<Walked, JournalError> {
        let mut walked = Walked::default();
        for (position, segment) in segments.iter_mut().enumerate() {
            let follows = segment.number == known.first_segment + position as u64;
            let mut window = Window::default();
            let header = window.get(segment, 0, SEGMENT_HEADER_BYTES).map_err(cannot_read)?;
            if header != segment_header(self.id, segment.number) {
                // Never used, or damaged: then the batches in it are evidence.
                continue;
            }
            loop {
                let offset = segment.end;
                let header = segment.header_at(&mut window, offset, self.id).map_err(cannot_read)?;
                let Some(header) = header else { break };
                let before = walked.last.map(|last| last.header.sequence);
                let is_next = before.is_none_or(|before| before + 1 == header.sequence);
                // A segment is begun when the one before it is full.
                let is_beside = position == walked.last.map_or(0, |last| last.segment + 1) || !segment.is_empty();
                if !is_next || !is_beside || !follows {
                    let what = match follows {
                        true => format!("batches are missing before batch {}", header.sequence),
                        false => "a file is missing before this one".to_owned(),
                    };
                    return Err(JournalError::damaged(self.path_at(segment, offset), what));
                }
                self.add(segment, FoundBatch { segment: position, offset, header }, &mut walked)?;
                segment.end += header.bytes();
            }
        }
        Ok(walked)
    }

    fn add(&self, segment: &Segment<D::File>, found: FoundBatch, walked: &mut Walked) -> Result<(), JournalError> {
        // The last batch may be torn, so it is looked at when the next one is found.
        if let Some(before) = walked.last.replace(found) {
            let number = segment.number - (found.segment - before.segment) as u64;
            self.index(number, before, walked)?;
        }
        Ok(())
    }

    fn index(&self, segment: u64, found: FoundBatch, walked: &mut Walked) -> Result<(), JournalError> {
        let FoundBatch { offset, header, .. } = found;
        let shard = walked.shards.entry(header.shard).or_default();
        if !shard.follows(header.first_index, header.entries) {
            let place = format!("{} at byte {offset}", path_of(&self.path, segment).display());
            let (first, last) = (header.first_index, shard.last_index);
            let what = format!("entry {first} of shard {} follows entry {last}", header.shard);
            return Err(JournalError::damaged(place, what));
        }
        shard.add(BatchPlace { segment, offset, first_index: header.first_index }, header.last_index());
        walked.last_batches.insert(header.shard, found);
        Ok(())
    }

    /// Only the last batch can be torn. If it is, it does not count.
    fn find_torn_batch(&self, segments: &mut [Segment<D::File>], walked: &mut Walked) -> Result<(), JournalError> {
        let Some(last) = walked.last else { return Ok(()) };
        let segment = &segments[last.segment];
        let mut body = Vec::new();
        segment.read_body(last.offset, &last.header, &mut body).map_err(cannot_read)?;
        if last.header.frames(&body, segment.place(self.id, last.offset)).is_ok() {
            return self.index(segment.number, last, walked);
        }
        segments[last.segment].end = last.offset;
        walked.torn = Some(last);
        walked.last = self.batch_before(segments, last)?;
        Ok(())
    }

    /// Walks once more to the batch before this one.
    fn batch_before(
        &self,
        segments: &[Segment<D::File>],
        last: FoundBatch,
    ) -> Result<Option<FoundBatch>, JournalError> {
        let first = SEGMENT_HEADER_BYTES as u64;
        let (position, end) = match last.offset > first {
            true => (last.segment, last.offset),
            false if last.segment == 0 => return Ok(None),
            false => (last.segment - 1, segments[last.segment - 1].end),
        };
        let mut window = Window::default();
        let (mut offset, mut before) = (first, None);
        while offset < end {
            let header = segments[position].header_at(&mut window, offset, self.id).map_err(cannot_read)?;
            let Some(header) = header else { break };
            before = Some(FoundBatch { segment: position, offset, header });
            offset += header.bytes();
        }
        Ok(before)
    }

    /// Refuses if something behind the end was written after the end was durable.
    fn refuse_evidence(&self, segments: &[Segment<D::File>], walked: &Walked) -> Result<(), JournalError> {
        let last_kept = |shard: ShardId| walked.shards.get(&shard).map_or(0, |index| index.last_index);
        let (end_segment, end) = match (walked.torn, walked.last) {
            // Its own header proves nothing.
            (Some(torn), _) => (torn.segment, torn.offset + BATCH_HEADER_BYTES as u64),
            (None, Some(last)) => (last.segment, last.offset + last.header.bytes()),
            (None, None) => (0, 0),
        };
        let mut buffer = Vec::new();
        for (position, segment) in segments.iter().enumerate().skip(end_segment) {
            let from = if position == end_segment { end } else { 0 };
            let evidence = evidence_in(segment, from, self.id, last_kept, &mut buffer).map_err(cannot_read)?;
            if let Some(evidence) = evidence {
                let damage = self.path_at(&segments[end_segment], walked.torn.map_or(end, |torn| torn.offset));
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

    /// The next entry of each shard refers to the last one.
    fn read_last_entries(&self, segments: &[Segment<D::File>], walked: &mut Walked) -> Result<(), JournalError> {
        let mut body = Vec::new();
        for (shard, found) in &walked.last_batches {
            let segment = &segments[found.segment];
            segment.read_body(found.offset, &found.header, &mut body).map_err(cannot_read)?;
            let frames = found.header.frames(&body, segment.place(self.id, found.offset)).map_err(|what| {
                let index = found.header.last_index();
                JournalError::damaged(self.place_in(segment, found.offset, *shard, index), what)
            })?;
            if let (Some(index), Some(frame)) = (walked.shards.get_mut(shard), frames.last()) {
                (index.last_hash, index.history) = (frame.hash, Some(frame.place.history));
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
        if let Some(torn) = walked.torn {
            settle(&segments[torn.segment], &[0; BATCH_HEADER_BYTES], torn.offset)?;
        }
        if let Some(last) = walked.last {
            let segment = &segments[last.segment];
            // The segment's header is settled with the first batch, as it was written.
            let is_first = last.offset == SEGMENT_HEADER_BYTES as u64;
            let mut batch = Vec::new();
            if is_first {
                batch.extend_from_slice(&segment_header(self.id, segment.number));
            }
            batch.extend_from_slice(&last.header.encode(segment.place(self.id, last.offset)));
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
