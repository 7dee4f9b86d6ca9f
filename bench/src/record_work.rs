//! Tasks in a queue, and what workers do with them: the operations that the workloads on records measure.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use statehouse::records::{ClaimOptions, Claimed, Put, Record, RecordType};
use statehouse::{Pending, Records, Statehouse, Written};
use testkit::random::Random;

/// Concurrent puts while a queue is filled.
const PUTS_UNDER_WAY: usize = 1_000;

/// Callers share the claimed tasks; this many shelves keep them out of each other's way.
const SHELVES: usize = 64;

/// A queue of tasks, with the claimed, unfinished ones.
pub struct Work {
    records: Records,
    queue: &'static str,
    next: AtomicU64,
    shelves: Vec<Mutex<Vec<Claimed>>>,
    options: ClaimOptions,
}

impl Work {
    /// An empty queue; its name ends with a dot.
    pub fn new(house: &Statehouse, queue: &'static str) -> Self {
        Self {
            records: house.records(),
            queue,
            next: AtomicU64::new(0),
            shelves: (0..SHELVES).map(|_| Mutex::default()).collect(),
            options: ClaimOptions::worker("worker-1"),
        }
    }

    fn name(&self, task: u64) -> String {
        format!("{}{task:09}", self.queue)
    }

    /// Puts new tasks into the queue.
    pub fn fill(&self, count: u64) {
        let mut under_way = VecDeque::new();
        for _ in 0..count {
            under_way.push_back(self.put());
            if under_way.len() > PUTS_UNDER_WAY {
                under_way.pop_front().expect("one").wait().expect("a put");
            }
        }
        for put in under_way {
            put.wait().expect("a put");
        }
    }

    /// Puts new tasks into the queue and waits until the store has nothing to merge, as after a long time.
    pub fn fill_and_settle(&self, house: &Statehouse, count: u64) {
        self.fill(count);
        house.flush().expect("flush");
        house.settle().expect("settle");
    }

    fn put(&self) -> Pending<Written> {
        let task = self.next.fetch_add(1, Ordering::Relaxed);
        let fields = [("to", "someone@example.org"), ("params", "a hundred bytes of parameters, more or less: ......")];
        self.records.put_later(&self.name(task), fields, Put::typed(RecordType::task().name))
    }

    /// The number of claimable tasks.
    pub fn ready(&self) -> u64 {
        self.records.counts(self.queue).expect("counts").of("pending")
    }

    /// Claims the next task; false if there is none.
    pub fn claim(&self, random: &mut Random) -> bool {
        let Some(claimed) = self.claim_one() else {
            return false;
        };
        self.shelve(random, claimed);
        true
    }

    fn claim_one(&self) -> Option<Claimed> {
        let mut claimed = self.records.claim_next(self.queue, 1, &self.options).expect("a claim").pop()?;
        // Only the identity is needed from here on; hundreds of thousands are kept.
        claimed.record = Record::empty(0, 0, 0, 0);
        Some(claimed)
    }

    /// Writes three fields of a claimed task; false if there is none.
    pub fn step(&self, random: &mut Random) -> bool {
        let Some(claimed) = self.take(random) else {
            return false;
        };
        self.step_one(&claimed, random);
        self.shelve(random, claimed);
        true
    }

    fn step_one(&self, claimed: &Claimed, random: &mut Random) {
        let progress = random.below(100).to_string();
        let fields = [("state", "running"), ("progress", progress.as_str()), ("stage", "sending")];
        self.records.step(claimed, fields).expect("a step");
    }

    /// Finishes a claimed task; false if there is none.
    pub fn complete(&self, random: &mut Random) -> bool {
        let Some(claimed) = self.take(random) else {
            return false;
        };
        self.records.complete(&claimed, [("result", "sent")]).expect("a completion");
        true
    }

    /// Claims a task, writes three of its fields and finishes it; false if there is none.
    pub fn work(&self, random: &mut Random) -> bool {
        let Some(claimed) = self.claim_one() else {
            return false;
        };
        self.step_one(&claimed, random);
        self.records.complete(&claimed, [("result", "sent")]).expect("a completion");
        true
    }

    /// Reads any task.
    pub fn get(&self, random: &mut Random) -> bool {
        let task = random.below(self.next.load(Ordering::Relaxed));
        assert!(self.records.get(&self.name(task)).expect("a get").is_some());
        true
    }

    fn shelve(&self, random: &mut Random, claimed: Claimed) {
        self.shelf(random.below(SHELVES as u64)).push(claimed);
    }

    fn take(&self, random: &mut Random) -> Option<Claimed> {
        let first = random.below(SHELVES as u64);
        (0..SHELVES as u64).find_map(|next| self.shelf(first + next).pop())
    }

    #[allow(clippy::cast_possible_truncation, reason = "a remainder of a small number")]
    fn shelf(&self, number: u64) -> MutexGuard<'_, Vec<Claimed>> {
        let shelf = &self.shelves[number as usize % SHELVES];
        shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
