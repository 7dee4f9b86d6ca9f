//! The recordings that images are drawn from, and the images: each is drawn, written to a scratch directory, opened and
//! checked.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use testkit::arguments::Arguments;
use testkit::random::Random;

use super::PATIENCE;
use super::check;
use super::image::{self, Mode};
use super::operation::Moment;
use super::recording::{Ending, Recording};
use super::sites::Site;
use super::traced_process::Life;

/// The kind of kill that comes just after a manifest got its name; see `draw_kill`.
const KILL_AFTER_MANIFEST: u64 = 2;

/// How often such a kill is tried, until it has come after a merge.
const DROPPING_ATTEMPTS_MAX: u64 = 60;

/// Images are checked on this many threads.
const THREADS: usize = 2;

/// Everything that images are drawn from.
pub(super) struct Scene {
    seed: u64,
    /// For how many images it was made; that decides how many recordings there are.
    images: u64,
    pub(super) recordings: Vec<Recording>,
    /// Those in which opening removes tables that a killed process has left.
    dropping: Vec<usize>,
    /// Second processes that failed on what the first had left, and how.
    pub(super) unopened: Vec<String>,
    pub(super) scratch: Scratch,
    /// The images that are being checked, and since when.
    checking: Mutex<BTreeMap<u64, Instant>>,
}

/// An image that broke a promise.
pub(super) struct Failure {
    pub(super) number: u64,
    pub(super) drawn: Drawn,
    pub(super) what: String,
}

/// Where an image came from.
pub(super) struct Drawn {
    pub(super) recording: usize,
    pub(super) moment: Moment,
    image: image::Image,
}

impl Scene {
    pub(super) fn new(arguments: &Arguments, seed: u64, images: u64) -> Result<Self, String> {
        let scratch = match arguments.text("recording") {
            Some(path) => Scratch::Kept(path.into()),
            None => Scratch::new().map_err(|error| format!("no scratch directory: {error}"))?,
        };
        let long = Life { seed, sessions: 4, writes: 40 + (images / 8).min(80), restores: false };
        let short = Life { sessions: 1, writes: 12, ..long };
        let restored = Life { restores: true, ..short };
        let path = scratch.path();
        let mut recordings =
            vec![Recording::of_one(path, "alone", long)?, Recording::of_one(path, "restored", restored)?];
        let mut unopened = Vec::new();
        let endings = [(Ending::Killed, "killed", 8), (Ending::PowerLost, "unpowered", 4)];
        for (ending, name, count_min) in endings {
            for number in 0..(images / 25).clamp(count_min, 24) {
                let name = format!("{name}-{number}");
                let mut random = Random::new(seed ^ number << 40 ^ (ending as u64) << 32);
                let first = &recordings[usize::from(number % 8 == 7)];
                let moment = match ending {
                    Ending::Killed => first.draw_kill(number, &mut random),
                    Ending::PowerLost => first.draw_moment(&mut random),
                };
                match Recording::of_two(path, &name, first, ending, moment, short, &mut random) {
                    Ok(recording) => recordings.push(recording),
                    Err(wrong) => unopened.push(wrong),
                }
            }
        }
        println!("{}", recordings[0].coverage()?);
        // What a first process leaves when it is killed after a merge is not left to chance: it is too rare.
        let mut attempts = 0..DROPPING_ATTEMPTS_MAX;
        let mut dropping = Vec::new();
        for (index, recording) in recordings.iter().enumerate() {
            if recording.drops_a_table_at_opening(path)? {
                dropping.push(index);
            }
        }
        while dropping.is_empty() {
            let number = attempts.next().ok_or("no merge was killed before its tables were removed")?;
            let mut random = Random::new(seed ^ number << 40 ^ u64::MAX << 56);
            let moment = recordings[0].draw_kill(KILL_AFTER_MANIFEST, &mut random);
            let (name, first) = (format!("dropping-{number}"), &recordings[0]);
            match Recording::of_two(path, &name, first, Ending::Killed, moment, short, &mut random) {
                Ok(recording) if recording.drops_a_table_at_opening(path)? => {
                    dropping.push(recordings.len());
                    recordings.push(recording);
                }
                Ok(_) => {}
                Err(wrong) => unopened.push(wrong),
            }
        }
        Ok(Self { seed, images, recordings, dropping, unopened, scratch, checking: Mutex::default() })
    }

    /// Itself, if no second process has failed.
    pub(super) fn all_opened(self) -> Result<Self, String> {
        if self.unopened.is_empty() { Ok(self) } else { Err(self.unopened.join("\n")) }
    }

    /// Draws image `number`. Without a sync, it is from after a call of that sync.
    fn draw(&self, number: u64, mode: Mode, without: Option<Site>) -> Option<Drawn> {
        let mut random = Random::new(self.seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let (recording, moment) = match without {
            None => {
                let recording = if random.one_in(2) { 0 } else { random.index(self.recordings.len()) };
                (recording, self.recordings[recording].draw_moment(&mut random))
            }
            Some(site) => {
                // A folder that was not synced at opening matters only if something was removed from it then.
                let of_site = |index: &usize| site != Site::StoreOpened || self.dropping.contains(index);
                let drawn = (0..self.recordings.len()).filter(of_site).filter_map(|index| {
                    self.recordings[index].draw_moment_after(site, &mut random).map(|moment| (index, moment))
                });
                let drawn: Vec<_> = drawn.collect();
                if drawn.is_empty() {
                    return None;
                }
                *random.choose(&drawn)
            }
        };
        let image = image::draw(&self.recordings[recording].operations, moment, mode, without, &mut random);
        Some(Drawn { recording, moment, image })
    }

    /// Checks images until so many have failed.
    pub(super) fn check(
        &self,
        numbers: std::ops::Range<u64>,
        mode: Mode,
        without: Option<Site>,
        failures_max: usize,
    ) -> Vec<Failure> {
        let next = AtomicU64::new(numbers.start);
        let enough = AtomicBool::new(false);
        let failures = Mutex::new(Vec::new());
        let work = || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= numbers.end || enough.load(Ordering::Relaxed) {
                    return;
                }
                let Some(drawn) = self.draw(number, mode, without) else { return };
                if let Err(what) = self.check_one(number, &drawn) {
                    let mut failures = failures.lock().expect("no checker panics");
                    failures.push(Failure { number, drawn, what });
                    enough.store(failures.len() >= failures_max, Ordering::Relaxed);
                }
            }
        };
        // A panic below is a finding like any other.
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
            while threads.iter().any(|thread| !thread.is_finished()) {
                std::thread::sleep(Duration::from_millis(10));
                self.stop_if_one_hangs(mode, without);
            }
        });
        std::panic::set_hook(hook);
        let mut failures = failures.into_inner().expect("no checker panics");
        failures.sort_by_key(|failure: &Failure| failure.number);
        failures
    }

    fn check_one(&self, number: u64, drawn: &Drawn) -> Result<(), String> {
        let recording = &self.recordings[drawn.recording];
        let root = self.scratch.path().join(format!("checked-{number}"));
        let facts = recording.facts_at(drawn.moment);
        self.checking.lock().expect("no checker panics").insert(number, Instant::now());
        image::write(&drawn.image, &root).map_err(|error| format!("{}: {error}", root.display()))?;
        let checked = catch_unwind(AssertUnwindSafe(|| check::check(&root, &facts, &recording.states)));
        let removed = std::fs::remove_dir_all(&root);
        removed.map_err(|error| format!("{}: {error}", root.display()))?;
        self.checking.lock().expect("no checker panics").remove(&number);
        checked.unwrap_or_else(|panic| Err(format!("a panic: {}", panic_text(&*panic))))
    }

    /// A thread that hangs cannot be ended, so this ends the process, which leaves everything where it is.
    fn stop_if_one_hangs(&self, mode: Mode, without: Option<Site>) {
        let checking = self.checking.lock().expect("no checker panics");
        let hanging = checking.iter().find(|(_, since)| since.elapsed() > PATIENCE);
        let Some((number, _)) = hanging else { return };
        println!("image {number} hangs");
        if let Some(drawn) = self.draw(*number, mode, without) {
            self.keep(*number, &drawn, mode, without);
        }
        std::process::exit(1);
    }

    /// Keeps an image that failed and says where, and how to check it again.
    pub(super) fn keep(&self, number: u64, drawn: &Drawn, mode: Mode, without: Option<Site>) {
        let scratch = self.scratch.path();
        let kept = scratch.join(format!("image-{number}"));
        let _ = std::fs::remove_dir_all(&kept);
        match image::write(&drawn.image, &kept) {
            Ok(()) => println!("  kept in {}", kept.display()),
            Err(error) => println!("  not kept: {error}"),
        }
        let (recording, seed) = (scratch.display(), self.seed);
        let mode = match mode {
            Mode::Torn => "",
            Mode::Killed => " --mode killed",
            Mode::Lost => " --mode lost",
        };
        let without = without.map_or(String::new(), |site| format!(" --without {}", site.name()));
        let images = self.images;
        let options =
            format!("--images {images} --seed {seed} --recording {recording} --image {number}{mode}{without}");
        println!("  replay: cargo run --profile stress -p sim -- power-store {options}");
    }
}

/// Where traces and images are.
pub(super) enum Scratch {
    Temporary(TempDir),
    Kept(PathBuf),
}

impl Scratch {
    /// In memory, where there is such a directory: nothing here depends on what a disk does.
    fn new() -> std::io::Result<Self> {
        let shared_memory = Path::new("/dev/shm");
        let parent = if shared_memory.is_dir() { shared_memory.to_owned() } else { std::env::temp_dir() };
        let directory = tempfile::Builder::new().prefix("statehouse-power-").tempdir_in(parent)?;
        Ok(Scratch::Temporary(directory))
    }

    pub(super) fn path(&self) -> &Path {
        match self {
            Scratch::Temporary(directory) => directory.path(),
            Scratch::Kept(path) => path,
        }
    }

    pub(super) fn keep(&mut self) {
        if let Scratch::Temporary(directory) = self {
            directory.disable_cleanup(true);
        }
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}
