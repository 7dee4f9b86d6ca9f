//! `sim pressure-fill [--disks KIND:MIBxCYCLES,…] [--seed N]`: a server on a small disk is filled until it refuses, and
//! then everything is deleted, again and again, with other things and with `kill -9` in the middle of both. Within a minute, without a
//! restart, the space must be back and writes must be taken again. Once somebody reads a backup very slowly meanwhile: it
//! must not keep what was deleted. At the end another process takes all space, and lets go.
//!
//! Would see broken: deletions that free nothing, a merge or flush that fails for good without space, a start that needs
//! space, anything lost.

mod slow_reader;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use testkit::arguments::Arguments;
use testkit::http::{Client, Request, Response};
use testkit::random::Random;
use testkit::report::Report;
use testkit::server_process::{Launch, ServerProcess, binary};

use super::mounted::{Mounted, bytes_taken};
use super::things::{Load, Thing, What, content, delete, get, path, put};
use slow_reader::SlowReader;

/// Callers at a time.
const CALLERS: usize = 6;
/// Everything was deleted: this long until the space is back.
const FREED_WITHIN: Duration = Duration::from_secs(60);
/// What an empty store may take.
const EMPTY_BYTES_MAX: u64 = 64 << 20;
/// A deleted run remains known; about what that takes.
const RUN_TOMBSTONE_BYTES: u64 = 512;

pub(crate) fn run(arguments: &Arguments) -> Report {
    let disks = arguments.text("disks").unwrap_or("ext4:320x10,xfs:320x10").to_owned();
    let seed = arguments.seed();
    println!("pressure-fill: seed {seed}");
    let mut report = Report::new("pressure");
    for disk in disks.split(',') {
        let (kind, mib, cycles) = parse(disk).unwrap_or_else(|| panic!("{disk} is not KIND:MIBxCYCLES"));
        let (figure, ok) = match one_disk(kind, mib, cycles, seed) {
            Ok(slowest) => (format!("{cycles}-cycles-0-lost-space-back-in-{:.1}-s", slowest.as_secs_f64()), true),
            Err(what) => {
                println!("{kind} {mib} MiB: {what}");
                ("failed".to_owned(), false)
            }
        };
        let goal = format!("{cycles} cycles, 0 lost, space back and writes taken within 60 s");
        report.add(&format!("fill.{kind}-{mib}"), figure, &goal, ok);
    }
    report
}

/// A kind of file system, its size in MiB, and how often it is filled.
fn parse(disk: &str) -> Option<(&str, u64, u64)> {
    let (kind, rest) = disk.split_once(':')?;
    let (mib, cycles) = rest.split_once('x')?;
    Some((kind, mib.parse().ok()?, cycles.parse().ok()?))
}

fn one_disk(kind: &str, mib: u64, cycles: u64, seed: u64) -> Result<Duration, String> {
    let disk = Mounted::new(kind, mib)?;
    let house = disk.path().join("house");
    let launch = Launch::serve(binary(), &house);
    let mut trial = Trial {
        random: Random::new(seed ^ mib),
        load: Load::Mixed,
        server: launch.start()?,
        launch,
        house,
        things: Mutex::default(),
        next: AtomicU64::new(0),
        runs_deleted: 0,
    };
    // With more versions, the values of deleted cells would remain: as long as retention says, and until space is short.
    let retention = Request::put("/v1/spaces/default/retention").body(r#"{"versions":1}"#);
    let answer = trial.client().send(retention).map_err(|error| error.to_string())?;
    if !answer.is_success() {
        return Err(format!("the retention was not set: {}", answer.text()));
    }
    let done = all_cycles(&disk, &mut trial, mib, cycles);
    if done.is_err() {
        let folder = std::process::Command::new("df").arg("-m").arg(disk.path()).output();
        println!("{}", folder.map(|said| String::from_utf8_lossy(&said.stdout).into_owned()).unwrap_or_default());
        let status = trial.client().send(Request::get("/status"));
        println!("{}", status.map_or_else(|error| error.to_string(), |answer| answer.text()));
        println!("the server said:\n{}", trial.server.stderr());
    }
    done
}

fn all_cycles(disk: &Mounted, trial: &mut Trial, mib: u64, cycles: u64) -> Result<Duration, String> {
    let mut slowest = Duration::ZERO;
    for (cycle, load) in (0..cycles).zip(Load::ALL.into_iter().cycle()) {
        trial.load = load;
        let at = |what: String| format!("cycle {cycle}, {load:?}: {what}");
        trial.fill().map_err(at)?;
        let filled = bytes_taken(&trial.house) >> 20;
        trial.verify().map_err(at)?;
        trial.delete_all().map_err(at)?;
        let back = trial.await_space(Held::Nothing).map_err(at)?;
        let taken = bytes_taken(&trial.house) >> 20;
        println!(
            "{} {mib} MiB, cycle {cycle}, {load:?}: {filled} MiB, then {taken} MiB after {:.1} s",
            disk.kind,
            back.as_secs_f64()
        );
        slowest = slowest.max(back);
    }
    trial.load = Load::Mixed;
    trial.held().map_err(|what| format!("while a backup is read slowly: {what}"))?;
    trial.eaten(disk.path())?;
    Ok(slowest)
}

/// What may be kept of what was deleted.
#[derive(Clone, Copy)]
enum Held {
    Nothing,
    /// A slow reader may keep as much as is free.
    WhatTheDiskCanSpare,
}

struct Trial {
    random: Random,
    load: Load,
    launch: Launch,
    server: ServerProcess,
    house: std::path::PathBuf,
    things: Mutex<BTreeMap<u64, Thing>>,
    next: AtomicU64,
    runs_deleted: u64,
}

impl Trial {
    fn client(&self) -> Client {
        Client::to(self.server.address())
    }

    /// Kills the server, if it was not yet, and starts it again.
    fn kill_and_restart(&mut self) -> Result<(), String> {
        while self.server.ended().is_none() {
            self.server.signal("KILL");
            std::thread::sleep(Duration::from_millis(5));
        }
        self.server = self.launch.start()?;
        Ok(())
    }

    /// Runs `work` on all callers; kills the server in the middle, and lets them go on with the next one.
    fn with_a_kill(&mut self, most: Duration, work: impl Fn(&Self) -> Result<(), String> + Sync) -> Result<(), String> {
        let millis = u64::try_from(most.as_millis()).expect("a short time");
        let after = Duration::from_millis(self.random.below(millis.max(1)));
        let trial = &*self;
        std::thread::scope(|scope| {
            let callers: Vec<_> = (0..CALLERS).map(|_| scope.spawn(|| work(trial))).collect();
            std::thread::sleep(after);
            trial.server.signal("KILL");
            // Each of them ends with the connection, or was done before.
            callers.into_iter().for_each(|caller| drop(caller.join().expect("no panic")));
        });
        self.kill_and_restart()?;
        self.with_callers(work)
    }

    /// Runs `work` on all callers.
    fn with_callers(&self, work: impl Fn(&Self) -> Result<(), String> + Sync) -> Result<(), String> {
        std::thread::scope(|scope| {
            let callers: Vec<_> = (0..CALLERS).map(|_| scope.spawn(|| work(self))).collect();
            callers.into_iter().try_for_each(|caller| caller.join().expect("no panic"))
        })
    }

    /// Writes until the server refuses.
    fn fill(&mut self) -> Result<(), String> {
        self.with_a_kill(Duration::from_secs(4), Self::write_until_refused)
    }

    fn write_until_refused(&self) -> Result<(), String> {
        let client = self.client();
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let thing = self.load.thing(number);
            self.note(number, Some(thing));
            match client.send(put(number, thing)).map_err(|error| error.to_string())? {
                answer if (200..300).contains(&answer.status) => {
                    self.note(number, Some(Thing { answered: true, ..thing }));
                }
                answer if answer.status == 507 => {
                    self.note(number, None);
                    return Ok(());
                }
                answer if answer.status == 503 => std::thread::sleep(Duration::from_millis(20)),
                answer => return Err(format!("a write was answered {}: {}", answer.status, answer.text())),
            }
        }
    }

    fn note(&self, number: u64, thing: Option<Thing>) {
        let mut things = self.things.lock().expect("no panic");
        match thing {
            Some(thing) => drop(things.insert(number, thing)),
            None => drop(things.remove(&number)),
        }
    }

    /// Everything that was answered is there, as it was written.
    fn verify(&self) -> Result<(), String> {
        let things: Vec<(u64, Thing)> = self.things.lock().expect("no panic").clone().into_iter().collect();
        let next = AtomicU64::new(0);
        let check = || {
            let client = self.client();
            while let Some((number, thing)) =
                usize::try_from(next.fetch_add(1, Ordering::Relaxed)).ok().and_then(|at| things.get(at))
            {
                let answer = client.send(get(*number, *thing)).map_err(|error| error.to_string())?;
                let is_there = answer.status == 200 && answer.text().contains(&content(*number, *thing));
                if thing.answered && !is_there {
                    return Err(format!("{} was lost: {}", path(*number, *thing), answer.status));
                }
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let callers: Vec<_> = (0..CALLERS).map(|_| scope.spawn(check)).collect();
            callers.into_iter().try_for_each(|caller| caller.join().expect("no panic"))
        })
    }

    fn delete_all(&mut self) -> Result<(), String> {
        let waiting = self.take_things();
        self.with_a_kill(Duration::from_secs(2), |trial| trial.delete_each(&waiting))
    }

    fn take_things(&mut self) -> Mutex<Vec<(u64, Thing)>> {
        let things = std::mem::take(&mut *self.things.lock().expect("no panic"));
        self.runs_deleted += things.values().filter(|thing| thing.what == What::Run).count() as u64;
        let mut things: Vec<_> = things.into_iter().collect();
        if self.random.one_in(2) {
            things.reverse();
        }
        Mutex::new(things)
    }

    fn delete_each(&self, waiting: &Mutex<Vec<(u64, Thing)>>) -> Result<(), String> {
        let client = self.client();
        loop {
            let Some((number, thing)) = waiting.lock().expect("no panic").pop() else { return Ok(()) };
            match client.send(delete(number, thing)) {
                Ok(answer) if answer.status == 503 => {
                    waiting.lock().expect("no panic").push((number, thing));
                    std::thread::sleep(Duration::from_millis(20));
                }
                // A run that was deleted before the kill says so.
                Ok(answer) if matches!(answer.status, 200..=299 | 404 | 410) => {}
                Ok(answer) => return Err(format!("a deletion was answered {}: {}", answer.status, answer.text())),
                Err(error) => {
                    waiting.lock().expect("no panic").push((number, thing));
                    return Err(error.to_string());
                }
            }
        }
    }

    /// Everything is deleted while somebody reads a backup of all of it, very slowly.
    fn held(&mut self) -> Result<(), String> {
        self.with_callers(Self::write_until_refused)?;
        let waiting = self.take_things();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let reader = SlowReader::begin_at_last(self.server.address())?;
            scope.spawn(|| reader.read_until(&done));
            let freed = self
                .with_callers(|trial| trial.delete_each(&waiting))
                .and_then(|()| self.await_space(Held::WhatTheDiskCanSpare));
            done.store(true, Ordering::Relaxed);
            println!("a backup that is read slowly: space back after {:.1} s", freed.clone()?.as_secs_f64());
            Ok(())
        })
    }

    /// Waits until the directory is small and a write is taken.
    fn await_space(&self, held: Held) -> Result<Duration, String> {
        let began = Instant::now();
        let client = self.client();
        loop {
            let spared = match held {
                Held::Nothing => 0,
                Held::WhatTheDiskCanSpare => self.free_bytes()?,
            };
            let bytes_max = EMPTY_BYTES_MAX + self.runs_deleted * RUN_TOMBSTONE_BYTES * 6 / 5 + spared;
            let taken = bytes_taken(&self.house);
            let written = client.send(Request::put("/v1/cells/after").body(r#"{"value":"x"}"#));
            let written = written.map_err(|error| error.to_string())?;
            let is_small = taken <= bytes_max;
            if is_small && (200..300).contains(&written.status) {
                return Ok(began.elapsed());
            }
            if began.elapsed() > FREED_WITHIN {
                return Err(format!(
                    "after {FREED_WITHIN:?} the directory takes {} MiB of at most {}, and a write is answered {}",
                    taken >> 20,
                    bytes_max >> 20,
                    written.status
                ));
            }
            std::thread::sleep(Duration::from_millis(250));
        }
    }

    fn free_bytes(&self) -> Result<u64, String> {
        let status = self.client().send(Request::get("/status")).map_err(|error| error.to_string())?;
        let status: serde_json::Value = serde_json::from_str(&status.text()).map_err(|error| error.to_string())?;
        status["disk_free_bytes"].as_u64().ok_or_else(|| format!("no free bytes in {status}"))
    }

    fn put_one_more(&self) -> Result<Response, String> {
        let number = 1_000_000;
        self.client().send(put(number, self.load.thing(number))).map_err(|error| error.to_string())
    }

    /// Another process takes all space: reads go on, also after a restart, and writes when it lets go.
    fn eaten(&mut self, disk: &Path) -> Result<(), String> {
        let client = self.client();
        for number in 0..200 {
            let thing = self.load.thing(number);
            let answer = client.send(put(number, thing)).map_err(|error| error.to_string())?;
            if (200..300).contains(&answer.status) {
                self.note(number, Some(Thing { answered: true, ..thing }));
            }
        }
        let eaten = disk.join("eaten");
        eat(&eaten)?;
        // The store looks at the disk four times a second, and what the journal has reserved may still be used.
        let began = Instant::now();
        loop {
            let answer = self.put_one_more()?;
            if answer.status == 507 {
                break;
            }
            if began.elapsed() > Duration::from_secs(5) {
                return Err(format!("a write to a full disk is answered {}", answer.status));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        self.verify().map_err(|what| format!("with a full disk: {what}"))?;
        self.kill_and_restart().map_err(|what| format!("a full disk keeps the server from starting: {what}"))?;
        self.verify().map_err(|what| format!("restarted on a full disk: {what}"))?;
        std::fs::remove_file(&eaten).map_err(|error| error.to_string())?;
        let began = Instant::now();
        loop {
            let written = self.put_one_more()?;
            if (200..300).contains(&written.status) {
                return Ok(());
            }
            if began.elapsed() > FREED_WITHIN {
                return Err(format!("there is space again, and a write is answered {}", written.status));
            }
            std::thread::sleep(Duration::from_millis(250));
        }
    }
}

/// Writes a file until nothing is left of the disk.
fn eat(path: &Path) -> Result<(), String> {
    let mut file = std::fs::File::create(path).map_err(|error| error.to_string())?;
    for chunk in [1 << 20, 4 << 10, 1] {
        let bytes = vec![7; chunk];
        while file.write_all(&bytes).is_ok() {}
    }
    // Some file systems find out later that there was no space.
    let _ = file.sync_all();
    Ok(())
}
