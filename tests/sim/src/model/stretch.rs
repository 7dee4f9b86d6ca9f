//! One stretch of random entries on a kernel and its store, against the reference, and the same entries again.
//!
//! Between entries the store is flushed, the kernel is loaded again from it, which forgets everything that it knew by
//! heart, and the store is replaced by a restored image. At the end everything that is due is done, and the same
//! entries are applied again: the hash after each must be equal, whatever was forgotten when.

mod answers;
mod beginning;
mod end;
mod looks;
mod upkeep;
mod walk;

use std::collections::BTreeMap;
use std::sync::Arc;

use contract::{Limits, Subject};
use kernel::records::queue::queue_of;
use kernel::trim::TrimStep;
use kernel::{Body, Buckets, ClaimNext, EntryHeader, Keys};
use kv::View;
use session::Stamp;
use testkit::random::Random;

use super::clients::Clients;
use super::compare::same;
use super::drawn::Drawn;
use super::habits::{About, Habits};
use super::instance::{Instance, Plan};
use super::records::feed::Book as RecordBook;
use super::records::post::Post;
use super::reference::{Expected, Reference};
use super::runs::book::Book as RunBook;
use super::sessions::rows::Pages;
use super::tally::{Tally, add};
use super::{cells, keyed, mixed, records, runs, sessions, usage};

/// One entry in so many is a rush,
const RUSH_ONE_IN: u64 = 200;
/// in which so many workers claim from their own queues, before others claim from above.
const RUSH_CLAIMS: usize = 200;

/// Who judges what the kernel does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judges {
    /// The reference, and the numbered checks.
    All,
    /// The numbered checks alone, which is how each of them is seen failing.
    ChecksAlone,
    /// The answers alone, after images that have forgotten what sessions were answered. They must differ.
    AnswersAfterForgetting,
}

/// What all stretches of a run have in common.
pub(crate) struct Course<'tally> {
    pub(crate) about: About,
    /// Names of records in queues of their own.
    pub(crate) crowd: &'static [String],
    pub(crate) judges: Judges,
    pub(crate) tally: &'tally Tally,
}

impl Course<'_> {
    /// Runs one stretch of random entries against the reference.
    pub(crate) fn run(&self, seed: u64, operations: u64) -> Result<(), String> {
        let mut random = Random::new(seed);
        let buckets = Buckets::new(random.pick(&[1, 2, 8, 64])).expect("a power of two");
        let plan = Plan::draw(&mut random);
        let instance = Instance::genesis(&plan, Keys::new(1, kernel::BucketRange::ALL), buckets)?;
        let habits = Habits::draw(&mut random, self.about, self.crowd);
        let clients = Clients::new(habits.clients(&mut random), &mut random);
        let mut stretch = Stretch {
            random,
            habits,
            judges: self.judges,
            tally: self.tally,
            instance,
            generation: 1,
            reference: Reference::new(buckets, Limits::default()),
            post: Post::default(),
            clients,
            answers: BTreeMap::new(),
            due: Vec::new(),
            walk_after: None,
            pinned: None,
            other_rows: None,
            record_book: RecordBook::default(),
            run_book: RunBook::default(),
            done: 0,
            entries: Vec::new(),
            hashes: Vec::new(),
        };
        stretch.go(operations).map_err(|what| stretch.explain(&what))?;
        add(&self.tally.sent, stretch.post.sent());
        add(&self.tally.executed, stretch.reference.executed.len() as u64);
        match self.judges {
            Judges::All | Judges::ChecksAlone => stretch.again(buckets),
            Judges::AnswersAfterForgetting => Ok(()),
        }
    }
}

/// A view that was taken a while ago, and what it held.
struct Pinned {
    view: Arc<dyn View>,
    keys: Keys,
    image: Vec<u8>,
}

struct Stretch<'tally> {
    random: Random,
    habits: Habits,
    judges: Judges,
    tally: &'tally Tally,
    instance: Instance,
    generation: u32,
    reference: Reference,
    post: Post,
    clients: Clients,
    /// The bytes that requests of sessions were last answered when they were executed.
    answers: BTreeMap<(u64, u64), Vec<u8>>,
    record_book: RecordBook,
    run_book: RunBook,
    /// Steps of the walk that were found and not yet proposed, and where the walk goes on.
    due: Vec<TrimStep>,
    walk_after: Option<Vec<u8>>,
    pinned: Option<Pinned>,
    /// In the sessions' model, the rows that are neither of sessions nor of machines.
    other_rows: Option<usize>,
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
        self.fill()?;
        // The records that fill the queues are not among the operations.
        let upto = self.done + operations;
        let mut checked = self.done;
        while self.done < upto {
            self.entry()?;
            self.between_entries()?;
            if self.done - checked >= self.habits.check_every() {
                checked = self.done;
                self.check(false)?;
            }
        }
        self.drain()
    }

    fn records<'both>(&'both self, view: &'both dyn View) -> records::compare::Both<'both> {
        records::compare::Both { instance: &self.instance, view, reference: &self.reference, focus: self.habits.focus }
    }

    fn cells<'both>(&'both self, view: &'both dyn View) -> cells::compare::Both<'both> {
        cells::compare::Both { instance: &self.instance, view, reference: &self.reference }
    }

    fn runs<'both>(&'both self, view: &'both dyn View) -> runs::compare::Both<'both> {
        runs::compare::Both { instance: &self.instance, view, reference: &self.reference }
    }

    fn maps<'both>(&'both self, view: &'both dyn View) -> keyed::compare::Both<'both> {
        keyed::compare::Both { instance: &self.instance, view, reference: &self.reference }
    }

    fn explain(&self, what: &str) -> String {
        let Reference { sessions, limits, .. } = &self.reference;
        let about = match self.habits.about {
            About::Sessions => format!(", {} sessions, {limits:?}", sessions.len()),
            About::Cells | About::Records | About::Runs | About::Keyed | About::Everything => String::new(),
        };
        format!("{what}\n  after {} entries on {}{about}", self.entries.len(), self.instance.describe())
    }

    fn pass_time(&mut self) {
        self.habits.pass_time(&mut self.random, &mut self.reference);
    }

    fn entry(&mut self) -> Result<(), String> {
        self.pass_time();
        if !self.habits.focus.crowd.is_empty() && self.random.one_in(RUSH_ONE_IN) {
            return self.rush();
        }
        let mut expected = Vec::new();
        for _ in 0..1 + self.random.below(self.habits.commands_max()) {
            let Self { random, reference, post, clients, due, .. } = self;
            let drawn = self.habits.command(random, reference, post, clients, due);
            let answer = reference.apply(&drawn);
            clients.hear(&drawn, &answer, random)?;
            expected.push((drawn, answer));
        }
        self.apply_expecting(&expected)?;
        match self.habits.about {
            About::Cells => self.look_at_cells(&expected),
            About::Sessions => self.look_at_sessions(&expected),
            About::Keyed => self.look_at_maps(&expected),
            About::Records | About::Runs | About::Everything => {
                self.look_at_runs(&expected)?;
                self.look_at_maps(&expected)
            }
        }
    }

    /// Many claims from single queues leave lanes that stand too early. Claims from above, all in one entry, have to share
    /// what an entry may correct.
    fn rush(&mut self) -> Result<(), String> {
        let (space, branch, _) = self.habits.focus.place(&mut self.random, &self.reference);
        let claim = |prefix| {
            let (records_max, worker, lease_us, waits) = (1, "rush", Some(1_000_000), false);
            let claim = ClaimNext { space, branch, prefix, records_max, worker, lease_us, waits };
            Drawn::plain(&Body::ClaimNext(claim))
        };
        let crowd = self.habits.focus.crowd;
        let own: Vec<_> = (0..RUSH_CLAIMS).map(|_| claim(queue_of(self.random.choose(crowd).as_str()))).collect();
        self.apply(own)?;
        self.pass_time();
        self.apply((0..self.habits.commands_max()).map(|_| claim("")).collect())
    }

    fn apply(&mut self, drawn: Vec<Drawn>) -> Result<(), String> {
        let expected: Vec<_> = drawn
            .into_iter()
            .map(|drawn| {
                let answer = self.reference.apply(&drawn);
                (drawn, answer)
            })
            .collect();
        self.apply_expecting(&expected)
    }

    /// Applies an entry and compares its answers and the feed.
    fn apply_expecting(&mut self, expected: &[(Drawn, Expected)]) -> Result<(), String> {
        let changed_sessions = self.reference.end_entry();
        let stamp = Stamp { wall_us: self.reference.wall_us, cluster_us: self.reference.cluster_us };
        let envelopes: Vec<_> = expected.iter().map(|(drawn, _)| drawn.envelope()).collect();
        let payload = EntryHeader::new(stamp).encode(envelopes.iter().map(Vec::as_slice));
        self.entries.push(payload);
        let replies = self.instance.apply(self.entries.last().expect("just pushed"))?;
        self.hashes.push(self.instance.kernel.applied().hash);
        add(&self.tally.entries, 1);
        let compared = self.compare_replies(&replies, expected)?;
        let view = self.instance.view()?;
        // The numbered checks say more than a difference to the reference does, so they come first.
        if self.habits.about != About::Cells {
            self.record_book.enter(&self.instance, &*view, &self.reference, self.tally)?;
        }
        compared?;
        if self.judges == Judges::All {
            let changed = &self.instance.changed_sessions;
            same(|| "what an entry changed in sessions".into(), changed, &changed_sessions)?;
        }
        self.compare_agenda(self.instance.next_due)
    }

    fn count_reads(&self, reads: u64) {
        add(&self.tally.reads, reads);
    }

    /// The numbered checks, and everything against the reference.
    fn check(&mut self, drained: bool) -> Result<(), String> {
        if self.judges == Judges::AnswersAfterForgetting {
            return Ok(());
        }
        usage::check(&self.instance, &*self.instance.view()?)?;
        match self.habits.about {
            About::Cells => return self.check_cells(),
            About::Sessions => return self.check_sessions(Pages::Known),
            About::Records | About::Runs | About::Keyed | About::Everything => {}
        }
        let view = self.instance.view()?;
        records::rows::check(&self.instance, &*view)?;
        self.post.check(&self.instance, &*view, drained)?;
        if self.judges == Judges::All {
            runs::rows::check(&self.runs(&*view), drained)?;
            keyed::rows::check(&self.maps(&*view), drained)?;
            let mut random = self.random.clone();
            let mut run_book = std::mem::take(&mut self.run_book);
            let mut reads = self.runs(&*view).everything(&mut run_book, &mut random)?;
            reads += self.records(&*view).everything(&mut random)?;
            reads += self.maps(&*view).everything(&mut random)?;
            for id in self.reference.cells.keys().filter(|id| self.reference.is_live(id.space, id.branch)) {
                reads += self.cells(&*view).cell(id, &mut random)?;
            }
            reads += self.cells(&*view).feed(Some(Subject::Cell), &mut random)?;
            (self.run_book, self.random) = (run_book, random);
            self.count_reads(reads);
            return self.check_sessions(Pages::Unknown);
        }
        add(&self.tally.checks, 1);
        Ok(())
    }

    /// Sessions and the catalogue against the reference.
    fn check_sessions(&mut self, pages: Pages) -> Result<(), String> {
        let view = self.instance.view()?;
        sessions::rows::check(&self.instance, &*view, &self.reference, pages)?;
        if pages == Pages::Known {
            let others = sessions::rows::others(&self.instance, &*view, &self.reference)?;
            let before = *self.other_rows.get_or_insert(others);
            same(|| "(6) rows that are of nobody".into(), &others, &before)?;
        }
        mixed::compare::catalogue(&self.instance, &self.reference)?;
        self.count_reads(sessions::compare::everything(&self.instance, &*view, &self.reference)?);
        add(&self.tally.checks, 1);
        Ok(())
    }
}
