//! The server: it is killed over and over while clients work.
//!
//! `sim http-kills --times N --clients N [--seed S]`. Each worker has a client that writes in its own session and
//! retries writes whose answer was lost; one write in ten is first sent over a connection that closes before the answer.
//! The workers increment shared counters, write and read back their own cells, put, claim and complete jobs, and append
//! events with idempotency keys. Afterwards every counter is exact and each increment returned a different value, the
//! version of every cell equals its number of writes, every job was claimed and completed once, and every event exists once.
//! Would see broken: E2, J1, H1, everything the server does between a commit and its answer, and the client's retries.
//! The canary is a short run whose increments are sent without a session: its sums must be wrong, or this test could not
//! find a double write.

mod afterwards;
mod client;
mod line;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ::client::ClientOptions;
use testkit::arguments::Arguments;
use testkit::http::Client;
use testkit::random::Random;
use testkit::report::Report;
use testkit::server_process::{Launch, ServerProcess, binary};

use super::{Killing, print_failure};
use line::Pains;

/// Counters, runs and queues that all clients share.
const SHARED: u64 = 8;
/// Kills in the run without sessions: a single one may leave too few increments for a double one.
const CANARY_KILLS: u64 = 4;
/// A kill waits for at most this many answers.
const ANSWERS_MAX: u64 = 1_000;
/// How long the server may take to answer for the first time after a start.
const FIRST_ANSWER_MAX: Duration = Duration::from_secs(60);

/// Whether increments are numbered in a session.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    InSessions,
    Plain,
}

/// The answers that clients got.
#[derive(Default)]
struct Answered {
    /// Counters, with the returned values.
    counted: BTreeMap<String, Vec<i64>>,
    /// Cells, with the last value written, which is also the number of writes.
    cells: BTreeMap<String, u64>,
    jobs_put: BTreeSet<String>,
    jobs_claimed: Vec<String>,
    jobs_completed: Vec<String>,
    /// Runs, with the keys of their events and the returned sequences.
    appended: BTreeMap<String, BTreeMap<String, u64>>,
    pains: Pains,
    wrong: Vec<String>,
}

impl Answered {
    fn add(&mut self, other: Self) {
        for (counter, values) in other.counted {
            self.counted.entry(counter).or_default().extend(values);
        }
        for (run, keys) in other.appended {
            self.appended.entry(run).or_default().extend(keys);
        }
        self.cells.extend(other.cells);
        self.jobs_put.extend(other.jobs_put);
        self.jobs_claimed.extend(other.jobs_claimed);
        self.jobs_completed.extend(other.jobs_completed);
        self.pains.repeats += other.pains.repeats;
        self.pains.abandoned += other.pains.abandoned;
        self.pains.replayed += other.pains.replayed;
        self.pains.sessions += other.pains.sessions;
        self.wrong.extend(other.wrong);
    }
}

/// The state shared by the clients and the killer.
struct Scene {
    client: Client,
    answers: AtomicU64,
    over: AtomicBool,
}

/// Runs the test with sessions, then the canary without them.
pub(crate) fn run(arguments: &Arguments) -> Report {
    let seed = arguments.seed();
    let (times, clients) = (arguments.number("times", 100), arguments.number("clients", 32));
    println!("http-kills: seed {seed}, {times} kills, {clients} clients");
    let mut report = Report::new("server");
    let began = Instant::now();
    let found = phase(Way::InSessions, seed, times, clients);
    let counted: usize = found.counted.values().map(Vec::len).sum();
    let appended: usize = found.appended.values().map(BTreeMap::len).sum();
    println!(
        "http-kills: {counted} increments, {} cells, {} jobs, {appended} events, {:?}, {:.1} s",
        found.cells.len(),
        found.jobs_put.len(),
        found.pains,
        began.elapsed().as_secs_f64()
    );
    found.wrong.iter().take(20).for_each(|wrong| println!("http-kills: {wrong}"));
    let ok = found.wrong.is_empty() && found.pains.repeats > 0 && found.pains.abandoned > 0;
    if !ok {
        println!(
            "replay: cargo run --profile stress -p sim -- http-kills --times {times} --clients {clients} --seed {seed}"
        );
    }
    let wrong = found.wrong.len();
    let writes = counted + appended + found.jobs_put.len() * 3;
    let figure = format!("{times}-kills {writes}-writes {}-repeats {wrong}-wrong", found.pains.repeats);
    report.add("kills", figure, "counters exact, nothing lost, nothing doubled", ok);
    let plain = phase(Way::Plain, seed, CANARY_KILLS, clients);
    let doubled = plain.wrong.iter().any(|wrong| wrong.starts_with("counter"));
    let figure = if doubled { "found" } else { "not-found" };
    report.add("kills-canary", figure, "a wrong sum without sessions", doubled);
    report
}

fn phase(way: Way, seed: u64, times: u64, clients: u64) -> Answered {
    let directory = tempfile::tempdir().expect("a directory");
    let launch = Launch::serve(binary(), directory.path().join("house"));
    // This server is killed at once. Clients wait for the next one, as they do after every kill.
    let address = launch.start().expect("a server").address();
    let scene = Scene { client: Client::to(address), answers: AtomicU64::new(0), over: AtomicBool::new(false) };
    let mut answered = Answered::default();
    let server = std::thread::scope(|scope| {
        let mut random = Random::new(seed);
        let threads = (0..clients).map(|number| (number, random.next()));
        let scene = &scene;
        let threads = threads.map(|(number, seed)| scope.spawn(move || client::work(scene, way, number, seed)));
        let threads: Vec<_> = threads.collect();
        let mut victim = ServerVictim { scene, launch: &launch, last: None };
        let killed = Killing::<()>::new(random.next()).kill_repeatedly(&mut victim, times);
        if killed.is_err() {
            // Clients would retry for ever.
            print_failure("http-kills", &killed, &format!("--times {times} --clients {clients} --seed {seed}"));
            println!("http-kills: {} is kept", directory.path().display());
            std::process::exit(1);
        }
        scene.over.store(true, Ordering::Release);
        threads.into_iter().for_each(|thread| answered.add(thread.join().expect("a client panicked")));
        victim.last.expect("a server after the last kill")
    });
    afterwards::check(&scene.client.typed(ClientOptions::default()), &mut answered);
    let ended = server.terminate(Duration::from_secs(60));
    if !ended.status.success() {
        answered.wrong.push(format!("the server stopped badly: {} {}", ended.status, ended.stderr));
    }
    answered
}

impl Scene {
    /// Waits until clients got this many more answers.
    fn await_answers(&self, count: u64) -> Result<(), String> {
        let from = self.answers.load(Ordering::Acquire);
        let began = Instant::now();
        while self.answers.load(Ordering::Acquire) < from + count {
            if began.elapsed() > FIRST_ANSWER_MAX {
                return Err("nobody was answered anything".to_owned());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

/// The server. Clients go on over all kills, so that what it leaves is compared only at the end.
struct ServerVictim<'scene> {
    scene: &'scene Scene,
    launch: &'scene Launch,
    /// The one that was started after the last kill.
    last: Option<ServerProcess>,
}

impl super::Victim for ServerVictim<'_> {
    type Process = ServerProcess;
    type Sums = ();

    fn start(&mut self, _round: u64, _random: &mut Random) -> Result<ServerProcess, String> {
        self.launch.start_opening()
    }

    fn await_work(&mut self, server: &mut ServerProcess, random: &mut Random) -> Result<(), String> {
        self.scene.client.moved_to(server.await_ready()?);
        self.scene.await_answers(1 + random.below(ANSWERS_MAX))
    }

    fn kill(&mut self, server: ServerProcess, (): &mut ()) -> Result<bool, String> {
        let ended = server.kill();
        if ended.stderr.contains("panicked") {
            return Err(format!("the server panicked: {}", ended.stderr));
        }
        Ok(ended.stdout.contains("http://"))
    }

    /// Starts it once more, and leaves it to the clients.
    fn finish(&mut self, random: &mut Random, (): &mut ()) -> Result<(), String> {
        let mut server = self.start(u64::MAX, random)?;
        self.await_work(&mut server, random)?;
        self.last = Some(server);
        Ok(())
    }
}
