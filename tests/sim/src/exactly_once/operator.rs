//! An operator: a process that owns a partition, counts, and writes closed windows to files, until it is killed or refused.
//!
//! What it says are lines: `O PLACE` when it owns the partition, `A PLACE` after a commit, `B PLACE` between the two of a mode,
//! `C CODE` when somebody else has committed under its number, `G PLACE` before the last events, then `done`, `refused CODE` or
//! `wrong ...`.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::process::ExitCode;
use std::time::Duration;

use client::keyed::{Merge, OwnedPartition};
use client::{Client, Error};
use contract::Outcome;
use statehouse::stream::sinks::{FileSink, Sink};
use statehouse::stream::{Arrival, Watermarks, Window, Windows};
use testkit::arguments::Arguments;
use testkit::http::block_on;
use testkit::random::Random;
use wire::keyed::operators::{AcquirePartition, CommitPartition};
use wire::keyed::updates::KeyUpdate;
use wire::keyed::{ReadPositions, ScanKeys};
use wire::values::DurationText;

use super::events::{DOUBLE_PLACES_MAX, INPUTS, LATENESS, Source};
use super::latest::Latest;
use super::mode::{MAP, Mode};
use super::reference::file_of;
use super::server::{Follower, is_passing};

/// Longer than any run: a partition changes its owner by force only.
const LEASE: Duration = Duration::from_secs(24 * 60 * 60);
/// A window has fewer keys.
const WINDOW_KEYS_MAX: u64 = 1_000;
/// Where an owner says how far it is.
pub(super) const PLACE_CELL: &str = "place";

/// Why an operator ends before its source does.
enum Stop {
    /// Its partition has another owner.
    Refused(String),
    /// Somebody else has committed: it has to look how far the partition is. No owner should meet that.
    Collided,
    Wrong(String),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Stop::Wrong(error.to_string())
    }
}

/// `sim exactly-once-child --address-file FILE --partition N --mode MODE --name NAME --sink FOLDER --places N ...`
pub(crate) fn child(arguments: &Arguments) -> ExitCode {
    let text = |name: &str| arguments.text(name).unwrap_or_else(|| panic!("--{name}"));
    let source = Source::from_arguments(arguments);
    let (mode, name) = (Mode::of_word(text("mode")), text("name"));
    let follower = Follower::new(text("address-file").as_ref());
    let mut random = Random::new(arguments.number("seed", 1));
    let ended = block_on(async {
        let owner = Owner::acquire(follower, mode, source.partition, name).await?;
        loop {
            let sink = FileSink::open(text("sink")).expect("a folder");
            let mut random = Random::new(random.next());
            let lossy = Random::new(random.next());
            match Operator::take_over(owner.clone(), source, sink, lossy).await?.work(&mut random).await {
                Err(Stop::Collided) => {}
                other => return other,
            }
        }
    });
    match ended {
        Ok(()) => println!("done"),
        Err(Stop::Refused(code)) => println!("refused {code}"),
        Err(Stop::Collided) => unreachable!("it looks again"),
        Err(Stop::Wrong(wrong)) => println!("wrong: {wrong}"),
    }
    ExitCode::SUCCESS
}

/// The right to write in a partition.
#[derive(Clone)]
struct Owner {
    follower: Follower,
    mode: Mode,
    owned: OwnedPartition,
}

impl Owner {
    /// Takes the partition from whoever has it.
    async fn acquire(follower: Follower, mode: Mode, partition: u32, name: &str) -> Result<Self, Error> {
        let acquire = AcquirePartition { lease: Some(DurationText(LEASE)), ..AcquirePartition::by(name) };
        let partition = follower.client.forced().partition(MAP, partition);
        let owned = follower.until_answered(async || partition.acquire(&acquire).await).await?;
        Ok(Self { follower, mode, owned })
    }

    /// The group of the partition: its map is the partition.
    fn group(&self) -> &Client {
        self.owned.owned_group()
    }

    async fn next_number(&self) -> Result<u64, Error> {
        let summary = self.follower.until_answered(async || self.group().maps().summary(MAP).await).await?;
        Ok(summary.map_or(0, |map| map.last_number) + 1)
    }

    /// Says beside the keys how far it is. Nothing but the fence keeps an owner that was replaced from setting that back.
    async fn tell_place(&self, place: u64) -> Result<(), Stop> {
        let place = i64::try_from(place).expect("it is small");
        let told = self.follower.until_answered(async || self.group().cells().set(PLACE_CELL, place).await).await;
        told.map(drop).map_err(refused)
    }
}

/// Why an operator stops after an error that no repetition mends.
fn refused(error: Error) -> Stop {
    match error.code() {
        Some("SH-4002") => Stop::Refused("SH-4002".to_owned()),
        _ => error.into(),
    }
}

struct Operator {
    owner: Owner,
    source: Source,
    sink: FileSink,
    windows: Windows,
    watermarks: Watermarks,
    /// Events that may come once more.
    seen: HashSet<u64>,
    /// Windows that have counts in the partition.
    open: BTreeSet<Window>,
    place: u64,
    next: u64,
    latest: Latest,
    /// Which answers are lost.
    lossy: Random,
}

impl Operator {
    /// Reads how far the partition is.
    async fn take_over(owner: Owner, source: Source, sink: FileSink, lossy: Random) -> Result<Self, Stop> {
        let (group, follower, next) = (owner.group().clone(), owner.follower.clone(), owner.next_number().await?);
        let (mut watermarks, mut open, mut place) = (Watermarks::new(INPUTS, LATENESS), BTreeSet::new(), 0);
        if next > 1 {
            let positions = async || group.maps().positions(MAP, &ReadPositions::default()).await;
            let positions = follower.until_answered(positions).await?.positions;
            place = positions.iter().map(|position| position.position).sum();
            for input in INPUTS {
                let highest = async || group.maps().get(MAP, format!("h/{input}")).await;
                if let Some(highest) = follower.until_answered(highest).await?.and_then(|key| key.value.0.as_integer())
                {
                    watermarks.restore(input, highest);
                }
            }
            let mut scan = ScanKeys { prefix: Some(wire::keyed::key::KeyText(b"c/".to_vec())), ..ScanKeys::default() };
            loop {
                let page = follower.until_answered(async || group.maps().scan(MAP, &scan).await).await?;
                open.extend(page.keys.iter().map(|key| window_of(&source.windows(), &key.key.0).0));
                scan.cursor = page.cursor;
                if scan.cursor.is_none() {
                    break;
                }
            }
        }
        let seen = (place.saturating_sub(DOUBLE_PLACES_MAX)..place).map(|place| source.event(place).1.id).collect();
        owner.tell_place(place).await?;
        let (windows, latest) = (source.windows(), Latest::default());
        Ok(Self { owner, source, sink, windows, watermarks, seen, open, place, next, latest, lossy })
    }

    /// Counts up to the end of the source, and closes all windows.
    async fn work(mut self, random: &mut Random) -> Result<(), Stop> {
        println!("O {}", self.place);
        let (fewest, most) = self.owner.mode.batch();
        loop {
            if self.place == self.source.places {
                INPUTS.into_iter().for_each(|input| self.watermarks.finish(input));
            }
            let closing = self.emit_closed(CommitPartition::numbered(self.next)).await?;
            let to = (self.place + fewest + random.below(most - fewest)).min(self.source.places);
            if to == self.source.places {
                println!("G {}", self.place);
                self.owner.follower.until_let_through().await;
            }
            self.send_latest(to, random).await?;
            let commit = self.count(closing, to);
            if commit.updates.is_none() {
                return Ok(());
            }
            self.commit(commit, to).await?;
            self.owner.tell_place(to).await?;
            self.place = to;
            println!("A {to}");
        }
    }

    /// Writes the windows that are closed by what is committed, and removes their counts in the next commit.
    async fn emit_closed(&mut self, mut commit: CommitPartition) -> Result<CommitPartition, Stop> {
        let watermark = self.watermarks.watermark().unwrap_or(i64::MIN);
        while let Some(window) = self.open.first().copied().filter(|window| window.is_closed_by(watermark)) {
            self.open.remove(&window);
            let group = self.owner.group().clone();
            let prefix = Some(wire::keyed::key::KeyText(format!("c/{}/", hex(window)).into_bytes()));
            // One page, from one view: all counts of the window, or none if another owner has removed them.
            let scan = ScanKeys { prefix, limit: Some(WINDOW_KEYS_MAX), ..ScanKeys::default() };
            let keys = self.owner.follower.until_answered(async || group.maps().scan(MAP, &scan).await).await?.keys;
            let mut lines = String::new();
            for key in &keys {
                let (_, word) = window_of(&self.windows, &key.key.0);
                lines += &format!("{word} {}\n", key.value.0.as_integer().expect("a sum"));
                commit = commit.update(KeyUpdate::remove(key.key.0.clone()));
            }
            if !keys.is_empty() {
                let written = self.sink.write(&file_of(window.start), lines.as_bytes());
                written.map_err(|error| Stop::Wrong(error.to_string()))?;
            }
        }
        Ok(commit)
    }

    /// Adds what the events up to a place count.
    fn count(&mut self, mut commit: CommitPartition, to: u64) -> CommitPartition {
        let mut fates: BTreeMap<&str, i64> = BTreeMap::new();
        let mut words: BTreeMap<String, (i64, u64)> = BTreeMap::new();
        for place in self.place..to {
            let (input, event) = self.source.event(place);
            let fate = if !self.seen.insert(event.id) {
                "doubled"
            } else if self.watermarks.observe(INPUTS[input], event.time) == Arrival::Late {
                "late"
            } else {
                for window in self.windows.of(event.time) {
                    let key = format!("c/{}/{}", hex(window), event.word);
                    commit = commit.update(KeyUpdate::merge(key, Merge::Add, 1));
                    self.open.insert(window);
                }
                let (count, last) = words.entry(event.word).or_default();
                (*count, *last) = (*count + 1, place);
                "counted"
            };
            *fates.entry(fate).or_default() += 1;
        }
        for (fate, count) in fates {
            commit = commit.update(KeyUpdate::merge(format!("n/{fate}"), Merge::Add, count));
        }
        for (word, (count, last)) in words {
            commit = commit.update(KeyUpdate::merge(format!("t/{word}"), Merge::Add, count));
            let value = i64::try_from(last).expect("it is small");
            commit = commit.update(KeyUpdate::put(format!("l/{word}"), value, last + 1));
        }
        if self.place < to {
            for input in INPUTS {
                let highest = self.watermarks.highest(input).into_iter();
                commit = highest.fold(commit, |commit, highest| {
                    commit.update(KeyUpdate::merge(format!("h/{input}"), Merge::Max, highest))
                });
            }
        }
        commit
    }

    /// Commits the updates with the positions at a place, as the mode does it.
    async fn commit(&mut self, commit: CommitPartition, place: u64) -> Result<(), Stop> {
        let advance = |commit: CommitPartition| {
            INPUTS
                .into_iter()
                .zip(Source::positions(place))
                .fold(commit, |commit, (input, at)| commit.advance(input, at))
        };
        if self.owner.mode != Mode::PositionsApart {
            return self.send_until_answered(advance(commit)).await;
        }
        self.send_until_answered(commit).await?;
        println!("B {place}");
        tokio::time::sleep(Duration::from_millis(2)).await;
        self.send_until_answered(advance(CommitPartition::numbered(self.next))).await
    }

    /// Sends a commit until it is answered: the same one, under the same number, unless the mode leaves that out.
    async fn send_until_answered(&mut self, mut commit: CommitPartition) -> Result<(), Stop> {
        let takes_next = self.owner.mode == Mode::FreshNumbers;
        loop {
            let error = match lose(&mut self.lossy, self.owner.mode, self.owner.owned.commit(&commit)).await {
                Ok(_) => {
                    self.next = commit.number + 1;
                    return Ok(());
                }
                Err(error) => error,
            };
            match error.code() {
                Some("SH-8005" | "SH-8006") if takes_next => commit.number = self.owner.next_number().await?,
                Some(code @ ("SH-8005" | "SH-8006" | "SH-8007")) => {
                    println!("C {code}");
                    return Err(Stop::Collided);
                }
                _ if is_passing(&error) => {
                    self.owner.follower.look_again().await;
                    if takes_next && error.outcome() == Outcome::Unknown {
                        commit.number = self.owner.next_number().await?;
                    }
                }
                _ => return Err(refused(error)),
            }
        }
    }

    /// Sends the latest events up to a place, two parts at the same time, until both are answered.
    async fn send_latest(&mut self, to: u64, random: &mut Random) -> Result<(), Stop> {
        let events = (self.place..to).map(|place| self.source.event(place).1);
        let [first, second] = self.latest.updates(events, random);
        let (mut lossy, mut lossy_too) = (Random::new(self.lossy.next()), Random::new(self.lossy.next()));
        let (first, second) =
            tokio::join!(self.owner.update(first, &mut lossy), self.owner.update(second, &mut lossy_too));
        first.and(second)
    }
}

impl Owner {
    /// Sends updates without a number until they are answered.
    async fn update(&self, updates: Vec<KeyUpdate>, lossy: &mut Random) -> Result<(), Stop> {
        while !updates.is_empty() {
            match lose(lossy, self.mode, self.group().maps().update(MAP, updates.clone())).await {
                Ok(_) => break,
                Err(error) if is_passing(&error) => self.follower.look_again().await,
                Err(error) => return Err(refused(error)),
            }
        }
        Ok(())
    }
}

/// Sends something. Some answers are lost, and some connections close before there is one.
async fn lose<T>(lossy: &mut Random, mode: Mode, sent: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    if !lossy.one_in(mode.answers_per_lost()) {
        return sent.await;
    }
    let patience = Duration::from_micros(lossy.below(30_000));
    let answer = if lossy.one_in(2) { tokio::time::timeout(patience, sent).await.ok() } else { Some(sent.await) };
    match answer {
        Some(Err(error)) => Err(error),
        _ => Err(Error::NoAnswer { server: String::new(), cause: "it was lost".into(), outcome: Outcome::Unknown }),
    }
}

/// The key of a window as text, in the order of time.
fn hex(window: Window) -> String {
    format!("{:016x}", u64::from_be_bytes(window.key()))
}

/// The window and the word of a key of a count.
fn window_of(windows: &Windows, key: &[u8]) -> (Window, String) {
    let key = std::str::from_utf8(key).expect("text");
    let (window, word) = key["c/".len()..].split_once('/').expect("a window and a word");
    let start = u64::from_str_radix(window, 16).expect("hexadecimal").to_be_bytes();
    (windows.of_key(&start).expect("the key of a window").0, word.to_owned())
}
