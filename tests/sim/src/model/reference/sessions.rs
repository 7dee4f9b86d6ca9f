//! Sessions around everything else: each request once, what a session owns, and pushes.

use contract::Rejection;
use kernel::{Answer, Body, ClaimNext, OpOutcome};
use kv::Writer;
use session::{
    Bound, ChangedSessions, Command, CreatedSession, PendingPush, Refused, SessionAnswer, SessionCommand, SessionRow,
};

use super::counters::Done;
use super::{Expected, Id, Outcome, Reference, Session, Undo};
use crate::model::drawn::{Drawn, MachineFence, Sender, What, encode, hosted};
use crate::model::sessions::machine::Act;

/// Giving back one thing of a session that has ended counts as this many steps of a tick.
const STEPS_FOR_ONE: u32 = 3;

/// Pushes that one command gives to be sent again at most.
const RETRY_PUSHES_MAX: usize = 1_024;

/// Sessions that such a command looks at.
const RETRY_SESSIONS_MAX: usize = 1_024;

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
        let Some(session) = self.sessions.get_mut(&sender.session).filter(|session| !session.row.broken) else {
            return Expected::SessionExpired;
        };
        session.raise_floor(sender.lowest_pending);
        if sender.request < session.floor {
            return Expected::Evicted { floor: session.floor };
        }
        let asked = asked(&drawn.what);
        if let Some(stored) = session.answers.get(&sender.request) {
            return if stored.asked == asked { Expected::Stored } else { Expected::Reused };
        }
        if let Some((bound, max)) = session.reached(&limits) {
            return Expected::Busy { bound, max };
        }
        self.session = Some(sender.session);
        self.owns_more.clear();
        let (expected, decided) = self.execute(drawn);
        let owns_more = std::mem::take(&mut self.owns_more);
        if decided {
            let session = self.sessions.get_mut(&sender.session).expect("a request ends no session");
            session.store(sender.request, asked, bytes_of(&expected, self.commit));
            session.owned.extend(owns_more);
            self.answered.push(sender.session);
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
            What::Machine { space, group, fence, body } => {
                let checked = fence.as_ref().map_or(Ok(()), |fence| self.check_machine_fence(*space, group, fence));
                let checked = checked.and_then(|()| self.check_guarded_machine(*space, group, fence.as_ref()));
                let expected = match checked.err() {
                    Some(rejection) => Expected::Rejected(vec![rejection]),
                    None => self.count(*space, group, body),
                };
                return (expected, true);
            }
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
            SessionCommand::Create { timeout_us, secret, capabilities, owner } => {
                let max = self.limits.sessions_max;
                if self.sessions.len() >= max as usize {
                    return Expected::Busy { bound: Bound::Sessions, max: max.into() };
                }
                let (timeout_us, secret, capabilities) = (*timeout_us, *secret, capabilities.clone());
                let (created_us, broken, owner) = (self.wall_us, false, owner.clone());
                let row = SessionRow { timeout_us, created_us, broken, secret, capabilities, owner: owner.clone() };
                self.sessions.insert(self.commit, Session::new(row));
                self.changed.created.push(CreatedSession { session: self.commit, timeout_us, secret, owner });
                self.had_sessions = true;
                SessionAnswer::Created(self.commit)
            }
            SessionCommand::Acknowledge { session, upto } => {
                let Some(session) = self.sessions.get_mut(session) else {
                    return Expected::SessionExpired;
                };
                SessionAnswer::Done(session.acknowledge(*upto))
            }
            SessionCommand::Expire { sessions } => {
                let mut ended = 0;
                for number in sessions {
                    if let Some(session) = self.sessions.remove(number) {
                        ended += 1;
                        self.changed.expired.push(*number);
                        for bucket in session.owned {
                            self.ended.insert((self.cluster_us, *number, bucket));
                        }
                    }
                }
                SessionAnswer::Done(ended)
            }
            SessionCommand::RequestsForRetry { sent_before_us, limit } => {
                SessionAnswer::Retry(self.retry(*sent_before_us, *limit))
            }
        };
        Expected::Sessions(answer)
    }

    fn retry(&mut self, before_us: u64, limit: u32) -> Vec<PendingPush> {
        let limit = RETRY_PUSHES_MAX.min(limit as usize);
        let hints = self.sessions.iter().filter_map(|(session, known)| Some((known.sent_hint_us?, *session)));
        let mut overdue: Vec<_> = hints.filter(|(sent_us, _)| *sent_us < before_us).collect();
        overdue.sort_unstable();
        overdue.truncate(RETRY_SESSIONS_MAX);
        let mut found = Vec::new();
        for (_, session) in overdue {
            if found.len() >= limit {
                break;
            }
            let known = self.sessions.get_mut(&session).expect("it was just there");
            known.retry(session, (before_us, self.wall_us), &mut found, limit);
        }
        found
    }

    /// An entry is over. Gives what it has changed in sessions.
    pub(super) fn end_entry_of_sessions(&mut self) -> ChangedSessions {
        for session in std::mem::take(&mut self.answered) {
            if let Some(session) = self.sessions.get_mut(&session) {
                session.turn_page();
            }
        }
        let pushes = self.sessions.values().map(|session| session.pushes.len()).sum::<usize>();
        let before = std::mem::replace(&mut self.pushes_before, pushes);
        self.changed.pushes = pushes as i64 - before as i64;
        std::mem::take(&mut self.changed)
    }

    pub(super) fn push(&mut self, session: u64, payload: &[u8]) {
        self.pushes.push((session, payload.to_vec()));
        self.undo.push(Undo::Push);
    }

    /// What a command has pushed arrives, or breaks sessions that have too much already.
    fn deliver_pushes(&mut self) {
        for (number, payload) in std::mem::take(&mut self.pushes) {
            let Some(session) = self.sessions.get_mut(&number).filter(|session| !session.row.broken) else {
                continue;
            };
            match session.push(payload, self.wall_us, &self.limits) {
                true => self.changed.pushed.push(number),
                false => self.changed.broken.push(number),
            }
        }
    }

    fn check_machine_fence(&mut self, space: u32, group: &str, fence: &MachineFence) -> Result<(), Rejection> {
        self.live_branch(space, fence.branch)?;
        let record = Id::new(space, fence.branch, Some(group), &fence.record);
        self.expire(&record);
        self.check_attempt(&record, fence.attempt)
    }

    /// A command for the machine's state in a group. The machine meets a session with its first command there.
    fn count(&mut self, space: u32, group: &str, body: &[u8]) -> Expected {
        let place = (space, group.to_owned());
        let (session, commit) = (self.session, self.commit);
        let bucket = self.bucket(&Id::new(space, 0, None, group));
        let counters = self.machines.entry(place.clone()).or_default();
        let mut pushes = Vec::new();
        if let Some(session) = session
            && self.members.insert((session, place))
        {
            self.owns_more.insert(bucket);
            pushes.extend(counters.begin(session));
        }
        let act = Act::decode(body);
        let done = match &act {
            Ok(act) => counters.apply(act, commit),
            Err(_) => Done::refused(Refused::Undecodable),
        };
        if let Ok(Act { ticket: Some(ticket), .. }) = act
            && done.executed
        {
            assert!(self.executed.insert(ticket), "(1) the reference executes {ticket:?} a second time");
        }
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

    /// A step of a tick: gives back some of what a session owned in a bucket that has ended. Gives the number of steps.
    pub(super) fn give_back_owned(&mut self, (at_us, session, bucket): (u64, u64, u16), steps_max: u32) -> u32 {
        let limit = (steps_max / STEPS_FOR_ONE).max(1);
        let mut owned = self.owned(session);
        owned.retain(|(of, _, _)| *of == bucket);
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
            self.ended.remove(&(at_us, session, bucket));
        }
        (given_back * STEPS_FOR_ONE).max(1)
    }
}

/// How many bytes an answer takes; 0 if the reference does not know all of it, which the models must not depend on.
fn bytes_of(expected: &Expected, commit: u64) -> usize {
    let (commit, outcomes) = match expected {
        Expected::Done(outcomes) => (commit, outcomes),
        Expected::DoneBefore(before, outcomes) => (*before, outcomes),
        _ => return 0,
    };
    let outcome = |outcome: &Outcome| match outcome {
        Outcome::Is(outcome) => Some(outcome.clone()),
        Outcome::Claimed(..) => None,
    };
    let outcomes: Option<Vec<_>> = outcomes.iter().map(outcome).collect();
    outcomes.map_or(0, |outcomes| Answer::Done { commit, outcomes }.encode().len())
}

/// What a command asks for, without how it was sent.
fn asked(what: &What) -> Vec<u8> {
    match what {
        What::Machine { space, group, fence, body } => {
            let mut writer = Writer::new();
            hosted(*space, group, fence.as_ref(), body).encode(&mut writer);
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
