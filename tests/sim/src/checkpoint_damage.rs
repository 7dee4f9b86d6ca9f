//! Checkpoints with a damaged part: each is refused by name, and the partition stays as it is.
//!
//! `sim keyed-checkpoint-damage --times N [--seed S]`. A checkpoint of everything and two of changes; then one of the objects that
//! the last one needs is cut, flipped, lengthened, replaced by another or removed, and restored, again and again.

use std::fs;
use std::path::{Path, PathBuf};

use statehouse::Statehouse;
use statehouse::keyed::{
    CheckpointChoice, CheckpointOptions, Checkpoints, KeysRange, Merge, OwnedPartition, Partition,
};
use statehouse::records::ClaimOptions;
use testkit::arguments::Arguments;
use testkit::random::Random;
use testkit::report::Report;

use crate::directories::fast_directory;

/// Keys in the partition.
const KEYS: u64 = 20_000;

/// Those that change between two checkpoints.
const CHANGED: u64 = 200;

pub(crate) fn run(arguments: &Arguments) -> Report {
    let (seed, times) = (arguments.seed(), arguments.number("times", 50));
    println!("keyed-checkpoint-damage: seed {seed}, {times} times");
    let outcome = damage(seed, times);
    if let Err(what) = &outcome {
        println!("keyed-checkpoint-damage: FAILED: {what}");
        println!("replay: cargo run --profile stress -p sim -- keyed-checkpoint-damage --seed {seed} --times {times}");
    }
    let mut report = Report::new("keyed");
    let refused = outcome.as_ref().map_or(0, |refused| *refused);
    let ok = outcome.is_ok() && refused == times;
    let goal = "500 torn or flipped ones, all refused by name, the partition as it was";
    report.add("checkpoint-damage", format!("{refused}-of-{times}-refused"), goal, ok);
    report
}

fn damage(seed: u64, times: u64) -> Result<u64, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let directory = fast_directory().map_err(|error| text(&error))?;
    let house = Statehouse::open(directory.path().join("house")).map_err(|error| text(&error))?;
    let folder = directory.path().join("checkpoints");
    let checkpoints = Checkpoints::open(folder.to_str().expect("text")).map_err(|error| text(&error))?;
    let (partition, options) = (house.keyed("damaged").partition(0), CheckpointOptions::default());
    let worker = ClaimOptions::worker("w");
    let mut owned = partition.acquire(&worker).map_err(|error| text(&error))?;
    for part in 0..KEYS / 5_000 {
        fill(&mut owned, part * 5_000..(part + 1) * 5_000)?;
    }
    for round in 0..3 {
        let taken = owned.checkpoint(&checkpoints, &options).map_err(|error| text(&error))?;
        if u64::from(taken.depth) != round {
            return Err(format!("checkpoint {} needs {} others", taken.number, taken.depth));
        }
        fill(&mut owned, KEYS + round * CHANGED..KEYS + (round + 1) * CHANGED)?;
    }
    let before = digest(&partition)?;
    let files = objects(&folder)?;
    let (mut random, mut refused) = (Random::new(seed), 0);
    for time in 0..times {
        let file = random.choose(&files).clone();
        let whole = fs::read(&file).map_err(|error| text(&error))?;
        // Without its marker the last one would not be there, and the one before would be restored.
        let (how, bytes) = match !file.ends_with("marker") && random.one_in(7) {
            true => ("removed", None),
            false => damaged(&mut random, &whole, &files)?,
        };
        match bytes {
            Some(bytes) => fs::write(&file, bytes),
            None => fs::remove_file(&file),
        }
        .map_err(|error| text(&error))?;
        let what = || format!("{} of {} bytes, {how} (time {time})", file.display(), whole.len());
        match partition.restore(&checkpoints, &CheckpointChoice::latest(), &worker) {
            Ok(_) => return Err(format!("{} was restored", what())),
            Err(error) if error.code() != Some("SH-8015") => {
                return Err(format!("{} was refused with {error}", what()));
            }
            Err(_) => refused += 1,
        }
        if digest(&partition)? != before {
            return Err(format!("{} has changed the partition", what()));
        }
        fs::write(&file, whole).map_err(|error| text(&error))?;
    }
    partition.restore(&checkpoints, &CheckpointChoice::latest(), &worker).map_err(|error| text(&error))?;
    Ok(refused)
}

/// Merges into these keys.
fn fill(owned: &mut OwnedPartition, keys: std::ops::Range<u64>) -> Result<(), String> {
    let mut commit = owned.commit().advance("in", keys.end);
    for key in keys {
        commit = commit.merge(format!("{key:06}").as_bytes(), Merge::Add, 1);
    }
    commit.run().map(drop).map_err(|error| error.to_string())
}

/// Another content for an object.
fn damaged(random: &mut Random, whole: &[u8], files: &[PathBuf]) -> Result<(&'static str, Option<Vec<u8>>), String> {
    let mut bytes = whole.to_vec();
    let at = usize::try_from(random.below(whole.len() as u64)).expect("files are small");
    Ok(match random.below(7) {
        0..=2 => {
            bytes[at] ^= 1 << random.below(8);
            ("a bit flipped", Some(bytes))
        }
        3 => {
            bytes.truncate(at);
            ("cut", Some(bytes))
        }
        4 => {
            let end = bytes.len().min(at + 4_096);
            // What a torn write leaves.
            let changes = bytes[at..end].iter().any(|byte| *byte != 0);
            bytes[at..end].fill(0);
            if !changes {
                bytes.push(0);
            }
            ("overwritten with zeros", Some(bytes))
        }
        5 => {
            let other = fs::read(random.choose(files)).map_err(|error| error.to_string())?;
            match other == whole {
                true => ("emptied", Some(Vec::new())),
                false => ("replaced by another", Some(other)),
            }
        }
        _ => {
            bytes.push(7);
            ("a byte longer", Some(bytes))
        }
    })
}

/// The objects that the last checkpoint needs.
fn objects(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let (mut folders, mut found) = (vec![folder.to_owned()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).map_err(|error| error.to_string())? {
            let path = entry.map_err(|error| error.to_string())?.path();
            match path.is_dir() {
                true => folders.push(path),
                false => found.push(path),
            }
        }
    }
    found.retain(|path| !path.ends_with("begun") && !path.ends_with("probe"));
    found.sort();
    Ok(found)
}

/// Everything that the partition holds, in short.
fn digest(partition: &Partition) -> Result<u64, String> {
    let (mut digest, mut range) = (0_u64, KeysRange::default().limit(1_000));
    loop {
        let page = partition.scan(&range).map_err(|error| error.to_string())?;
        for (key, found) in &page.keys {
            let text = format!("{digest} {key:?} {:?}", found.value);
            digest = text
                .bytes()
                .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        }
        match page.next_after {
            Some(after) => range = range.after(&after),
            None => return Ok(digest),
        }
    }
}
