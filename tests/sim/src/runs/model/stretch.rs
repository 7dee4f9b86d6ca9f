//! One stretch of random entries on a kernel and its store, against the reference, and the same entries again.
//!
//! Between entries the store is flushed, the kernel is loaded again from it, which forgets everything that it knew by
//! heart, and the store is replaced by a restored image. At the end everything that is due is done, and the same entries
//! are applied again: the hash after each must be equal, whatever was forgotten when.

use std::collections::BTreeSet;

use contract::{Limits, Retention};
use kernel::{Answer, Buckets, CatalogueChange, EntryHeader, Keys, OpOutcome};
use kv::{View, Writer};
use session::{Envelope, Reply, Stamp};
use testkit::random::Random;

use super::book::Book;
use super::command::{Act, Command, Id};
use super::compare::Both;
use super::generator::{Generator, Habits};
use super::reference::{Expected, Reference};
use super::rows;
use super::tally::{Tally, add};
use crate::model::again::apply_again;
use crate::model::compare::same;
use crate::model::instance::{Instance, Plan, text};

/// Commands in one entry.
const COMMANDS_MAX: u64 = 6;

/// Operations between looks at everything.
const CHECK_EVERY: u64 = 400;

/// Ticks after which nothing may be due.
const TICKS_MAX: u32 = 100_000;

/// Runs one stretch of random entries against the reference.
pub(crate) fn run(seed: u64, operations: u64, tally: &Tally) -> Result<(), String> {
    let mut random = Random::new(seed);
    let buckets = Buckets::new(random.pick(&[1, 2, 8, 64])).expect("a power of two");
    let plan = Plan::draw(&mut random);
    let instance = Instance::genesis(&plan, Keys::new(1, 0), buckets)?;
    let habits = Habits::draw(&mut random);
    let mut stretch = Stretch {
        random,
        habits,
        tally,
        instance,
        generation: 1,
        reference: Reference::default(),
        book: Book::default(),
        done: 0,
        entries: Vec::new(),
        hashes: Vec::new(),
    };
    stretch.go(operations).map_err(|what| stretch.explain(&what))?;
    stretch.again(buckets)
}

struct Stretch<'tally> {
    random: Random,
    habits: Habits,
    tally: &'tally Tally,
    instance: Instance,
    generation: u32,
    reference: Reference,
    book: Book,
    /// Operations so far.
    done: u64,
    /// Every entry so far; the first has index 1.
    entries: Vec<Vec<u8>>,
    /// The running hash after each of them.
    hashes: Vec<u64>,
}

impl Stretch<'_> {
    fn go(&mut self, operations: u64) -> Result<(), String> {
        self.declare()?;
        let mut checked = 0;
        while self.done < operations {
            self.pass_time();
            self.entry()?;
            self.between_entries()?;
            if self.done - checked >= CHECK_EVERY {
                checked = self.done;
                self.check(false)?;
            }
        }
        self.check(false)?;
        self.drain()
    }

    fn both<'both>(&'both self, view: &'both dyn View) -> Both<'both> {
        Both { instance: &self.instance, view, reference: &self.reference }
    }

    fn explain(&self, what: &str) -> String {
        format!("{what}\n  after {} entries on {}", self.entries.len(), self.instance.describe())
    }

    /// Spaces, branches, and ticks that are small enough for a run to go in several.
    fn declare(&mut self) -> Result<(), String> {
        let mut limits = Limits::default();
        limits.tick_steps_max = self.random.pick(&[1, 3, 256]);
        let changes = vec![
            CatalogueChange::CreateSpace { name: "other".to_owned() },
            CatalogueChange::CreateBranch { space: 1, name: "draft".to_owned() },
            CatalogueChange::SetRetention { space: 1, retention: Retention::ALL },
            CatalogueChange::SetLimits(limits),
        ];
        self.reference.begin_entry(1_000_000, 1_000);
        let commands: Vec<_> = changes.into_iter().map(Command::Catalogue).collect();
        let expected: Vec<_> = commands.iter().map(|command| self.reference.apply(command)).collect();
        self.apply(&commands, &expected)
    }

    /// Lets time go on, mostly a little, at times by more than the index may lag.
    fn pass_time(&mut self) {
        let random = &mut self.random;
        let (wall_us, cluster_us) = (self.reference.wall_us, self.reference.cluster_us);
        let wall_us = match random.below(100) {
            0..=69 => wall_us + random.below(300),
            70..=94 => wall_us + random.below(5_000_000),
            95..=97 => wall_us + random.below(150_000_000),
            // The clock was set back.
            _ => wall_us.saturating_sub(5_000),
        };
        self.reference.begin_entry(wall_us, cluster_us + random.below(300));
    }

    fn entry(&mut self) -> Result<(), String> {
        let (mut commands, mut expected) = (Vec::new(), Vec::new());
        for _ in 0..1 + self.random.below(COMMANDS_MAX) {
            let (habits, reference) = (self.habits, &self.reference);
            let command = Generator { random: &mut self.random, habits, reference }.command();
            expected.push(self.reference.apply(&command));
            commands.push(command);
        }
        self.apply(&commands, &expected)?;
        let touched: BTreeSet<&Id> = commands
            .iter()
            .filter_map(|command| match command {
                Command::Transact(acts) => Some(acts.iter().map(|(id, _)| id)),
                _ => None,
            })
            .flatten()
            .collect();
        let view = self.instance.view()?;
        let mut random = self.random.clone();
        for id in &touched {
            self.both(&*view).run(id, &mut random)?;
        }
        self.random = random;
        self.done += touched.len() as u64;
        add(&self.tally.operations, touched.len() as u64);
        add(&self.tally.reads, touched.len() as u64);
        Ok(())
    }

    /// Applies an entry and compares its answers.
    fn apply(&mut self, commands: &[Command], expected: &[Expected]) -> Result<(), String> {
        let stamp = Stamp { wall_us: self.reference.wall_us, cluster_us: self.reference.cluster_us };
        let envelopes: Vec<_> = commands.iter().map(|command| envelope(&command.encode())).collect();
        self.entries.push(EntryHeader::new(stamp).encode(envelopes.iter().map(Vec::as_slice)));
        let replies = self.instance.apply(self.entries.last().expect("just pushed"))?;
        self.hashes.push(self.instance.kernel.applied().hash);
        add(&self.tally.entries, 1);
        same(|| "the number of replies".into(), &replies.len(), &expected.len())?;
        for (reply, (command, expected)) in replies.iter().zip(commands.iter().zip(expected)) {
            let Reply::Answer(answer) = Reply::decode(reply).map_err(text)? else {
                return Err("a command without a session was taken for one".into());
            };
            let found = match Answer::decode(answer).map_err(text)? {
                Answer::Rejected(rejection) => Err(rejection),
                Answer::Done { outcomes, .. } => Ok(outcomes),
            };
            let operations = command.operations();
            self.done += operations;
            add(&self.tally.operations, operations);
            if let Command::Transact(acts) = command {
                self.enter(acts, &found).map_err(|what| format!("{what}\n  in the answer to {command:?}"))?;
                same(|| format!("the answer to {command:?}"), &found, expected)?;
            }
        }
        let applied = self.instance.kernel.applied();
        let found = (applied.commit, applied.stamp.wall_us);
        same(|| "what was applied".into(), &found, &(self.reference.commit, self.reference.wall_us))
    }

    /// Enters an answer into the book, and counts it.
    fn enter(&mut self, acts: &[(Id, Act)], found: &Expected) -> Result<(), String> {
        let tally = self.tally;
        let Ok(outcomes) = found else {
            add(&tally.rejections, 1);
            return Ok(());
        };
        for ((id, act), outcome) in acts.iter().zip(outcomes) {
            self.book.answered(id, act, outcome)?;
            match (act, outcome) {
                (_, OpOutcome::Appended { idempotent: false, .. }) => add(&tally.appended, 1),
                (_, OpOutcome::Appended { payload_mismatch, .. }) => {
                    add(&tally.known, 1);
                    add(&tally.mismatches, u64::from(*payload_mismatch));
                }
                (Act::Fork { .. }, _) => add(&tally.forks, 1),
                (Act::Delete, _) => add(&tally.deletions, 1),
                _ => {}
            }
        }
        Ok(())
    }

    fn between_entries(&mut self) -> Result<(), String> {
        if self.random.one_in(4) {
            let view = self.instance.view()?;
            let mut random = self.random.clone();
            self.both(&*view).list(&mut random)?;
            self.random = random;
            add(&self.tally.reads, 1);
        }
        match self.random.below(400) {
            0..=19 => self.instance.flush(),
            20..=34 => {
                add(&self.tally.reloads, 1);
                self.instance.reload()
            }
            35..=40 => self.restart(),
            41..=44 => self.change_over(),
            _ => Ok(()),
        }
    }

    /// The numbered checks on everything.
    fn check(&mut self, drained: bool) -> Result<(), String> {
        let view = self.instance.view()?;
        let mut random = self.random.clone();
        let mut book = std::mem::take(&mut self.book);
        rows::check(&self.both(&*view), drained)?;
        let reads = self.both(&*view).everything(&mut book, &mut random)?;
        (self.book, self.random) = (book, random);
        add(&self.tally.reads, reads);
        add(&self.tally.checks, 1);
        Ok(())
    }

    /// Loses what was not flushed, and applies it again.
    fn restart(&mut self) -> Result<(), String> {
        let applied = *self.instance.kernel.applied();
        let placeholder = Instance::genesis(&Plan::memory(), self.instance.keys, Buckets::default())?;
        let instance = std::mem::replace(&mut self.instance, placeholder);
        self.instance = instance.restart(&self.entries)?;
        add(&self.tally.reloads, 1);
        same(|| "what was applied, after a restart".into(), self.instance.kernel.applied(), &applied)
    }

    /// Goes on with a restored image, in another generation and on another store.
    fn change_over(&mut self) -> Result<(), String> {
        let (image, _) = self.instance.image()?;
        self.generation += 1;
        let plan = Plan::draw(&mut self.random);
        let restored = Instance::restore(&plan, Keys::new(self.generation, 0), &image)?;
        if restored.image()?.0 != image {
            return Err("the image of a restored image is another".into());
        }
        self.instance = restored;
        add(&self.tally.images, 1);
        Ok(())
    }

    /// Does what is due, until nothing is any more.
    fn drain(&mut self) -> Result<(), String> {
        for _ in 0..TICKS_MAX {
            let next = self.instance.kernel.next_due(self.instance.view()?).map_err(text)?;
            let Some(wall_us) = next.wall_us else {
                return self.check(true);
            };
            self.reference.begin_entry(wall_us.max(self.reference.wall_us), self.reference.cluster_us);
            let expected = self.reference.apply(&Command::Tick);
            self.apply(&[Command::Tick], &[expected])?;
        }
        Err(format!("something is still due after {TICKS_MAX} ticks: {:?}", self.instance.next_due))
    }

    /// Applies the same entries again: with the kernel loaded anew at random, and with an image in the middle.
    fn again(mut self, buckets: Buckets) -> Result<(), String> {
        let (image, _) = self.instance.image()?;
        apply_again(&mut self.random, &self.entries, &self.hashes, buckets, &image)?;
        add(&self.tally.replayed, self.entries.len() as u64);
        Ok(())
    }
}

fn envelope(body: &[u8]) -> Vec<u8> {
    let envelope = Envelope { identity: b"someone", ..Envelope::without_session(kernel::machine::MACHINE, 1, body) };
    let mut writer = Writer::new();
    envelope.encode(&mut writer);
    writer.finish()
}
