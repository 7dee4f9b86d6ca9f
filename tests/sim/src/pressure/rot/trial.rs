//! One flip: the store goes on, the flip is found, a replay agrees, and everything else can be salvaged.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use kernel::Buckets;
use statehouse::records::{ClaimOptions, Put};
use statehouse::runs::NewEvent;
use statehouse::{DEFAULT_SPACE, DamageEffect, Error, Json, Rejection, Statehouse, Value, export, import};
use testkit::random::Random;

use super::scene::{BUCKETS, Flip, Scene, cell, copy, hash, options, value};

/// What became of a flip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Outcome {
    /// A range is set apart.
    Lost,
    /// The bytes were made again from others.
    Healed,
    /// Nothing uses the bytes.
    Unused,
    /// The file was replaced by a merge or a flush that did not need the bytes.
    Replaced,
    /// What everything needs is damaged: the store says so and does not open.
    Refused,
}

/// Commands of the load.
const COMMANDS: u64 = 250;

/// Every so often, what was exported becomes a store again.
const BUILT_ONE_IN: u64 = 8;

pub(super) fn run(scene: &Scene, flip: &Flip, place: &Path, random: &mut Random) -> Result<(Outcome, u64), String> {
    let path = place.join("house");
    scene.copy_for(flip, &path);
    if !flip.under_load {
        flip.apply(&path).map_err(|error| error.to_string())?;
    }
    let house = match options().open(&path) {
        Ok(house) => house,
        Err(error @ Error::Rejected(Rejection::Damaged { .. })) if error.to_string().contains("the catalogue") => {
            return Ok((Outcome::Refused, 0));
        }
        Err(error) => return Err(format!("it does not open: {error}")),
    };
    let mut load = Load { house: &house, written: BTreeMap::new(), touched: BTreeSet::new(), cells: scene.cells };
    load.run(random, COMMANDS / 2)?;
    if flip.under_load {
        match flip.apply(&path) {
            Ok(()) => {}
            // It was replaced before the flip.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok((Outcome::Replaced, 0)),
            Err(error) => return Err(error.to_string()),
        }
    }
    house.scrub_now().map_err(|error| format!("the scrub fails: {error}"))?;
    let outcome = found(&house, &path, flip)?;
    load.run(random, COMMANDS / 2)?;
    let lost = load.check()?;

    // As if it was killed now.
    let replayed = place.join("replayed");
    copy_of_one_moment(&path, &replayed)?;
    let (hash, before) = (effects_hash(&house)?, load.answers());
    let again = options().open(&replayed).map_err(|error| format!("the replay: {error}"))?;
    if effects_hash(&again)? != hash {
        return Err("the replay has another hash".into());
    }
    let load = Load { house: &again, ..load };
    if load.answers() != before {
        return Err("the replay gives other answers".into());
    }
    salvage(scene, &load, outcome, place, random)?;
    Ok((outcome, lost))
}

/// Copies the directory of an open store. If it was flushed or merged meanwhile, the copy is made again.
pub(super) fn copy_of_one_moment(from: &Path, to: &Path) -> Result<(), String> {
    let manifest = || std::fs::read(from.join("store/manifest")).map_err(|error| error.to_string());
    loop {
        let before = manifest()?;
        copy(from, to, &|_| false);
        if manifest()? == before {
            return Ok(());
        }
        std::fs::remove_dir_all(to).map_err(|error| error.to_string())?;
    }
}

fn effects_hash(house: &Statehouse) -> Result<u64, String> {
    Ok(house.status().map_err(|error| error.to_string())?.effects_hash)
}

/// What the store says about the flip.
fn found(house: &Statehouse, path: &Path, flip: &Flip) -> Result<Outcome, String> {
    let damage = house.damage().map_err(|error| error.to_string())?;
    let name = flip.file.file_name().expect("a name").to_string_lossy().into_owned();
    let of_file: Vec<_> = damage.iter().filter(|damage| damage.file == name).collect();
    if let Some(other) = damage.iter().find(|damage| damage.file != name) {
        return Err(format!("damage where nothing was flipped: {other:?}"));
    }
    let effect = |effect| of_file.iter().any(|damage| damage.effect == effect);
    Ok(match () {
        () if effect(DamageEffect::Lost) => Outcome::Lost,
        () if effect(DamageEffect::Unused) => Outcome::Unused,
        () if effect(DamageEffect::Healed) => Outcome::Healed,
        () if name == "manifest" || !path.join(&flip.file).exists() => Outcome::Replaced,
        () => return Err(format!("nothing has found it; known is {damage:?}")),
    })
}

fn is_damaged<T>(result: &Result<T, Error>) -> bool {
    matches!(result, Err(Error::Rejected(Rejection::Damaged { .. })))
}

/// Commands, and what they have changed.
struct Load<'house> {
    house: &'house Statehouse,
    /// Cells that were written, with their values.
    written: BTreeMap<String, String>,
    /// Everything that was written or may have been.
    touched: BTreeSet<String>,
    cells: u64,
}

/// The bucket of a thing that is named in a rejection.
fn bucket(thing: &str) -> Option<u16> {
    let name = thing.split('"').nth(1)?;
    Some(Buckets::new(BUCKETS)?.of_group(DEFAULT_SPACE.as_bytes(), name.as_bytes()))
}

impl Load<'_> {
    fn run(&mut self, random: &mut Random, commands: u64) -> Result<(), String> {
        for _ in 0..commands {
            let number = random.below(self.cells);
            let done = match random.below(10) {
                0..=3 => self.set(&cell(number), format!("new {}", random.next())),
                4 => self.set(&format!("fresh/{}", random.below(1_000)), "fresh".into()),
                5..=7 => self.get(number),
                8 => self.claim(number),
                _ => self.append(number),
            };
            done.map_err(|error| format!("a command fails: {error}"))?;
        }
        Ok(())
    }

    /// The answer, or none if something that it needs is damaged. Damage of nothing but things of another `kind` is no
    /// reason to refuse. An error that is no answer about damage ends the trial.
    fn allow<T>(kind: &str, result: Result<T, Error>) -> Result<Option<T>, Error> {
        match result {
            Err(Error::Rejected(Rejection::Damaged { from, to })) => {
                let others = ["cell ", "record ", "run "].into_iter().filter(|other| *other != kind);
                for other in others {
                    // Between the things of two buckets lie all other kinds.
                    let foreign = from.starts_with(other) && to.starts_with(other) && bucket(&from) == bucket(&to);
                    assert!(!foreign, "a {kind}is refused because of {from} to {to}");
                }
                Ok(None)
            }
            other => other.map(Some),
        }
    }

    fn set(&mut self, name: &str, text: String) -> Result<(), Error> {
        self.touched.insert(name.to_owned());
        match Self::allow("cell ", self.house.cells().set(name, text.as_str()))? {
            Some(_) => drop(self.written.insert(name.to_owned(), text)),
            // Only what cannot be read cannot be written.
            None => assert!(is_damaged(&self.house.cells().get(name)), "{name} is refused, and can be read"),
        }
        Ok(())
    }

    fn get(&mut self, number: u64) -> Result<(), Error> {
        let name = cell(number);
        if let Some(found) = Self::allow("cell ", self.house.cells().get(&name))? {
            let expected = self.written.get(&name).cloned().unwrap_or_else(|| value(number));
            assert_eq!(found, Some(Value::from(expected)), "a wrong answer about {name}");
        }
        Ok(())
    }

    fn claim(&mut self, number: u64) -> Result<(), Error> {
        let records = self.house.records();
        let name = format!("load.{number}.{}", self.touched.len());
        self.touched.insert(name.clone());
        Self::allow("record ", records.put(&name, [("n", 1)], Put::typed("task")))?;
        let claimed = Self::allow("record ", records.claim_next("load.", 1, &ClaimOptions::worker("w")))?;
        for claimed in claimed.into_iter().flatten() {
            Self::allow("record ", records.complete(&claimed, [("done", true)]))?;
        }
        Ok(())
    }

    fn append(&mut self, number: u64) -> Result<(), Error> {
        let run = format!("run/{:06}", number % (self.cells / 6).max(1));
        self.touched.insert(run.clone());
        let event = NewEvent::new("B", format!("load{number}"), "2026-02-11T10:00:00Z", Json::new("1").expect("JSON"));
        Self::allow("run ", self.house.runs().append(&run, &event)).map(drop)
    }

    /// Every cell has its value or is damaged. Returns how many are.
    fn check(&self) -> Result<u64, String> {
        let mut lost = 0;
        for number in 0..self.cells {
            let name = cell(number);
            match self.house.cells().get(&name) {
                Ok(found) => {
                    let expected = self.written.get(&name).cloned().unwrap_or_else(|| value(number));
                    if found != Some(Value::from(expected.as_str())) {
                        return Err(format!("a wrong answer about {name}: {found:?}, not {expected:?}"));
                    }
                }
                Err(Error::Rejected(Rejection::Damaged { .. })) => lost += 1,
                Err(error) => return Err(format!("{name}: {error}")),
            }
        }
        Ok(lost)
    }

    fn answers(&self) -> Vec<String> {
        let names = self.touched.iter().cloned().chain((0..self.cells).step_by(17).map(cell));
        let words = |result: Result<Option<Value>, Error>| match result {
            Ok(found) => format!("{found:?}"),
            // A read by another process may name the range by the number of its space.
            Err(error) => error.code().to_owned(),
        };
        names.map(|name| words(self.house.cells().get(&name))).collect()
    }
}

/// Exports everything that can be read, and compares it with the whole store, line by line and by name.
fn salvage(scene: &Scene, load: &Load<'_>, outcome: Outcome, place: &Path, random: &mut Random) -> Result<(), String> {
    let mut lines = Vec::new();
    let exported =
        export::write(load.house, None, &mut lines, &mut |_| {}).map_err(|error| format!("the export: {error}"))?;
    if outcome != Outcome::Lost && !exported.missing.is_empty() {
        return Err(format!("the export misses {:?}, and nothing is lost", exported.missing));
    }
    let text = std::str::from_utf8(&lines).map_err(|error| error.to_string())?;
    let found: BTreeSet<u64> = text.lines().map(hash).collect();
    for (_, line) in scene.lines.iter().filter(|(hash, _)| !found.contains(hash)) {
        let line: serde_json::Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let kind = line["kind"].as_str().unwrap_or_default();
        let name =
            ["name", "cell", "record", "run"].iter().find_map(|member| line[*member].as_str()).unwrap_or_default();
        let is_gone = match kind {
            "header" | "footer" => true,
            _ if load.touched.contains(name) => true,
            _ if exported.missing.is_empty() => false,
            "cell" => is_damaged(&load.house.cells().get(name)),
            "record" => is_damaged(&load.house.records().get(name)),
            "run" | "event" | "step" => {
                is_damaged(&load.house.runs().fetch(name, 0, 100)) || is_damaged(&load.house.runs().snapshot(name))
            }
            // Older versions, and the counters of a bucket: they are in the range that the export names.
            _ => true,
        };
        if !is_gone {
            return Err(format!("the export misses {kind} {name:?}, which is not damaged: {line}"));
        }
    }
    if random.one_in(BUILT_ONE_IN) {
        let built = place.join("salvaged");
        import::read(&built, &mut text.as_bytes(), &mut |_| {}).map_err(|error| format!("the import: {error}"))?;
        let house = options().open(&built).map_err(|error| format!("the salvaged store: {error}"))?;
        for number in (0..scene.cells).step_by(5) {
            let before = load.house.cells().get(&cell(number));
            let after = house.cells().get(&cell(number)).map_err(|error| error.to_string())?;
            if after != before.unwrap_or(None) {
                return Err(format!("{} is {after:?} in the salvaged store", cell(number)));
            }
        }
    }
    Ok(())
}
