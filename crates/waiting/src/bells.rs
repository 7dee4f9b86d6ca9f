//! Bells by what they ring for.
//!
//! Keeps: nobody sleeps through a change. A listener hangs its bell first and reads afterwards; whoever changes something
//! makes the change visible first and looks for bells afterwards; so one of the two sees the other. While nobody listens,
//! no lock is taken. Never: keeps a bell whose listener is gone.

use std::collections::HashMap;
use std::future::poll_fn;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Poll, Waker};
use std::time::Duration;

use crate::bell::{Bell, Rung};
use crate::sync::{AtomicBool, AtomicUsize, Mutex, MutexGuard, fence, lock};

type ByTopic<Topic> = HashMap<Topic, Vec<Arc<Bell>>>;

/// Those who wait for changes of topics.
///
/// ```
/// use std::time::Duration;
/// use statehouse_waiting::{Bells, Waited};
/// let bells = Bells::default();
/// let listener = bells.listen(vec!["light", "door"]);
/// if let Some(mut ringing) = bells.ringing() {
///     ringing.add(&"door");
///     ringing.add(&"window");
///     ringing.ring_for(Some(12));
/// }
/// assert_eq!(listener.wait(Duration::ZERO), Waited::Arrived { first_commit: Some(12) });
/// assert_eq!(listener.wait(Duration::ZERO), Waited::TimeOver);
/// bells.stop();
/// assert_eq!(bells.listen(vec!["door"]).wait(Duration::ZERO), Waited::Stopped);
/// ```
pub struct Bells<Topic> {
    stopped: AtomicBool,
    /// How many topics are listened to, each as often as somebody listens.
    listening: AtomicUsize,
    by_topic: Mutex<ByTopic<Topic>>,
}

impl<Topic> Default for Bells<Topic> {
    fn default() -> Self {
        Self { stopped: AtomicBool::new(false), listening: AtomicUsize::new(0), by_topic: Mutex::new(HashMap::new()) }
    }
}

/// Why waiting ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// There is something to look at; nothing of it happened before this commit.
    Arrived {
        /// None if it is not known.
        first_commit: Option<u64>,
    },
    /// Nothing came in time.
    TimeOver,
    /// Nothing more will come.
    Stopped,
}

impl<Topic: Hash + Eq> Bells<Topic> {
    /// Begins to ring for a change that is visible by now; none if nobody listens.
    pub fn ringing(&self) -> Option<Ringing<'_, Topic>> {
        // After the change, and before the look for listeners.
        fence(Ordering::SeqCst);
        if self.listening.load(Ordering::SeqCst) == 0 {
            return None;
        }
        Some(Ringing { bells: lock(&self.by_topic), to_ring: Vec::new() })
    }

    /// Nothing more will come: rings for everyone, now and later.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        let mut ringing = Ringing { bells: lock(&self.by_topic), to_ring: Vec::new() };
        ringing.add_everyone();
        ringing.ring_for(None);
    }

    /// Whether nothing more will come.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    /// Listens for some topics, from now on.
    pub fn listen(&self, topics: Vec<Topic>) -> Listener<'_, Topic>
    where
        Topic: Clone,
    {
        self.listen_with(Arc::new(Bell::default()), topics)
    }

    /// Lets a bell ring for some topics too, from now on.
    pub fn listen_with(&self, bell: Arc<Bell>, topics: Vec<Topic>) -> Listener<'_, Topic>
    where
        Topic: Clone,
    {
        self.hang(&bell, &topics);
        Listener { bells: self, bell, topics }
    }

    /// Lets a bell ring for some topics, until it is [taken down](Self::take_down).
    pub fn hang(&self, bell: &Arc<Bell>, topics: &[Topic])
    where
        Topic: Clone,
    {
        if !topics.is_empty() {
            let mut bells = lock(&self.by_topic);
            for topic in topics {
                bells.entry(topic.clone()).or_default().push(bell.clone());
            }
            self.listening.fetch_add(topics.len(), Ordering::SeqCst);
        }
        // Before whatever the listener reads.
        fence(Ordering::SeqCst);
    }

    /// Takes down a bell that was hung for these topics.
    pub fn take_down(&self, bell: &Arc<Bell>, topics: &[Topic]) {
        if topics.is_empty() {
            return;
        }
        let mut bells = lock(&self.by_topic);
        for topic in topics {
            if let Some(hung) = bells.get_mut(topic) {
                hung.retain(|other| !Arc::ptr_eq(other, bell));
                if hung.is_empty() {
                    bells.remove(topic);
                }
            }
        }
        self.listening.fetch_sub(topics.len(), Ordering::SeqCst);
    }

    /// The number of topics that somebody listens to.
    pub fn topics(&self) -> usize {
        lock(&self.by_topic).len()
    }
}

/// The bells that are to ring for a change.
pub struct Ringing<'bells, Topic> {
    bells: MutexGuard<'bells, ByTopic<Topic>>,
    to_ring: Vec<Arc<Bell>>,
}

impl<Topic: Hash + Eq> Ringing<'_, Topic> {
    /// Those of a topic.
    pub fn add(&mut self, topic: &Topic) {
        self.to_ring.extend(self.bells.get(topic).into_iter().flatten().cloned());
    }

    /// All of them.
    pub fn add_everyone(&mut self) {
        self.to_ring.extend(self.bells.values().flatten().cloned());
    }

    /// Rings, for a commit if there was one.
    pub fn ring_for(self, commit: Option<u64>) {
        // A task that is woken may listen again at once.
        drop(self.bells);
        self.to_ring.iter().for_each(|bell| bell.ring_for(commit));
    }
}

/// Somebody who listens; forgotten on drop.
pub struct Listener<'bells, Topic: Hash + Eq> {
    bells: &'bells Bells<Topic>,
    bell: Arc<Bell>,
    topics: Vec<Topic>,
}

impl<Topic: Hash + Eq> Listener<'_, Topic> {
    /// Waits, in a task, until something has happened since it listens, or nothing more will.
    pub async fn heard(&self) -> Waited {
        poll_fn(|context| match self.poll(context.waker()) {
            Some(waited) => Poll::Ready(waited),
            None => Poll::Pending,
        })
        .await
    }

    fn poll(&self, waker: &Waker) -> Option<Waited> {
        match self.bell.poll(waker) {
            Some(Rung { first_commit }) => Some(Waited::Arrived { first_commit }),
            // `stop` sets its flag before it rings, so a stop that is not seen here rings the bell.
            None => self.bells.is_stopped().then_some(Waited::Stopped),
        }
    }

    /// Waits until something has happened since it listens.
    pub fn wait(&self, timeout: Duration) -> Waited {
        if let Some(waited) = self.poll(Waker::noop()) {
            return waited;
        }
        match self.bell.wait(timeout) {
            Some(Rung { first_commit }) => Waited::Arrived { first_commit },
            None => Waited::TimeOver,
        }
    }
}

impl<Topic: Hash + Eq> Drop for Listener<'_, Topic> {
    fn drop(&mut self) {
        self.bells.take_down(&self.bell, &self.topics);
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
