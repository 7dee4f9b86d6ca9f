//! A node with state: an update of a key is computed and applied once for each logical time.
//!
//! Keeps: the state of a key is that of its updates in the order of their times; what comes again, or too late, is not even
//! computed. Never: reads a clock. Times come with the inputs, from the execution layer.

use contract::{BackendError, UpdateOutcome, VersionedStateBackend};

/// A node of a stream processor, with its state in any backend.
///
/// An update has a key and a logical time, and no two updates of a key have the same time. A processor checkpoints the node
/// together with the position of its source. After a restart it restores both, and reads on from that position: what it reads
/// again, and had applied before the checkpoint, is skipped.
///
/// ```
/// use statehouse::keyed::backends::HashMapStateBackend;
/// use statehouse::stream::StatefulNode;
/// let mut counts = StatefulNode::new(HashMapStateBackend::<String, u64, u64>::new());
/// let add = |old: Option<u64>| Some(old.unwrap_or(0) + 1);
/// let inputs = [("hello", 1), ("world", 2), ("hello", 3)];
/// for (word, time) in inputs {
///     assert!(counts.apply(word.to_owned(), time, add)?);
/// }
/// let checkpoint = counts.snapshot()?;
/// // The process ends. The next one restores the checkpoint, and its source begins a little before it.
/// let mut counts = StatefulNode::new(HashMapStateBackend::<String, u64, u64>::new());
/// counts.restore(&checkpoint)?;
/// assert!(!counts.apply("world".to_owned(), 2, add)?);
/// assert!(!counts.apply("hello".to_owned(), 3, add)?);
/// assert!(counts.apply("hello".to_owned(), 4, add)?);
/// assert_eq!(counts.get(&"hello".to_owned())?, Some((3, 4)));
/// # Ok::<(), statehouse::keyed::backends::BackendError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct StatefulNode<B> {
    backend: B,
}

impl<B: VersionedStateBackend> StatefulNode<B> {
    /// A node with the state that the backend has.
    pub fn new(backend: B) -> Self {
        Self { backend }
    }

    /// Makes of the value of a key another one, or none, which deletes it. Returns whether that was done: not if the key has
    /// passed this time, because of a replay, a late input or a seal. Then the value is not computed.
    ///
    /// ```
    /// use statehouse::keyed::LogicalTime;
    /// use statehouse::keyed::backends::HashMapStateBackend;
    /// use statehouse::stream::StatefulNode;
    /// let mut open = StatefulNode::new(HashMapStateBackend::<u32, String, LogicalTime>::new());
    /// assert!(open.apply(7, LogicalTime::new(1, 4), |_| Some("paid".to_owned()))?);
    /// assert!(open.apply(7, LogicalTime::new(2, 0), |_| None)?); // a new epoch deletes it
    /// assert!(!open.apply(7, LogicalTime::new(1, 5), |_| Some("late".to_owned()))?);
    /// assert_eq!(open.get(&7)?, None);
    /// # Ok::<(), statehouse::keyed::backends::BackendError>(())
    /// ```
    pub fn apply(
        &mut self,
        key: B::Key,
        time: B::Version,
        update: impl FnOnce(Option<B::Value>) -> Option<B::Value>,
    ) -> Result<bool, BackendError> {
        if self.backend.passed(&key)?.is_some_and(|passed| time <= passed) {
            return Ok(false);
        }
        let old = self.backend.get(&key)?.map(|(value, _)| value);
        let outcome = match update(old) {
            Some(value) => self.backend.put_outcome(key, value, time)?,
            None => self.backend.delete(key, time)?,
        };
        Ok(outcome == UpdateOutcome::Applied)
    }

    /// The value of a key, with the time of its last update.
    #[allow(clippy::type_complexity, reason = "it is a result, an option and a pair")]
    pub fn get(&self, key: &B::Key) -> Result<Option<(B::Value, B::Version)>, BackendError> {
        self.backend.get(key)
    }

    /// Says that the source has finished up to a time: earlier inputs are skipped, and deletions up to it forgotten.
    pub fn seal(&mut self, time: B::Version) -> Result<(), BackendError> {
        self.backend.seal(time)
    }

    /// The state as bytes, for a checkpoint.
    pub fn snapshot(&self) -> Result<Vec<u8>, BackendError> {
        self.backend.snapshot()
    }

    /// Goes back to a checkpoint. If it is refused, the state is as it was.
    pub fn restore(&mut self, data: &[u8]) -> Result<(), BackendError> {
        self.backend.restore(data)
    }

    /// The backend, for reading.
    pub fn backend(&self) -> &B {
        &self.backend
    }

    /// The backend.
    pub fn into_backend(self) -> B {
        self.backend
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use contract::StateVersion;
    use kv::MemoryStore;
    use testkit::random::Random;

    use super::*;
    use crate::keyed::backends::{HashMapStateBackend, KvStateBackend};

    type InMemory<Ver> = HashMapStateBackend<String, Vec<u64>, Ver>;

    /// Inputs with the times that an execution layer has given them: some are late, and none has the time of another of its key.
    fn inputs(random: &mut Random) -> Vec<(String, u64)> {
        let mut times: Vec<u64> = (0..300).collect();
        for at in 1..times.len() {
            times.swap(at, at - random.index(at.min(6)));
        }
        times.into_iter().map(|time| (format!("key-{}", random.below(5)), time)).collect()
    }

    /// Applies inputs, and returns which of them were.
    fn apply<B>(node: &mut StatefulNode<B>, inputs: &[(String, u64)], time_of: impl Fn(u64) -> B::Version) -> Vec<bool>
    where
        B: VersionedStateBackend<Key = String, Value = Vec<u64>>,
    {
        let apply = |(key, time): &(String, u64)| {
            let mut was_computed = false;
            let update = |old: Option<Vec<u64>>| {
                was_computed = true;
                // Each value is what was applied since the key was deleted last.
                (time % 11 != 0).then(|| old.into_iter().flatten().chain([*time]).collect())
            };
            let was_applied = node.apply(key.clone(), time_of(*time), update).expect("apply");
            assert_eq!(was_applied, was_computed, "what is skipped is not computed");
            was_applied
        };
        inputs.iter().map(apply).collect()
    }

    fn check_replays<B>(make: impl Fn() -> B, time_of: impl Fn(u64) -> B::Version + Copy)
    where
        B: VersionedStateBackend<Key = String, Value = Vec<u64>>,
        B::Version: StateVersion,
    {
        for seed in 1..=20 {
            let mut random = Random::new(seed);
            let inputs = inputs(&mut random);
            let mut whole = StatefulNode::new(make());
            let applied = apply(&mut whole, &inputs, time_of);
            assert!(applied.contains(&false) && applied.iter().filter(|applied| **applied).count() > 100);
            let mut node = StatefulNode::new(make());
            let (mut checkpoint, mut from, mut at) = (node.snapshot().expect("snapshot"), 0, 0);
            while at < inputs.len() {
                let next = (at + 1 + random.index(60)).min(inputs.len());
                apply(&mut node, &inputs[at..next], time_of);
                at = next;
                match random.below(3) {
                    0 => (checkpoint, from) = (node.snapshot().expect("snapshot"), at),
                    // A crash, and a source that begins before the checkpoint.
                    1 => {
                        node = StatefulNode::new(make());
                        node.restore(&checkpoint).expect("restore");
                        at = from.saturating_sub(random.index(20));
                    }
                    _ => {}
                }
            }
            assert_eq!(node.snapshot().expect("snapshot"), whole.snapshot().expect("snapshot"), "seed {seed}");
        }
    }

    #[test]
    fn crashes_and_replays_leave_the_same_state() {
        check_replays(InMemory::<u64>::new, |time| time);
        check_replays(InMemory::<contract::LogicalTime>::new, |time| {
            contract::LogicalTime::new(time / 100, time % 100)
        });
        let in_store = || KvStateBackend::<_, _, u64>::open(Arc::new(MemoryStore::new()), b"node/").expect("a state");
        check_replays(in_store, |time| time);
    }

    #[test]
    fn what_computes_nothing_has_passed_all_the_same() {
        let mut node = StatefulNode::new(InMemory::<u64>::new());
        assert_eq!(node.apply("a".to_owned(), 5, |_| None), Ok(true));
        assert_eq!(node.apply("a".to_owned(), 4, |_| unreachable!("it is late")), Ok(false));
        assert_eq!(node.apply("a".to_owned(), 6, |old| old.or(Some(vec![6]))), Ok(true));
        node.seal(9).expect("seal");
        assert_eq!(node.apply("b".to_owned(), 9, |_| unreachable!("it is sealed")), Ok(false));
        assert_eq!(node.get(&"a".to_owned()), Ok(Some((vec![6], 6))));
    }
}
