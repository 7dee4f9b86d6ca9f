//! An owner that is killed again and again, and a follower that takes over: `sim take-overs [--kills N] [--seed S]`.
//!
//! Two nodes over one log in one process. One owns the shard and eight workers write to it; the other follows, and compares
//! itself with every image that the owner writes. Then the owner's line to the log is cut, the follower takes over, and the
//! node that was killed comes back as a follower, with what is on its disk. Every third time the line is not cut: the owner
//! learns from the log that it was deposed.

mod line;
mod workers;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use journal::memory::{MemoryHabits, MemoryLog};
use node::follower::Follower;
use node::image;
use node::images::{FolderImages, ImageRef, ImageStore};
use node::parts::Parts;
use node::place::ShardPlace;
use node::shard::Shard;
use node::tenure::Tenure;
use statehouse::{Error, Failure, FailureKind, Options, Statehouse};
use testkit::arguments::Arguments;
use testkit::random::Random;
use testkit::report::Report;

use line::Line;
use workers::{Owner, Workers, owner};

const WORKERS: u64 = 8;
/// How long an owner lives, at most.
const LIFE_MS: u64 = 120;

pub(crate) fn run(arguments: &Arguments) -> Report {
    let (kills, seed) = (arguments.number("kills", 100), arguments.seed());
    println!("take-overs: seed {seed}, {kills} kills");
    let scratch = tempfile::tempdir().expect("a folder");
    let stage = Stage::new(scratch.path(), seed);
    let done = stage.play(kills);
    println!("take-overs: {done:?}");
    let mut report = Report::new("inside");
    let sound = done.differences.is_empty() && done.kills == kills;
    report.add(
        "roles.take-overs",
        format!("{}-kills-{}-requests-{}-repeated", done.kills, done.requests, done.repeated),
        &format!("{kills} owners killed: every acknowledged request done once, none lost"),
        sound && done.requests > 0 && done.repeated > 0,
    );
    report.add(
        "roles.images",
        format!("{}-images-{}-differ", done.images, done.images_differ),
        "a follower is equal to the owner at every image",
        done.images > 0 && done.images_differ == 0,
    );
    report
}

#[derive(Debug, Default)]
struct Done {
    kills: u64,
    requests: u64,
    repeated: u64,
    images: u64,
    images_differ: u64,
    differences: Vec<String>,
}

struct Stage {
    folders: [PathBuf; 2],
    images: FolderImages,
    log: MemoryLog,
    random: Random,
}

/// A node that owns the shard.
struct Owning {
    shard: Arc<Shard>,
    line: Line,
}

impl Stage {
    fn new(scratch: &Path, seed: u64) -> Self {
        Self {
            folders: ["a", "b"].map(|name| scratch.join(name)),
            images: FolderImages::open(&scratch.join("images")).expect("a folder"),
            // So that something is under way when a line is cut.
            log: MemoryLog::with_habits(MemoryHabits::default().delay(Duration::from_micros(200))),
            random: Random::new(seed),
        }
    }

    /// A node with what is on its disk.
    fn follower(&self, node: usize, line: &Line) -> Follower {
        let options = Options::default();
        let parts = || {
            let log = Arc::new(line.clone());
            Parts::beside_log(&self.folders[node], ShardPlace::ALONE, log, Tenure::always(), &options)
        };
        // The killed one may still be letting go of its folder.
        let parts =
            (0..1_000).find_map(|_| parts().inspect_err(|_| std::thread::sleep(Duration::from_millis(10))).ok());
        Follower::start(parts.expect("the folder is free"), &options).expect("it starts")
    }

    fn play(mut self, kills: u64) -> Done {
        let mut done = Done::default();
        let line = Line::new(&self.log);
        let mut owning = Owning { shard: self.follower(0, &line).own(1).expect("it owns"), line };
        let current: Owner = Arc::new(RwLock::new(Statehouse::over(owning.shard.clone())));
        let workers = Workers::start(WORKERS, &current);
        for kill in 1..=kills {
            let next_node = usize::from(kill % 2 == 1);
            let line = Line::new(&self.log);
            let mut next = self.follower(next_node, &line);
            self.watch(&owning, &mut next, &mut done);
            // Every third one is not killed: it is deposed while it writes.
            if !kill.is_multiple_of(3) {
                owning.line.cut();
            }
            let before = std::mem::replace(&mut owning, Owning { shard: take(next, kill + 1), line });
            // The one before ends when the last of its handles does.
            *current.write().expect("no panic") = Statehouse::over(owning.shard.clone());
            done.differences.extend(still_answers(&Statehouse::over(before.shard)));
            done.kills += 1;
        }
        let workers = workers.stop();
        let house = owner(&current);
        done.requests = workers.iter().map(|worker| worker.acknowledged).sum();
        done.repeated = workers.iter().map(|worker| worker.repeated).sum();
        done.differences.extend(workers.iter().filter_map(|worker| worker.difference(&house)));
        done
    }

    /// Follows the owner for a while, and compares at every image.
    fn watch(&mut self, owning: &Owning, follower: &mut Follower, done: &mut Done) {
        let lives = Duration::from_millis(1 + self.random.below(LIFE_MS));
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::SeqCst) {
                    write_image(&owning.shard, &self.images);
                    let Some(newest) = self.images.newest().expect("readable") else { continue };
                    if newest.index >= follower.at().index {
                        follower.follow_until(newest.index).expect("it follows");
                        done.images += 1;
                        done.images_differ += u64::from(!equals(follower, &self.images, newest));
                    }
                    self.images.forget(2).expect("removed");
                }
            });
            std::thread::sleep(lives);
            stop.store(true, Ordering::SeqCst);
        });
    }
}

/// Follows to the end, and takes over. Somebody else's entry may arrive meanwhile: what was under way.
fn take(mut follower: Follower, term: u64) -> Arc<Shard> {
    loop {
        follower.follow().expect("it follows");
        if follower.fence(term).expect("the log answers") {
            return follower.own_fenced(term, Tenure::always()).expect("it owns");
        }
    }
}

/// What is wrong with an owner that has been deposed: it must say so, to writers and readers.
fn still_answers(deposed: &Statehouse) -> Option<String> {
    let says_so =
        |answer: Result<(), Error>| matches!(answer, Err(Error::Failed(Failure { kind: FailureKind::NotOwner, .. })));
    let (written, read) = (deposed.cells().set("late", 1).map(drop), deposed.cells().get("late").map(drop));
    let wrong = format!("a deposed owner answers a write with {written:?}, and then a read with {read:?}");
    (!says_so(written) || !says_so(read)).then_some(wrong)
}

/// Writes what the owner has, unless its tenure has ended.
fn write_image(shard: &Shard, images: &FolderImages) {
    let Ok((view, _)) = shard.view() else { return };
    let index = image::applied(&*view, &shard.keys()).expect("an applied row").index;
    let mut write = |out: &mut dyn std::io::Write| {
        image::write_view(&*view, &shard.keys(), out).map(|_| ()).map_err(std::io::Error::other)
    };
    images.put(ImageRef { index }, &mut write).expect("written");
}

fn equals(follower: &Follower, images: &FolderImages, image: ImageRef) -> bool {
    let (mut own, mut other) = (Vec::new(), Vec::new());
    follower.write_image(&mut own).expect("written");
    images.open(image).expect("there").read_to_end(&mut other).expect("readable");
    follower.at().index == image.index && own == other
}
