//! Power loss of the journal: every write, sync, create and delete is recorded, and from the recording
//! come images of what a disk could hold after power loss at some moment. Each must open with all
//! that was acknowledged.
//!
//! `sim power-journal --images N [--seed S]` checks N images. `--image K` checks image K alone, as
//! the line that a failure prints says. `--without SITE` takes one sync for not called; then there
//! must be a failure, or the sync is not needed, or this test is too weak.

mod moments;
mod operation;
mod promises;
mod recorder;
mod scene;
mod simulated_disk;
mod workload;

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use testkit::random::Random;

use operation::Site;
use scene::Scene;
use testkit::arguments::Arguments;
use testkit::report::Report;

/// How many failures are described.
const DESCRIBED_MAX: usize = 5;

/// Every sync of the journal; each can be switched off.
pub(crate) const SITES: &[&str] = &[
    "watermark-write",
    "watermark-reopen",
    "recovered-entries",
    "segments-directory",
    "journal-directory",
    "append",
    "spare-directory",
];

pub(crate) fn run(arguments: &Arguments) -> Report {
    let seed = arguments.seed();
    let images = arguments.number("images", 1000);
    let only = arguments.text("image").map(|_| arguments.number("image", 0));
    let without = arguments
        .text("without")
        .map(|name| Site::named(name).unwrap_or_else(|| panic!("--without takes one of {}", SITES.join(", "))));
    println!("power-journal: seed {seed}, {images} images");
    let found = check(&Check { seed, images, only, without, stop_at_first: false });
    for (image, what) in found.broken.iter().take(DESCRIBED_MAX) {
        let command = format!("power-journal --images 1 --seed {seed} --image {image}");
        println!("image {image}: {what}\n  replay: cargo run --profile stress -p sim -- {command}");
    }
    let lost = found.broken.len();
    let ok = lost == 0 && found.checked >= images;
    let mut report = Report::new("cells");
    let goal = format!("{images} images, 0 lost, all open");
    report.add("power-journal", format!("{}-images-{lost}-lost", found.checked), &goal, ok);
    report
}

/// Whether the loss of one site's syncs is seen within so many images.
pub(crate) fn run_without(site: &str, images: u64, seed: u64) -> bool {
    let without = Some(Site::named(site).unwrap_or_else(|| panic!("no sync is called {site:?}")));
    !check(&Check { seed, images, only: None, without, stop_at_first: true }).broken.is_empty()
}

struct Check {
    seed: u64,
    images: u64,
    only: Option<u64>,
    without: Option<Site>,
    stop_at_first: bool,
}

fn check(check: &Check) -> scene::Found {
    let scenes = match check.only {
        Some(image) => image / scene::IMAGES..image / scene::IMAGES + 1,
        None => 0..check.images.div_ceil(scene::IMAGES),
    };
    let next = AtomicU64::new(scenes.start);
    let stopped = AtomicBool::new(false);
    let found = Mutex::new(scene::Found::default());
    let directory = images_directory();
    let worker = |number: usize| {
        let directory = directory.path().join(number.to_string());
        while !stopped.load(Ordering::Relaxed) {
            let scene = next.fetch_add(1, Ordering::Relaxed);
            if scene >= scenes.end {
                break;
            }
            let scene_found = check.scene(scene, &directory);
            let mut found = found.lock().expect("no worker panics while it holds this");
            found.checked += scene_found.checked;
            found.broken.extend(scene_found.broken);
            if check.stop_at_first && !found.broken.is_empty() {
                stopped.store(true, Ordering::Relaxed);
            }
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for number in 0..workers {
            let worker = &worker;
            scope.spawn(move || worker(number));
        }
    });
    let mut found = found.into_inner().expect("no worker panics while it holds this");
    found.broken.sort();
    found
}

impl Check {
    fn scene(&self, number: u64, directory: &Path) -> scene::Found {
        let image_first = number * scene::IMAGES;
        let wanted = |image: u64| match self.only {
            Some(only) => image_first + image == only,
            None => image_first + image < self.images,
        };
        let scene = Scene {
            // Drawn twice, or neighbouring seeds would share most of their scenes.
            seed: Random::new(Random::new(self.seed).next().wrapping_add(number)).next(),
            without: self.without,
            wanted: &wanted,
            directory,
        };
        let mut found = scene.run();
        for (image, _) in &mut found.broken {
            *image += image_first;
        }
        found
    }
}

/// In memory where there is such a place: an image is durable enough if it outlives its check.
pub(crate) fn images_directory() -> tempfile::TempDir {
    let mut builder = tempfile::Builder::new();
    let made = builder.prefix("sim-").tempdir_in("/dev/shm").or_else(|_| builder.tempdir());
    made.expect("make a directory for images")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_site_has_a_name() {
        let named: Vec<&str> = Site::NAMED.iter().map(|(name, _)| *name).collect();
        assert_eq!(named, SITES);
    }
}
