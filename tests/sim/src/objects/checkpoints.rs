//! Checkpoints of a partition in the target: one of everything, one of what has changed, and each of them restored in another house.

use std::fmt::Display;

use statehouse::keyed::{CheckpointChoice, CheckpointOptions, Checkpoints, KeysRange, OwnedPartition, Partition};
use statehouse::records::ClaimOptions;
use statehouse::{Statehouse, Value};

use crate::directories::fast_directory;

/// Keys in the partition: more than a part of an upload.
const KEYS: u64 = 100_000;

/// Keys in a commit.
const COMMITTED: u64 = 5_000;

const VALUE_BYTES: usize = 200;

/// All that a partition holds: keys with values and versions, and positions.
type Held = (Vec<(Vec<u8>, Value, Option<u64>)>, Vec<(String, u64)>);

/// Takes both, restores both, and returns their bytes.
pub(super) fn taken_and_restored(target: &str) -> Result<String, String> {
    let directory = fast_directory().map_err(text)?;
    let target = format!("{target}/checkpoints");
    let checkpoints = Checkpoints::open(&target).map_err(text)?;
    let [here, there] = ["here", "there"].map(|name| Statehouse::open(directory.path().join(name)).map_err(text));
    let (here, there) = (here?, there?);
    let (worker, options) = (ClaimOptions::worker("w"), CheckpointOptions::default());
    let partition = here.keyed("orders").partition(7);
    let mut owned = partition.acquire(&worker).map_err(text)?;
    for number in 0..KEYS / COMMITTED {
        commit(&mut owned, 0, number * COMMITTED..(number + 1) * COMMITTED)?;
    }
    let full = owned.checkpoint(&checkpoints, &options).map_err(text)?;
    let held_then = held(&partition)?;
    commit(&mut owned, 1, 10..20)?;
    commit(&mut owned, 2, KEYS..KEYS + 10)?;
    let changes = owned.checkpoint(&checkpoints, &options).map_err(text)?;
    if changes.base != Some(full.number) {
        return Err(format!("the second is based on {:?}, not on {}", changes.base, full.number));
    }
    for (choice, expected) in
        [(CheckpointChoice::number(full.number), held_then), (CheckpointChoice::latest(), held(&partition)?)]
    {
        let restored = there.keyed("orders").partition(7);
        restored.restore(&checkpoints, &choice, &worker).map_err(text)?.release().map_err(text)?;
        if held(&restored)? != expected {
            return Err(format!("{choice:?} was restored as something else"));
        }
    }
    Ok(format!("{} {}", full.bytes, changes.bytes))
}

fn commit(owned: &mut OwnedPartition, round: u64, keys: std::ops::Range<u64>) -> Result<(), String> {
    let mut commit = owned.commit().advance("topic", round * KEYS + keys.end);
    for number in keys {
        let mut value = vec![7; VALUE_BYTES];
        value[..8].copy_from_slice(&(number + round).to_le_bytes());
        commit = commit.put(format!("key-{number:09}").as_bytes(), value, round + 1);
    }
    commit.run().map(drop).map_err(text)
}

fn held(partition: &Partition) -> Result<Held, String> {
    let positions = partition.input_positions(None, 1_000).map_err(text)?;
    let positions = positions.into_iter().map(|(input, at)| (input, at.position)).collect();
    let (mut keys, mut range) = (Vec::new(), KeysRange::default().limit(1_000));
    loop {
        let page = partition.scan(&range).map_err(text)?;
        let of_page = page.keys.into_iter();
        keys.extend(of_page.map(|(key, found)| (key, found.value, found.version.map(|version| version.round))));
        match page.next_after {
            Some(after) => range = range.after(&after),
            None => return Ok((keys, positions)),
        }
    }
}

fn text(error: impl Display) -> String {
    error.to_string()
}
