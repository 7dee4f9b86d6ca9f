//! A broker in this process, for tests and for workers that live beside the store.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{Message, MessageNumber, Publish, PublishError};

/// Queues in memory. Their content is lost with the process.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// use statehouse::publish::MemoryBroker;
/// use std::{sync::Arc, time::Duration};
/// let broker = Arc::new(MemoryBroker::default());
/// let house = statehouse::Options::default().publish_to(broker.clone()).open(directory.path().join("house"))?;
/// house.group("order-7").commit().publish("mails", "order 7 is paid").run()?;
/// assert_eq!(broker.take("mails", Duration::from_secs(5)).as_deref(), Some(b"order 7 is paid".as_slice()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
pub struct MemoryBroker {
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Default)]
struct State {
    topics: BTreeMap<String, VecDeque<Vec<u8>>>,
    /// The last number taken from each history and bucket.
    taken: BTreeMap<(u64, u16), u64>,
}

impl MemoryBroker {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next message of a queue; waits for one up to a limit.
    pub fn take(&self, topic: &str, wait: Duration) -> Option<Vec<u8>> {
        let none_yet = |state: &mut State| state.topics.get(topic).is_none_or(VecDeque::is_empty);
        let waited = self.arrived.wait_timeout_while(self.lock(), wait, none_yet);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.topics.get_mut(topic)?.pop_front()
    }
}

impl Publish for MemoryBroker {
    fn publish(&self, message: &Message<'_>) -> Result<(), PublishError> {
        let mut state = self.lock();
        let MessageNumber { history, bucket, number } = message.number;
        let last = state.taken.entry((history, bucket)).or_default();
        if *last >= number {
            return Ok(());
        }
        *last = number;
        state.topics.entry(message.topic.to_owned()).or_default().push_back(message.payload.to_vec());
        drop(state);
        self.arrived.notify_all();
        Ok(())
    }
}
