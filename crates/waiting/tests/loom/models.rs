//! The models.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::task::Poll;
use std::time::Duration;

use loom::sync::Mutex;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread::{JoinHandle, spawn};
use statehouse_waiting::{Bell, Bells, Slot, Waited, Waiters, Wanted, block_on};

/// Time does not pass here: a waiter that nobody wakes is a deadlock, which loom reports.
const NEVER: Duration = Duration::MAX;

/// How often threads may interrupt each other. With one more, the models take five times as long.
const PREEMPTIONS_MAX: usize = 4;

/// Orders of events that were tried out.
static ORDERS: AtomicUsize = AtomicUsize::new(0);

/// Tries out every order of events in which threads do not interrupt each other more often than that.
fn model(body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(PREEMPTIONS_MAX);
    builder.check(move || {
        ORDERS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        body();
    });
}

const MODELS: &[fn()] = &[
    an_answer_reaches_a_thread,
    an_answer_reaches_a_task_that_moved,
    a_follower_sleeps_through_no_change,
    one_who_leaves_takes_nothing_from_another,
    the_end_is_heard,
    one_bell_rings_for_pushes_and_for_changes,
    two_records_wake_two_workers,
    who_gives_up_leaves_its_record_to_another,
    the_end_reaches_those_who_wait_for_a_turn,
];

/// A model that fails panics, and loom says in which order of events.
pub fn run_all() {
    MODELS.iter().for_each(|model| model());
    let orders = ORDERS.load(std::sync::atomic::Ordering::Relaxed);
    println!("show inside waits {}-models-{orders}-orders-0-asleep (goal 0 asleep) ok", MODELS.len());
}

fn run<T>(future: impl Future<Output = T>) -> T {
    block_on(future, || NEVER, &Cell::new(false))
}

fn change(bells: &Bells<u8>, topic: u8, commit: u64) {
    if let Some(mut ringing) = bells.ringing() {
        ringing.add(&topic);
        ringing.ring_for(Some(commit));
    }
}

fn an_answer_reaches_a_thread() {
    model(|| {
        let slot = Arc::new(Slot::default());
        let gives = spawn({
            let slot = slot.clone();
            move || slot.give(7)
        });
        assert_eq!(slot.wait(), 7);
        gives.join().expect("no panic");
    });
}

fn an_answer_reaches_a_task_that_moved() {
    model(|| {
        let slot = Arc::new(Slot::default());
        let gives = spawn({
            let slot = slot.clone();
            move || slot.give(7)
        });
        // It is polled by one task first, and then awaited by another.
        let answer = slot.poll(std::task::Waker::noop());
        let poll = |context: &mut std::task::Context<'_>| slot.poll(context.waker()).map_or(Poll::Pending, Poll::Ready);
        assert_eq!(answer.unwrap_or_else(|| run(poll_fn(poll))), 7);
        gives.join().expect("no panic");
    });
}

/// A follower: looks at what is visible, and waits while that is not enough.
fn follow(bells: &Bells<u8>, topic: u8, visible: &AtomicU64, enough: u64, blocks: bool) {
    loop {
        let listener = bells.listen(vec![topic]);
        // The weakest read there is: the order must come from the bells.
        if visible.load(Ordering::Relaxed) >= enough {
            return;
        }
        let waited = if blocks { listener.wait(NEVER) } else { run(listener.heard()) };
        assert!(matches!(waited, Waited::Arrived { first_commit: Some(commit) } if commit <= enough));
    }
}

fn a_follower_sleeps_through_no_change() {
    for blocks in [true, false] {
        model(move || {
            let (bells, visible) = (Arc::new(Bells::default()), Arc::new(AtomicU64::new(0)));
            let follower = spawn({
                let (bells, visible) = (bells.clone(), visible.clone());
                move || follow(&bells, 1, &visible, 2, blocks)
            });
            for commit in [1, 2] {
                visible.store(commit, Ordering::Relaxed);
                change(&bells, 1, commit);
            }
            follower.join().expect("no panic");
            assert_eq!(bells.topics(), 0);
        });
    }
}

fn one_who_leaves_takes_nothing_from_another() {
    model(|| {
        let (bells, visible) = (Arc::new(Bells::default()), Arc::new(AtomicU64::new(0)));
        let follower = spawn({
            let (bells, visible) = (bells.clone(), visible.clone());
            move || follow(&bells, 1, &visible, 1, true)
        });
        let leaves = spawn({
            let bells = bells.clone();
            move || drop(bells.listen(vec![1]))
        });
        visible.store(1, Ordering::Relaxed);
        change(&bells, 1, 1);
        follower.join().expect("no panic");
        leaves.join().expect("no panic");
        assert_eq!(bells.topics(), 0);
    });
}

fn the_end_is_heard() {
    for blocks in [true, false] {
        model(move || {
            let bells = Arc::new(Bells::default());
            let follower = spawn({
                let bells = bells.clone();
                move || {
                    let listener = bells.listen(vec![1]);
                    let hear = || if blocks { listener.wait(NEVER) } else { run(listener.heard()) };
                    // The ring of the end may be heard first, without the word.
                    while hear() != Waited::Stopped {}
                }
            });
            bells.stop();
            follower.join().expect("no panic");
        });
    }
}

fn one_bell_rings_for_pushes_and_for_changes() {
    model(|| {
        let (pushes, changes) = (Arc::new(Bells::default()), Arc::new(Bells::default()));
        let (pushed, changed) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let deliveries = spawn({
            let (pushes, changes) = (pushes.clone(), changes.clone());
            let (pushed, changed) = (pushed.clone(), changed.clone());
            move || {
                let bell = Arc::new(Bell::default());
                pushes.hang(&bell, &[5]);
                loop {
                    let _listener = changes.listen_with(bell.clone(), vec![1]);
                    if pushed.load(Ordering::Relaxed) + changed.load(Ordering::Relaxed) == 2 {
                        break;
                    }
                    bell.wait(NEVER);
                }
                pushes.take_down(&bell, &[5]);
            }
        });
        let pushing = spawn({
            let (pushes, pushed) = (pushes.clone(), pushed.clone());
            move || {
                pushed.store(1, Ordering::Relaxed);
                change(&pushes, 5, 1);
            }
        });
        changed.store(1, Ordering::Relaxed);
        change(&changes, 1, 1);
        pushing.join().expect("no panic");
        deliveries.join().expect("no panic");
        assert_eq!((pushes.topics(), changes.topics()), (0, 0));
    });
}

/// Records that can be claimed, and those who wait for them.
#[derive(Default)]
struct Queue {
    ready: Mutex<u32>,
    waiters: Waiters,
}

impl Queue {
    fn put(&self) {
        *self.ready.lock().expect("no panic") += 1;
        self.waiters.ready([((1, 1), "jobs.")]);
    }

    fn claim(&self) -> bool {
        let mut ready = self.ready.lock().expect("no panic");
        let claimed = *ready > 0;
        *ready -= u32::from(claimed);
        claimed
    }

    fn wanted() -> Wanted {
        Wanted { scope: (1, 1), prefix: "jobs.".to_owned() }
    }

    /// As a worker does: joins, checks, sleeps, checks again.
    async fn work(&self, time_over: impl Future<Output = ()>) -> bool {
        let mut time_over = pin!(time_over);
        loop {
            let Some(mut place) = self.waiters.join(Self::wanted()) else {
                return self.claim();
            };
            if self.claim() {
                return true;
            }
            if !place.turn(time_over.as_mut()).await {
                drop(place);
                return self.claim();
            }
        }
    }
}

/// Does something with the queue in another thread.
fn beside<T: 'static>(queue: &Arc<Queue>, work: impl FnOnce(&Queue) -> T + 'static) -> JoinHandle<T> {
    let queue = queue.clone();
    spawn(move || work(&queue))
}

fn two_records_wake_two_workers() {
    model(|| {
        let queue = Arc::new(Queue::default());
        let worker = beside(&queue, |queue| run(queue.work(std::future::pending())));
        let puts = beside(&queue, |queue| {
            queue.put();
            queue.put();
        });
        assert!(run(queue.work(std::future::pending())));
        assert!(worker.join().expect("no panic"));
        puts.join().expect("no panic");
        assert_eq!((queue.claim(), queue.waiters.count()), (false, 0));
    });
}

fn who_gives_up_leaves_its_record_to_another() {
    model(|| {
        let queue = Arc::new(Queue::default());
        let patient = beside(&queue, |queue| run(queue.work(std::future::pending())));
        let puts = beside(&queue, Queue::put);
        // Its time is over at once: it joins, looks, and leaves.
        if run(queue.work(std::future::ready(()))) {
            // The other has to get one too, or it would wait for ever.
            queue.put();
        }
        assert!(patient.join().expect("no panic"));
        puts.join().expect("no panic");
        assert_eq!((queue.claim(), queue.waiters.count()), (false, 0));
    });
}

fn the_end_reaches_those_who_wait_for_a_turn() {
    model(|| {
        let queue = Arc::new(Queue::default());
        let worker = beside(&queue, |queue| run(queue.work(std::future::pending())));
        queue.waiters.close();
        assert!(!worker.join().expect("no panic"));
    });
}
