//! `sim pressure-faults [--points N] [--seed N]`: system calls of a server's own threads fail with ENOSPC or EIO, once or for
//! a while, as those of a full or broken disk do: calls that write the journal, flush, merge, and publish a manifest.
//! Callers write and read all the time. Then the same for calls that set a damaged part apart.
//!
//! Would see broken: anything lost, a refusal without a name, a server that ends, one that does not go on by itself when the disk
//! does, one that goes on after a failed sync, a file that nobody needs and nobody removes.

mod damaged;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use testkit::arguments::Arguments;
use testkit::http::{Client, Request};
use testkit::random::Random;
use testkit::report::Report;
use testkit::server_process::{Launch, ServerProcess, binary};

use super::mounted::Mounted;
use super::strace::{Failing, thread_named};
use super::things::{Load, Thing, content, delete, get, path, put};

/// The calls that each thread makes to the disk.
const CALLS: &[(&str, &[&str])] = &[
    (
        "journal-write",
        &["pwrite64", "fdatasync", "fallocate", "pread64", "rename", "fsync", "openat", "fchmod", "unlink"],
    ),
    ("overlay-flush", &["write", "openat", "rename", "fsync", "fdatasync", "fchmod"]),
    ("store-merge", &["pread64", "write", "openat", "rename", "fsync", "fdatasync", "fchmod", "unlink", "statfs"]),
    ("apply", &["pread64"]),
];
/// Calls that fail when there is no space; any call fails when the disk is broken.
const CALLS_FOR_SPACE: [&str; 7] = ["pwrite64", "write", "fallocate", "openat", "rename", "fsync", "fdatasync"];
const SYNCS: [&str; 2] = ["fsync", "fdatasync"];

const CALLERS: usize = 4;
/// Things that are kept; the oldest are deleted, so that there is something to merge away.
const THINGS_MAX: usize = 240;
/// How long to wait for the call.
const CALLED_WITHIN: Duration = Duration::from_secs(4);
/// How long a call that fails every time does so.
const FAILS_FOR: Duration = Duration::from_millis(300);
/// The disk works again: this long until the server does, and until no file is left over.
const GOES_ON_WITHIN: Duration = Duration::from_secs(20);

/// One call that fails.
#[derive(Clone, Copy, Debug)]
struct Point {
    thread: &'static str,
    call: &'static str,
    errno: &'static str,
    first: u64,
    every: bool,
}

/// How a point ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    NotCalled,
    WentOn,
    Stopped,
}

/// How many points ended how.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    not_called: u64,
    went_on: u64,
    stopped: u64,
}

impl Tally {
    fn add(&mut self, ended: Ended) {
        match ended {
            Ended::NotCalled => self.not_called += 1,
            Ended::WentOn => self.went_on += 1,
            Ended::Stopped => self.stopped += 1,
        }
    }

    /// The points whose call was made.
    fn points(&self) -> u64 {
        self.went_on + self.stopped
    }
}

pub(crate) fn run(arguments: &Arguments) -> Report {
    let (points, seed) = (arguments.number("points", 500), arguments.seed());
    println!("pressure-faults: seed {seed}");
    let mut report = Report::new("pressure");
    let mut add = |item: &str, goal: &str, tally: Result<Tally, String>| {
        let (figure, ok) = match tally {
            Ok(tally @ Tally { went_on, stopped, .. }) => {
                let count = tally.points();
                (
                    format!("{count}-points-{went_on}-went-on-{stopped}-stopped-0-lost"),
                    count >= points || item != "faults",
                )
            }
            Err(what) => {
                println!("{what}");
                ("failed".to_owned(), false)
            }
        };
        report.add(item, figure, goal, ok);
    };
    let goal = format!(
        "{points} calls fail: nothing lost or left over, goes on where the disk does, stopped by name after a failed sync"
    );
    add("faults", &goal, all_points(points, seed));
    let goal =
        "each call that sets a damaged part apart fails: waits for space, stopped by name otherwise, the rest served";
    add("faults.damaged", goal, damaged::all_points());
    report
}

fn all_points(points: u64, seed: u64) -> Result<Tally, String> {
    let disk = Mounted::new("tmpfs", 320)?;
    let house = disk.path().join("house");
    let launch = Launch::serve(binary(), &house);
    let mut random = Random::new(seed);
    let mut trial = Trial { server: launch.start()?, launch, house, things: Mutex::default(), next: AtomicU64::new(0) };
    let (mut all, mut tallies) = (Tally::default(), BTreeMap::<(&str, &str, &str), Tally>::new());
    let kinds: Vec<_> = CALLS
        .iter()
        .flat_map(|(thread, calls)| calls.iter().map(move |call| (*thread, *call)))
        .flat_map(|(thread, call)| {
            let full = CALLS_FOR_SPACE.contains(&call).then_some("ENOSPC");
            full.into_iter().chain(["EIO"]).map(move |errno| (thread, call, errno))
        })
        .collect();
    // A call that some thread never makes must not keep the test from ending.
    for (thread, call, errno) in kinds.iter().cycle().take(kinds.len() + 2 * usize::try_from(points).expect("it fits"))
    {
        if all.points() >= points {
            break;
        }
        let many = matches!(*call, "pwrite64" | "write" | "pread64" | "fdatasync");
        let first = 1 + random.below(if many { 30 } else { 3 });
        let point = Point { thread, call, errno, first, every: random.one_in(2) };
        let ended = trial.one_point(point);
        let ended = ended.map_err(|what| format!("{point:?}: {what}\nthe server said:\n{}", trial.server.stderr()))?;
        tallies.entry((thread, call, errno)).or_default().add(ended);
        all.add(ended);
    }
    for ((thread, call, errno), Tally { not_called, went_on, stopped }) in tallies {
        println!("{thread} {call} {errno}: {went_on} went on, {stopped} stopped, {not_called} not called");
    }
    Ok(all)
}

struct Trial {
    launch: Launch,
    server: ServerProcess,
    house: std::path::PathBuf,
    things: Mutex<BTreeMap<u64, Thing>>,
    next: AtomicU64,
}

impl Trial {
    fn one_point(&mut self, point: Point) -> Result<Ended, String> {
        let thread = thread_named(self.server.id(), point.thread)?;
        let done = AtomicBool::new(false);
        let trial = &*self;
        let called = std::thread::scope(|scope| {
            let callers: Vec<_> = (0..CALLERS).map(|_| scope.spawn(|| trial.call_until(&done))).collect();
            let failing = Failing::calls(thread, point.call, point.errno, point.first, point.every)?;
            let called = wait_until(CALLED_WITHIN, || failing.failed() > 0);
            if called && point.every {
                std::thread::sleep(FAILS_FOR);
            }
            drop(failing);
            done.store(true, Ordering::Relaxed);
            callers.into_iter().try_for_each(|caller| caller.join().expect("no panic"))?;
            Ok::<_, String>(called)
        })?;
        if let Some(ended) = self.server.ended() {
            return Err(format!("the server ended: {ended}"));
        }
        if !called {
            return Ok(Ended::NotCalled);
        }
        let must_stop = SYNCS.contains(&point.call);
        // What the journal's file holds is not known when a write fails for another reason than space.
        let may_stop = must_stop || (point.thread == "journal-write" && point.errno == "EIO");
        let ended = await_writes(&self.client(), must_stop)?;
        // What `strace` leaves of a call if it lets go in the middle of it; no disk says this.
        let was_cut_off = ended == Ended::Stopped && self.server.stderr().contains("(os error 38)");
        match ended {
            Ended::Stopped if !may_stop && !was_cut_off => return Err("the server has stopped for good".into()),
            Ended::WentOn if must_stop => return Err("a failed sync did not stop the server".into()),
            _ => {}
        }
        self.verify()?;
        if ended == Ended::Stopped {
            self.server.signal("KILL");
            while self.server.ended().is_none() {
                std::thread::sleep(Duration::from_millis(5));
            }
            self.server = self.launch.start()?;
            self.verify().map_err(|what| format!("after a restart: {what}"))?;
        }
        self.await_no_orphans()?;
        Ok(if was_cut_off { Ended::NotCalled } else { ended })
    }

    fn client(&self) -> Client {
        Client::to(self.server.address())
    }

    /// Writes, reads and deletes until it is time.
    fn call_until(&self, done: &AtomicBool) -> Result<(), String> {
        let client = self.client();
        let send = |request: Request| client.send(request).map_err(|error| error.to_string());
        while !done.load(Ordering::Relaxed) {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let thing = Load::Mixed.thing(number);
            self.lock().insert(number, thing);
            let answer = send(put(number, thing))?;
            match answer.status {
                200..=299 => drop(self.lock().insert(number, Thing { answered: true, ..thing })),
                429 | 503 | 504 | 507 if answer.text().contains("SH-") => std::thread::sleep(Duration::from_millis(10)),
                status => return Err(format!("a write was answered {status}: {}", answer.text())),
            }
            let oldest = {
                let mut things = self.lock();
                if things.len() > THINGS_MAX { things.pop_first() } else { None }
            };
            if let Some((number, thing)) = oldest {
                let answer = send(delete(number, thing))?;
                if !matches!(answer.status, 200..=299 | 404 | 410 | 429 | 503 | 504 | 507) {
                    return Err(format!("a deletion was answered {}: {}", answer.status, answer.text()));
                }
            }
            let known =
                self.lock().iter().rev().find(|(_, thing)| thing.answered).map(|(number, thing)| (*number, *thing));
            if let Some((number, thing)) = known {
                self.check(&client, number, thing)?;
            }
        }
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, Thing>> {
        self.things.lock().expect("no panic")
    }

    /// Reads a thing that was acknowledged.
    fn check(&self, client: &Client, number: u64, thing: Thing) -> Result<(), String> {
        let answer = client.send(get(number, thing)).map_err(|error| error.to_string())?;
        let is_there = answer.status == 200 && answer.text().contains(&content(number, thing));
        // Another caller may have deleted it meanwhile.
        if is_there || !self.lock().contains_key(&number) {
            return Ok(());
        }
        Err(format!("{} was lost: {}", path(number, thing), answer.status))
    }

    fn verify(&self) -> Result<(), String> {
        let things: Vec<_> = self.lock().iter().map(|(number, thing)| (*number, *thing)).collect();
        let client = self.client();
        things
            .into_iter()
            .filter(|(_, thing)| thing.answered)
            .try_for_each(|(number, thing)| self.check(&client, number, thing))
    }

    /// The tables on the disk are those of the store, and no file has a name of another kind.
    fn await_no_orphans(&self) -> Result<(), String> {
        let client = self.client();
        let mut said = String::new();
        let none_left = wait_until(GOES_ON_WITHIN, || {
            let metrics = client.send(Request::get("/metrics")).map(|answer| answer.text()).unwrap_or_default();
            let metric = metrics.lines().find_map(|line| line.strip_prefix("statehouse_store_bytes "));
            let known: f64 = metric.and_then(|bytes| bytes.parse().ok()).unwrap_or(f64::NAN);
            let files = files_in(&self.house.join("store"));
            let tables: u64 = files.iter().filter(|(name, _)| name.ends_with(".table")).map(|(_, bytes)| bytes).sum();
            let others = files.iter().filter(|(name, _)| !name.ends_with(".table")).map(|(name, _)| name.as_str());
            let others: Vec<_> = others.filter(|name| *name != "manifest").collect();
            said = format!("tables have {tables} bytes, of which {known} are known; other files: {others:?}");
            others.is_empty() && known == tables as f64
        });
        if none_left { Ok(()) } else { Err(format!("files are left over: {said}")) }
    }
}

/// The disk works again: writes are taken, or the server says that it has stopped.
fn await_writes(client: &Client, must_stop: bool) -> Result<Ended, String> {
    let began = Instant::now();
    loop {
        let answer = client.send(Request::put("/v1/cells/after").body("1")).map_err(|error| error.to_string())?;
        let is_patient = began.elapsed() < GOES_ON_WITHIN;
        match (answer.status, answer.text()) {
            // A store that has stopped says so when the next write needs it.
            (200..=299, _) if must_stop && is_patient => {}
            (200..=299, _) => return Ok(Ended::WentOn),
            (503 | 507, text) if text.contains("the store has stopped") => return Ok(Ended::Stopped),
            (429 | 503 | 504 | 507, text) if text.contains("SH-") && is_patient => {}
            (status, text) => {
                return Err(format!("{GOES_ON_WITHIN:?} after it, a write is answered {status}: {text}"));
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn files_in(folder: &std::path::Path) -> Vec<(String, u64)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some((entry.file_name().to_str()?.to_owned(), entry.metadata().ok()?.len()))).collect()
}

/// Whether it came true in time.
fn wait_until(within: Duration, mut is_true: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    while !is_true() {
        if began.elapsed() > within {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}
