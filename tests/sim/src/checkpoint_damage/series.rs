//! A partition with checkpoints of a kind, and the objects that the last one needs.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use statehouse::Statehouse;
use statehouse::keyed::{CheckpointChoice, CheckpointOptions, Checkpoints, Merge, OwnedPartition, Partition};

use super::state::State;
use super::{own, text};

/// Keys in a partition.
const KEYS: u64 = 20_000;
/// Those that change between two checkpoints.
const CHANGED: u64 = 200;
/// Updates in a commit.
const PER_COMMIT: u64 = 5_000;

/// The versions of what changes between checkpoints.
const CHANGES_FROM: u64 = 100;

/// How checkpoints were taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Of everything, and twice of what has changed.
    OfChanges,
    /// The same, compacted.
    Compacted,
    /// By two partitions together, the second time of what has changed.
    Together,
}

impl Kind {
    pub(super) const ALL: [Kind; 3] = [Kind::OfChanges, Kind::Compacted, Kind::Together];
}

/// Checkpoints of a partition.
pub(super) struct Series {
    pub(super) partition: Partition,
    pub(super) owned: OwnedPartition,
    pub(super) checkpoints: Checkpoints,
    pub(super) choice: CheckpointChoice,
    /// The objects that the last checkpoint needs.
    pub(super) objects: Vec<PathBuf>,
    /// What the partition was when the last one was taken.
    pub(super) taken: State,
}

impl Series {
    pub(super) fn take(house: &Statehouse, directory: &Path, kind: Kind) -> Result<Self, String> {
        let folder = directory.join(format!("{kind:?}"));
        let checkpoints = Checkpoints::open(folder.to_str().expect("text")).map_err(text)?;
        let operator = house.keyed(format!("damaged-{kind:?}"));
        let partition = operator.partition(0);
        let (mut owned, mut other) = (own(&partition)?, own(&operator.partition(1))?);
        for (part, version) in (0..KEYS / PER_COMMIT).zip(1..) {
            fill(&mut owned, part * PER_COMMIT..(part + 1) * PER_COMMIT, version)?;
        }
        fill(&mut other, 0..CHANGED, 1)?;
        let options = CheckpointOptions::default();
        let (rounds, choice) = match kind {
            Kind::OfChanges | Kind::Compacted => (3, CheckpointChoice::latest()),
            Kind::Together => (2, CheckpointChoice::latest().together()),
        };
        for round in 0..rounds {
            fill(&mut owned, round * CHANGED..(round + 1) * CHANGED, CHANGES_FROM + round)?;
            let taken = if kind == Kind::Together {
                let joint = operator.begin_checkpoint(&checkpoints, &[0, 1]).map_err(text)?;
                for owner in [&owned, &other] {
                    owner.join_checkpoint(&checkpoints, joint.number(), &options).map_err(text)?;
                }
                joint.commit(Duration::from_secs(60), &options)
            } else {
                owned.checkpoint(&checkpoints, &options)
            }
            .map_err(text)?;
            if u64::from(taken.depth) != round {
                return Err(format!("checkpoint {} needs {} others", taken.number, taken.depth));
            }
        }
        if kind == Kind::Compacted {
            let compacted = partition.compact_checkpoints(&checkpoints, &choice, &options.keep(1)).map_err(text)?;
            if compacted.depth != 0 {
                return Err(format!("compacted checkpoint {} needs {} others", compacted.number, compacted.depth));
            }
        }
        let taken = State::of(&partition)?;
        // It is not what is restored.
        fill(&mut owned, 0..CHANGED, CHANGES_FROM + rounds)?;
        Ok(Self { partition, owned, checkpoints, choice, objects: objects(&folder)?, taken })
    }
}

/// Merges into even keys, puts odd ones, and lets some go.
fn fill(owned: &mut OwnedPartition, keys: Range<u64>, version: u64) -> Result<(), String> {
    let mut commit = owned.commit().advance("in", version).advance("other", 2 * version);
    if version < CHANGES_FROM {
        // Never behind a deletion, so that deleted keys stay: a sweep would change what is compared.
        commit = commit.seal(version - 1);
    }
    for number in keys {
        let key = format!("{number:06}");
        commit = match number % 50 {
            10 if version >= CHANGES_FROM => commit.remove(key.as_bytes()),
            11 if version >= CHANGES_FROM => commit.delete(key.as_bytes(), version),
            place if place % 2 == 0 => commit.merge(key.as_bytes(), Merge::Add, 1),
            _ => commit.put(key.as_bytes(), i64::try_from(number).expect("it is small"), version),
        };
    }
    commit.run().map(drop).map_err(text)
}

/// The objects that the last checkpoint needs to be restored into partition 0.
fn objects(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let (mut folders, mut found) = (vec![folder.to_owned()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).map_err(text)? {
            let path = entry.map_err(text)?.path();
            match path.is_dir() {
                true => folders.push(path),
                false => found.push(path),
            }
        }
    }
    let of_other = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("part-1"));
    found.retain(|path| !path.ends_with("begun") && !path.ends_with("probe") && !of_other(path));
    found.sort();
    Ok(found)
}
