//! `sim pressure-rot [--flips N] [--things T] [--seed S]`: one bit of one file of a store is changed, at rest or under load.
//!
//! Each flip is found by a read, a merge or the scrub, or lies in bytes that nothing uses. No answer is ever wrong: a thing
//! has its value or is `Damaged`. Writes of everything else go on. A replay gives the same hash, and a salvaged store has
//! everything that is not damaged, compared by name. `--flip K` repeats flip K alone.
//!
//! Would see broken: a block that is read without being verified, a refusal that a replay does not give, a merge that
//! takes a damaged block along, an export that leaves out a neighbour.

mod scene;
mod trial;

use std::collections::BTreeMap;

use testkit::arguments::Arguments;
use testkit::random::Random;
use testkit::report::Report;

use crate::directories::fast_directory;
use scene::Scene;
pub(super) use scene::{blocks_of, copy};
use trial::Outcome;

/// How many failures are described.
const DESCRIBED_MAX: usize = 5;

pub(crate) fn run(arguments: &Arguments) -> Report {
    let (seed, flips, things) = (arguments.seed(), arguments.number("flips", 40), arguments.number("things", 3_000));
    let only = arguments.text("flip").map(|_| arguments.number("flip", 0));
    println!("pressure-rot: seed {seed}, {flips} flips in a store of {things} things");
    let folder = fast_directory().expect("a folder");
    let scene = Scene::make(&folder.path().join("scene"), seed, things);
    println!("  {} tables, {} places to flip", scene.tables(), scene.places());
    let mut outcomes = BTreeMap::<(&str, Outcome), u64>::new();
    let (mut wrong, mut things_lost) = (0, 0);
    for number in only.map_or(0..flips, |only| only..only + 1) {
        let mut random = Random::new(Random::new(seed).next() ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let flip = scene.draw(&mut random);
        let place = folder.path().join("trial");
        match trial::run(&scene, &flip, &place, &mut random) {
            Ok((outcome, lost)) => {
                *outcomes.entry((flip.part, outcome)).or_default() += 1;
                things_lost += lost;
            }
            Err(what) => {
                wrong += 1;
                if wrong <= DESCRIBED_MAX {
                    println!("flip {number}: {flip:?}: {what}");
                    let command = format!("pressure-rot --flips 1 --things {things} --seed {seed} --flip {number}");
                    println!("  replay: cargo run --profile stress -p sim -- {command}");
                }
            }
        }
        std::fs::remove_dir_all(&place).expect("removed");
    }
    for ((part, outcome), count) in &outcomes {
        println!("{count:6} flips of {part}: {outcome:?}");
    }
    println!("  {things_lost} things were damaged, all of them named");
    let mut report = Report::new("pressure");
    let goal =
        format!("{flips} flips: each found or unused, no wrong answer, the rest kept, the same hash in a replay");
    report.add("rot", format!("{flips}-flips-{wrong}-wrong"), &goal, wrong == 0);
    report
}
