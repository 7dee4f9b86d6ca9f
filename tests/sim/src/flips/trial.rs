//! One flip: what an open makes of it, and whether that is allowed.
//!
//! Allowed are: a refusal that leaves every file as it was; damage named by `verify`, with every
//! other entry still right; nothing at all, if the byte was not in use; and the loss of the last
//! batch, if it lies above the watermark, because it cannot be told from a torn tail (J3).

use std::path::Path;

use journal::{EntryLog, SegmentFiles};
use testkit::random::Random;

use super::layout::{Kind, Region};
use super::subject::{JOURNAL_ID, Subject, options, read_all};

/// How many batches count as the end of a journal.
const LAST_BATCHES: usize = 4;

/// What became of a flip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    Refused,
    FoundByVerify,
    Unused(Kind),
    /// The last batch, above the watermark, was taken for a torn tail.
    Tail,
}

/// One byte and what it becomes.
pub(crate) struct Flip<'a> {
    pub(crate) subject: &'a Subject,
    pub(crate) region: &'a Region,
    pub(crate) offset: usize,
    pub(crate) mask: u8,
}

impl<'a> Flip<'a> {
    /// A flip of any byte of a random region of a random kind; a third of them among the last batches,
    /// where rot and a torn tail are hard to tell apart.
    pub(crate) fn draw(subject: &'a Subject, random: &mut Random) -> Self {
        let batch_first = subject.layout.batches.len().saturating_sub(LAST_BATCHES);
        let at_the_end = random.one_in(3);
        let regions: Vec<&Region> = subject
            .layout
            .regions
            .iter()
            .filter(|region| !at_the_end || region.batch.is_some_and(|batch| batch >= batch_first))
            .collect();
        let mut kinds: Vec<Kind> = regions.iter().map(|region| region.kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let kind = *random.choose(&kinds);
        let regions: Vec<&Region> = regions.into_iter().filter(|region| region.kind == kind).collect();
        let region = *random.choose(&regions);
        let offset = region.range.start + random.index(region.range.len());
        // One bit, or several.
        let mask = if random.one_in(2) { 1 << random.below(8) } else { random.bytes(1)[0].max(1) };
        Self { subject, region, offset, mask }
    }

    pub(crate) fn describe(&self) -> String {
        let Region { path, kind, entry, .. } = self.region;
        let entry = entry.map_or(String::new(), |(shard, index)| format!(" of shard {shard} entry {index}"));
        format!("{path} byte {} ({kind:?}{entry}) xor {:#04x}", self.offset, self.mask)
    }

    /// Flips the byte in a copy of the journal and opens it; an error says what is not allowed.
    pub(crate) fn run(&self, directory: &Path) -> Result<Outcome, String> {
        let mut files = self.subject.files.clone();
        files.get_mut(&self.region.path).expect("a file of the journal")[self.offset] ^= self.mask;
        let _ = std::fs::remove_dir_all(directory);
        std::fs::create_dir_all(directory.join("segments")).expect("make a directory");
        for (path, bytes) in &files {
            std::fs::write(directory.join(path), bytes).expect("write a copy");
        }
        match SegmentFiles::open(directory, JOURNAL_ID, &options()) {
            Ok(opened) => self.judge_opened(&opened),
            Err(_) if self.must_open() => Err("refused, although the byte is not needed".to_owned()),
            Err(_) if read_all(directory) != files => Err("refused, but files have changed".to_owned()),
            Err(_) => Ok(Outcome::Refused),
        }
    }

    /// Whether the byte is one of those that the journal can do without.
    fn must_open(&self) -> bool {
        matches!(self.region.kind, Kind::Reserved | Kind::Padding | Kind::WatermarkNewer | Kind::WatermarkOlder)
    }

    fn judge_opened(&self, opened: &SegmentFiles) -> Result<Outcome, String> {
        let damaged = opened.verify().is_err();
        let shortened = self.check_entries(opened, damaged)?;
        match (damaged, shortened) {
            (false, false) => self.check_unused().map(|()| Outcome::Unused(self.region.kind)),
            (true, false) => Ok(Outcome::FoundByVerify),
            (false, true) => Ok(Outcome::Tail),
            (true, true) => Err("entries were dropped, and others are damaged".to_owned()),
        }
    }

    /// Compares every entry that is left, and says whether the last batch is gone.
    fn check_entries(&self, opened: &SegmentFiles, damaged: bool) -> Result<bool, String> {
        let mut gone = Vec::new();
        for (shard, (first_before, last_before)) in &self.subject.spans {
            let last = opened.last_index(*shard).unwrap_or(0);
            let mark = self.subject.layout.marks.get(shard).copied().unwrap_or(0);
            if last < mark {
                return Err(format!("shard {shard} ends at {last}, below the watermark {mark}"));
            }
            gone.extend((last + 1..=*last_before).map(|index| (*shard, index)));
            let first = opened.first_index(*shard).unwrap_or(last + 1);
            if first > *first_before && gone.is_empty() {
                return Err(format!("shard {shard} begins at {first}, not at {first_before}"));
            }
            let mut next = first;
            while next <= last {
                // After damage, one by one: each is right, or is not given at all.
                let bytes_max = if damaged { 0 } else { 1 << 20 };
                match opened.read(*shard, next, bytes_max) {
                    Err(_) if damaged => next += 1,
                    Err(error) => return Err(format!("verified, but not readable: {error}")),
                    Ok(entries) => {
                        for (entry, _) in entries {
                            if self.subject.payloads.get(&(*shard, next)) != Some(&entry.payload) {
                                return Err(format!("shard {shard} entry {next} is a wrong one"));
                            }
                            next += 1;
                        }
                    }
                }
            }
        }
        if !gone.is_empty() {
            self.check_tail(&gone)?;
        }
        Ok(!gone.is_empty())
    }

    /// Checks that exactly the last batch is gone, and that the flip was in it and above the watermark.
    fn check_tail(&self, gone: &[(u64, u64)]) -> Result<(), String> {
        let batches = &self.subject.layout.batches;
        let is_batch = |entries: &[(u64, u64)]| {
            let mut entries = entries.to_vec();
            entries.sort_unstable();
            entries == gone
        };
        match self.region.batch.map(|batch| &batches[batch]) {
            Some(batch) if batch.is_last && is_batch(&batch.entries) => Ok(()),
            _ => Err(format!("entries {gone:?} were dropped, and the flip is not in a last batch of these")),
        }
    }

    /// Checks that no byte of a kept entry, or of what leads to it, went unnoticed.
    fn check_unused(&self) -> Result<(), String> {
        let region = self.region;
        let batch = region.batch.map(|batch| &self.subject.layout.batches[batch]);
        let kept = |id: &(u64, u64)| self.subject.is_kept(*id);
        let in_use = match region.kind {
            Kind::Reserved | Kind::Padding | Kind::WatermarkNewer | Kind::WatermarkOlder => false,
            // The header of a file without a batch is written anew.
            Kind::FileHeader => {
                let same_file = |other: &&Region| other.path == region.path;
                self.subject.layout.regions.iter().filter(same_file).any(|other| other.batch.is_some())
            }
            Kind::EntryHeader | Kind::EntryPayload | Kind::EntryTrailer => region.entry.as_ref().is_some_and(kept),
            Kind::BatchHeader => batch.is_some_and(|batch| batch.entries.iter().any(kept)),
        };
        if in_use { Err("went unnoticed".to_owned()) } else { Ok(()) }
    }
}
