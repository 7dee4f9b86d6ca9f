//! An operator: a process that owns a partition, counts, and writes closed windows to files, until it is killed or refused.
//!
//! What it says are lines: `O PLACE` when it owns the partition, `A PLACE` after a commit, `B PLACE` between the two of a mode, `G PLACE` before the last events,
//! then `done`, `refused CODE` or `wrong ...`.

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
use wire::keyed::{CommitMap, ReadPositions, ScanKeys};
use wire::values::DurationText;

use super::events::{DOUBLE_PLACES_MAX, INPUTS, LATENESS, Source};
use super::mode::{MAP, Mode};
use super::reference::file_of;
use super::server::{Follower, is_passing};

/// Longer than any run: a partition changes its owner by force only.
const LEASE: Duration = Duration::from_secs(24 * 60 * 60);
/// A window has fewer keys.
const WINDOW_KEYS_MAX: u64 = 1_000;

/// Why an operator ends before its source does.
enum Stop {
    /// Its partition has another owner.
    Refused(String),
    /// It has to look how far the partition is.
    Reload,
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
    let ended = loop {
        let sink = FileSink::open(text("sink")).expect("a folder");
        let owner = Owner { follower: follower.clone(), mode, partition: source.partition, owned: None };
        let mut random = Random::new(random.next());
        let lossy = Random::new(random.next());
        match block_on(Operator::take_over(owner, source, name, sink, lossy)) {
            Ok(operator) => match block_on(operator.work(&mut random)) {
                Err(Stop::Reload) => {}
                other => break other,
            },
            Err(stop) => break Err(stop),
        }
    };
    match ended {
        Ok(()) => println!("done"),
        Err(Stop::Refused(code)) => println!("refused {code}"),
        Err(Stop::Reload) => unreachable!("it was tried again"),
        Err(Stop::Wrong(wrong)) => println!("wrong: {wrong}"),
    }
    ExitCode::SUCCESS
}

/// The right to write in a partition, whichever it is.
struct Owner {
    follower: Follower,
    mode: Mode,
    partition: u32,
    owned: Option<OwnedPartition>,
}

impl Owner {
    /// Takes the partition from whoever has it.
    async fn acquire(&mut self, name: &str) -> Result<(), Error> {
        if self.mode == Mode::Unfenced {
            return Ok(());
        }
        let acquire = AcquirePartition { lease: Some(DurationText(LEASE)), ..AcquirePartition::by(name) };
        let partition = self.follower.client.forced().partition(MAP, self.partition);
        self.owned = Some(self.follower.until_answered(async || partition.acquire(&acquire).await).await?);
        Ok(())
    }

    /// The group of the partition, for reading: its map is the partition.
    fn group(&self) -> Client {
        self.follower.client.group(self.mode.group(self.partition))
    }

    async fn next_number(&self) -> Result<u64, Error> {
        let summary = self.follower.until_answered(async || self.group().maps().summary(MAP).await).await?;
        Ok(summary.map_or(0, |map| map.last_number) + 1)
    }

    async fn send(&self, commit: &CommitPartition) -> Result<(), Error> {
        match &self.owned {
            Some(owned) => owned.commit(commit).await.map(drop),
            None => {
                let CommitPartition { number, updates, positions, seal, .. } = commit.clone();
                self.group().maps().commit(MAP, &CommitMap { number, updates, positions, seal }).await.map(drop)
            }
        }
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
    /// Which answers are lost.
    lossy: Random,
}

impl Operator {
    /// Owns the partition, and reads how far it is.
    async fn take_over(
        mut owner: Owner,
        source: Source,
        name: &str,
        sink: FileSink,
        lossy: Random,
    ) -> Result<Self, Stop> {
        owner.acquire(name).await?;
        let (group, follower, next) = (owner.group(), owner.follower.clone(), owner.next_number().await?);
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
        let windows = source.windows();
        Ok(Self { owner, source, sink, windows, watermarks, seen, open, place, next, lossy })
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
            let commit = self.count(closing, to);
            if commit.updates.is_none() {
                return Ok(());
            }
            self.commit(commit, to).await?;
            self.place = to;
            println!("A {to}");
        }
    }

    /// Writes the windows that are closed by what is committed, and removes their counts in the next commit.
    async fn emit_closed(&mut self, mut commit: CommitPartition) -> Result<CommitPartition, Stop> {
        let watermark = self.watermarks.watermark().unwrap_or(i64::MIN);
        while let Some(window) = self.open.first().copied().filter(|window| window.is_closed_by(watermark)) {
            self.open.remove(&window);
            let group = self.owner.group();
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
                match self.sink.write(&file_of(window.start), lines.as_bytes()) {
                    // Two that write at once may find different counts: the comparison at the end sees that.
                    Err(error) if self.owner.mode != Mode::Unfenced => return Err(Stop::Wrong(error.to_string())),
                    _ => {}
                }
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
        let mode = self.owner.mode;
        loop {
            let error = match self.send_once(&commit).await {
                Ok(()) => {
                    self.next = commit.number + 1;
                    return Ok(());
                }
                Err(error) => error,
            };
            let takes_next = match error.code() {
                Some("SH-4002") => return Err(Stop::Refused("SH-4002".to_owned())),
                Some("SH-8005" | "SH-8006") => matches!(mode, Mode::Unfenced | Mode::FreshNumbers),
                Some("SH-8007") if mode == Mode::Unfenced => return Err(Stop::Reload),
                _ if is_passing(&error) => {
                    self.owner.follower.look_again().await;
                    if mode == Mode::FreshNumbers && error.outcome() == Outcome::Unknown {
                        commit.number = self.owner.next_number().await?;
                    }
                    continue;
                }
                _ => false,
            };
            if !takes_next {
                return Err(error.into());
            }
            commit.number = self.owner.next_number().await?;
        }
    }

    /// Sends a commit. Some answers are lost, and some connections close before there is one.
    async fn send_once(&mut self, commit: &CommitPartition) -> Result<(), Error> {
        let sent = self.owner.send(commit);
        if !self.lossy.one_in(self.owner.mode.answers_per_lost()) {
            return sent.await;
        }
        let patience = Duration::from_micros(self.lossy.below(30_000));
        let answer =
            if self.lossy.one_in(2) { tokio::time::timeout(patience, sent).await.ok() } else { Some(sent.await) };
        match answer {
            Some(Err(error)) => Err(error),
            _ => Err(Error::NoAnswer { server: String::new(), cause: "it was lost".into(), outcome: Outcome::Unknown }),
        }
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
