//! One stretch of random entries on a kernel and its store, against the reference, and the same entries again.
//!
//! Between entries the store is flushed, restarted without what was in memory, replaced by a restored image, and
//! walked for what retention gives up. At the end the same entries are applied again from the beginning, and again
//! with an image in the middle: the running hash after every entry and the last image's bytes must be equal.

mod again;

use std::sync::Arc;

use kernel::trim::{TRIM_STEPS_MAX, TrimStep, find_due};
use kernel::{Answer, Buckets, EntryHeader, Keys};
use kv::View;
use session::{Reply, Stamp};
use testkit::random::Random;

use super::command::{Action, Command};
use super::compare;
use super::generator;
use super::reference::{CellName, Expected, Reference};
use super::tally::{Tally, add};
use crate::model::compare::{same, same_bytes};
use crate::model::instance::{Instance, Plan, halted, text, write_image};

/// Commands in one entry.
const COMMANDS_MAX: u64 = 20;

/// Rounds after which a walk must have found everything.
const WALK_ROUNDS_MAX: usize = 10_000;

/// Runs one stretch on a kernel and its store.
pub(crate) fn run(seed: u64, operations: u64, tally: &Tally) -> Result<(), String> {
    let mut random = Random::new(seed);
    let buckets = Buckets::new(*random.choose(&[1, 2, 8, 64])).expect("a power of two");
    let plan = Plan::draw(&mut random);
    let instance = Instance::genesis(&plan, Keys::new(1, 0), buckets)?;
    let mut stretch = Stretch {
        random,
        tally,
        instance,
        generation: 1,
        reference: Reference::new(buckets),
        entries: Vec::new(),
        hashes: Vec::new(),
        due: Vec::new(),
        walk_after: None,
        pinned: None,
    };
    let mut done = 0;
    while done < operations {
        let step = stretch.entry().and_then(|operations| {
            done += operations;
            stretch.between_entries()
        });
        step.map_err(|what| stretch.explain(&what))?;
    }
    stretch.finish().map_err(|what| stretch.explain(&what))?;
    stretch.again(buckets)
}

struct Stretch<'tally> {
    random: Random,
    tally: &'tally Tally,
    instance: Instance,
    generation: u32,
    reference: Reference,
    /// Every entry so far; the first has index 1.
    entries: Vec<Vec<u8>>,
    /// The running hash after each of them.
    hashes: Vec<u64>,
    /// Steps of the walk that were found and not yet proposed.
    due: Vec<TrimStep>,
    walk_after: Option<Vec<u8>>,
    pinned: Option<Pinned>,
}

/// A view that was taken a while ago, and what it held.
struct Pinned {
    view: Arc<dyn View>,
    keys: Keys,
    image: Vec<u8>,
}

impl Stretch<'_> {
    fn explain(&self, what: &str) -> String {
        format!("{what}\n  after {} entries on {}", self.entries.len(), self.instance.describe())
    }

    /// Draws an entry, applies it on both sides, and compares the answers and the cells that it named.
    fn entry(&mut self) -> Result<u64, String> {
        let commands = 1 + self.random.below(COMMANDS_MAX);
        self.apply(None, commands)
    }

    fn apply(&mut self, only: Option<Action>, commands: u64) -> Result<u64, String> {
        let header = EntryHeader::new(Stamp {
            wall_us: generator::wall_us(&mut self.random, self.reference.wall_us.max(1_000_000)),
            cluster_us: self.reference.cluster_us + self.random.below(1_000),
        });
        self.reference.begin_entry(header.stamp.wall_us, header.stamp.cluster_us);
        let mut only = only;
        let mut drawn = Vec::new();
        for _ in 0..commands {
            let command = match only.take() {
                Some(action) => Command { session: None, revision: self.reference.revision, action },
                None => generator::command(&mut self.random, &self.reference, &mut self.due),
            };
            let body = command.body();
            let expected = self.reference.apply(&command, body.len());
            drawn.push((command.envelope(&body), command, expected));
        }
        self.reference.end_entry();
        let payload = header.encode(drawn.iter().map(|(envelope, _, _)| envelope.as_slice()));
        let replies = self.instance.apply(&payload)?;
        same(|| "the number of replies".into(), &replies.len(), &drawn.len())?;
        for (reply, (_, command, expected)) in replies.iter().zip(&drawn) {
            self.check_reply(reply, command, expected)?;
        }
        self.entries.push(payload);
        self.hashes.push(self.instance.kernel.applied().hash);
        compare::applied(&self.instance, &self.reference)?;
        for (_, command, _) in &drawn {
            self.check_cells(command)?;
        }
        let operations = drawn.iter().map(|(_, command, _)| command.operations()).sum();
        add(&self.tally.operations, operations);
        add(&self.tally.entries, 1);
        Ok(operations)
    }

    fn check_reply(&self, reply: &[u8], command: &Command, expected: &Expected) -> Result<(), String> {
        let reply = Reply::decode(reply).map_err(text)?;
        let as_expected = match (&reply, expected) {
            (Reply::SessionExpired, Expected::NoSession) => true,
            (Reply::Answer(answer), expected) => {
                let answer = Answer::decode(answer).map_err(text)?;
                add(&self.tally.rejections, u64::from(matches!(answer, Answer::Rejected(_))));
                if !expected.allows(&answer) {
                    return Err(format!("{command:?}\n  answered {answer:?}\n  expected {expected:?}"));
                }
                true
            }
            _ => false,
        };
        if as_expected { Ok(()) } else { Err(format!("{command:?} got {reply:?}, not {expected:?}")) }
    }

    /// Compares some of the cells that a command named.
    fn check_cells(&mut self, command: &Command) -> Result<(), String> {
        let Action::Transact(transaction) = &command.action else {
            return Ok(());
        };
        let Some(op) = transaction.ops.first().filter(|_| self.random.one_in(4)) else {
            return Ok(());
        };
        let (space, branch, group) = (transaction.space, transaction.branch, transaction.group);
        let cell = CellName::new(space, branch, group, op.name());
        let reads = compare::cell(&self.instance, &self.reference, cell, &mut self.random)?;
        add(&self.tally.reads, reads);
        Ok(())
    }

    fn between_entries(&mut self) -> Result<(), String> {
        match self.random.below(400) {
            0..=19 => self.instance.flush(),
            20..=31 => self.restart(),
            32..=39 => self.change_over(),
            40..=69 => self.look_for_due(),
            70..=74 => self.walk(),
            75..=84 => self.compare_everything(),
            85..=89 => self.pin(),
            _ => Ok(()),
        }
    }

    fn compare_everything(&mut self) -> Result<(), String> {
        let reads = compare::everything(&self.instance, &self.reference, &mut self.random)?;
        add(&self.tally.reads, reads);
        Ok(())
    }

    fn restart(&mut self) -> Result<(), String> {
        self.unpin()?;
        let (applied, catalogue) = (*self.instance.kernel.applied(), self.instance.kernel.catalogue().clone());
        let placeholder = self.placeholder()?;
        let instance = std::mem::replace(&mut self.instance, placeholder);
        self.instance = instance.restart(&self.entries)?;
        add(&self.tally.restarts, 1);
        let kernel = &self.instance.kernel;
        same(|| "what was applied, after a restart".into(), kernel.applied(), &applied)?;
        same(|| "the catalogue after a restart".into(), kernel.catalogue(), &catalogue)
    }

    /// Something to stand in for an instance that is being replaced.
    fn placeholder(&self) -> Result<Instance, String> {
        Instance::genesis(&Plan::memory(), self.instance.keys, Buckets::default())
    }

    /// Goes on with a restored image, in another generation and on another store.
    fn change_over(&mut self) -> Result<(), String> {
        self.unpin()?;
        let (image, rows) = self.instance.image()?;
        same(|| "the number of rows in an image".into(), &rows, &self.reference.rows())?;
        self.generation += 1 + u32::try_from(self.random.below(300)).expect("small");
        let plan = Plan::draw(&mut self.random);
        let restored = Instance::restore(&plan, Keys::new(self.generation, 0), &image)?;
        same_bytes("the image of a restored image", &restored.image()?.0, &image)?;
        let (before, after) = (&self.instance.kernel, &restored.kernel);
        same(|| "what was applied, in an image".into(), after.applied(), before.applied())?;
        same(|| "the catalogue in an image".into(), after.catalogue(), before.catalogue())?;
        self.instance = restored;
        self.walk_after = None;
        add(&self.tally.images, 1);
        Ok(())
    }

    /// Takes a view, or looks whether the one that was taken is still as it was.
    fn pin(&mut self) -> Result<(), String> {
        if self.pinned.is_some() {
            return self.unpin();
        }
        let (view, keys) = (self.instance.view()?, self.instance.keys);
        let image = write_image(&*view, keys)?.0;
        self.pinned = Some(Pinned { view, keys, image });
        Ok(())
    }

    /// Looks at the view that was taken, if one was. A view does not outlive its store.
    fn unpin(&mut self) -> Result<(), String> {
        match self.pinned.take() {
            None => Ok(()),
            Some(Pinned { view, keys, image }) => {
                same_bytes("a view that was kept", &write_image(&*view, keys)?.0, &image)
            }
        }
    }

    /// One step of the walk; what it finds is proposed among later commands.
    fn look_for_due(&mut self) -> Result<(), String> {
        let heads_max = *self.random.choose(&[1, 10, 50, 2_000]);
        let forgets = self.random.one_in(8);
        let (steps, next) = self.find_due(self.walk_after.clone(), heads_max, forgets)?;
        self.walk_after = next;
        self.due.extend(steps);
        self.due.truncate(TRIM_STEPS_MAX);
        Ok(())
    }

    fn find_due(
        &self,
        after: Option<Vec<u8>>,
        heads_max: usize,
        forgets: bool,
    ) -> Result<(Vec<TrimStep>, Option<Vec<u8>>), String> {
        let (kernel, view) = (&self.instance.kernel, self.instance.view()?);
        let now_us = self.reference.wall_us;
        find_due(&*view, kernel.catalogue(), &self.instance.keys, now_us, after.as_deref(), heads_max, forgets)
            .map_err(halted)
    }

    /// Walks until nothing is found, after which nothing may be due.
    fn walk(&mut self) -> Result<(), String> {
        for _ in 0..WALK_ROUNDS_MAX {
            let heads_max = 1 + self.random.index(200);
            let mut found = false;
            let mut after = None;
            loop {
                let (steps, next) = self.find_due(after, heads_max, false)?;
                if !steps.is_empty() {
                    found = true;
                    self.apply(Some(Action::Trim(steps)), 1)?;
                }
                after = next;
                if after.is_none() {
                    break;
                }
            }
            if !found {
                add(&self.tally.walks, 1);
                return self.nothing_is_due();
            }
        }
        Err("a walk for what is due does not end".into())
    }

    fn nothing_is_due(&self) -> Result<(), String> {
        let reference = &self.reference;
        for (name, cell) in &reference.cells {
            let retention = reference.spaces[&name.space].retention;
            if cell.oldest_is_due(retention, reference.wall_us) {
                let (oldest, newest) = (cell.oldest(), cell.newest());
                return Err(format!("a walk left {name:?} with versions {oldest} to {newest} by {retention:?}"));
            }
        }
        let mut branches = reference.spaces.values().flat_map(|space| space.branches.values());
        if let Some(branch) = branches.find(|branch| branch.deleted) {
            return Err(format!("a walk left the deleted {branch:?}"));
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), String> {
        self.walk()?;
        self.compare_everything()?;
        self.unpin()
    }
}
