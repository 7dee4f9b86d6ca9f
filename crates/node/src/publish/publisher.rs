//! The thread that hands messages to the broker and has them forgotten when it has taken them.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use contract::Error;
use kernel::keys::messages::read_publish_key;
use kernel::outbox::Stored;
use kernel::{Body, Target};
use kv::{KeyRange, Order, Readable, View};

use super::{Message, MessageNumber, Publish};
use crate::access::Access;
use crate::error::{cannot_open, from_halt, from_kv};

/// Messages published before that is committed.
const BATCH_MESSAGES: usize = 256;

/// The pause after a refusal of the broker or the store.
const REFUSED_PAUSE: Duration = Duration::from_millis(100);

/// Signals from the apply loop whether there is something to publish.
#[derive(Default)]
pub(crate) struct Outbox {
    state: Mutex<OutboxState>,
    changed: Condvar,
}

#[derive(Default)]
struct OutboxState {
    waiting: bool,
    closing: bool,
}

impl Outbox {
    fn lock(&self) -> MutexGuard<'_, OutboxState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// There may be something to publish.
    pub(crate) fn wake(&self) {
        self.lock().waiting = true;
        self.changed.notify_one();
    }

    /// Waits for something to publish; false when the publisher is to end.
    fn wait(&self) -> bool {
        let idle = |state: &mut OutboxState| !state.waiting && !state.closing;
        let waited = self.changed.wait_while(self.lock(), idle);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        state.waiting = false;
        !state.closing
    }

    fn pause(&self) {
        let open = |state: &mut OutboxState| !state.closing;
        // Whether it was woken or not, the caller looks again.
        drop(self.changed.wait_timeout_while(self.lock(), REFUSED_PAUSE, open));
    }
}

pub(crate) struct Publisher {
    outbox: Arc<Outbox>,
    thread: Option<JoinHandle<()>>,
}

impl Publisher {
    pub(crate) fn start(access: Access, outbox: Arc<Outbox>, broker: Arc<dyn Publish>) -> Result<Self, Error> {
        // Messages sent before the store was opened wait too.
        outbox.wake();
        let thread = std::thread::Builder::new()
            .name("publish".into())
            .spawn({
                let outbox = outbox.clone();
                move || run(&access, &outbox, &*broker)
            })
            .map_err(|error| cannot_open(format!("could not start the publish thread: {error}")))?;
        Ok(Self { outbox, thread: Some(thread) })
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.outbox.lock().closing = true;
        self.outbox.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic of the broker ends publishing; messages wait until the store is opened again.
            let _ = thread.join();
        }
    }
}

fn run(access: &Access, outbox: &Outbox, broker: &dyn Publish) {
    // The last published key of each bucket: keys of messages rise, so there are none below it.
    let mut published_upto: BTreeMap<u16, Vec<u8>> = BTreeMap::new();
    while outbox.wait() {
        match publish_batch(access, broker, &mut published_upto) {
            Ok(0) => {}
            // There may be more.
            Ok(_) => outbox.wake(),
            Err(reason) => {
                tracing::warn!(%reason, "publishing failed; messages wait");
                outbox.pause();
                outbox.wake();
            }
        }
    }
}

/// Publishes up to a batch of messages and has them removed. Returns how many.
fn publish_batch(
    access: &Access,
    broker: &dyn Publish,
    published_upto: &mut BTreeMap<u16, Vec<u8>>,
) -> Result<usize, String> {
    let (view, catalogue) = access.view().map_err(|error| error.to_string())?;
    let mut published = Vec::new();
    let mut held_up = None;
    'buckets: for bucket in catalogue.buckets_here() {
        let mut range = KeyRange::prefix(&access.keys().publish_prefix(bucket));
        if let Some(upto) = published_upto.get(&bucket) {
            range = range.after(upto);
        }
        // Messages that cannot be read wait.
        for row in Readable(&*view).scan(&range, Order::Ascending) {
            if published.len() == BATCH_MESSAGES {
                break 'buckets;
            }
            let (key, value) = row.map_err(|error| from_kv(&error).to_string())?;
            let place = read_publish_key(&key).ok_or("a row among the messages has a key of another form")?;
            let stored = Stored::decode(&value).map_err(|halt| from_halt(&halt).to_string())?;
            let Target::Topic { topic, payload } = stored.send.target else {
                return Err("a message for a group waits to be published".to_owned());
            };
            let number = MessageNumber { history: access.history, bucket: place.0, number: place.1 };
            if let Err(error) = broker.publish(&Message { topic, payload, source: stored.source, number }) {
                held_up = Some(error.to_string());
                break 'buckets;
            }
            published_upto.insert(bucket, key.to_vec());
            published.push(place);
        }
    }
    let count = published.len();
    if count > 0 {
        let answer = access.propose(&catalogue, &Body::Published(published), |_| Ok(())).wait();
        if let Err(error) = answer {
            // They are still there, and the broker knows them.
            published_upto.clear();
            return Err(error.to_string());
        }
    }
    held_up.map_or(Ok(count), Err)
}
