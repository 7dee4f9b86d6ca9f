//! Sessions around everything else: each request once, what a session owns, and pushes.

use std::collections::BTreeMap;

use contract::Rejection;
use kernel::sessions::hosted::HostedCommand;
use kernel::{Body, ClaimNext, OpOutcome};
use kv::Writer;
use session::{Bound, Command, Refused, SessionAnswer, SessionCommand};

use super::{Expected, Id, Outcome, Reference, Undo};
use crate::model::drawn::{Drawn, Sender, What, encode};
use crate::model::sessions::machine::Act;
use crate::model::sessions::reference::counters::Done;

/// Giving back one thing of a session that has ended counts as this many steps of a tick.
const STEPS_FOR_ONE: u32 = 3;

/// A session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Session {
    /// It did not acknowledge its pushes.
    pub(crate) broken: bool,
    pub(crate) floor: u64,
    /// The requests whose answers are stored, and what they asked for.
    pub(crate) answers: BTreeMap<u64, Vec<u8>>,
    /// It may own something.
    owned: bool,
    pub(crate) last_push: u64,
    pub(crate) acknowledged: u64,
    pub(crate) pushes: BTreeMap<u64, Vec<u8>>,
}

/// What ends with a session, in the order in which it is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owns {
    Claim,
    Life,
    Member,
}

impl Reference {
    /// Applies a command.
    pub(crate) fn apply(&mut self, drawn: &Drawn) -> Expected {
        self.commit += 1;
        self.ordinal = 0;
        self.undo.clear();
        self.session = None;
        let expected = match (&drawn.what, drawn.sender) {
            (What::Sessions(command), _) => self.session_command(command),
            (_, None) => self.execute(drawn).0,
            (_, Some(sender)) => self.request(sender, drawn),
        };
        self.deliver_pushes();
        expected
    }

    fn request(&mut self, sender: Sender, drawn: &Drawn) -> Expected {
        let limits = self.limits;
        let Some(session) = self.sessions.get_mut(&sender.session).filter(|session| !session.broken) else {
            return Expected::SessionExpired;
        };
        if sender.lowest_pending > session.floor {
            session.floor = sender.lowest_pending;
            session.answers = session.answers.split_off(&sender.lowest_pending);
        }
        if sender.request < session.floor {
            return Expected::Evicted { floor: session.floor };
        }
        let asked = asked(&drawn.what);
        if let Some(stored) = session.answers.get(&sender.request) {
            return if *stored == asked { Expected::Stored } else { Expected::Reused };
        }
        if session.answers.len() >= limits.session_answers_max as usize {
            return Expected::Busy { bound: Bound::Answers, max: limits.session_answers_max.into() };
        }
        self.session = Some(sender.session);
        self.owns_more = false;
        let (expected, decided) = self.execute(drawn);
        let owns_more = std::mem::take(&mut self.owns_more);
        if decided {
            let session = self.sessions.get_mut(&sender.session).expect("a request ends no session");
            session.answers.insert(sender.request, asked);
            session.owned |= owns_more;
        }
        expected
    }

    /// Does what a command asks. Says also whether it is decided: an answer that says "not yet" is not stored.
    fn execute(&mut self, drawn: &Drawn) -> (Expected, bool) {
        let (needed, have) = (drawn.revision, self.revision);
        if needed > have {
            return (Expected::Rejected(vec![Rejection::CatalogueBehind { needed, have }]), false);
        }
        let body = match &drawn.what {
            What::Body(body) => body,
            What::Machine { space, group, body } => return (self.count(*space, group, body), true),
            What::Sessions(_) => unreachable!("no session sends it"),
        };
        let expected = self.execute_body(body);
        let waits = matches!(Body::decode(body), Ok(Body::ClaimNext(ClaimNext { waits: true, .. })));
        let not_yet = match &expected {
            Expected::Done(outcomes) => match outcomes.as_slice() {
                [] => waits,
                [Outcome::Is(OpOutcome::Unfinished)] => true,
                _ => false,
            },
            _ => false,
        };
        (expected, !not_yet)
    }

    fn session_command(&mut self, command: &SessionCommand) -> Expected {
        let answer = match command {
            SessionCommand::Create { .. } => {
                let max = self.limits.sessions_max;
                if self.sessions.len() >= max as usize {
                    return Expected::Busy { bound: Bound::Sessions, max: max.into() };
                }
                self.sessions.insert(self.commit, Session { floor: 1, ..Session::default() });
                SessionAnswer::Created(self.commit)
            }
            SessionCommand::Acknowledge { session, upto } => {
                let Some(session) = self.sessions.get_mut(session) else {
                    return Expected::SessionExpired;
                };
                let before = session.pushes.len();
                session.pushes.retain(|number, _| *number > *upto);
                session.acknowledged = session.acknowledged.max((*upto).min(session.last_push));
                SessionAnswer::Done((before - session.pushes.len()) as u64)
            }
            SessionCommand::Expire { sessions } => {
                let mut ended = 0;
                for number in sessions {
                    if let Some(session) = self.sessions.remove(number) {
                        ended += 1;
                        if session.owned {
                            self.ended.insert((self.cluster_us, *number));
                        }
                    }
                }
                SessionAnswer::Done(ended)
            }
            SessionCommand::RequestsForRetry { .. } => unreachable!("it is not drawn"),
        };
        Expected::Sessions(answer)
    }

    pub(super) fn push(&mut self, session: u64, payload: &[u8]) {
        self.pushes.push((session, payload.to_vec()));
        self.undo.push(Undo::Push);
    }

    /// What a command has pushed arrives, or breaks sessions that have too much already.
    fn deliver_pushes(&mut self) {
        for (number, payload) in std::mem::take(&mut self.pushes) {
            let Some(session) = self.sessions.get_mut(&number).filter(|session| !session.broken) else {
                continue;
            };
            if session.pushes.len() >= self.limits.session_pushes_max as usize {
                session.broken = true;
                continue;
            }
            session.last_push += 1;
            session.pushes.insert(session.last_push, payload);
        }
    }

    /// A command for the machine's state in a group. The machine meets a session with its first command there.
    fn count(&mut self, space: u32, group: &str, body: &[u8]) -> Expected {
        let place = (space, group.to_owned());
        let (session, commit) = (self.session, self.commit);
        let counters = self.machines.entry(place.clone()).or_default();
        let mut pushes = Vec::new();
        if let Some(session) = session
            && self.members.insert((session, place))
        {
            self.owns_more = true;
            pushes.extend(counters.begin(session));
        }
        let done = match Act::decode(body) {
            Ok(act) => counters.apply(&act, commit),
            Err(_) => Done::refused(Refused::Undecodable),
        };
        pushes.extend(done.pushes);
        self.pushes.extend(pushes);
        Expected::Done(vec![Outcome::Is(OpOutcome::Hosted(done.answer))])
    }

    /// What each session owns, by bucket: claims, then records that live as long as it does, then machines that know it.
    pub(crate) fn owned(&self, session: u64) -> Vec<(u16, Owns, Id)> {
        let mut owned = Vec::new();
        for (id, kept) in &self.records {
            let Some(live) = &kept.live else {
                continue;
            };
            let bucket = self.bucket(id);
            owned.extend((live.holder == Some(session)).then(|| (bucket, Owns::Claim, id.clone())));
            owned.extend((live.life == Some(session)).then(|| (bucket, Owns::Life, id.clone())));
        }
        let members = self.members.iter().filter(|(member, _)| *member == session);
        owned.extend(members.map(|(_, (space, group))| {
            let id = Id::new(*space, 0, None, group);
            (self.bucket(&id), Owns::Member, id)
        }));
        owned.sort();
        owned
    }

    /// A step of a tick: gives back some of what a session owned that has ended. Gives the number of steps.
    pub(super) fn give_back_owned(&mut self, at_us: u64, session: u64, steps_max: u32) -> u32 {
        let limit = (steps_max / STEPS_FOR_ONE).max(1);
        let mut owned = self.owned(session);
        owned.truncate(limit as usize);
        for (_, owns, id) in &owned {
            match owns {
                Owns::Claim | Owns::Life if !self.is_live(id.space, id.branch) => self.erase(id),
                Owns::Life => {
                    self.remove(id);
                }
                Owns::Claim => self.rescue(id),
                Owns::Member => {
                    let place = (id.space, id.name.clone());
                    let pushes = self.machines.get_mut(&place).expect("it knows the session").end(session);
                    self.members.remove(&(session, place.clone()));
                    self.left.insert(place);
                    self.pushes.extend(pushes);
                }
            }
        }
        let given_back = u32::try_from(owned.len()).expect("bounded by the steps");
        if given_back < limit {
            self.ended.remove(&(at_us, session));
        }
        (given_back * STEPS_FOR_ONE).max(1)
    }
}

/// What a command asks for, without how it was sent.
fn asked(what: &What) -> Vec<u8> {
    match what {
        What::Machine { space, group, body } => {
            let mut writer = Writer::new();
            HostedCommand { space: *space, group, body }.encode(&mut writer);
            // No command of the contracts begins so.
            [b"machine ".as_slice(), &writer.finish()].concat()
        }
        What::Body(body) => match Body::decode(body) {
            Ok(Body::ClaimNext(claim)) => encode(&Body::ClaimNext(ClaimNext { waits: false, ..claim })),
            _ => body.clone(),
        },
        What::Sessions(_) => unreachable!("no session sends it"),
    }
}
