//! An owner that is stopped with SIGSTOP in the middle of a step, replaced by another process, and wakes up.
//!
//! `sim one-writer-paused --times N [--seed S]`. Two processes append to one run of a guarded group; each computes its next event
//! from the one before and appends it without any condition. Whoever owns the group is stopped at a random moment; once the other
//! has taken over and written, it is woken. Every event names the event that it was computed from: a writer that goes on from what
//! it knew breaks the chain. Would see broken: O1, R2 over HTTP, and a refusal that does not say who has it.
//! The canary is a short run in a group without a guard, whose writers check that they own it before every event: the chain must
//! break, or this test could not find a fork.

use std::time::{Duration, Instant};

use client::{Client, ClientOptions, Error};
use serde_json::{Value as JsonValue, json};
use testkit::arguments::Arguments;
use testkit::http::{Client as TestClient, Request, block_on};
use testkit::random::Random;
use testkit::report::Report;
use testkit::server_process::{Launch, ServerProcess, binary};
use wire::owners::OwnGroup;
use wire::runs::ReadEvents;
use wire::values::DurationText;

use crate::directories::fast_directory;

const RUN: &str = "history";
const WORKERS: [&str; 2] = ["ann", "bob"];
/// Short, because every round waits for it once.
const LEASE: Duration = Duration::from_millis(300);
/// A round takes a lease and a few writes.
const ROUND_MAX: Duration = Duration::from_secs(60);
/// Stops in the run without a guard.
const CANARY_STOPS: u64 = 40;

/// Runs the test with a guard, then the canary without one.
pub(crate) fn run(arguments: &Arguments) -> Report {
    let (seed, times) = (arguments.seed(), arguments.number("times", 1_000));
    println!("one-writer-paused: seed {seed}, {times} stops");
    let found = phase(seed, times, "agents.1");
    found.wrong.iter().take(20).for_each(|wrong| println!("one-writer-paused: {wrong}"));
    let mut report = Report::new("keyed");
    let figure = format!(
        "{}-take-overs-{}-events-{}-forks-{}-wrong",
        found.rounds,
        found.events,
        found.forks,
        found.wrong.len()
    );
    // Whoever takes over writes, so there is an event for each round.
    let is_read = found.events as u64 >= found.rounds;
    let ok = found.rounds == times && found.forks == 0 && found.wrong.is_empty() && is_read;
    let goal = "one unbroken chain, nothing written by an owner that was replaced, both told by name";
    report.add("paused", figure, &format!("{times} take-overs: {goal}"), ok);
    if !ok {
        println!("replay: cargo run --profile stress -p sim -- one-writer-paused --times {times} --seed {seed}");
    }
    let open = phase(seed, CANARY_STOPS, "open.1");
    println!("one-writer-paused: without a guard {} of {} take-overs, {} forks", open.rounds, CANARY_STOPS, open.forks);
    let figure = if open.forks > 0 { "found" } else { "not-found" };
    report.add("paused-canary", figure, "forks found without a guard", open.forks > 0);
    report
}

#[derive(Default)]
struct Found {
    rounds: u64,
    events: usize,
    /// Events that were not computed from the one before.
    forks: usize,
    wrong: Vec<String>,
}

fn phase(seed: u64, times: u64, group: &str) -> Found {
    let directory = fast_directory().expect("a directory");
    let server = Launch::serve(binary(), directory.path().join("house")).start().expect("a server");
    let client = TestClient::to(server.address());
    client.call(Request::put("/v1/guards/agents.").body("{}")).expect("a guard");
    let this = std::env::current_exe().expect("the path of this program");
    let workers = WORKERS.map(|worker| {
        let url = format!("http://{}", server.address());
        let launch =
            Launch::program(&this).arguments(["one-writer-child", "--worker", worker, "--group", group, "--server"]);
        launch.argument(url).start_opening().expect("a worker")
    });
    let mut scene =
        Scene { client, group: group.to_owned(), workers, random: Random::new(seed), found: Found::default() };
    for _ in 0..times {
        if let Err(wrong) = scene.round() {
            scene.found.wrong.push(wrong);
            break;
        }
        scene.found.rounds += 1;
    }
    if let Err(wrong) = scene.check() {
        scene.found.wrong.push(wrong);
    }
    scene.found
}

struct Scene {
    client: TestClient,
    group: String,
    workers: [ServerProcess; 2],
    random: Random,
    found: Found,
}

impl Scene {
    /// Stops the owner, waits until the other has taken over and written, and wakes it.
    fn round(&mut self) -> Result<(), String> {
        let owner = self.until("somebody owns the group", |scene| scene.owner())?;
        std::thread::sleep(Duration::from_micros(self.random.below(20_000)));
        let other = 1 - owner;
        // The other one asked once without waiting: when it began, or when it had lost the group itself.
        self.until("the other one was told who has the group", |scene| {
            let told = scene.said(other, "held ").pop()?;
            (told.contains("SH-1021") && told.contains(WORKERS[owner])).then_some(())
        })?;
        let lost = self.said(owner, "lost ");
        self.workers[owner].signal("STOP");
        let taken = self.until("the other one has taken over and written", |scene| {
            let last = scene.last_event()?;
            (scene.owner() == Some(other) && last["eventData"]["worker"] == WORKERS[other]).then_some(())
        });
        self.workers[owner].signal("CONT");
        taken?;
        let told = self.until("the first one was told", |scene| scene.said(owner, "lost ").get(lost.len()).cloned())?;
        // On a busy machine the lease of the other one may have ended too: then the refusal says that nobody owns it. Where nothing
        // is guarded, it may have written before it looked.
        let says_who = told.contains(WORKERS[other]) || told.contains("it is free");
        if self.group.starts_with("agents.") && !(told.contains("SH-4002") && says_who) {
            self.found.wrong.push(format!("{} was told {told:?}", WORKERS[owner]));
        }
        Ok(())
    }

    fn until<T>(&self, what: &str, look: impl Fn(&Self) -> Option<T>) -> Result<T, String> {
        let began = Instant::now();
        while began.elapsed() < ROUND_MAX {
            if let Some(found) = look(self) {
                return Ok(found);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let said = |place: usize| format!("{}\n{}", self.workers[place].stdout(), self.workers[place].stderr());
        let last = |text: String| text.lines().rev().take(5).collect::<Vec<_>>().join(" | ");
        Err(format!("{what}: not within {ROUND_MAX:?}; {} / {}", last(said(0)), last(said(1))))
    }

    fn owner(&self) -> Option<usize> {
        let owner = self.client.call(Request::get(format!("/v1/groups/{}/owner", self.group))).ok()?.json();
        WORKERS.iter().position(|worker| owner["holder"]["worker"] == **worker)
    }

    /// Lines of a worker that begin with a word.
    fn said(&self, worker: usize, word: &str) -> Vec<String> {
        self.workers[worker].stdout().lines().filter(|line| line.starts_with(word)).map(str::to_owned).collect()
    }

    fn events_after(&self, after: u64) -> Result<Vec<JsonValue>, String> {
        let read = Request::get(format!("/v1/runs/{RUN}/events")).query("group", &self.group).query("after", after);
        let page = self.client.call(read.query("limit", 1_000)).map_err(|error| format!("the events: {error}"))?.json();
        page["events"].as_array().cloned().ok_or_else(|| format!("the events after {after} are {page}"))
    }

    /// The sequence of the last event, as the run has it.
    fn last_sequence(&self) -> Option<u64> {
        let snapshot = Request::get(format!("/v1/runs/{RUN}/snapshot")).query("group", &self.group);
        self.client.call(snapshot).ok()?.json()["lastEventSeq"].as_u64()
    }

    fn last_event(&self) -> Option<JsonValue> {
        self.events_after(self.last_sequence()?.checked_sub(1)?).ok()?.pop()
    }

    /// Reads the run from its first event to its last: each was computed from the one before it, and attempts only rise.
    fn check(&mut self) -> Result<(), String> {
        // The workers stop, so that the run has an end.
        self.workers.iter().for_each(|worker| worker.signal("STOP"));
        let end = self.last_sequence().ok_or("the run has no last event")?;
        let (mut after, mut before, mut attempt) = (0, JsonValue::Null, 0);
        while after < end {
            let events = self.events_after(after)?;
            for event in &events {
                let data = &event["eventData"];
                self.found.forks += usize::from(data["from"] != before);
                let by = data["attempt"].as_u64().expect("an attempt");
                if by < attempt && self.group.starts_with("agents.") {
                    self.found
                        .wrong
                        .push(format!("{event} was written by an attempt that was over: {attempt} wrote before"));
                }
                let sequence = event["runSeq"].as_u64().expect("a sequence");
                if sequence != after + 1 {
                    return Err(format!("the run has event {sequence} behind {after}"));
                }
                (before, attempt, after) = (event["idempotencyKey"].clone(), by, sequence);
            }
            if events.is_empty() {
                return Err(format!("the run ends at {after}, and its last event is {end}"));
            }
            self.found.events += events.len();
        }
        Ok(())
    }
}

/// `sim one-writer-child --server URL --worker NAME --group GROUP`: owns the group and appends, until it is killed.
pub(crate) fn child(arguments: &Arguments) -> std::process::ExitCode {
    let text = |name: &str| arguments.text(name).unwrap_or_else(|| panic!("--{name}")).to_owned();
    let client = ClientOptions::default().connect(&text("server")).expect("a client");
    let worker = Worker { client, name: text("worker"), group: text("group") };
    loop {
        if let Err(error) = block_on(worker.own_and_append()) {
            println!("lost {error}");
        }
    }
}

struct Worker {
    client: Client,
    name: String,
    group: String,
}

impl Worker {
    /// Owns the group, reads how far the run is, and appends until the group is lost.
    async fn own_and_append(&self) -> Result<(), Error> {
        let lease = Some(DurationText(LEASE));
        let now = OwnGroup { lease, ..OwnGroup::by(&self.name) };
        let owned = match self.client.own(&self.group, &now).await {
            Err(error) if error.code() == Some("SH-1021") => {
                println!("held {error}");
                self.client
                    .own(&self.group, &OwnGroup { wait: Some(DurationText(Duration::from_secs(50))), ..now })
                    .await
            }
            other => other,
        };
        let owned = match owned {
            Ok(owned) => owned,
            // It asks again.
            Err(error) if error.code() == Some("SH-1021") => return Ok(()),
            Err(error) => panic!("{error}"),
        };
        let guarded = self.group.starts_with("agents.");
        // Without a guard, a worker that checks first and then writes is what cooperative fences come down to.
        let plain = self.client.group(&self.group);
        let run = if guarded { owned.runs() } else { plain.runs() };
        let mut before = self.last_key().await?;
        let mut extended = Instant::now();
        for n in 0_u64.. {
            if !guarded
                && self.client.owner(&self.group).await?.holder.and_then(|holder| holder.worker)
                    != Some(self.name.clone())
            {
                println!("lost the group, as it found");
                return Ok(());
            }
            let key = format!("{}-{}-{n}", self.name, owned.attempt());
            let data = json!({ "worker": self.name, "attempt": owned.attempt(), "from": before });
            let event = json!({ "eventType": "Progress", "idempotencyKey": key, "eventData": data });
            // The step: what was computed from the event before is written a little later.
            tokio::time::sleep(Duration::from_millis(1)).await;
            run.append(RUN, event.to_string(), None).await?;
            before = key.into();
            if extended.elapsed() > LEASE / 4 {
                owned.extend(Some(LEASE)).await?;
                extended = Instant::now();
            }
        }
        Ok(())
    }

    /// The key of the last event.
    async fn last_key(&self) -> Result<JsonValue, Error> {
        let place = self.client.group(&self.group);
        let Some(snapshot) = place.runs().snapshot(RUN).await? else { return Ok(JsonValue::Null) };
        let snapshot: JsonValue = serde_json::from_str(&snapshot.0.0).expect("JSON");
        let after = snapshot["lastEventSeq"].as_u64().expect("a sequence") - 1;
        let page = place.runs().events(RUN, &ReadEvents { after: Some(after), ..ReadEvents::default() }).await?;
        let last: JsonValue = serde_json::from_str(&page.events.last().expect("an event").0.0).expect("JSON");
        Ok(last["idempotencyKey"].clone())
    }
}
