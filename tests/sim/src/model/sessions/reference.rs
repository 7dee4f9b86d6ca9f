//! The reference: sessions and counters in plain maps, and the expected answer to each command.
//!
//! It knows one thing that a client would not: that answers of many bytes move to a page at the end of an entry, and that
//! a page counts with all of its bytes until none of its answers is waited for. Which request is refused for its bytes
//! depends on that.

pub(crate) mod counters;

use std::collections::{BTreeMap, BTreeSet};

use session::{
    Bound, ChangedSessions, Command, PendingPush, Refused, SessionAnswer, SessionCommand, SessionLimits, SessionRow,
};

use super::command::{Drawn, Expected, Request};
use super::machine::Act;
use counters::Done;
pub(crate) use counters::ReferenceCounters;

/// Bytes of answers that a session has outside pages at the end of an entry.
const UNPAGED_BYTES_MAX: usize = 4 << 10;

/// Pushes that one command gives to be sent again at most.
const RETRY_PUSHES_MAX: usize = 1_024;

/// Sessions that such a command looks at.
const RETRY_SESSIONS_MAX: usize = 1_024;

/// A session.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) row: SessionRow,
    pub(super) floor: u64,
    pub(super) answers: BTreeMap<u64, Stored>,
    /// Their bytes when they were filled.
    pub(super) pages: BTreeMap<u64, u64>,
    next_page: u64,
    pub(super) last_push: u64,
    pub(super) acknowledged: u64,
    /// When each was last sent, and what it is.
    pub(super) pushes: BTreeMap<u64, (u64, Vec<u8>)>,
    /// Up to when it may have pushes that were last sent, as hints go; none without pushes.
    pub(super) sent_hint_us: Option<u64>,
}

/// A stored answer, and where it is.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    pub(super) answer: Vec<u8>,
    page: Option<u64>,
}

/// Sessions and counters in plain maps.
#[derive(Default)]
pub(super) struct Reference {
    pub(super) limits: SessionLimits,
    pub(super) wall_us: u64,
    /// The number of the last command.
    pub(super) commit: u64,
    pub(super) sessions: BTreeMap<u64, Known>,
    pub(super) counters: ReferenceCounters,
    /// Which requests were executed, ever.
    pub(super) executed: BTreeSet<(u64, u64)>,
    /// What the entry has changed so far.
    changed: ChangedSessions,
    /// Sessions that got an answer in this entry.
    answered: Vec<u64>,
    /// How many pushes waited before this entry.
    pushes_before: usize,
}

impl Reference {
    /// No session, nothing counted.
    pub(super) fn new(limits: SessionLimits) -> Self {
        Self { limits, wall_us: 1_000, ..Self::default() }
    }

    /// What a command must be answered; and does it.
    pub(super) fn apply(&mut self, drawn: &Drawn) -> Expected {
        self.commit += 1;
        match drawn {
            Drawn::Request(request) => self.request(request),
            Drawn::Plain { body } => Expected::Answer(self.execute(body).answer),
            Drawn::Sessions(command) => match self.session_command(command) {
                Ok(answer) => Expected::Sessions(answer),
                Err(refused) => refused,
            },
        }
    }

    fn request(&mut self, sent: &Request) -> Expected {
        let limits = self.limits;
        let Some(known) = self.sessions.get_mut(&sent.session).filter(|known| !known.row.broken) else {
            return Expected::SessionExpired;
        };
        known.raise_floor(sent.lowest_pending);
        if sent.request < known.floor {
            return Expected::Evicted { floor: known.floor };
        }
        if let Some(stored) = known.answers.get(&sent.request) {
            return Expected::Stored(stored.answer.clone());
        }
        if let Some((bound, max)) = known.reached(&limits) {
            return Expected::Busy { bound, max };
        }
        let done = self.execute(&sent.body);
        let known = self.sessions.get_mut(&sent.session).expect("a request ends no session");
        self.answered.push(sent.session);
        known.answers.insert(sent.request, Stored { answer: done.answer.clone(), page: None });
        if done.executed {
            let first = self.executed.insert((sent.session, sent.request));
            assert!(first, "(1) the reference executes {sent:?} a second time");
        }
        Expected::Answer(done.answer)
    }

    /// Does what a body asks, and delivers what it pushes.
    fn execute(&mut self, body: &[u8]) -> Done {
        let done = match Act::decode(body) {
            Ok(act) => self.counters.apply(&act, self.commit),
            Err(_) => Done::refused(Refused::Undecodable),
        };
        self.deliver(&done.pushes);
        done
    }

    fn deliver(&mut self, pushes: &[(u64, Vec<u8>)]) {
        for (session, payload) in pushes {
            let Some(known) = self.sessions.get_mut(session).filter(|known| !known.row.broken) else {
                continue;
            };
            let bytes = known.pushes.values().map(|(_, payload)| payload.len()).sum::<usize>() + payload.len();
            let count = known.pushes.len() + 1;
            let limits = &self.limits;
            if count > limits.session_pushes_max as usize || bytes > limits.session_push_bytes_max as usize {
                known.row.broken = true;
                self.changed.broken.push(*session);
                continue;
            }
            known.last_push += 1;
            known.pushes.insert(known.last_push, (self.wall_us, payload.clone()));
            known.sent_hint_us.get_or_insert(self.wall_us);
            self.changed.pushed.push(*session);
        }
    }

    fn session_command(&mut self, command: &SessionCommand) -> Result<SessionAnswer, Expected> {
        match command {
            SessionCommand::Create { timeout_us, capabilities } => {
                if self.sessions.len() >= self.limits.sessions_max as usize {
                    return Err(Expected::Busy { bound: Bound::Sessions, max: self.limits.sessions_max.into() });
                }
                let (timeout_us, created_us, capabilities) = (*timeout_us, self.wall_us, capabilities.clone());
                let row = SessionRow { timeout_us, created_us, broken: false, capabilities };
                self.sessions.insert(self.commit, Known::new(row));
                self.changed.created.push((self.commit, timeout_us));
                let pushes = self.counters.begin(self.commit);
                self.deliver(&pushes);
                Ok(SessionAnswer::Created(self.commit))
            }
            SessionCommand::Acknowledge { session, upto } => {
                let known = self.sessions.get_mut(session).ok_or(Expected::SessionExpired)?;
                Ok(SessionAnswer::Done(known.acknowledge(*upto)))
            }
            SessionCommand::Expire { sessions } => {
                let mut ended = 0;
                for session in sessions {
                    if self.sessions.remove(session).is_some() {
                        ended += 1;
                        self.changed.expired.push(*session);
                        let pushes = self.counters.end(*session);
                        self.deliver(&pushes);
                    }
                }
                Ok(SessionAnswer::Done(ended))
            }
            SessionCommand::RequestsForRetry { sent_before_us, limit } => {
                Ok(SessionAnswer::Retry(self.retry(*sent_before_us, *limit)))
            }
        }
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
            for (number, (last_sent_us, payload)) in &mut known.pushes {
                if *last_sent_us < before_us && found.len() < limit {
                    *last_sent_us = self.wall_us;
                    let (number, last_sent_us, payload) = (*number, *last_sent_us, payload.clone());
                    found.push(PendingPush { session, number, last_sent_us, payload });
                }
            }
            known.sent_hint_us = known.pushes.values().map(|(last_sent_us, _)| *last_sent_us).min();
        }
        found
    }

    /// The entry is over. Gives what it has changed.
    pub(super) fn finish_entry(&mut self) -> ChangedSessions {
        for session in std::mem::take(&mut self.answered) {
            if let Some(known) = self.sessions.get_mut(&session) {
                known.turn_page();
            }
        }
        let pushes = self.sessions.values().map(|known| known.pushes.len()).sum::<usize>();
        let before = std::mem::replace(&mut self.pushes_before, pushes);
        self.changed.pushes = pushes as i64 - before as i64;
        std::mem::take(&mut self.changed)
    }
}

impl Known {
    fn new(row: SessionRow) -> Self {
        Self {
            row,
            floor: 1,
            answers: BTreeMap::new(),
            pages: BTreeMap::new(),
            next_page: 0,
            last_push: 0,
            acknowledged: 0,
            pushes: BTreeMap::new(),
            sent_hint_us: None,
        }
    }

    fn raise_floor(&mut self, lowest_pending: u64) {
        if lowest_pending > self.floor {
            self.floor = lowest_pending;
            self.answers = self.answers.split_off(&lowest_pending);
            let used: BTreeSet<_> = self.answers.values().filter_map(|stored| stored.page).collect();
            self.pages.retain(|page, _| used.contains(page));
        }
    }

    fn unpaged_bytes(&self) -> usize {
        self.answers.values().filter(|stored| stored.page.is_none()).map(|stored| stored.answer.len()).sum()
    }

    fn reached(&self, limits: &SessionLimits) -> Option<(Bound, u64)> {
        if self.answers.len() >= limits.session_answers_max as usize {
            return Some((Bound::Answers, limits.session_answers_max.into()));
        }
        let bytes = self.unpaged_bytes() as u64 + self.pages.values().sum::<u64>();
        let max = limits.session_answer_bytes_max.into();
        (bytes >= max).then_some((Bound::AnswerBytes, max))
    }

    fn turn_page(&mut self) {
        let bytes = self.unpaged_bytes();
        if bytes > UNPAGED_BYTES_MAX {
            self.pages.insert(self.next_page, bytes as u64);
            for stored in self.answers.values_mut() {
                stored.page.get_or_insert(self.next_page);
            }
            self.next_page += 1;
        }
    }

    fn acknowledge(&mut self, upto: u64) -> u64 {
        let before = self.pushes.len();
        self.pushes.retain(|number, _| *number > upto);
        self.acknowledged = self.acknowledged.max(upto.min(self.last_push));
        if self.pushes.is_empty() {
            self.sent_hint_us = None;
        }
        (before - self.pushes.len()) as u64
    }
}
