//! Checkpoints with a damaged object: each is refused by name, and the partition stays as it is.
//!
//! `sim keyed-checkpoint-damage --times N [--seed S]`. A full checkpoint and two incremental ones; one that was compacted; and one
//! that two partitions have taken together. One of the objects that the last checkpoint needs is cut, flipped, lengthened,
//! replaced by another or removed, and restored, again and again: by somebody else, which must not cost the owner the partition,
//! and by the owner, who meets the damage in the middle. Either way the partition must be as it was, and its owner able to commit.
//! At the end each checkpoint restores, undamaged, what the partition was when it was taken.

mod series;
mod state;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use statehouse::Statehouse;
use statehouse::keyed::{CheckpointError, Merge, OwnedPartition};
use statehouse::records::ClaimOptions;
use testkit::arguments::Arguments;
use testkit::random::Random;
use testkit::report::Report;

use crate::directories::fast_directory;
use series::{Kind, Series};
use state::State;

/// With fewer trials, no owner may meet damage in the middle.
const ALL_HAPPEN_IN: u64 = 50;

/// Longer than all trials: a lease that ends would look like a restore that has replaced the owner.
const LEASE: Duration = Duration::from_secs(60 * 60);

/// How far the trials came.
#[derive(Debug, Default)]
struct Trials {
    refused: u64,
    /// Those of others, before they took the partition over.
    of_others: u64,
    /// Those of the owner, after its restore had begun.
    in_middle: u64,
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
    let Trials { refused, of_others, in_middle, restored } = trials;
    let verdict = if outcome.is_ok() { "" } else { "-failed" };
    let figure = format!(
        "{refused}-of-{times}-refused-{of_others}-of-others-{in_middle}-in-the-middle-{restored}-restored{verdict}"
    );
    let all_happened = (of_others > 0 && in_middle > 0) || times < ALL_HAPPEN_IN;
    let ok = outcome.is_ok() && refused == times && restored == Kind::ALL.len() as u64 && all_happened;
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
        let mut has_begun = false;
        let is_owner = random.one_in(2);
        match self.restore(is_owner, || has_begun = true) {
            Ok(()) => return Err(format!("{what}, was restored")),
            Err(error) if error.code() != Some("SH-8015") => return Err(format!("{what}, was refused with {error}")),
            Err(_) => trials.refused += 1,
        }
        trials.of_others += u64::from(!is_owner);
        trials.in_middle += u64::from(has_begun);
        if State::of(&self.partition)? != before {
            return Err(format!("{what}, has changed the partition"));
        }
        fs::write(&file, whole).map_err(text)?;
        let committed = self.owned.commit().merge(b"live", Merge::Add, 1).run();
        committed.map_err(|error| format!("{what}: the owner cannot commit after that: {error}"))?;
        Ok(())
    }

    /// Restores what was damaged; as another, all is read and checked before the partition is taken over.
    fn restore(&mut self, is_owner: bool, begun: impl FnOnce()) -> Result<(), CheckpointError> {
        if !is_owner {
            return self.partition.restore(&self.checkpoints, &self.choice, &ClaimOptions::worker("w")).map(drop);
        }
        let found = self.partition.find_checkpoint(&self.checkpoints, &self.choice)?;
        self.owned.restore_telling(found, begun)
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
