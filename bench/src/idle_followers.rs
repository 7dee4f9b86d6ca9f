//! Followers of runs to which nothing happens: what they take of a core while others commit.
//!
//! The same commits at the same pace beside the same threads, which sleep or follow in turns; the figure is the median of the
//! differences in the process's CPU time, each of two measurements one right after the other.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bench::usage::{Usage, Used};
use statehouse::runs::NewEvent;
use statehouse::{Json, Options, Statehouse};
use testkit::arguments::Arguments;
use testkit::report::Report;

/// Threads that commit.
const CALLERS: u32 = 64;

/// Longer than all of it takes.
const NEVER: Duration = Duration::from_secs(3_600);

/// Time for the followers to fall asleep.
const QUIET_AFTER: Duration = Duration::from_millis(500);

pub fn run(arguments: &Arguments) -> Report {
    let small = arguments.flag("small");
    let followers = arguments.number("followers", if small { 50 } else { 1_000 });
    let rate = u32::try_from(arguments.number("rate", 10_000)).expect("a rate");
    let rounds = arguments.number("rounds", if small { 1 } else { 25 });
    let length = Duration::from_secs(arguments.number("seconds", if small { 1 } else { 4 }));
    let directory = tempfile::tempdir().expect("a directory");
    let house = Options::default().open(directory.path().join("house")).expect("a house");
    commit(&house, rate, length);
    let (mut without, mut with, mut commits) = (Used::default(), Used::default(), 0);
    let mut differences = Vec::new();
    for round in 0..rounds {
        let mut shares = [0.0; 2];
        // Not always in the same order: what a store costs changes while it grows.
        for follow in [round % 2 == 1, round % 2 == 0] {
            let (used, committed) = beside(&house, followers, round, follow, || commit(&house, rate, length));
            shares[usize::from(follow)] = percent(&used);
            if follow {
                with += &used;
                commits += committed;
            } else {
                without += &used;
            }
        }
        let [asleep, following] = shares;
        println!(
            "round {round}: {asleep:.1} % of a core while {followers} threads sleep, {following:.1} % while they follow"
        );
        differences.push(following - asleep);
    }
    let pace = commits as f64 / with.seconds;
    let apply = |used: &Used| used.of_threads(|name| name == "apply") / used.seconds / 1e4;
    println!("of it the apply thread: {:.1} % and {:.1} %", apply(&without), apply(&with));
    house.close().expect("close");

    let mut report = Report::new("inside");
    let more = median(differences);
    let figure = format!("{more:.2}%-of-a-core-for-{followers}-at-{pace:.0}/s");
    report.add("followers", figure, "<=5% of a core", more <= 5.0);
    let kept = pace >= f64::from(rate) * 0.95;
    report.add("followers.pace", format!("{pace:.0}/s"), "the pace was kept", kept);
    report
}

/// A flush or a merge that falls into one half of a round is many times what is looked for: the mean would be theirs.
fn median(mut differences: Vec<f64>) -> f64 {
    differences.sort_by(f64::total_cmp);
    differences[differences.len() / 2]
}

fn percent(used: &Used) -> f64 {
    used.cpu_us / used.seconds / 1e4
}

/// Does something beside many threads, which follow each another run, or sleep; then an event in each of these runs ends it.
fn beside<T>(house: &Statehouse, followers: u64, round: u64, follow: bool, work: impl FnOnce() -> T) -> T {
    let name = |follower: u64| format!("quiet-{round}-{follow}-{follower}");
    let awake = Barrier::new(usize::try_from(followers).expect("few") + 1);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..followers)
            .map(|follower| {
                let mut tail = house.runs().tail(&name(follower), 0);
                let awake = &awake;
                scope.spawn(move || {
                    if !follow {
                        awake.wait();
                    }
                    tail.next(1, NEVER).expect("its event").events.len()
                })
            })
            .collect();
        std::thread::sleep(QUIET_AFTER);
        let done = work();
        if !follow {
            awake.wait();
        }
        for follower in 0..followers {
            let data = Json::new("{}").expect("JSON");
            let event = NewEvent::new("Progress", "end", "2026-02-11T10:00:00Z", data);
            house.runs().append(&name(follower), &event).expect("an append");
        }
        let ended: usize = threads.into_iter().map(|thread| thread.join().expect("a follower")).sum();
        assert_eq!(ended as u64, followers, "each has its event");
        done
    })
}

/// Commits at a steady pace; returns what that took, and how many there were.
fn commit(house: &Statehouse, rate: u32, length: Duration) -> (Used, u64) {
    let (stop, committed) = (AtomicBool::new(false), AtomicU64::new(0));
    let (stop, committed) = (&stop, &committed);
    let pause = Duration::from_secs(1) * CALLERS / rate;
    std::thread::scope(|scope| {
        for caller in 0..CALLERS {
            scope.spawn(move || {
                let cells = house.cells();
                // Not all at once.
                let mut due = Instant::now() + pause * caller / CALLERS;
                while !stop.load(Ordering::Relaxed) {
                    std::thread::sleep(due.saturating_duration_since(Instant::now()));
                    due += pause;
                    cells.set(&format!("cell-{caller}"), i64::from(caller)).expect("a commit");
                    committed.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let before = Usage::now();
        let counted = committed.load(Ordering::Relaxed);
        std::thread::sleep(length);
        let used = Usage::now().since(&before);
        let commits = committed.load(Ordering::Relaxed) - counted;
        stop.store(true, Ordering::Relaxed);
        (used, commits)
    })
}
