//! Draws commands that are likely to hit existing state: the live attempt, the current value of a field.

mod acts;
mod beside;
mod letters;

use contract::Limits;
use contract::guards::OWNER_RECORD;
use kernel::RecordTrim;
use kernel::catalogue::TypeDeclaration;
use kernel::command::fence::FENCES_MAX;
use kernel::keys::things::ThingKey;
use kernel::outbox::Stored;
use kernel::trim::TrimStep;
use kernel::{
    Body, CatalogueChange, CellAct, CellGuard, ClaimNext, Deliver, Delivered, Fence, Guard, Op, RecordGuard, RunGuard,
    Send, Target, Transact, ValueRef,
};
use testkit::random::Random;

use super::names::{FIELDS, Focus, INBOX, NAMES, STATES, types};
use super::post::{Marked, Post};
use crate::model::drawn::{Drawn, encode};
use crate::model::keyed;
use crate::model::mixed;
use crate::model::places::{GROUPS, PLACES};
use crate::model::reference::{Id, Reference};
use crate::model::runs;

/// Most letters that are sent inside letters.
const DEPTH_MAX: u32 = 2;

/// Draws random commands on records, and on runs and cells beside them.
pub(crate) struct Generator<'draw> {
    pub(crate) random: &'draw mut Random,
    pub(crate) focus: Focus,
    pub(crate) reference: &'draw Reference,
    pub(crate) post: &'draw mut Post,
    /// How runs and maps are used in the same transactions, guards, and pushes to sessions, if they are.
    pub(crate) beside: Option<(runs::Habits, keyed::Habits)>,
}

/// A message that is about to be sent.
enum Letter {
    Group(Vec<u8>),
    Topic(&'static str, String),
}

/// Each looks at 256 rows.
const FILLING_STEPS: usize = 128;

impl<'draw> Generator<'draw> {
    pub(crate) fn command(&mut self) -> Drawn {
        match self.random.below(100) {
            0..=61 => self.transaction(0),
            62..=75 => self.claim_next(),
            76..=91 => Drawn::plain(&Body::Tick),
            92..=93 if self.beside.is_some() && self.random.one_in(2) => self.owner(),
            94..=97 if self.beside.is_some() && self.random.one_in(2) => {
                mixed::upkeep::command(self.random, self.reference)
            }
            92..=93 => Drawn::plain(&Body::Tick),
            94..=95 => self.published(),
            96 if self.random.one_in(2) => self.dead_letter(),
            96 => self.deliver(),
            97 if self.random.one_in(2) => self.remove_lanes(),
            97 => self.forget(),
            _ => self.declare_again(),
        }
    }

    fn claim_next(&mut self) -> Drawn {
        let (space, branch, _) = self.focus.place(self.random, self.reference);
        let branch = if self.random.one_in(60) { 99 } else { branch };
        let claim = ClaimNext {
            space,
            branch,
            prefix: self.focus.queue(self.random),
            records_max: self.random.pick(&[0, 1, 1, 2, 3, 50]),
            worker: self.worker(),
            lease_us: self.lease(),
            waits: self.random.one_in(2),
        };
        Drawn::plain(&Body::ClaimNext(claim))
    }

    /// As the walk does, but of any queue.
    fn remove_lanes(&mut self) -> Drawn {
        let (space, branch, _) = self.focus.place(self.random, self.reference);
        let queue = self.focus.queue(self.random).to_owned();
        let bucket = self.random.pick(&[0, 0, 1, 5]);
        Drawn::plain(&Body::Trim(vec![RecordTrim::Lanes { space, branch, queue, bucket }.into()]))
    }

    /// As the walk does while space is short, but of any name.
    fn forget(&mut self) -> Drawn {
        let id = self.target();
        let bucket = self.reference.bucket(&id);
        let record = ThingKey { bucket, space: id.space, branch: id.branch, group: id.group, name: id.name };
        Drawn::plain(&Body::Trim(vec![RecordTrim::Forget(record).into()]))
    }

    /// As a broker does: the first few of a bucket, sometimes again.
    fn published(&mut self) -> Drawn {
        let keys: Vec<_> = self.reference.to_publish.keys().copied().collect();
        let bucket = keys.get(self.random.index(keys.len().max(1))).map_or(0, |key| key.0);
        let count = 1 + self.random.index(8);
        let mut keys: Vec<_> = keys.into_iter().filter(|key| key.0 == bucket).take(count).collect();
        if self.random.one_in(4) {
            let last = self.reference.numbers.get(&bucket).copied().unwrap_or(0);
            keys.push((bucket, self.random.below(last + 2)));
        }
        // The last one may wait already without the broker having seen it.
        keys.retain(|key| !self.reference.to_publish.contains_key(key) || self.post.has_published(*key));
        Drawn::plain(&Body::Published(keys))
    }

    /// As the node between two shards does, as if another shard owned the bucket of the source: mostly the next number,
    /// sometimes one that was there before. Or what it says to the shard of the source.
    fn deliver(&mut self) -> Drawn {
        let (space, source) = (self.random.pick(&[1, 2]), self.random.pick(&GROUPS));
        let name = &self.reference.spaces[&space].name;
        let mut source_bucket = self.reference.buckets.of_group(name.as_bytes(), source.as_bytes());
        if self.random.one_in(10) {
            let numbers = vec![1, self.random.below(9)];
            return Drawn::plain(&Body::Delivered(Delivered { bucket: source_bucket, numbers }));
        }
        if self.random.one_in(20) {
            source_bucket += 1;
        }
        let received = self.reference.received.iter().filter(|((_, source), _)| *source == source_bucket);
        let highest = received.map(|(_, number)| *number).max().unwrap_or(0);
        let number =
            (highest + self.random.pick(&[0, 1, 1, 1, 2, 5])).saturating_sub(self.random.pick(&[0, 0, 0, 1, 3]));
        let body = if self.random.one_in(20) { encode(&Body::Tick) } else { self.transaction(1).bytes() };
        let send = Send { target: Target::Transact(&body), after_us: None };
        let message = Stored { space, branch: 1, source, send };
        Drawn::plain(&Body::Deliver(Deliver { source_bucket, number, message }))
    }

    /// As the walk does, until it is done: fills the indexes of a type.
    fn fill_indexes(&mut self) -> Drawn {
        let space = self.random.pick(&[1, 2]);
        let types = u32::try_from(self.reference.spaces[&space].types.len()).expect("few");
        let record_type = 1 + u32::try_from(self.random.below(types.into())).expect("few");
        Drawn::plain(&Body::Trim(filled(space, record_type)))
    }

    /// The same type with other times, and perhaps more indexes.
    fn declare_again(&mut self) -> Drawn {
        if self.random.one_in(3) {
            return self.fill_indexes();
        }
        let (prefix, mut record_type) = self.random.choose(&types()).clone();
        record_type.attempts_max = 1 + self.random.below(5);
        record_type.lease = std::time::Duration::from_micros(self.random.pick(&[900, 5_000, 20_000]));
        let space = self.random.pick(&[1, 2]);
        let declared = self.reference.spaces[&space].types.iter();
        let declared = declared.map(|declared| &declared.definition).find(|known| known.name == record_type.name);
        let known = &declared.expect("it was declared at the beginning").indexes;
        let random = &mut self.random;
        record_type.indexes.retain(|index| known.contains(index) || random.one_in(3));
        let record_type = Box::new(record_type);
        let change = CatalogueChange::DeclareType(TypeDeclaration { space, prefix: prefix.to_owned(), record_type });
        Drawn::plain(&Body::Catalogue(change))
    }

    fn transaction(&mut self, depth: u32) -> Drawn {
        let target = self.target();
        let wide = target.group.is_some() || self.random.one_in(5);
        let group = wide.then(|| target.home());
        let letters = self.letters(depth);
        let mut fences = Vec::new();
        while fences.len() < FENCES_MAX && self.random.one_in(5) {
            let record = if wide && self.random.one_in(4) { self.focus.name(self.random) } else { &target.name };
            fences.push(Fence { record, attempt: self.attempt(&target) });
        }
        if wide && fences.len() < FENCES_MAX && self.is_guarded(&target) && !self.random.one_in(3) {
            fences.push(Fence { record: OWNER_RECORD, attempt: self.attempt(&target.sibling(OWNER_RECORD)) });
        }
        let run_acts = self.run_acts(&target, wide);
        let map_acts = self.map_acts(&target, wide);
        let mut guards = Vec::new();
        let mut ops = Vec::new();
        while self.random.one_in(4) {
            guards.push(match wide && self.beside.is_some() && self.random.one_in(6) {
                true => self.range_guard(),
                false => {
                    let name = self.name_near(&target, wide);
                    self.guard(&target, name)
                }
            });
        }
        let count = if self.random.one_in(3) { 1 + self.random.below(4) } else { 1 };
        for number in 0..count {
            let name = if number == 0 { &target.name } else { self.name_near(&target, wide) };
            ops.push(self.op(&target, name));
        }
        let mut marked = Vec::new();
        for letter in &letters {
            let after_us = match self.random.below(4) {
                0 => Some(self.random.below(2)),
                1 => Some(self.random.below(20_000)),
                _ => None,
            };
            let (sent, mark) = match letter {
                Letter::Group(body) => (Target::Transact(body), Marked::in_letter(body)),
                Letter::Topic(topic, payload) => {
                    (Target::Topic { topic, payload: payload.as_bytes() }, Marked::in_topic(topic, payload))
                }
            };
            let place = ops.iter().filter(|op| matches!(op, Op::Send(_))).count();
            ops.push(Op::Send(Send { target: sent, after_us }));
            if let Some((number, to)) = mark {
                let source = (target.space, target.branch, target.home().to_owned());
                marked.push(Marked { number, source, to, after_us, place });
            }
        }
        let pushes = self.pushes();
        for session in &pushes {
            let place = self.random.index(ops.len() + 1);
            ops.insert(place, Op::Push(*session, b"news"));
        }
        for (name, act) in &run_acts {
            let place = self.random.index(ops.len() + 1);
            ops.insert(place, Op::Run(name, act.as_kernel_act()));
        }
        for (id, act) in &map_acts {
            let place = self.random.index(ops.len() + 1);
            ops.insert(place, Op::Map(&id.name, act.as_kernel_act()));
            if self.random.one_in(6) {
                let (random, reference) = (&mut *self.random, self.reference);
                let habits = self.beside.expect("maps are beside").1;
                guards.push(Guard::Map(keyed::Generator { random, habits, reference }.guard(id)));
            }
        }
        let branch = if self.random.one_in(200) { 99 } else { target.branch };
        let force = self.beside.is_some() && self.random.one_in(if self.is_guarded(&target) { 6 } else { 100 });
        let transact = Transact { fences, force, guards, ..Transact::new(target.space, branch, group, ops) };
        let body = Body::Transact(transact);
        Drawn { marked, ..Drawn::plain(&body) }
    }

    fn letters(&mut self, depth: u32) -> Vec<Letter> {
        let mut letters = Vec::new();
        while depth < DEPTH_MAX && letters.len() < 4 && self.random.one_in(4) {
            letters.push(match self.random.below(10) {
                0..=2 if depth == 0 => Letter::Group(self.marked_letter()),
                3..=4 if depth == 0 => Letter::Topic(Marked::TOPIC, self.post.next_number().to_string()),
                5 => Letter::Topic("other", "hello".to_owned()),
                6 if self.random.one_in(10) => Letter::Group(encode(&Body::Tick)),
                _ => Letter::Group(self.transaction(depth + 1).bytes()),
            });
        }
        letters
    }

    /// A message that nothing can refuse, which leaves its number.
    fn marked_letter(&mut self) -> Vec<u8> {
        // Where all history is kept, and no branch is deleted.
        let (space, branch) = self.random.pick(&PLACES[..2]);
        let number = i64::try_from(self.post.next_number()).expect("small");
        encode(&Body::Transact(Transact::new(
            space,
            branch,
            Some(self.random.pick(&GROUPS)),
            vec![Op::Cell(INBOX, CellAct::Set(ValueRef::Integer(number)))],
        )))
    }

    /// Something that is there, of which some is held, or anything.
    fn target(&mut self) -> Id {
        let (space, branch, group) = self.focus.place(self.random, self.reference);
        let any = Id::new(space, branch, group, self.focus.name(self.random));
        if self.random.one_in(2) || self.reference.records.is_empty() {
            return any;
        }
        let mut found = self.reference.records.range(&any..).map(|(id, kept)| (id, kept.live.as_ref()));
        let held = found.find(|(_, live)| live.is_some_and(|live| live.lease_us.is_some()));
        held.map_or(any, |(id, _)| id.clone())
    }

    fn name_near<'name>(&mut self, target: &'name Id, wide: bool) -> &'name str {
        if wide { self.focus.name(self.random) } else { &target.name }
    }

    fn op<'name>(&mut self, target: &Id, name: &'name str) -> Op<'name>
    where
        'draw: 'name,
    {
        let id = Id::new(target.space, target.branch, Some(target.home()), name);
        match self.random.below(12) {
            0 => Op::Cell(name, CellAct::Set(self.value("a"))),
            1 => match self.random.below(3) {
                0 => Op::Cell(name, CellAct::Init(self.value("a"))),
                1 => Op::Cell(name, CellAct::Delete),
                _ => {
                    let version = self.reference.cells.get(&id).map(|cell| cell.newest());
                    Op::Cell(name, CellAct::Cas(version.filter(|_| !self.random.one_in(3)), self.value("a")))
                }
            },
            _ => Op::Record(name, self.act(&id)),
        }
    }

    /// A range that may be empty or the wrong way round.
    fn range_guard(&mut self) -> Guard<'static> {
        let (mut from, mut to) = (self.random.pick(&NAMES), self.random.pick(&NAMES));
        if from > to && !self.random.one_in(10) {
            std::mem::swap(&mut from, &mut to);
        }
        let to = (!self.random.one_in(4)).then_some(to);
        let since = self.reference.commit.saturating_sub(self.random.below(200));
        Guard::Cell(CellGuard::RangeUnchangedSince(from, to, since))
    }

    /// Mostly a number itself, sometimes the one before or after it.
    fn near(&mut self, number: u64) -> u64 {
        match self.random.below(10) {
            0 => number.saturating_sub(1),
            1 => number + 1,
            _ => number,
        }
    }

    fn guard<'name>(&mut self, target: &Id, name: &'name str) -> Guard<'name>
    where
        'draw: 'name,
    {
        let id = Id::new(target.space, target.branch, Some(target.home()), name);
        let kept = self.reference.records.get(&id);
        let commit = self.reference.commit.saturating_sub(self.random.below(40));
        match self.random.below(15) {
            0 => Guard::Cell(CellGuard::Absent(name)),
            1 => Guard::Cell(CellGuard::Exists(name)),
            2 => {
                let newest = self.reference.cells.get(&id).map_or(0, |cell| cell.newest());
                Guard::Cell(CellGuard::VersionIs(name, self.near(newest)))
            }
            3 => Guard::Cell(CellGuard::VersionBelow(name, 2 + self.random.below(9))),
            4 => Guard::Cell(CellGuard::UnchangedSince(name, commit)),
            5 => Guard::Record(RecordGuard::Absent(name)),
            6 => Guard::Record(RecordGuard::Exists(name)),
            7..=8 => Guard::Record(RecordGuard::VersionIs(name, self.near(kept.map_or(0, |kept| kept.version)))),
            9..=10 => {
                let field = self.random.pick(&FIELDS);
                Guard::Record(RecordGuard::FieldIs(name, field, self.expected(&id, field)))
            }
            11 => {
                let states = (0..self.random.below(5)).map(|_| self.random.pick(&STATES)).collect();
                Guard::Record(RecordGuard::StateIn(name, states))
            }
            12 => Guard::Record(RecordGuard::AttemptIs(name, self.near(kept.map_or(0, |kept| kept.attempt)))),
            13 => Guard::Record(RecordGuard::UnchangedSince(name, commit)),
            _ => {
                let last = self.reference.runs.get(&id).map_or(0, |run| run.last);
                Guard::Run(RunGuard::LastIs(name, self.near(last)))
            }
        }
    }
}

/// Lets time go on, mostly a little: wall time, none if the clock was set back, and cluster time.
pub(crate) fn time_passed(random: &mut Random, limits: &Limits) -> (Option<u64>, u64) {
    let day_us = limits.tombstone_age_us;
    let (wall, cluster) = match random.below(200) {
        0..=119 => (random.below(300), random.below(300)),
        120..=179 => (random.below(5_000), random.below(5_000)),
        180..=194 => (random.below(60_000), random.below(60_000)),
        195 => (random.below(2 * day_us + 2), 0),
        196 => (0, random.below(700_000_000)),
        _ => return (None, 0),
    };
    (Some(wall), cluster)
}

/// So many steps that the indexes of a type are filled after them, however many records there are.
pub(crate) fn filled(space: u32, record_type: u32) -> Vec<TrimStep> {
    vec![RecordTrim::FillIndexes { space, record_type }.into(); FILLING_STEPS]
}
