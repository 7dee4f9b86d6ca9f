//! One session: the answers that are stored for it, and the pushes that wait for it.
//!
//! The reference knows one thing here that a client would not: that answers of many bytes move to a page at the end of an
//! entry, and that a page counts with all of its bytes until none of its answers is waited for. Which request is refused
//! for its bytes depends on that.

use std::collections::{BTreeMap, BTreeSet};

use contract::Limits;
use session::{Bound, PendingPush, SessionRow};

/// Bytes of answers that a session has outside pages at the end of an entry.
const UNPAGED_BYTES_MAX: usize = 4 << 10;

/// A session.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) row: SessionRow,
    pub(crate) floor: u64,
    /// By request.
    pub(crate) answers: BTreeMap<u64, Stored>,
    /// Their bytes when they were filled.
    pub(crate) pages: BTreeMap<u64, u64>,
    next_page: u64,
    /// It may own something.
    pub(super) owned: BTreeSet<u16>,
    pub(crate) last_push: u64,
    pub(crate) acknowledged: u64,
    /// When each was last sent, and what it is.
    pub(crate) pushes: BTreeMap<u64, (u64, Vec<u8>)>,
    /// Up to when it may have pushes that were last sent, as hints go; none without pushes.
    pub(crate) sent_hint_us: Option<u64>,
}

/// A stored answer.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    /// What it is the answer to.
    pub(super) asked: Vec<u8>,
    bytes: usize,
    page: Option<u64>,
}

impl Session {
    pub(super) fn new(row: SessionRow) -> Self {
        Self {
            row,
            floor: 1,
            answers: BTreeMap::new(),
            pages: BTreeMap::new(),
            next_page: 0,
            owned: BTreeSet::new(),
            last_push: 0,
            acknowledged: 0,
            pushes: BTreeMap::new(),
            sent_hint_us: None,
        }
    }

    /// Drops what the client no longer waits for.
    pub(super) fn raise_floor(&mut self, lowest_pending: u64) {
        if lowest_pending > self.floor {
            self.floor = lowest_pending;
            self.answers = self.answers.split_off(&lowest_pending);
            let used: BTreeSet<_> = self.answers.values().filter_map(|stored| stored.page).collect();
            self.pages.retain(|page, _| used.contains(page));
        }
    }

    /// The limit that keeps it from sending another request.
    pub(super) fn reached(&self, limits: &Limits) -> Option<(Bound, u64)> {
        if self.answers.len() >= limits.session_answers_max as usize {
            return Some((Bound::Answers, limits.session_answers_max.into()));
        }
        let bytes = self.unpaged_bytes() as u64 + self.pages.values().sum::<u64>();
        let max = limits.session_answer_bytes_max.into();
        (bytes >= max).then_some((Bound::AnswerBytes, max))
    }

    pub(super) fn store(&mut self, request: u64, asked: Vec<u8>, bytes: usize) {
        self.answers.insert(request, Stored { asked, bytes, page: None });
    }

    fn unpaged_bytes(&self) -> usize {
        self.answers.values().filter(|stored| stored.page.is_none()).map(|stored| stored.bytes).sum()
    }

    /// At the end of an entry in which it was answered.
    pub(super) fn turn_page(&mut self) {
        let bytes = self.unpaged_bytes();
        if bytes > UNPAGED_BYTES_MAX {
            self.pages.insert(self.next_page, bytes as u64);
            for stored in self.answers.values_mut() {
                stored.page.get_or_insert(self.next_page);
            }
            self.next_page += 1;
        }
    }

    /// Adds a push; false if it has too much already.
    pub(super) fn push(&mut self, payload: Vec<u8>, now_us: u64, limits: &Limits) -> bool {
        let bytes = self.pushes.values().map(|(_, payload)| payload.len()).sum::<usize>() + payload.len();
        let count = self.pushes.len() + 1;
        if count > limits.session_pushes_max as usize || bytes > limits.session_push_bytes_max as usize {
            self.row.broken = true;
            return false;
        }
        self.last_push += 1;
        self.pushes.insert(self.last_push, (now_us, payload));
        self.sent_hint_us.get_or_insert(now_us);
        true
    }

    /// Gives how many pushes are gone now.
    pub(super) fn acknowledge(&mut self, upto: u64) -> u64 {
        let before = self.pushes.len();
        self.pushes.retain(|number, _| *number > upto);
        self.acknowledged = self.acknowledged.max(upto.min(self.last_push));
        if self.pushes.is_empty() {
            self.sent_hint_us = None;
        }
        (before - self.pushes.len()) as u64
    }

    /// Takes pushes that were last sent before a time, and marks them as sent now.
    pub(super) fn retry(
        &mut self,
        session: u64,
        (before_us, now_us): (u64, u64),
        found: &mut Vec<PendingPush>,
        limit: usize,
    ) {
        for (number, (last_sent_us, payload)) in &mut self.pushes {
            if *last_sent_us < before_us && found.len() < limit {
                *last_sent_us = now_us;
                found.push(PendingPush { session, number: *number, last_sent_us: now_us, payload: payload.clone() });
            }
        }
        self.sent_hint_us = self.pushes.values().map(|(last_sent_us, _)| *last_sent_us).min();
    }
}
