//! One stretch of random entries on a kernel and its store, against the reference, and the same entries again.
//!
//! Between entries the store is flushed, the kernel is loaded again from it, which forgets everything that it knew by
//! heart, and the store is replaced by a restored image. At the end everything that is due is done, and the same
//! entries are applied again: the hash after each must be equal, whatever was forgotten when.

mod end;

use contract::{Limits, Rejection, Retention};
use kernel::records::get::whole_record;
use kernel::records::queue::queue_of;
use kernel::{
    Answer, Body, Buckets, CatalogueChange, ClaimNext, EntryHeader, Keys, NextDue, Op, OpOutcome, RecordAct, Transact,
    TtlArgument,
};
use kv::{View, Writer};
use session::{Envelope, Reply, Stamp};
use testkit::random::Random;

use super::compare::Both;
use super::feed::Book;
use super::generator::{Drawn, Generator, encode};
use super::names::{Focus, NAMES, SPACES, types};
use super::post::Post;
use super::reference::{ANY_KIND, ANY_REASON, Expected, Id, Outcome, Reference};
use super::rows;
use super::tally::{Tally, add};
use crate::model::compare::same;
use crate::model::instance::{Instance, Plan, text};

/// Commands in one entry.
const COMMANDS_MAX: u64 = 12;

/// Records that an entry puts into the queues of the crowd.
const FILLED_PER_ENTRY: usize = 500;

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
}

/// Runs one stretch of random entries against the reference.
pub(crate) fn run(
    seed: u64,
    operations: u64,
    crowd: &'static [String],
    judges: Judges,
    tally: &Tally,
) -> Result<(), String> {
    let mut random = Random::new(seed);
    let buckets = Buckets::new(random.pick(&[1, 2, 8, 64])).expect("a power of two");
    let plan = Plan::draw(&mut random);
    let instance = Instance::genesis(&plan, Keys::new(1, 0), buckets)?;
    let reference = Reference::new(buckets, Limits::default());
    let focus = Focus::draw(&mut random, crowd);
    let mut stretch = Stretch {
        random,
        focus,
        judges,
        tally,
        instance,
        generation: 1,
        reference,
        post: Post::default(),
        book: Book::default(),
        entries: Vec::new(),
        hashes: Vec::new(),
    };
    stretch.declare().and_then(|()| stretch.fill()).map_err(|what| stretch.explain(&what))?;
    let (mut done, mut checked) = (0, 0);
    while done < operations {
        let step = stretch.entry().and_then(|commands| {
            done += commands;
            stretch.between_entries()
        });
        step.map_err(|what| stretch.explain(&what))?;
        if done - checked >= 300 {
            checked = done;
            stretch.check(false).map_err(|what| stretch.explain(&what))?;
        }
    }
    stretch.drain().map_err(|what| stretch.explain(&what))?;
    add(&tally.sent, stretch.post.sent());
    stretch.again(buckets)
}

struct Stretch<'tally> {
    random: Random,
    focus: Focus,
    judges: Judges,
    tally: &'tally Tally,
    instance: Instance,
    generation: u32,
    reference: Reference,
    post: Post,
    book: Book,
    /// Every entry so far; the first has index 1.
    entries: Vec<Vec<u8>>,
    /// The running hash after each of them.
    hashes: Vec<u64>,
}

impl Stretch<'_> {
    fn both<'both>(&'both self, view: &'both dyn View) -> Both<'both> {
        Both { instance: &self.instance, view, reference: &self.reference, focus: self.focus }
    }

    fn explain(&self, what: &str) -> String {
        format!("{what}\n  after {} entries on {}", self.entries.len(), self.instance.describe())
    }

    /// Spaces, branches, types, and limits that are small enough to be met.
    fn declare(&mut self) -> Result<(), String> {
        let mut limits = Limits::default();
        limits.tombstone_age_us = self.random.pick(&[0, 3_000, 40_000]);
        limits.tick_steps_max = self.random.pick(&[1, 3, 20, 256]);
        limits.claim_records_max = self.random.pick(&[2, 256]);
        limits.record_fields_max = self.random.pick(&[4, 256]);
        let mut changes = vec![
            CatalogueChange::CreateSpace { name: SPACES[1].1.to_owned() },
            CatalogueChange::CreateBranch { space: 1, name: "draft".to_owned() },
            CatalogueChange::SetLimits(limits),
        ];
        for (space, _) in SPACES {
            // The inboxes keep every message that arrived.
            changes.push(CatalogueChange::SetRetention { space, retention: Retention::ALL });
            for (prefix, record_type) in types() {
                let (prefix, record_type) = (prefix.to_owned(), Box::new(record_type));
                changes.push(CatalogueChange::DeclareType { space, prefix, record_type });
            }
        }
        let bodies = changes.into_iter().map(|change| encode(&Body::Catalogue(change)));
        self.reference.begin_entry(1_000_000, 1_000);
        let drawn = bodies.map(|body| Drawn { body, marked: Vec::new() }).collect();
        self.apply(drawn)?;
        // What the catalogue has become decides.
        self.reference.limits = self.instance.kernel.catalogue().limits;
        Ok(())
    }

    /// Puts a record into each queue of the crowd.
    fn fill(&mut self) -> Result<(), String> {
        for names in self.focus.crowd.chunks(FILLED_PER_ENTRY) {
            self.pass_time();
            let put = |name: &String, random: &mut Random| {
                let (space, branch, _) = self.focus.place(random);
                let act = RecordAct::Put { record_type: None, ttl: TtlArgument::Persist, fields: Vec::new() };
                let (group, fence, guards, ops) = (None, None, Vec::new(), vec![Op::Record(name, act)]);
                encode(&Body::Transact(Transact { space, branch, group, fence, guards, ops }))
            };
            let bodies: Vec<_> = names.iter().map(|name| put(name, &mut self.random)).collect();
            self.apply(bodies.into_iter().map(|body| Drawn { body, marked: Vec::new() }).collect())?;
        }
        Ok(())
    }

    /// Lets time go on, mostly a little.
    fn pass_time(&mut self) {
        let random = &mut self.random;
        let (wall_us, cluster_us) = (self.reference.wall_us, self.reference.cluster_us);
        let day_us = self.reference.limits.tombstone_age_us;
        let (wall, cluster) = match random.below(200) {
            0..=119 => (random.below(300), random.below(300)),
            120..=179 => (random.below(5_000), random.below(5_000)),
            180..=194 => (random.below(60_000), random.below(60_000)),
            195 => (random.below(2 * day_us + 2), 0),
            196 => (0, random.below(700_000_000)),
            // The clock was set back.
            _ => return self.reference.begin_entry(wall_us.saturating_sub(5_000), cluster_us.saturating_sub(5_000)),
        };
        self.reference.begin_entry(wall_us + wall, cluster_us + cluster);
    }

    fn entry(&mut self) -> Result<u64, String> {
        self.pass_time();
        if !self.focus.crowd.is_empty() && self.random.one_in(RUSH_ONE_IN) {
            return self.rush();
        }
        let commands = 1 + self.random.below(COMMANDS_MAX);
        self.draw_and_apply(commands)?;
        Ok(commands)
    }

    /// Many claims from single queues leave lanes that stand too early. Claims from above, all in one entry, have to share
    /// what an entry may correct.
    fn rush(&mut self) -> Result<u64, String> {
        let (space, branch, _) = self.focus.place(&mut self.random);
        let claim = |prefix| {
            let (records_max, worker, lease_us, waits) = (1, "rush", Some(1_000_000), false);
            let claim = ClaimNext { space, branch, prefix, records_max, worker, lease_us, waits };
            Drawn { body: encode(&Body::ClaimNext(claim)), marked: Vec::new() }
        };
        let crowd = self.focus.crowd;
        let own: Vec<_> = (0..RUSH_CLAIMS).map(|_| claim(queue_of(self.random.choose(crowd).as_str()))).collect();
        self.apply(own)?;
        self.pass_time();
        self.apply((0..COMMANDS_MAX).map(|_| claim("")).collect())?;
        Ok(RUSH_CLAIMS as u64 + COMMANDS_MAX)
    }

    fn draw_and_apply(&mut self, commands: u64) -> Result<(), String> {
        let mut expected = Vec::new();
        for _ in 0..commands {
            let mut generator = Generator {
                random: &mut self.random,
                focus: self.focus,
                reference: &self.reference,
                post: &mut self.post,
            };
            let drawn = generator.command();
            let answer = self.reference.apply(&drawn.body);
            expected.push((drawn, answer));
        }
        self.apply_expecting(&expected)
    }

    fn apply(&mut self, drawn: Vec<Drawn>) -> Result<(), String> {
        let expected: Vec<_> = drawn
            .into_iter()
            .map(|drawn| {
                let answer = self.reference.apply(&drawn.body);
                (drawn, answer)
            })
            .collect();
        self.apply_expecting(&expected)
    }

    /// Applies an entry and compares its answers and the feed.
    fn apply_expecting(&mut self, expected: &[(Drawn, Expected)]) -> Result<(), String> {
        let stamp = Stamp { wall_us: self.reference.wall_us, cluster_us: self.reference.cluster_us };
        let envelopes: Vec<_> = expected.iter().map(|(drawn, _)| envelope(&drawn.body)).collect();
        let payload = EntryHeader::new(stamp).encode(envelopes.iter().map(Vec::as_slice));
        self.entries.push(payload);
        let replies = self.instance.apply(self.entries.last().expect("just pushed"))?;
        same(|| "the number of replies".into(), &replies.len(), &expected.len())?;
        let mut compared = Ok(());
        for (reply, (drawn, expected)) in replies.iter().zip(expected) {
            let Reply::Answer(answer) = Reply::decode(reply).map_err(text)? else {
                return Err("a command without a session was taken for one".into());
            };
            let answer = Answer::decode(answer).map_err(text)?;
            match &answer {
                Answer::Rejected(_) => add(&self.tally.rejections, 1),
                Answer::Done { commit, .. } => self.post.done(&drawn.marked, self.reference.wall_us, *commit),
            }
            if self.judges == Judges::All && compared.is_ok() {
                compared = self.compare(answer, expected).map_err(|what| {
                    let command = Body::decode(&drawn.body);
                    format!("{what}\n  in the answer to {command:?}")
                });
            }
        }
        self.hashes.push(self.instance.kernel.applied().hash);
        add(&self.tally.operations, expected.len() as u64);
        add(&self.tally.entries, 1);
        let view = self.instance.view()?;
        // The numbered checks say more than a difference to the reference does, so they come first.
        self.book.enter(&self.instance, &*view, &self.reference, self.tally)?;
        compared?;
        self.compare_agenda(self.instance.next_due)
    }

    fn compare(&self, answer: Answer, expected: &Expected) -> Result<(), String> {
        let outcomes = match (answer, expected) {
            (Answer::Rejected(found), Expected::Rejected(expected)) => {
                return same(|| "the rejection".into(), &without_reason(found), expected);
            }
            (Answer::Done { outcomes, .. }, Expected::Done(expected)) if outcomes.len() == expected.len() => {
                outcomes.into_iter().zip(expected)
            }
            (answer, expected) => return Err(format!("answered {answer:?}, expected {expected:?}")),
        };
        for (found, expected) in outcomes {
            match (found, expected) {
                (OpOutcome::Claimed(claimed), Outcome::Claimed(id, record)) => {
                    add(&self.tally.claims, 1);
                    let group = claimed.group.as_deref();
                    let found = Id {
                        space: claimed.space,
                        branch: id.branch,
                        group: claimed.group.clone(),
                        name: claimed.name.clone(),
                    };
                    same(|| "which record was claimed".into(), &found, id)?;
                    let (space, branch, name) = (id.space, id.branch, id.name.as_str());
                    let cell = kernel::keys::ThingId { bucket: 0, space, branch, group, name };
                    let (catalogue, keys) = (self.instance.kernel.catalogue(), self.instance.keys);
                    let whole = whole_record(&claimed.row, &cell, catalogue, keys, claimed.stamp).map_err(text)?;
                    same(|| "the record that was claimed".into(), &whole, record)?;
                }
                (found, Outcome::Is(expected)) => {
                    same(|| "an outcome".into(), &found, expected)?;
                    add(&self.tally.unfinished, u64::from(found == OpOutcome::Unfinished));
                }
                (found, expected) => return Err(format!("did {found:?}, expected {expected:?}")),
            }
        }
        Ok(())
    }

    fn between_entries(&mut self) -> Result<(), String> {
        let view = self.instance.view()?;
        self.post.collect(&self.instance, &*view, self.reference.buckets.count())?;
        if self.judges == Judges::All {
            let mut random = self.random.clone();
            for _ in 0..3 {
                let (space, branch, group) = self.focus.place(&mut random);
                self.both(&*view).thing(&Id::new(space, branch, group, random.pick(&NAMES)))?;
            }
            self.both(&*view).scan(&mut random)?;
            self.random = random;
            add(&self.tally.reads, 4);
        }
        match self.random.below(300) {
            0..=14 => self.instance.flush(),
            15..=29 => self.reload(),
            30..=35 => self.restart(),
            36..=40 => self.change_over(),
            _ => Ok(()),
        }
    }

    /// The numbered checks, and everything against the reference.
    fn check(&mut self, drained: bool) -> Result<(), String> {
        let view = self.instance.view()?;
        rows::check(&self.instance, &*view)?;
        self.post.check(&self.instance, &*view, drained)?;
        if self.judges == Judges::All {
            let mut random = self.random.clone();
            let reads = self.both(&*view).everything(&mut random)?;
            self.random = random;
            add(&self.tally.reads, reads);
        }
        add(&self.tally.checks, 1);
        Ok(())
    }

    /// The kernel forgets what it knows by heart.
    fn reload(&mut self) -> Result<(), String> {
        self.instance.reload()?;
        add(&self.tally.reloads, 1);
        self.compare_next_due()
    }

    fn compare_next_due(&mut self) -> Result<(), String> {
        let view = self.instance.view()?;
        let next_due = self.instance.kernel.next_due(view).map_err(text)?;
        self.compare_agenda(next_due)
    }

    /// What was applied, and when the next thing is due.
    fn compare_agenda(&self, next_due: NextDue) -> Result<(), String> {
        if self.judges == Judges::ChecksAlone {
            return Ok(());
        }
        let applied = self.instance.kernel.applied();
        let found = (applied.commit, applied.stamp.wall_us, applied.stamp.cluster_us);
        let expected = (self.reference.commit, self.reference.wall_us, self.reference.cluster_us);
        same(|| "what was applied".into(), &found, &expected)?;
        same(|| "when the next thing is due".into(), &next_due, &self.reference.next_due())
    }

    /// Loses what was not flushed, and applies it again.
    fn restart(&mut self) -> Result<(), String> {
        let applied = *self.instance.kernel.applied();
        let placeholder = Instance::genesis(&Plan::memory(), self.instance.keys, Buckets::default())?;
        let instance = std::mem::replace(&mut self.instance, placeholder);
        self.instance = instance.restart(&self.entries)?;
        add(&self.tally.reloads, 1);
        same(|| "what was applied, after a restart".into(), self.instance.kernel.applied(), &applied)?;
        self.compare_next_due()
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
        self.compare_next_due()
    }
}

fn envelope(body: &[u8]) -> Vec<u8> {
    let envelope = Envelope { identity: b"someone", ..Envelope::without_session(kernel::machine::MACHINE, 1, body) };
    let mut writer = Writer::new();
    envelope.encode(&mut writer);
    writer.finish()
}

/// What a rejection says without the sentence that explains it.
fn without_reason(mut rejection: Rejection) -> Rejection {
    match &mut rejection {
        Rejection::WrongState { reason, .. } | Rejection::InvalidDeclaration { reason, .. } => *reason = ANY_REASON,
        Rejection::WrongKind { wanted, .. } => *wanted = ANY_KIND,
        _ => {}
    }
    rejection
}
