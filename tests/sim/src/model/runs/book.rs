//! What was seen of runs so far, independent of the reference: sequences by key, and a hash of every prefix.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use contract::runs::StoredEvent;
use kernel::{OpOutcome, RunAct};

use crate::model::reference::Id;

/// What was seen of runs so far.
#[derive(Default)]
pub(crate) struct Book {
    /// What an append with a key was answered when it was written.
    answered: BTreeMap<Id, BTreeMap<String, u64>>,
    /// The hash of each prefix that was read.
    prefixes: BTreeMap<Id, Vec<u64>>,
}

impl Book {
    /// Check (2): the same answer to the same key for the life of the run.
    pub(crate) fn answered(&mut self, id: &Id, act: &RunAct<'_>, outcome: &OpOutcome) -> Result<(), String> {
        match (act, outcome) {
            (RunAct::Append(append), OpOutcome::Appended { seq, idempotent, .. }) => {
                let key = append.event.idempotency_key;
                let answers = self.answered.entry(id.clone()).or_default();
                match answers.get(key) {
                    Some(first) if *idempotent && first == seq => {}
                    Some(first) => {
                        return Err(format!("(2) key {key:?} of {id:?} was answered {first}, now {outcome:?}"));
                    }
                    None if *idempotent => {}
                    None => {
                        if let Some((other, _)) = answers.iter().find(|(_, taken)| *taken == seq) {
                            return Err(format!("(2) sequence {seq} of {id:?} was given to {other:?}, now to {key:?}"));
                        }
                        answers.insert(key.to_owned(), *seq);
                    }
                }
            }
            (RunAct::Fork { from, at }, OpOutcome::Written(_)) => {
                let shared = self.answered.get(&id.sibling(from)).cloned().unwrap_or_default();
                let shared = shared.into_iter().filter(|(_, seq)| seq <= at).collect();
                self.answered.insert(id.clone(), shared);
                let mut prefixes = self.prefixes.get(&id.sibling(from)).cloned().unwrap_or_default();
                prefixes.truncate(usize::try_from(*at).expect("it fits"));
                self.prefixes.insert(id.clone(), prefixes);
            }
            _ => {}
        }
        Ok(())
    }

    /// Checks (1), (2) and (3) on all events of a run, as they were read.
    pub(crate) fn read(&mut self, id: &Id, events: &[StoredEvent]) -> Result<(), String> {
        let mut keys = BTreeSet::new();
        let mut ids = BTreeSet::new();
        let prefixes = self.prefixes.entry(id.clone()).or_default();
        let mut hash = 0;
        for (place, event) in events.iter().enumerate() {
            let seq = place as u64 + 1;
            if (event.run_seq, event.prev_seq) != (seq, seq - 1) {
                return Err(format!("(1) event {seq} of {id:?} is {} after {}", event.run_seq, event.prev_seq));
            }
            if !keys.insert(&event.event.idempotency_key) || !ids.insert(&event.event_id) {
                return Err(format!("(2) event {seq} of {id:?} has the key or the id of another: {event:?}"));
            }
            hash = hash_on(hash, event);
            match prefixes.get(place) {
                Some(known) if *known != hash => {
                    return Err(format!(
                        "(3) the first {seq} events of {id:?} have changed, at the latest in {event:?}"
                    ));
                }
                Some(_) => {}
                None => prefixes.push(hash),
            }
        }
        match prefixes.len() > events.len() {
            true => Err(format!("(3) {id:?} had {} events and has {}", prefixes.len(), events.len())),
            false => Ok(()),
        }
    }
}

/// Goes on with a hash over an event. What a fork has of its own, its name and the ids made from it, is left out.
fn hash_on(before: u64, stored: &StoredEvent) -> u64 {
    let mut hasher = DefaultHasher::new();
    (before, stored.run_seq, stored.prev_seq, stored.persisted_at, stored.commit).hash(&mut hasher);
    let event = &stored.event;
    (&event.event_type, event.data.as_str(), &event.idempotency_key, &event.emitted_at).hash(&mut hasher);
    (&event.event_id, &event.step_id, &event.engine_attempt_id, &event.logical_attempt_id).hash(&mut hasher);
    (&event.adapter_version, &event.caused_by_signal_id, &event.parent_event_id).hash(&mut hasher);
    event.engine_run_ref.as_ref().map(|json| json.as_str()).hash(&mut hasher);
    hasher.finish()
}
