//! A client: pipelines increments, waits, times out, and repeats requests.

use std::collections::BTreeMap;

use testkit::random::Random;

use super::line::{Answer, Line, Message};

/// Requests that a client has under way at a time.
const PIPELINED_MAX: usize = 16;

/// A client that adds to counters.
pub(super) struct Client {
    pub(super) number: usize,
    next_request: u64,
    /// What it still wants to do.
    left: u64,
    /// The counters that it adds to.
    counters: std::ops::Range<usize>,
    /// What it waits for, and the counter that each adds to.
    waiting: BTreeMap<u64, usize>,
    /// What it was answered.
    pub(super) answers: BTreeMap<u64, i64>,
    /// Whether it heard that its session has ended.
    is_over: bool,
}

impl Client {
    /// One that wants to make so many increments of these counters, the first of which it likes best.
    pub(super) fn new(number: usize, increments: u64, counters: std::ops::Range<usize>) -> Self {
        let (waiting, answers) = (BTreeMap::new(), BTreeMap::new());
        Self { number, next_request: 1, left: increments, counters, waiting, answers, is_over: false }
    }

    /// Sends what it can have under way.
    pub(super) fn go_on(&mut self, now_us: u64, line: &mut Line, random: &mut Random) {
        while self.left > 0 && self.waiting.len() < PIPELINED_MAX && !self.is_over {
            self.left -= 1;
            let counter = if random.one_in(4) { 0 } else { random.index(self.counters.len()) };
            self.waiting.insert(self.next_request, self.counters.start + counter);
            self.send(now_us, self.next_request, line);
            self.next_request += 1;
        }
    }

    fn send(&self, now_us: u64, request: u64, line: &mut Line) {
        let lowest_pending = *self.waiting.keys().next().expect("it waits for what it sends");
        let message = Message { client: self.number, request, lowest_pending, counter: self.waiting[&request] };
        line.send(now_us, message);
    }

    /// It has waited long enough for an answer to this request.
    pub(super) fn lose_patience(&mut self, now_us: u64, request: u64, line: &mut Line) {
        if self.waiting.contains_key(&request) && !self.is_over {
            self.send(now_us, request, line);
        }
    }

    /// An answer has come through.
    pub(super) fn hear(&mut self, request: u64, answer: Answer) -> Result<(), String> {
        let is_waited_for = self.waiting.contains_key(&request);
        match answer {
            Answer::Counted(value) => {
                self.waiting.remove(&request);
                let before = self.answers.insert(request, value);
                if before.is_some_and(|before| before != value) {
                    return Err(format!(
                        "request {request} of client {} was answered {before:?}, then {value}",
                        self.number
                    ));
                }
            }
            Answer::Evicted if is_waited_for => {
                return Err(format!("request {request} of client {} is evicted, and waited for", self.number));
            }
            Answer::Evicted => {}
            Answer::SessionExpired => self.is_over = true,
        }
        Ok(())
    }

    /// Whether it has done what it wanted and knows it.
    pub(super) fn is_done(&self) -> bool {
        self.left == 0 && self.waiting.is_empty()
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }
}
