//! The journal whose bytes are flipped: several files and shards, some entries given up, some above
//! the watermark.

use std::collections::BTreeMap;
use std::path::Path;

use journal::{Append, EntryKind, EntryLog, SegmentFiles, SegmentOptions, ShardId};
use testkit::random::Random;

use super::layout::{Files, Layout};

pub(crate) const JOURNAL_ID: u64 = 0x464c_4950;
const SHARDS: [ShardId; 3] = [1, 2, 300];

pub(crate) fn options() -> SegmentOptions {
    SegmentOptions::default().file_bytes_target(16 << 10)
}

/// A journal at rest, and what it holds.
pub(crate) struct Subject {
    pub(crate) files: Files,
    pub(crate) layout: Layout,
    /// Everything that was ever appended.
    pub(crate) payloads: BTreeMap<(ShardId, u64), Vec<u8>>,
    /// The first and last entry of each shard.
    pub(crate) spans: BTreeMap<ShardId, (u64, u64)>,
}

impl Subject {
    /// Makes a journal in `directory`.
    pub(crate) fn make(directory: &Path, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut payloads = BTreeMap::new();
        let files = SegmentFiles::create(directory, JOURNAL_ID, &options()).expect("a journal");
        for _ in 0..50 {
            append(&files, &mut payloads, &mut random, 3, 1500);
        }
        for shard in SHARDS {
            let last = files.last_index(shard).unwrap_or(1);
            files.cut(shard, last * 2 / 3).expect("a cut");
        }
        for _ in 0..20 {
            append(&files, &mut payloads, &mut random, 3, 1500);
        }
        // A roll writes the watermark, so this goes on until there was none since.
        loop {
            files.settle().expect("a watermark");
            let rolled = file_count(directory);
            for _ in 0..1 + random.below(6) {
                append(&files, &mut payloads, &mut random, 2, 200);
            }
            if file_count(directory) == rolled {
                break;
            }
        }
        // The last thing that was written: entries above the watermark, the watermark, or a cut.
        match random.below(5) {
            0 => files.cut(1, files.last_index(1).unwrap_or(1)).expect("a cut"),
            1 => files.settle().expect("a watermark"),
            _ => {}
        }
        let span = |shard| Some((shard, (files.first_index(shard)?, files.last_index(shard)?)));
        let spans = SHARDS.into_iter().filter_map(span).collect();
        // Most are left as a killed process leaves them, with zeros behind the last batch.
        let killed = read_all(directory);
        drop(files);
        let files = if random.one_in(4) { read_all(directory) } else { killed };
        let layout = Layout::of(&files);
        Self { files, layout, payloads, spans }
    }

    /// Whether the journal still keeps an entry.
    pub(crate) fn is_kept(&self, (shard, index): (ShardId, u64)) -> bool {
        self.spans[&shard].0 <= index
    }
}

fn append(
    files: &SegmentFiles,
    payloads: &mut BTreeMap<(ShardId, u64), Vec<u8>>,
    random: &mut Random,
    count_max: u64,
    bytes_max: usize,
) {
    if random.one_in(3) {
        return append_to_all(files, payloads, random, bytes_max);
    }
    let shard = *random.choose(&SHARDS);
    let mut payload = || {
        let length = random.index(bytes_max);
        random.bytes(length)
    };
    let mut batch = vec![payload()];
    batch.extend((1..count_max).map(|_| payload()));
    batch.truncate(1 + random.index(batch.len()));
    let borrowed: Vec<&[u8]> = batch.iter().map(Vec::as_slice).collect();
    let first = files.append(shard, 1, &borrowed).expect("an append");
    payloads.extend((first..).map(|index| (shard, index)).zip(batch));
}

/// One batch with an entry of each shard.
fn append_to_all(
    files: &SegmentFiles,
    payloads: &mut BTreeMap<(ShardId, u64), Vec<u8>>,
    random: &mut Random,
    bytes_max: usize,
) {
    let batch = SHARDS.map(|_| {
        let length = random.index(bytes_max);
        random.bytes(length)
    });
    let entry = |(shard, payload): (ShardId, _)| {
        let after = files.ends(shard).expect("its ends").last;
        Append { shard, after, kind: EntryKind::COMMANDS, term: 1, node: 0, history: JOURNAL_ID, payload }
    };
    let entries: Vec<Append<'_>> = SHARDS.into_iter().zip(batch.iter().map(Vec::as_slice)).map(entry).collect();
    let appended: Vec<u64> =
        files.append_behind(&entries).into_iter().map(|answer| answer.expect("an append").index).collect();
    payloads.extend(SHARDS.into_iter().zip(appended).zip(batch));
}

fn file_count(directory: &Path) -> usize {
    read_all(directory).keys().filter(|path| path.starts_with("segments/")).count()
}

/// Every file below `directory`.
pub(crate) fn read_all(directory: &Path) -> Files {
    let mut found = Files::new();
    for (prefix, place) in [("", directory.to_owned()), ("segments/", directory.join("segments"))] {
        for file in std::fs::read_dir(place).expect("a directory") {
            let path = file.expect("a file").path();
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            if path.is_file() {
                found.insert(format!("{prefix}{name}"), std::fs::read(&path).expect("a file's bytes"));
            }
        }
    }
    found
}
