//! The parent: a server, an operator for each partition, and what is done to them.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use testkit::random::Random;
use testkit::server_process::{Launch, ServerProcess};

use super::events::{PARTITIONS, Source};
use super::mode::Mode;
use super::server::{Follower, Served};
use crate::directories::fast_directory;

/// How long nothing may happen.
const SILENCE_MAX: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(3);

/// How much is done in a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) events: u64,
    pub(super) kills: u64,
    pub(super) moves: u64,
    pub(super) server_kills: u64,
}

/// What is done to an operator, or to the server.
#[derive(Clone, Copy, Debug)]
enum Blow {
    /// Kills a process and starts another one.
    Kill,
    /// Starts another process; the one before goes on.
    Move,
    /// The same, but the one before is stopped with SIGSTOP until the other one is at work.
    MoveStopped,
    KillServer,
}

/// What became of the blows.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub(super) kills: u64,
    pub(super) moves: u64,
    pub(super) server_kills: u64,
    /// Processes that went on after they were replaced, and were refused.
    pub(super) refused: u64,
    /// Kills between the two commits of a mode that has two.
    pub(super) between: u64,
    /// Commits under a number that somebody else had taken. No owner may meet one.
    pub(super) collisions: u64,
}

/// The operator of a partition.
struct Member {
    source: Source,
    process: ServerProcess,
    /// How far those before it came.
    before: u64,
}

impl Member {
    /// The highest place that it or one before it has committed.
    fn place(&self) -> u64 {
        place_in(&self.process.stdout()).max(self.before)
    }

    /// Whether it has taken its partition over.
    fn is_at_work(&self) -> bool {
        self.process.stdout().contains('O')
    }

    fn is_done(&self) -> bool {
        self.process.stdout().ends_with("done\n")
    }
}

pub(super) struct Scene {
    directory: TempDir,
    served: Served,
    mode: Mode,
    size: Size,
    random: Random,
    members: Vec<Member>,
    zombies: Vec<ServerProcess>,
    done: Done,
    /// Processes that were started.
    started: u64,
}

impl Scene {
    pub(super) fn start(mode: Mode, size: Size, seed: u64) -> Result<Self, String> {
        let directory = fast_directory().map_err(|error| error.to_string())?;
        let served = Served::start(directory.path(), mode.planted())?;
        let random = Random::new(seed ^ 0x5eed);
        let (members, zombies) = (Vec::new(), Vec::new());
        let mut scene =
            Self { directory, served, mode, size, random, members, zombies, done: Done::default(), started: 0 };
        for partition in 0..PARTITIONS {
            let source = Source { seed, partition, places: size.events / u64::from(PARTITIONS) };
            let process = scene.operator(source)?;
            scene.members.push(Member { source, process, before: 0 });
        }
        Ok(scene)
    }

    /// Starts an operator.
    fn operator(&mut self, source: Source) -> Result<ServerProcess, String> {
        self.started += 1;
        let this = std::env::current_exe().map_err(|error| error.to_string())?;
        let numbers = [
            ("--partition", u64::from(source.partition)),
            ("--source-seed", source.seed),
            ("--places", source.places),
            ("--seed", self.random.next() >> 1),
        ];
        let numbers = numbers.iter().flat_map(|(name, number)| [(*name).to_owned(), number.to_string()]);
        Launch::program(this)
            .arguments(["exactly-once-child", "--mode", self.mode.word(), "--name", &format!("w{}", self.started)])
            .arguments(numbers)
            .argument("--sink")
            .argument(self.sink_of(source.partition))
            .argument("--address-file")
            .argument(self.served.address_file())
            .start_opening()
    }

    /// The folder of the files of a partition.
    pub(super) fn sink_of(&self, partition: u32) -> PathBuf {
        self.directory.path().join(format!("out-{partition}"))
    }

    pub(super) fn sources(&self) -> impl Iterator<Item = Source> {
        self.members.iter().map(|member| member.source)
    }

    pub(super) fn follower(&self) -> Follower {
        Follower::new(self.served.address_file())
    }

    /// Keeps the directory of a run that went wrong.
    pub(super) fn keep(self) -> PathBuf {
        self.directory.keep()
    }

    /// Lets the operators count everything, with all blows spread over it.
    pub(super) fn run(&mut self) -> Result<(), String> {
        let Size { events, kills, moves, server_kills } = self.size;
        let mut blows = Vec::new();
        blows.extend((0..kills).map(|_| Blow::Kill));
        blows.extend((0..moves).map(|n| if n % 2 == 0 { Blow::Move } else { Blow::MoveStopped }));
        blows.extend((0..server_kills).map(|_| Blow::KillServer));
        for left in (1..blows.len()).rev() {
            blows.swap(left, self.random.index(left + 1));
        }
        // The last events are counted behind the gate.
        let before_gate = events.saturating_sub(u64::from(PARTITIONS) * self.mode.batch().1);
        let step = before_gate / (blows.len() as u64 + 1);
        for (blow, nth) in blows.into_iter().zip(0..) {
            let threshold = nth * step + self.random.below(step.max(1));
            self.until("events are counted", |scene| scene.places() >= threshold)?;
            std::thread::sleep(Duration::from_micros(self.random.below(20_000)));
            self.strike(blow).map_err(|error| format!("{blow:?}: {error}"))?;
        }
        self.served.open_gate()?;
        self.until("all is counted", |scene| scene.members.iter().all(Member::is_done))?;
        self.until("all that were replaced have ended", |scene| {
            scene.zombies.iter().all(|zombie| has_ended(&zombie.stdout()))
        })?;
        let refused = self.zombies.iter().filter(|zombie| zombie.stdout().ends_with("refused SH-4002\n"));
        self.done.refused = refused.count() as u64;
        let processes = self.members.iter().map(|member| &member.process).chain(&self.zombies);
        self.done.collisions += processes.map(|process| collisions_in(&process.stdout())).sum::<u64>();
        Ok(())
    }

    pub(super) fn done(&self) -> &Done {
        &self.done
    }

    /// Stops the server, which must go well.
    pub(super) fn stop(self) -> Result<Done, String> {
        self.served.stop().map(|()| self.done)
    }

    fn places(&self) -> u64 {
        self.members.iter().map(Member::place).sum()
    }

    fn strike(&mut self, blow: Blow) -> Result<(), String> {
        if matches!(blow, Blow::KillServer) {
            self.done.server_kills += 1;
            return self.served.kill();
        }
        let struck = self.random.index(self.members.len());
        if !matches!(blow, Blow::Kill) {
            // One that is still about to take over would take the partition from the next one.
            self.until("the owner is at work", |scene| scene.members[struck].is_at_work())?;
        }
        let Member { source, process, before } = self.members.remove(struck);
        if matches!(blow, Blow::Kill) {
            let ended = process.kill();
            self.done.kills += 1;
            self.done.collisions += collisions_in(&ended.stdout);
            self.done.between += u64::from(ended.stdout.lines().last().is_some_and(|line| line.starts_with('B')));
            let before = place_in(&ended.stdout).max(before);
            let process = self.operator(source)?;
            self.members.insert(struck, Member { source, process, before });
            return Ok(());
        }
        let is_stopped = matches!(blow, Blow::MoveStopped);
        if is_stopped {
            process.signal("STOP");
        }
        let before = place_in(&process.stdout()).max(before);
        self.zombies.push(process);
        let process = self.operator(source)?;
        self.members.insert(struck, Member { source, process, before });
        self.done.moves += 1;
        if is_stopped {
            let taken = self.until("the next owner is at work", |scene| scene.members[struck].is_at_work());
            self.zombies[self.zombies.len() - 1].signal("CONT");
            taken?;
        }
        Ok(())
    }

    /// What a process complains of, or why it ended.
    fn complaint(&mut self) -> Option<String> {
        let zombies = self.zombies.iter().map(ServerProcess::stdout);
        let said = self.members.iter().map(|member| member.process.stdout()).chain(zombies);
        let wrong =
            said.filter_map(|said| said.lines().last().filter(|line| line.starts_with("wrong")).map(str::to_owned));
        if let Some(wrong) = wrong.into_iter().next() {
            return Some(wrong);
        }
        let ended = self
            .members
            .iter_mut()
            .find_map(|member| (!member.is_done() && member.process.ended().is_some()).then_some(member))?;
        // Its last words may still be on their way.
        std::thread::sleep(Duration::from_millis(300));
        (!ended.is_done()).then(|| {
            let source = ended.source.partition;
            format!("the operator of partition {source} ended: {}{}", ended.process.stdout(), ended.process.stderr())
        })
    }

    /// Waits until something is so, while events are counted.
    fn until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) -> Result<(), String> {
        let (mut places, mut since) = (self.places(), Instant::now());
        while !is_so(self) {
            if let Some(wrong) = self.complaint() {
                return Err(wrong);
            }
            if self.places() > places {
                (places, since) = (self.places(), Instant::now());
            }
            if since.elapsed() > SILENCE_MAX {
                return Err(format!("{what}: nothing happens any more, at {places} events"));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }
}

/// How far an operator is, by what it said.
fn place_in(said: &str) -> u64 {
    said.lines().rev().find_map(|line| line.strip_prefix(['A', 'G', 'O'])?.trim().parse().ok()).unwrap_or(0)
}

/// How often an operator found that somebody else had committed.
fn collisions_in(said: &str) -> u64 {
    said.lines().filter(|line| line.starts_with("C ")).count() as u64
}

/// Whether an operator said its last word.
fn has_ended(said: &str) -> bool {
    said.ends_with("done\n") || said.lines().last().is_some_and(|line| line.starts_with("refused"))
}
