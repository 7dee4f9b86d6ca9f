//! The line between clients and the store: messages in transit, by virtual time.
//!
//! A message takes a random time, so that they overtake each other. Requests and answers are lost, and some requests
//! arrive a second time, up to a minute after the first.

use std::collections::BTreeMap;

use testkit::random::Random;

/// What arrives in so short a time is handled together. No message is faster, so that none that is handled together with
/// another can be a consequence of it.
const MOMENT_US: u64 = 50_000;

const DELAY_MAX_US: u64 = 1_000_000;
const LATE_MAX_US: u64 = 60_000_000;

/// How long a client waits for an answer before it sends a request again.
const PATIENCE_US: u64 = 3_000_000;

/// One in so many requests is lost, one in so many comes twice, and one in so many answers is lost.
const ONE_IN: u64 = 10;

/// A request on its way, as often as it may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    pub(super) client: usize,
    pub(super) request: u64,
    pub(super) lowest_pending: u64,
    /// The counter that it adds to.
    pub(super) counter: usize,
}

/// What a request was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It was executed, now or before; the counter held this then.
    Counted(i64),
    /// Its client waits for it no more.
    Evicted,
    SessionExpired,
}

/// Something that happens at a time.
#[derive(Debug)]
pub(super) enum Event {
    Arrives(Message),
    Answered(Message, Answer),
    /// The client has waited long enough for an answer.
    PatienceOver {
        client: usize,
        request: u64,
    },
    /// The client's session ends.
    Ends {
        client: usize,
    },
}

/// Messages in transit, with losses, duplicates and delays.
pub(super) struct Line {
    random: Random,
    events: BTreeMap<(u64, u64), Event>,
    /// How many events were ever added: those of the same time happen in this order.
    added: u64,
    pub(super) traffic: Traffic,
}

/// What the line did to messages.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Traffic {
    pub(super) sent: u64,
    pub(super) lost_requests: u64,
    pub(super) doubled: u64,
    pub(super) lost_answers: u64,
}

impl Line {
    pub(super) fn new(random: Random) -> Self {
        Self { random, events: BTreeMap::new(), added: 0, traffic: Traffic::default() }
    }

    pub(super) fn add(&mut self, at_us: u64, event: Event) {
        self.added += 1;
        self.events.insert((at_us, self.added), event);
    }

    fn delay_us(&mut self) -> u64 {
        MOMENT_US + self.random.below(DELAY_MAX_US)
    }

    /// A client sends a request, and begins to wait.
    pub(super) fn send(&mut self, now_us: u64, message: Message) {
        self.traffic.sent += 1;
        if self.random.one_in(ONE_IN) {
            self.traffic.lost_requests += 1;
        } else {
            let at_us = now_us + self.delay_us();
            self.add(at_us, Event::Arrives(message));
        }
        if self.random.one_in(ONE_IN) {
            self.traffic.doubled += 1;
            let at_us = now_us + self.delay_us() + self.random.below(LATE_MAX_US);
            self.add(at_us, Event::Arrives(message));
        }
        let Message { client, request, .. } = message;
        self.add(now_us + PATIENCE_US, Event::PatienceOver { client, request });
    }

    /// The store answers.
    pub(super) fn answer(&mut self, now_us: u64, message: Message, answer: Answer) {
        if self.random.one_in(ONE_IN) {
            self.traffic.lost_answers += 1;
        } else {
            let at_us = now_us + self.delay_us();
            self.add(at_us, Event::Answered(message, answer));
        }
    }

    /// What happens next, as far as it is handled together; nothing if the line is quiet.
    pub(super) fn next_moment(&mut self) -> Vec<(u64, Event)> {
        let Some(((first_us, _), _)) = self.events.first_key_value() else {
            return Vec::new();
        };
        let later = self.events.split_off(&(first_us + MOMENT_US, 0));
        let now = std::mem::replace(&mut self.events, later);
        now.into_iter().map(|((at_us, _), event)| (at_us, event)).collect()
    }
}
