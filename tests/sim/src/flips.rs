//! Byte flips in the journal: one byte of one file is changed, and the journal must find it, or not
//! need it.
//!
//! `sim flips --flips N [--seed S]`. Flips are spread evenly over the kinds of bytes, from file headers
//! to payloads, watermarks and the zeros behind the last batch. `--flip K` repeats flip K alone.

mod layout;
mod subject;
mod trial;

use std::collections::BTreeMap;

use testkit::random::Random;

use crate::power_journal::images_directory;
use subject::Subject;
use testkit::arguments::Arguments;
use testkit::report::Report;
use trial::{Flip, Outcome};

/// How many flips one journal is used for.
const FLIPS_PER_SUBJECT: u64 = 250;

/// How many misses are described.
const DESCRIBED_MAX: u64 = 5;

pub(crate) fn run(arguments: &Arguments) -> Report {
    let seed = arguments.seed();
    let flips = arguments.number("flips", 500);
    let only = arguments.text("flip").map(|_| arguments.number("flip", 0));
    println!("flips: seed {seed}, {flips} flips");
    let directory = images_directory();
    let mut outcomes = BTreeMap::<Outcome, u64>::new();
    let mut missed = 0;
    let mut done = 0;
    let numbers = only.map_or(0..flips, |only| only..only + 1);
    let mut subject: Option<(u64, Subject)> = None;
    for number in numbers {
        let subject_number = number / FLIPS_PER_SUBJECT;
        if subject.as_ref().is_none_or(|(made, _)| *made != subject_number) {
            let place = directory.path().join(format!("subject-{subject_number}"));
            std::fs::create_dir(&place).expect("make a directory");
            let seed = Random::new(seed).next().wrapping_add(subject_number);
            subject = Some((subject_number, Subject::make(&place, seed)));
        }
        let (_, subject) = subject.as_ref().expect("made above");
        let mut random = Random::new(Random::new(seed).next() ^ number.wrapping_mul(0x9e37_79b9));
        let flip = Flip::draw(subject, &mut random);
        done += 1;
        match flip.run(&directory.path().join("trial")) {
            Ok(outcome) => *outcomes.entry(outcome).or_default() += 1,
            Err(what) => {
                missed += 1;
                if missed <= DESCRIBED_MAX {
                    let command = format!("flips --flips 1 --seed {seed} --flip {number}");
                    println!("flip {number}: {}: {what}", flip.describe());
                    println!("  replay: cargo run --profile stress -p sim -- {command}");
                }
            }
        }
    }
    for (outcome, count) in &outcomes {
        println!("{count:6} {outcome:?}");
    }
    let mut report = Report::new("cells");
    let goal = format!("{flips} flips, each found or unused");
    let ok = missed == 0 && done >= flips;
    report.add("power-flips", format!("{done}-flips-{missed}-missed"), &goal, ok);
    report
}
