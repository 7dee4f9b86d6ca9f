//! Checkpoints with a damaged object: each is refused by name, and the partition stays as it is.
//!
//! `sim keyed-checkpoint-damage --times N [--seed S]`. A full checkpoint and two incremental ones; one that was compacted; and one
//! that two partitions have taken together. One of the objects that the last checkpoint needs is cut, flipped, lengthened,
//! replaced by another or removed, and restored, again and again. Where the restore is refused before it takes the partition
//! over, its owner must be able to commit; otherwise the owner must be refused as one that was replaced. At the end each
//! checkpoint restores, undamaged, what the partition was when it was taken.

mod series;
mod state;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use statehouse::Statehouse;
use statehouse::keyed::{Merge, OwnedPartition};
use statehouse::records::ClaimOptions;
use testkit::arguments::Arguments;
use testkit::random::Random;
use testkit::report::Report;

use crate::directories::fast_directory;
use series::{Kind, Series};
use state::State;

/// With fewer trials, chance may spare what is read before the partition is taken over, or after.
const BOTH_HAPPEN_IN: u64 = 50;

/// Longer than all trials: an owner is replaced by a restore, or not at all.
const LEASE: Duration = Duration::from_secs(60 * 60);

/// How far the trials came.
#[derive(Debug, Default)]
struct Trials {
    refused: u64,
    /// Those before the partition was taken over, and after.
    owner_went_on: u64,
    owner_was_fenced: u64,
    restored: u64,
}

pub(crate) fn run(arguments: &Arguments) -> Report {
    let (seed, times) = (arguments.seed(), arguments.number("times", 50));
    println!("keyed-checkpoint-damage: seed {seed}, {times} times");
    let mut trials = Trials::default();
    let outcome = damage(seed, times, &mut trials);
    if let Err(what) = &outcome {
        println!("keyed-checkpoint-damage: FAILED after {} refused: {what}", trials.refused);
        println!("replay: cargo run --profile stress -p sim -- keyed-checkpoint-damage --seed {seed} --times {times}");
    }
    let Trials { refused, owner_went_on, owner_was_fenced, restored } = trials;
    let verdict = if outcome.is_ok() { "" } else { "-failed" };
    let figure = format!(
        "{refused}-of-{times}-refused-{owner_went_on}-before-take-over-{owner_was_fenced}-after-{restored}-restored{verdict}"
    );
    let both = (owner_went_on > 0 && owner_was_fenced > 0) || times < BOTH_HAPPEN_IN;
    let ok = outcome.is_ok() && refused == times && restored == Kind::ALL.len() as u64 && both;
    let goal =
        format!("{times} torn or flipped ones, all refused by name, the partition as it was; undamaged, each restores");
    let mut report = Report::new("keyed");
    report.add("checkpoint-damage", figure, &goal, ok);
    report
}

fn damage(seed: u64, times: u64, trials: &mut Trials) -> Result<(), String> {
    let directory = fast_directory().map_err(text)?;
    let house = Statehouse::open(directory.path().join("house")).map_err(text)?;
    let mut random = Random::new(seed);
    for (kind, done) in Kind::ALL.into_iter().zip(1..) {
        let mut series = Series::take(&house, directory.path(), kind).map_err(|what| format!("{kind:?}: {what}"))?;
        let upto = times * done / Kind::ALL.len() as u64;
        while trials.refused < upto {
            let refused = trials.refused;
            series.try_once(&mut random, trials).map_err(|what| format!("{kind:?}, trial {refused}: {what}"))?;
        }
        series.restore_undamaged().map_err(|what| format!("{kind:?}, undamaged: {what}"))?;
        trials.restored += 1;
    }
    Ok(())
}

impl Series {
    /// Damages an object, restores, and puts it back.
    fn try_once(&mut self, random: &mut Random, trials: &mut Trials) -> Result<(), String> {
        let before = State::of(&self.partition)?;
        let file = random.choose(&self.objects).clone();
        let whole = fs::read(&file).map_err(text)?;
        // Without its marker the last one would not be there, and the one before would be restored.
        let (how, bytes) = match !file.ends_with("marker") && random.one_in(7) {
            true => ("removed", None),
            false => damaged(random, &whole, &self.objects)?,
        };
        match bytes {
            Some(bytes) => fs::write(&file, bytes),
            None => fs::remove_file(&file),
        }
        .map_err(text)?;
        let what = format!("{} of {} bytes, {how}", file.display(), whole.len());
        match self.partition.restore(&self.checkpoints, &self.choice, &ClaimOptions::worker("w")) {
            Ok(_) => return Err(format!("{what}, was restored")),
            Err(error) if error.code() != Some("SH-8015") => return Err(format!("{what}, was refused with {error}")),
            Err(_) => trials.refused += 1,
        }
        if State::of(&self.partition)? != before {
            return Err(format!("{what}, has changed the partition"));
        }
        fs::write(&file, whole).map_err(text)?;
        // A restore that reads on needs the partition, so it takes it over before it meets the damage.
        let is_lost = self.owned.owned_group().is_lost().map_err(text)?;
        match self.commit_once() {
            Ok(()) if !is_lost => trials.owner_went_on += 1,
            Err(error) if is_lost && error.code() == "SH-4002" => {
                trials.owner_was_fenced += 1;
                self.owned = own(&self.partition)?;
                self.commit_once().map_err(text)?;
            }
            committed => return Err(format!("{what}: its owner (lost: {is_lost}) commits: {committed:?}")),
        }
        Ok(())
    }

    /// Commits as the owner that it has.
    fn commit_once(&mut self) -> Result<(), statehouse::Error> {
        self.owned.commit().merge(b"live", Merge::Add, 1).run().map(drop)
    }

    /// What the last checkpoint has comes back.
    fn restore_undamaged(&self) -> Result<(), String> {
        self.partition.restore(&self.checkpoints, &self.choice, &ClaimOptions::worker("w")).map_err(text)?;
        match State::of(&self.partition)?.content() == self.taken.content() {
            true => Ok(()),
            false => Err("it is not what the partition was when it was taken".to_owned()),
        }
    }
}

fn own(partition: &statehouse::keyed::Partition) -> Result<OwnedPartition, String> {
    partition.acquire_by_force(&ClaimOptions::worker("w").lease(LEASE)).map_err(text)
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

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
