//! Power loss of the whole store: a process is traced while it writes, and from the trace come images of what a disk
//! could hold if power failed at some moment. Each must open with all that was answered by then.
//!
//! `sim power-store --images N [--seed S]` checks N images. A failure is kept, with the traces: `--recording DIRECTORY
//! --image K` checks that image again. `--mode killed` keeps what was not synced, as if only the process had ended, and
//! `--mode lost` drops all of it. `--without SITE` takes one sync for not called.
//!
//! `sim power-syncs [--small]` takes each sync for not called in turn. There must be an image that fails then, or the
//! sync is not needed, or this test is too weak.
//!
//! Needs: `strace`. Never: asks a real disk. What one may do after power loss is written down in `image`.

mod check;
mod facts;
mod image;
mod observer;
mod operation;
mod recording;
mod records;
mod reference;
mod scene;
mod sites;
mod strace;
mod traced_process;
mod workload;

use std::process::ExitCode;
use std::time::Duration;

use testkit::arguments::Arguments;
use testkit::report::Report;

use crate::power_journal;
use image::Mode;
use scene::Scene;
use sites::Site;

/// How many failures are described, and of how many the image is kept.
const DESCRIBED_MAX: usize = 100;
const KEPT_MAX: usize = 5;

/// So many images of the journal alone are tried for each of its syncs; they are quicker to check.
const JOURNAL_IMAGES_MAX: u64 = 20_000;

/// A process or a check that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(100);

/// The syncs that must not be missing: first our own, then those of the layers below that we rely on.
const SITES: &[Site] = &[
    Site::Parent,
    Site::FoundParent,
    Site::Identity,
    Site::IdentityBuckets,
    Site::Begun,
    Site::Filled,
    Site::Finished,
    Site::Opened,
    Site::StoreOpened,
    Site::Table,
    Site::Manifest,
    Site::Tables,
    Site::ManifestDirectory,
    Site::Append,
    Site::Spare,
];

/// The process that is traced.
pub(crate) fn child(arguments: &Arguments) -> ExitCode {
    match workload::run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("power-store-child: {error}");
            ExitCode::FAILURE
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Report {
    let (seed, images) = (arguments.seed(), arguments.number("images", 500));
    println!("power-store: seed {seed}, {images} images");
    let mode = match arguments.text("mode") {
        None | Some("torn") => Mode::Torn,
        Some("killed") => Mode::Killed,
        Some("lost") => Mode::Lost,
        Some(other) => panic!("--mode takes torn, killed or lost, not {other:?}"),
    };
    let without = arguments.text("without").map(|name| {
        *SITES.iter().find(|site| site.name() == name).unwrap_or_else(|| panic!("no sync is called {name:?}"))
    });
    let numbers = match arguments.text("image") {
        None => 0..images,
        Some(_) => arguments.number("image", 0)..arguments.number("image", 0) + 1,
    };
    let checked = numbers.end - numbers.start;
    let goal = format!("{checked} images, 0 lost, all open");
    let mut report = Report::new("cells");
    let mut scene = match Scene::new(arguments, seed, images) {
        Ok(scene) => scene,
        Err(wrong) => {
            println!("power-store: {wrong}");
            report.add("power-store", "not-recorded", &goal, false);
            return report;
        }
    };
    for wrong in &scene.unopened {
        println!("{wrong}\n  kept in {}", scene.scratch.path().display());
        scene.scratch.keep();
    }
    let failures = scene.check(numbers, mode, without, usize::MAX);
    for (count, failure) in failures.iter().take(DESCRIBED_MAX).enumerate() {
        let name = &scene.recordings[failure.drawn.recording].name;
        println!("image {} of {name} at moment {}: {}", failure.number, failure.drawn.moment, failure.what);
        if count < KEPT_MAX {
            scene.scratch.keep();
            scene.keep(failure.number, &failure.drawn, mode, without);
        }
    }
    let lost = failures.len() + scene.unopened.len();
    report.add("power-store", format!("{checked}-images-{lost}-lost"), &goal, lost == 0);
    report
}

pub(crate) fn run_syncs(arguments: &Arguments) -> Report {
    let seed = arguments.seed();
    // It ends with the first image that is damaged.
    let images = arguments.number("images", 10_000);
    // Which kinds of ends a first process comes to does not depend on this, only how many of each.
    let recorded_for = if arguments.flag("small") { 200 } else { 3000 };
    println!("power-syncs: seed {seed}, at most {images} images for each sync");
    let mut report = Report::new("cells");
    let mut add = |site: &str, red: bool| {
        let figure = if red { "red" } else { "green" };
        report.add(&format!("power-syncs.{site}"), figure, "red without this sync", red);
    };
    match Scene::new(arguments, seed, recorded_for).and_then(Scene::all_opened) {
        Ok(scene) => {
            for site in SITES {
                let failures = scene.check(0..images, Mode::Torn, Some(*site), 1);
                if let Some(failure) = failures.first() {
                    println!("without {}: image {}: {}", site.name(), failure.number, failure.what);
                }
                add(site.name(), !failures.is_empty());
            }
        }
        Err(wrong) => {
            println!("power-syncs: {wrong}");
            SITES.iter().for_each(|site| add(site.name(), false));
        }
    }
    for site in power_journal::SITES {
        add(&format!("journal-{site}"), power_journal::run_without(site, JOURNAL_IMAGES_MAX, seed));
    }
    report
}
