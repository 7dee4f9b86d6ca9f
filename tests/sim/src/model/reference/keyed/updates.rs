//! What becomes of one update after the other.

use contract::keyed::limits::{KEYED_UPDATES_MAX, KEYED_WAITING_MAX};
use contract::keyed::{LogicalTime, Merge, Policy, UpdateOutcome, Updated, shown_key};
use contract::limits::{SEALED_BYTES_MAX, SEALED_UPDATES_MAX};
use contract::{KeyedRejection, Rejection, Value};
use kernel::ValueRef;
use kernel::keyed::updates::{Update, Updates};

use super::{Content, Key, State};

/// What seals may still apply in an entry.
pub(in super::super) struct SealedLeft {
    updates: usize,
    bytes: usize,
}

impl SealedLeft {
    pub(in super::super) const WHOLE: Self = Self { updates: SEALED_UPDATES_MAX, bytes: SEALED_BYTES_MAX };
}

/// An update that waits for the seal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Waiting {
    Put(Value),
    Delete,
    Merge(Merge, i64),
}

impl Waiting {
    fn is_merged(&self) -> Option<bool> {
        match self {
            Waiting::Put(_) => Some(false),
            Waiting::Delete => None,
            Waiting::Merge(..) => Some(true),
        }
    }

    /// The bytes of a value with its kind, or of an integer.
    fn bytes(&self) -> usize {
        match self {
            Waiting::Put(value) => 1 + ValueRef::from(value).len(),
            Waiting::Delete => 0,
            Waiting::Merge(..) => 8,
        }
    }

    /// How far it moves an integer, and how large a one it may put in the place of another.
    fn sizes(&self) -> (u128, u64) {
        match self {
            Waiting::Merge(Merge::Min | Merge::Max, operand) => (0, operand.unsigned_abs()),
            Waiting::Merge(_, operand) => (operand.unsigned_abs().into(), 0),
            Waiting::Put(_) | Waiting::Delete => (0, 0),
        }
    }
}

/// Where an update is, for rejections.
pub(super) struct At<'key> {
    pub(super) map: &'key str,
    pub(super) key: &'key [u8],
}

impl At<'_> {
    fn names(&self) -> (String, String) {
        (self.map.to_owned(), shown_key(self.key))
    }

    fn wrong_use(&self, is_merged: bool) -> Rejection {
        let (map, key) = self.names();
        KeyedRejection::WrongUse { map, key, is_merged }.into()
    }

    pub(super) fn wrong_policy(&self, is_ordered: bool) -> Rejection {
        let (map, key) = self.names();
        KeyedRejection::WrongPolicy { map, key, is_ordered }.into()
    }

    fn overflow(&self, value: i64, operand: i64) -> Rejection {
        let (map, key) = self.names();
        KeyedRejection::Overflow { map, key, value, operand }.into()
    }
}

pub(super) fn value_of(stored: &[u8]) -> Value {
    let (kind, payload) = stored.split_first().expect("the generator makes values");
    ValueRef::decode(*kind, payload).expect("the generator makes values").to_value()
}

impl Content {
    pub(super) fn update(
        &mut self,
        map: &str,
        updates: &Updates<'_>,
        commit: u64,
        in_commit: bool,
    ) -> Result<Updated, Rejection> {
        Rejection::check_limit("keyed_updates_max", KEYED_UPDATES_MAX, updates.count())?;
        let mut others = Vec::new();
        for (place, (key, update)) in (0..).zip(updates.iter()) {
            let at = At { map, key };
            let outcome = match (self.policy, update) {
                (Policy::Ordered, Update::Merge(..) | Update::Remove) => return Err(at.wrong_policy(true)),
                (Policy::Ordered, Update::Put { version, value }) => {
                    self.wait(&at, version, Waiting::Put(value_of(value)))?
                }
                (Policy::Ordered, Update::Delete(version)) => self.wait(&at, version, Waiting::Delete)?,
                (Policy::Ordered, Update::MergeAt(version, merge, operand)) => {
                    self.wait(&at, version, Waiting::Merge(merge, operand))?
                }
                (_, Update::MergeAt(..)) => return Err(at.wrong_policy(false)),
                (_, Update::Put { version, value }) => {
                    self.versioned(&at, version, State::Put(value_of(value), version), commit)?
                }
                (_, Update::Delete(version)) => self.versioned(&at, version, State::Deleted(version), commit)?,
                (_, Update::Merge(..) | Update::Remove) if !in_commit => {
                    let (map, key) = at.names();
                    return Err(KeyedRejection::MergeOutsideCommit { map, key }.into());
                }
                (_, Update::Merge(merge, operand)) => self.merge(&at, merge, operand, commit)?,
                (_, Update::Remove) => self.remove(&at, commit)?,
            };
            if outcome != UpdateOutcome::Applied {
                others.push((place, outcome));
            }
        }
        Ok(Updated::new(u32::try_from(updates.count()).expect("few"), others))
    }

    /// A deletion that the seal has passed is as if it had never been.
    fn known(&self, key: &[u8]) -> Option<&State> {
        match &self.keys.get(key)?.state {
            State::Deleted(version) if self.seals(*version) => None,
            state => Some(state),
        }
    }

    fn set(&mut self, key: &[u8], state: State, commit: u64) -> UpdateOutcome {
        let is_merged = Some(matches!(state, State::Merged(_)));
        self.keys.insert(key.to_vec(), Key { commit, state, is_merged, extreme: 0 });
        UpdateOutcome::Applied
    }

    /// Applied only if strictly newer than the key, and than the seal.
    fn versioned(
        &mut self,
        at: &At<'_>,
        version: LogicalTime,
        after: State,
        commit: u64,
    ) -> Result<UpdateOutcome, Rejection> {
        let known = match self.known(at.key) {
            Some(State::Merged(_)) => return Err(at.wrong_use(true)),
            Some(state @ (State::Put(_, known) | State::Deleted(known))) => Some((state, *known)),
            Some(State::Nothing) | None => None,
        };
        let newest = known.map(|(_, known)| known).max(self.seal);
        Ok(match known {
            Some((state, known)) if known == version && *state == after => UpdateOutcome::Duplicate,
            Some((_, known)) if known == version => UpdateOutcome::VersionConflict,
            _ => match newest {
                Some(current) if version <= current => UpdateOutcome::Stale { current },
                _ => self.set(at.key, after, commit),
            },
        })
    }

    fn merge(&mut self, at: &At<'_>, merge: Merge, operand: i64, commit: u64) -> Result<UpdateOutcome, Rejection> {
        let merged = match self.known(at.key) {
            Some(State::Put(..) | State::Deleted(_)) => return Err(at.wrong_use(false)),
            Some(State::Merged(value)) => merged(merge, *value, operand).ok_or_else(|| at.overflow(*value, operand))?,
            Some(State::Nothing) | None => operand,
        };
        Ok(self.set(at.key, State::Merged(merged), commit))
    }

    fn remove(&mut self, at: &At<'_>, commit: u64) -> Result<UpdateOutcome, Rejection> {
        match self.known(at.key) {
            Some(State::Put(..) | State::Deleted(_)) => Err(at.wrong_use(false)),
            Some(State::Nothing) | None => Ok(UpdateOutcome::Duplicate),
            Some(State::Merged(_)) => {
                self.keys.remove(at.key);
                self.forgotten = commit;
                self.note_gone(at.key);
                Ok(UpdateOutcome::Applied)
            }
        }
    }

    /// Lets an update of an ordered map wait, unless its version was used or is over.
    pub(super) fn wait(
        &mut self,
        at: &At<'_>,
        version: LogicalTime,
        update: Waiting,
    ) -> Result<UpdateOutcome, Rejection> {
        if let Some(current) = self.seal.filter(|seal| version <= *seal) {
            return Ok(UpdateOutcome::Stale { current });
        }
        let place = (version, at.key.to_vec());
        if let Some(known) = self.waiting.get(&place) {
            let same = *known == update;
            return Ok(if same { UpdateOutcome::Duplicate } else { UpdateOutcome::VersionConflict });
        }
        let known = self.keys.get(at.key);
        let is_merged = known.and_then(|key| key.is_merged);
        if let (Some(is_merged), Some(needed)) = (is_merged, update.is_merged())
            && is_merged != needed
        {
            return Err(at.wrong_use(is_merged));
        }
        let of_key = || self.waiting.iter().filter(|((_, key), _)| key == at.key).map(|(_, waiting)| waiting);
        Rejection::check_limit("keyed_waiting_max", KEYED_WAITING_MAX as usize, of_key().count() + 1)?;
        let value = if let Some(State::Merged(value)) = known.map(|key| &key.state) { *value } else { 0 };
        // In whatever order they come, with deletions between them or not, the sum fits.
        let (adds, size) = update.sizes();
        let added = of_key().map(|waiting| waiting.sizes().0).sum::<u128>() + adds;
        let extreme = known.map_or(0, |key| key.extreme).max(size);
        if added > 0 && added + u128::from(extreme.max(value.unsigned_abs())) > i64::MAX.unsigned_abs().into() {
            let operand = if let Waiting::Merge(_, operand) = update { operand } else { 0 };
            return Err(at.overflow(value, operand));
        }
        // Nothing is known of it any more, or never was.
        let new = Key { commit: self.forgotten, state: State::Nothing, is_merged: None, extreme: 0 };
        let key = self.keys.entry(at.key.to_vec()).or_insert(new);
        key.is_merged = key.is_merged.or(update.is_merged());
        key.extreme = extreme;
        self.waiting.insert(place, update);
        Ok(UpdateOutcome::Applied)
    }

    /// Applies what the seal has reached, in the order of versions. Gives how many that were; `left` is 0 if it stopped early.
    pub(super) fn apply_sealed(&mut self, commit: u64, left: &mut usize, entry: &mut SealedLeft) -> usize {
        let Some(seal) = self.seal.filter(|_| self.policy == Policy::Ordered) else { return 0 };
        let mut applied = 0;
        while applied < *left
            && entry.updates > 0
            && entry.bytes > 0
            && let Some(first) = self.waiting.first_entry()
            && first.key().0 <= seal
        {
            applied += 1;
            entry.updates -= 1;
            // A version, a key, a format and a kind.
            let bytes = 16 + first.key().1.len() + 2 + first.get().bytes();
            entry.bytes = entry.bytes.saturating_sub(bytes);
            let ((version, name), update) = first.remove_entry();
            let key = self.keys.get_mut(&name).expect("what waits has a key");
            key.commit = commit;
            key.state = match (update, &key.state) {
                (Waiting::Put(value), _) => State::Put(value, version),
                (Waiting::Delete, _) => State::Nothing,
                (Waiting::Merge(merge, operand), State::Merged(value)) => {
                    State::Merged(merged(merge, *value, operand).expect("it was checked when it came"))
                }
                (Waiting::Merge(_, operand), _) => State::Merged(operand),
            };
            if !self.waiting.keys().any(|(_, key)| *key == name) {
                key.extreme = 0;
                if key.state == State::Nothing {
                    self.keys.remove(&name);
                    self.forgotten = commit;
                }
            }
        }
        *left = if entry.updates == 0 || entry.bytes == 0 { 0 } else { *left - applied };
        applied
    }
}

/// Two integers as one, if that is one.
fn merged(merge: Merge, value: i64, operand: i64) -> Option<i64> {
    match merge {
        Merge::Min => Some(if operand < value { operand } else { value }),
        Merge::Max => Some(if operand > value { operand } else { value }),
        _ => i64::try_from(i128::from(value) + i128::from(operand)).ok(),
    }
}
