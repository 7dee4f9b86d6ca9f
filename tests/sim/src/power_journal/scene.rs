//! One scene: a journal that lives through several crashes, and images of the moments between.
//!
//! Each generation is recorded from an open to a kill. Images of it are what power loss at some
//! moment could leave behind; each is opened and checked. The next generation goes on from a kill
//! (all that was written is still seen, and still not durable) or from power loss (an image of its
//! own), so that images of images come about.

use std::path::{Path, PathBuf};

use journal::{EntryLog, Position, SegmentFiles, SegmentOptions, ShardId};
use testkit::random::Random;

use super::moments::Moments;
use super::operation::{Note, Operation, Site};
use super::promises::Promises;
use super::recorder::RecordingDisk;
use super::simulated_disk::{Mercy, SimulatedDisk};
use super::workload::{JOURNAL_ID, Workload, options, shards};

const GENERATIONS: u64 = 5;
const IMAGES_PER_GENERATION: u64 = 8;

/// How many images one scene gives.
pub(crate) const IMAGES: u64 = GENERATIONS * IMAGES_PER_GENERATION;

/// What one scene is asked.
pub(crate) struct Scene<'a> {
    pub(crate) seed: u64,
    pub(crate) without: Option<Site>,
    /// Which of the images, from 0, are to be checked.
    pub(crate) wanted: &'a dyn Fn(u64) -> bool,
    /// An empty directory of its own.
    pub(crate) directory: &'a Path,
}

/// What a scene found: for each broken image its number and what is wrong.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) checked: u64,
    pub(crate) broken: Vec<(u64, String)>,
}

impl Scene<'_> {
    pub(crate) fn run(&self) -> Found {
        let mut random = Random::new(self.seed);
        let mut found = Found::default();
        let mut disk = SimulatedDisk::default();
        let mut promises = Promises::new(&shards(&mut random));
        for generation in 0..GENERATIONS {
            let image_first = generation * IMAGES_PER_GENERATION;
            let options = options(&mut random);
            let operations = match self.record(&disk, &promises, &options, &mut random) {
                Ok(operations) => operations,
                Err(what) => {
                    // It was an image of an image, and the rest of the scene is built on it.
                    found.broken.push((image_first, format!("recorded generation {generation}: {what}")));
                    return found;
                }
            };
            let moments = Moments::of(&operations);
            let mut points: Vec<usize> = (0..IMAGES_PER_GENERATION).map(|_| moments.draw(&mut random)).collect();
            points.sort_unstable();
            let next_is_kill = random.below(3) > 0;
            let next_point = if next_is_kill { moments.draw_kill(&mut random) } else { moments.draw(&mut random) };
            let mut next = None;
            let mut images = (image_first..).zip(points).peekable();
            for (position, operation) in operations.iter().enumerate() {
                if position == next_point {
                    next = Some((disk.clone(), promises.clone()));
                }
                while let Some((image, _)) = images.next_if(|(_, point)| *point == position) {
                    if (self.wanted)(image) {
                        found.checked += 1;
                        let mut random = Random::new(self.seed ^ (image + 1).wrapping_mul(0x9e37_79b9));
                        if let Err(what) = self.check_image(&disk, &promises, &options, &mut random) {
                            let moment = format!("before operation {position} of {}", operations.len());
                            found.broken.push((image, format!("{what}; power was lost {moment}")));
                        }
                    }
                }
                disk.apply(operation, self.without);
                if let Operation::Note(note) = operation {
                    promises.note(note);
                }
            }
            (disk, promises) = next.expect("a point in the recording");
            if !next_is_kill {
                let mercy = Mercy::draw(&mut random);
                disk = disk.after_power_loss(&mut random, mercy);
            }
        }
        found
    }

    /// Runs a workload on what `disk` holds.
    fn record(
        &self,
        disk: &SimulatedDisk,
        promises: &Promises,
        options: &SegmentOptions,
        random: &mut Random,
    ) -> Result<Vec<Operation>, String> {
        let directory = self.fresh_directory("recorded");
        disk.write_to(&directory);
        let recording = RecordingDisk::new(&directory, disk.names(), disk.file_next());
        let steps = 1 + random.below(25);
        let mut workload = Workload {
            directory: &directory,
            disk: &recording,
            promises: promises.clone(),
            options: options.clone(),
            random: Random::new(random.next()),
        };
        workload.run(steps)
    }

    /// Makes an image of what power loss leaves of `disk`, opens it, and works on it.
    fn check_image(
        &self,
        disk: &SimulatedDisk,
        promises: &Promises,
        options: &SegmentOptions,
        random: &mut Random,
    ) -> Result<(), String> {
        let directory = self.fresh_directory("image");
        let mercy = Mercy::draw(random);
        disk.after_power_loss(random, mercy).write_to(&directory);
        let opened = SegmentFiles::open(&directory, JOURNAL_ID, options);
        let files = match opened {
            Err(_) if !promises.created => SegmentFiles::create(&directory, JOURNAL_ID, options)
                .map_err(|error| format!("can neither be opened nor created: {error}"))?,
            opened => opened.map_err(|error| format!("does not open: {error}"))?,
        };
        promises.check(&files)?;

        let mut promises = promises.clone();
        promises.note(&Note::Opened { shards: promises.seen(&files) });
        for _ in 0..2 {
            append(&files, &mut promises, random)?;
        }
        drop(files);
        let files = SegmentFiles::open(&directory, JOURNAL_ID, options)
            .map_err(|error| format!("does not open a second time: {error}"))?;
        promises.check(&files)
    }

    fn fresh_directory(&self, name: &str) -> PathBuf {
        let directory = self.directory.join(name);
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(&directory).expect("make a directory");
        directory
    }
}

fn append(files: &SegmentFiles, promises: &mut Promises, random: &mut Random) -> Result<(), String> {
    let shards: Vec<ShardId> = promises.shards.keys().copied().collect();
    let shard = *random.choose(&shards);
    let started_after = promises.shards[&shard].started_after;
    let failed = |error| format!("an image that opens takes no entry: {error}");
    if files.last_index(shard).is_none() {
        files.start_after(shard, Position::without_hash(started_after), JOURNAL_ID).map_err(failed)?;
    }
    let length = random.index(3000);
    let payloads = vec![random.bytes(length)];
    let first_index = promises.shards[&shard].acknowledged + 1;
    let appended = files.append(shard, 1, &[&payloads[0]]).map_err(failed)?;
    if appended != first_index {
        return Err(format!("shard {shard}: appended at {appended} instead of {first_index}"));
    }
    let payloads = std::sync::Arc::new(payloads);
    promises.note(&Note::Appending { shard, first_index, payloads });
    promises.note(&Note::Appended { shard, last_index: first_index });
    Ok(())
}
