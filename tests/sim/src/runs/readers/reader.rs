//! One reader: picks a run and a position in it, reads on from there, and checks what it gets.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use contract::runs::{Fetched, StoredEvent};
use contract::{Error, Rejection, RunRejection};
use statehouse::Runs;
use testkit::random::Random;

use super::answers::{Answers, digest};
use super::{RUNS, run_name};

/// How long a tail waits.
const PATIENCE: Duration = Duration::from_millis(20);

/// How a reader reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// It is woken when something comes.
    Tail,
    /// It asks again and again.
    Poll,
}

/// What a reader has read of a run, one event after the other.
#[derive(Clone, Debug)]
pub(super) struct Stretch {
    pub(super) run: usize,
    /// Behind this one,
    pub(super) after: u64,
    /// up to this one.
    pub(super) upto: u64,
    /// The sum of the events' digests.
    pub(super) digests: u64,
}

/// Sums of all readers and appenders.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Read {
    pub(super) appends: u64,
    pub(super) stretches: u64,
    pub(super) events: u64,
}

/// One reader of runs.
pub(super) struct Reader<'answers> {
    runs: Runs,
    way: Way,
    answers: &'answers Answers,
    random: Random,
    /// It stays with one run.
    faithful: bool,
}

impl<'answers> Reader<'answers> {
    pub(super) fn new(runs: Runs, way: Way, answers: &'answers Answers, random: Random, faithful: bool) -> Self {
        Self { runs, way, answers, random, faithful }
    }

    /// Reads here and there until it is told to stop.
    pub(super) fn read_until(mut self, stop: &AtomicBool) -> Result<Vec<Stretch>, String> {
        let mut stretches = Vec::new();
        let first = self.random.index(RUNS);
        while !stop.load(Ordering::SeqCst) {
            let run = if self.faithful { first } else { self.random.index(RUNS) };
            let highest = self.answers.highest(run);
            let after = match self.random.below(4) {
                _ if self.faithful => 0,
                0 => 0,
                1 => highest,
                // There may be fewer events than that.
                2 => highest.saturating_sub(self.random.below(50)),
                _ => self.random.below(highest + 1),
            };
            let pages = if self.faithful { u64::MAX } else { 1 + self.random.below(60) };
            stretches.push(self.stretch(run, after, pages, stop)?);
        }
        Ok(stretches)
    }

    fn stretch(&mut self, run: usize, after: u64, pages: u64, stop: &AtomicBool) -> Result<Stretch, String> {
        let mut stretch = Stretch { run, after, upto: after, digests: 0 };
        let mut tail = self.runs.tail(&run_name(run), after);
        for _ in 0..pages {
            if stop.load(Ordering::SeqCst) {
                break;
            }
            let limit = 1 + self.random.index(100);
            // What was answered before it asks must be there when it does.
            let highest = self.answers.highest(run);
            let fetched = match self.way {
                Way::Tail => tail.next(limit, PATIENCE).map_err(|error| format!("a tail: {error}"))?,
                Way::Poll => self.fetch(run, stretch.upto, limit)?,
            };
            stretch.add(&fetched, highest, limit)?;
            if self.way == Way::Tail && tail.cursor() != stretch.upto {
                return Err(format!("the tail stands at {} behind {stretch:?}", tail.cursor()));
            }
            if self.way == Way::Poll && fetched.events.is_empty() {
                std::thread::sleep(Duration::from_millis(self.random.below(5)));
            }
        }
        Ok(stretch)
    }

    /// A run from its first event to its last, when nothing is appended any more.
    pub(super) fn whole(&mut self, run: usize) -> Result<Stretch, String> {
        let highest = self.answers.highest(run);
        let mut stretch = Stretch { run, after: 0, upto: 0, digests: 0 };
        while stretch.upto < highest {
            let fetched = self.fetch(run, stretch.upto, 1_000)?;
            stretch.add(&fetched, highest, 1_000)?;
        }
        match self.fetch(run, highest, 1)?.stable_seq == highest {
            true => Ok(stretch),
            false => Err(format!("run {run} has more than the {highest} events that were answered")),
        }
    }

    fn fetch(&self, run: usize, after: u64, limit: usize) -> Result<Fetched, String> {
        match self.runs.fetch(&run_name(run), after, limit) {
            Err(Error::Rejected(Rejection::Run(RunRejection::NoSuchRun { .. }))) => {
                Ok(Fetched { events: Vec::new(), stable_seq: 0 })
            }
            other => other.map_err(|error| format!("a fetch: {error}")),
        }
    }
}

impl Stretch {
    /// What came next.
    fn add(&mut self, fetched: &Fetched, highest: u64, limit: usize) -> Result<(), String> {
        let Fetched { events, stable_seq } = fetched;
        if *stable_seq < highest {
            return Err(format!("{highest} was answered, then {stable_seq} was stable: {self:?}"));
        }
        let whole_page = stable_seq.saturating_sub(self.upto).min(limit as u64);
        if events.len() as u64 != whole_page {
            return Err(format!("{} events of {whole_page} behind {self:?}", events.len()));
        }
        for StoredEvent { run_seq, prev_seq, event, .. } in events {
            if (*run_seq, *prev_seq) != (self.upto + 1, self.upto) {
                return Err(format!("{run_seq} after {prev_seq} came behind {self:?}"));
            }
            self.upto = *run_seq;
            self.digests = self.digests.wrapping_add(digest(*run_seq, &event.idempotency_key));
        }
        Ok(())
    }
}
