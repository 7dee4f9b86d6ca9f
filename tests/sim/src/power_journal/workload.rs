//! What is done to the journal while it is recorded: appends of every size, cuts, rolls, watermarks,
//! closing and reopening.

use std::path::Path;
use std::sync::Arc;

use journal::{Append, EntryKind, EntryLog, JournalError, Position, SegmentFiles, SegmentOptions, ShardId};
use testkit::random::Random;

use super::operation::{Note, Operation};
use super::promises::Promises;
use super::recorder::RecordingDisk;

/// The journal's id in every image.
pub(crate) const JOURNAL_ID: u64 = 0x5354_4154_4548_4f55;

/// What an entry takes in a batch beside its payload, at most.
const ENTRY_BYTES_MAX: usize = 128;

const SHARDS_FEW: [(ShardId, u64); 4] = [(1, 0), (2, 0), (7, 1000), (300, 0)];

/// The shards of a scene, and behind which entry each begins: few, or so many that a watermark takes
/// more than one sector.
pub(crate) fn shards(random: &mut Random) -> Vec<(ShardId, u64)> {
    let mut shards = SHARDS_FEW.to_vec();
    if random.one_in(2) {
        shards.extend((1000..1060).map(|shard| (shard, shard % 3)));
    }
    shards
}

/// Small enough for a roll every few appends.
pub(crate) fn options(random: &mut Random) -> SegmentOptions {
    SegmentOptions::default().file_bytes_target(*random.choose(&[2 << 10, 8 << 10, 64 << 10]))
}

type Recorded = SegmentFiles<RecordingDisk>;

/// The recorded journal at work.
pub(crate) struct Workload<'a> {
    pub(crate) directory: &'a Path,
    pub(crate) disk: &'a Arc<RecordingDisk>,
    pub(crate) promises: Promises,
    pub(crate) options: SegmentOptions,
    pub(crate) random: Random,
}

impl Workload<'_> {
    /// Opens the journal, works on it, and leaves it as a killed process would.
    pub(crate) fn run(&mut self, steps: u64) -> Result<Vec<Operation>, String> {
        let is_new = !self.promises.created;
        let mut files = self.open()?;
        if is_new && self.promises.shards.len() > SHARDS_FEW.len() {
            for shard in self.promises.shards.clone().into_keys() {
                self.append_to(&files, shard, 1, 100)?;
            }
        }
        for _ in 0..steps {
            match self.random.below(20) {
                0 => {
                    self.note(Note::Closing);
                    drop(files);
                    files = self.open()?;
                }
                1 => files.settle().map_err(describe)?,
                2 => self.cut(&files)?,
                3 => self.cut_all(&files)?,
                4 => {
                    for _ in 0..self.random.below(60) {
                        self.append(&files, 1, 40)?;
                    }
                }
                5 => self.append(&files, 1, 64 << 10)?,
                6 | 7 => self.append(&files, 4, 9000)?,
                8..11 => self.append_together(&files, 5, 200)?,
                // As many shards as there are: several batches where segments are small.
                11 => self.append_together(&files, usize::MAX, 300)?,
                _ => self.append(&files, 3, 700)?,
            }
        }
        if self.random.one_in(4) {
            self.note(Note::Closing);
            drop(files);
            return Ok(self.disk.finish());
        }
        // A killed process does not close its files; what dropping does here is not recorded.
        let recorded = self.disk.finish();
        drop(files);
        Ok(recorded)
    }

    fn note(&mut self, note: Note) {
        self.promises.note(&note);
        self.disk.note(note);
    }

    fn open(&mut self) -> Result<Recorded, String> {
        self.note(Note::Opening);
        let opened = self.try_open();
        let files = opened.map_err(|error| format!("does not open: {error}"))?;
        self.promises.check(&files)?;
        let shards = self.promises.seen(&files);
        self.note(Note::Opened { shards });
        for (shard, promised) in &self.promises.shards {
            if files.last_index(*shard).is_none() {
                files
                    .start_after(*shard, Position::without_hash(promised.started_after), JOURNAL_ID)
                    .map_err(describe)?;
            }
        }
        Ok(files)
    }

    fn shard(&mut self) -> ShardId {
        let shards: Vec<ShardId> = self.promises.shards.keys().copied().collect();
        *self.random.choose(&shards)
    }

    fn try_open(&self) -> Result<Recorded, JournalError> {
        let open = || SegmentFiles::open_on(self.disk.clone(), self.directory, JOURNAL_ID, &self.options);
        let create = || SegmentFiles::create_on(self.disk.clone(), self.directory, JOURNAL_ID, &self.options);
        if self.promises.created { open() } else { open().or_else(|_| create()) }
    }

    /// Appends up to `count_max` payloads of up to `bytes_max` bytes to some shard.
    fn append(&mut self, files: &Recorded, count_max: u64, bytes_max: usize) -> Result<(), String> {
        let shard = self.shard();
        self.append_to(files, shard, count_max, bytes_max)
    }

    fn append_to(&mut self, files: &Recorded, shard: ShardId, count_max: u64, bytes_max: usize) -> Result<(), String> {
        let count = 1 + self.random.below(count_max);
        let mut payload = || {
            let length = 1 + self.random.index(bytes_max);
            self.random.bytes(length)
        };
        let payloads: Arc<Vec<Vec<u8>>> = Arc::new((0..count).map(|_| payload()).collect());
        let first_index = self.promises.shards[&shard].acknowledged + 1;
        let last_index = self.promises.shards[&shard].acknowledged + count;
        self.note(Note::Appending { shard, first_index, payloads: payloads.clone() });
        let borrowed: Vec<&[u8]> = payloads.iter().map(Vec::as_slice).collect();
        let appended = files.append(shard, 1, &borrowed).map_err(describe)?;
        if appended != first_index {
            return Err(format!("shard {shard}: appended at {appended} instead of {first_index}"));
        }
        self.note(Note::Appended { shard, last_index });
        Ok(())
    }

    /// Appends an entry of up to `bytes_max` bytes to each of up to `count_max` shards, in one call.
    fn append_together(&mut self, files: &Recorded, count_max: usize, bytes_max: usize) -> Result<(), String> {
        let mut shards: Vec<ShardId> = self.promises.shards.keys().copied().collect();
        let count = 2 + self.random.index(count_max.min(shards.len()) - 1);
        while shards.len() > count {
            shards.remove(self.random.index(shards.len()));
        }
        let mut bytes = 0;
        let mut entries = Vec::with_capacity(count);
        for shard in shards {
            let length = 1 + self.random.index(bytes_max);
            bytes += length + ENTRY_BYTES_MAX;
            let index = self.promises.shards[&shard].acknowledged + 1;
            entries.push((shard, index, Arc::new(self.random.bytes(length))));
        }
        let is_one_batch = bytes + ENTRY_BYTES_MAX < usize::try_from(self.options.file_bytes_target).expect("small");
        self.note(Note::AppendingTogether { entries: entries.clone(), is_one_batch });
        let appends = entries.iter().map(|(shard, index, payload)| {
            let after = files.ends(*shard).map_err(describe)?.last;
            if after.index + 1 != *index {
                return Err(format!("shard {shard}: it ends at {after}, before {index}"));
            }
            let (kind, history) = (EntryKind::COMMANDS, JOURNAL_ID);
            Ok(Append { shard: *shard, after, kind, term: 1, node: 0, history, payload })
        });
        let appends: Vec<Append<'_>> = appends.collect::<Result<_, String>>()?;
        for answer in files.append_behind(&appends) {
            answer.map_err(describe)?;
        }
        let entries = entries.iter().map(|(shard, index, _)| (*shard, *index)).collect();
        self.note(Note::AppendedTogether { entries });
        Ok(())
    }

    /// Gives up so much that files are deleted.
    fn cut_all(&mut self, files: &Recorded) -> Result<(), String> {
        for shard in self.promises.shards.clone().into_keys() {
            if let Some(last) = files.last_index(shard) {
                let first_kept = last.saturating_sub(self.random.below(3));
                self.note(Note::Cutting { shard, first_kept });
                files.cut(shard, first_kept).map_err(describe)?;
            }
        }
        Ok(())
    }

    fn cut(&mut self, files: &Recorded) -> Result<(), String> {
        let shard = self.shard();
        let (Some(first), Some(last)) = (files.first_index(shard), files.last_index(shard)) else {
            return Ok(());
        };
        let first_kept = first + self.random.below(last + 3 - first);
        self.note(Note::Cutting { shard, first_kept });
        files.cut(shard, first_kept).map_err(describe)
    }
}

fn describe(error: JournalError) -> String {
    format!("the recorded journal failed: {error}")
}
