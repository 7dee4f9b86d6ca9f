//! One stretch of random entries on a machine and its store, against the reference.
//!
//! Between entries the machine is rebuilt from the store, which forgets everything that it knew by heart; and all rows
//! are streamed into a fresh store, with which the stretch goes on. Sometimes the machine that they came from goes on
//! beside it for a while: both must answer and write the same.

use kv::Row;
use session::{Reply, SessionLimits, Stamp};
use testkit::random::Random;

use super::clients::{Clients, Sent};
use super::command::Drawn;
use super::deeds::Deeds;
use super::instance::{Effects, Instance, Places};
use super::reference::Reference;
use super::rows;
use super::tally::{Tally, add};
use crate::model::compare::same;
use crate::model::instance::text;

/// Commands in one entry.
const COMMANDS_MAX: u64 = 12;

/// Commands between two looks at all rows.
const CHECK_EVERY: u64 = 400;

/// What a stretch is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To hold the machine to the reference.
    Check,
    /// To find a known bug, images without stored answers, by the replies that clients get and nothing else.
    FindCanary,
}

/// Runs one stretch of random entries against the reference.
pub(super) fn run(seed: u64, commands: u64, purpose: Purpose, tally: &Tally) -> Result<(), String> {
    let mut random = Random::new(seed);
    let places = Places::draw(&mut random);
    let deeds = Deeds::new(&places, &mut random);
    let clients = random.pick(&[5, 40, 400]);
    let limits = draw_limits(clients, &mut random);
    let instance = Instance::holding(&places, Vec::new(), &mut random)?;
    let reference = Reference::new(limits);
    let clients = Clients::new(clients, deeds, &mut random);
    let mut stretch = Stretch { random, purpose, tally, places, instance, twin: None, reference, clients };
    let mut checked = 0;
    while stretch.reference.commit < commands {
        let step = stretch.entry().and_then(|()| stretch.between_entries());
        step.map_err(|what| stretch.explain(&what))?;
        if stretch.reference.commit - checked >= CHECK_EVERY {
            checked = stretch.reference.commit;
            stretch.check().map_err(|what| stretch.explain(&what))?;
        }
    }
    stretch.end().map_err(|what| stretch.explain(&what))?;
    add(&tally.executed, stretch.reference.executed.len() as u64);
    Ok(())
}

/// Limits that are small enough to be met, and others.
fn draw_limits(clients: u64, random: &mut Random) -> SessionLimits {
    SessionLimits {
        sessions_max: u32::try_from(clients + clients / 4).expect("few"),
        session_answers_max: random.pick(&[1, 4, 10, 256, 256]),
        session_answer_bytes_max: random.pick(&[200, 20_000, 100_000, 1 << 20]),
        session_pushes_max: random.pick(&[5, 30, 1_024]),
        session_push_bytes_max: random.pick(&[2_000, 20_000, 4 << 20]),
    }
}

struct Stretch<'tally> {
    random: Random,
    purpose: Purpose,
    tally: &'tally Tally,
    places: Places,
    instance: Instance,
    /// The machine that the last image was taken of, and how many entries it still goes on for.
    twin: Option<(Instance, u64)>,
    reference: Reference,
    clients: Clients,
}

impl Stretch<'_> {
    fn explain(&self, what: &str) -> String {
        let Reference { limits, commit, sessions, .. } = &self.reference;
        format!("{what}\n  after {commit} commands, {} sessions, {:?}, {limits:?}", sessions.len(), self.places)
    }

    fn entry(&mut self) -> Result<(), String> {
        self.reference.wall_us += 1 + self.random.pick(&[0, 10, 1_000, 50_000]);
        let wall_us = self.reference.wall_us;
        let first_commit = self.reference.commit + 1;
        let (mut sent, mut expected) = (Vec::new(), Vec::new());
        for _ in 0..1 + self.random.below(COMMANDS_MAX) {
            let next = self.clients.draw(&self.reference, &mut self.random);
            expected.push(self.reference.apply(&next.drawn));
            sent.push(next);
        }
        let commands: Vec<_> = sent.iter().map(|sent| sent.drawn.encode()).collect();
        let (limits, stamp) = (self.reference.limits, Stamp { wall_us, cluster_us: wall_us / 2 });
        let effects = self.instance.apply(&limits, stamp, first_commit, &commands)?;
        for ((sent, expected), reply) in sent.iter().zip(&expected).zip(&effects.replies) {
            expected.compare(&sent.drawn, reply)?;
            self.clients.hear(sent, reply, &mut self.random)?;
            self.note(sent, reply);
        }
        let changed = self.reference.finish_entry();
        same(|| "what an entry changed in sessions".into(), &effects.changed, &changed)?;
        add(&self.tally.commands, commands.len() as u64);
        add(&self.tally.entries, 1);
        self.go_on_beside(&limits, stamp, first_commit, &commands, &effects)?;
        if self.purpose == Purpose::Check {
            let view = self.instance.view()?;
            rows::check_touched(&*view, &self.places, &self.reference, sent.iter().map(|sent| &sent.drawn))?;
        }
        Ok(())
    }

    fn note(&self, sent: &Sent, reply: &[u8]) {
        let count = match (&sent.drawn, Reply::decode(reply)) {
            (Drawn::Request(_), Ok(Reply::Stored(_))) => &self.tally.repeats,
            (_, Ok(Reply::Evicted { .. })) => &self.tally.evicted,
            (_, Ok(Reply::Busy { .. })) => &self.tally.busy,
            (Drawn::Request(_), Ok(Reply::SessionExpired)) => &self.tally.expired,
            _ => return,
        };
        add(count, 1);
    }

    /// The machine that the last image was taken of does the same.
    fn go_on_beside(
        &mut self,
        limits: &SessionLimits,
        stamp: Stamp,
        first_commit: u64,
        commands: &[Vec<u8>],
        effects: &Effects,
    ) -> Result<(), String> {
        let Some((mut twin, entries)) = self.twin.take() else {
            return Ok(());
        };
        if twin.apply(limits, stamp, first_commit, commands)? != *effects {
            return Err("(5) a restored machine does not do what the one does that it was made from".into());
        }
        if entries > 0 {
            self.twin = Some((twin, entries - 1));
            return Ok(());
        }
        same_rows(&twin.rows()?, &self.instance.rows()?)
    }

    fn between_entries(&mut self) -> Result<(), String> {
        match self.random.below(400) {
            0..=9 => {
                self.instance.restart();
                add(&self.tally.restarts, 1);
                Ok(())
            }
            10..=12 => self.change_over(),
            13 if self.purpose == Purpose::Check => {
                // Somebody sets limits anew.
                let clients = self.clients.count();
                self.reference.limits = draw_limits(clients, &mut self.random);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Goes on with an image.
    fn change_over(&mut self) -> Result<(), String> {
        let mut image = self.instance.rows()?;
        if self.purpose == Purpose::FindCanary {
            let keys = self.places.keys();
            for (key, row) in &mut image {
                *row = session::canary::without_answers(&keys, key, row.to_vec()).map_err(text)?.into();
            }
        }
        let restored = Instance::holding(&self.places, image.clone(), &mut self.random)?;
        if self.purpose == Purpose::Check {
            same_rows(&restored.rows()?, &image)?;
            let entries = self.random.below(40);
            self.twin = Some((std::mem::replace(&mut self.instance, restored), entries));
        } else {
            self.instance = restored;
        }
        add(&self.tally.images, 1);
        Ok(())
    }

    fn check(&mut self) -> Result<(), String> {
        if self.purpose == Purpose::Check {
            rows::check(&*self.instance.view()?, &self.places, &self.reference)?;
            add(&self.tally.checks, 1);
        }
        Ok(())
    }

    /// All sessions end: nothing may be left of any.
    fn end(&mut self) -> Result<(), String> {
        self.check()?;
        let sessions: Vec<u64> = self.reference.sessions.keys().copied().collect();
        let drawn = Drawn::Sessions(session::SessionCommand::Expire { sessions });
        let expected = self.reference.apply(&drawn);
        let (limits, wall_us) = (self.reference.limits, self.reference.wall_us + 1);
        let stamp = Stamp { wall_us, cluster_us: wall_us };
        let effects = self.instance.apply(&limits, stamp, self.reference.commit, &[drawn.encode()])?;
        expected.compare(&drawn, &effects.replies[0])?;
        self.reference.finish_entry();
        if self.purpose == Purpose::Check {
            let executed = self.reference.executed.len() as u64;
            same(|| "(1) how much the reference executed".into(), &self.reference.counters.ended.requests, &executed)?;
        }
        self.check()
    }
}

fn same_rows(found: &[Row], expected: &[Row]) -> Result<(), String> {
    let differing = found.iter().zip(expected).find(|(found, expected)| found != expected);
    if let Some(((found, _), (expected, _))) = differing {
        return Err(format!("(5) the rows of an image differ: {found:?} where {expected:?} is expected"));
    }
    same(|| "(5) the number of rows of an image".into(), &found.len(), &expected.len())
}
