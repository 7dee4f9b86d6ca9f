//! Updating keys: the one place where a key of a monotonic map changes.
//!
//! Touches: entries, deleted keys by version, and the numbers in the map's head. Keeps: D1 (an update at or below the version
//! of its key changes nothing, and says so) and D3 (neither does one at or below the seal).

use contract::keyed::limits::KEYED_UPDATES_MAX;
use contract::keyed::{LogicalTime, Merge, Policy, UpdateOutcome, Updated, shown_key};
use contract::{KeyedRejection, Rejection};
use kv::{Bytes, Key};
use session::Halt;

use super::changed_map::ChangedMap;
use super::entry::{Entry, KeyState, Waiting};
use super::noting::note_gone;
use super::ordered::{WaitingUpdate, accept};
use super::updates::{Update, Updates};
use crate::context::Applying;
use crate::held::Was;
use crate::keys::Keys;
use crate::tally::NotApplied;

/// Applies updates in order. Merges count once only if `in_commit`, so they are refused elsewhere.
pub(super) fn update(
    applying: &mut Applying<'_>,
    changed: &mut ChangedMap<'_>,
    updates: &Updates<'_>,
    in_commit: bool,
) -> Result<Result<Updated, Rejection>, Halt> {
    if let Err(rejection) = Rejection::check_limit("keyed_updates_max", KEYED_UPDATES_MAX, updates.count()) {
        return Ok(Err(rejection));
    }
    let prefix = applying.keys.entry_prefix(changed.map, changed.head.content.number);
    let mut others = Vec::new();
    for (place, (key, update)) in (0..).zip(updates.iter()) {
        let outcome = match (changed.head.policy, update) {
            (Policy::Ordered, update) => in_order(applying, changed, key, update)?,
            (_, update) => OneKey::read(applying, changed, &prefix, key)?.at_once(update, in_commit)?,
        };
        match outcome {
            Ok(UpdateOutcome::Applied) => {}
            Ok(other) => {
                if let Some(became) = not_applied(other) {
                    applying.folded.changes.tally.not_applied(became);
                }
                others.push((place, other));
            }
            Err(rejection) => return Ok(Err(rejection)),
        }
    }
    Ok(Ok(Updated::new(u32::try_from(updates.count()).expect("they are within the limit"), others)))
}

/// What metrics count an update as that changed nothing.
fn not_applied(outcome: UpdateOutcome) -> Option<NotApplied> {
    match outcome {
        UpdateOutcome::Duplicate => Some(NotApplied::Duplicate),
        UpdateOutcome::Stale { .. } => Some(NotApplied::Stale),
        UpdateOutcome::VersionConflict => Some(NotApplied::VersionConflict),
        _ => None,
    }
}

/// Lets an update of an ordered map wait.
fn in_order(applying: &mut Applying<'_>, changed: &mut ChangedMap<'_>, key: &[u8], update: Update<'_>) -> Updating {
    let (version, update) = match update {
        Update::Put { version, value } => (version, WaitingUpdate::Put(value)),
        Update::Delete(version) => (version, WaitingUpdate::Delete),
        Update::MergeAt(version, merge, operand) => (version, WaitingUpdate::Merge(merge, operand)),
        Update::Merge(..) | Update::Remove => {
            let (map, key) = (changed.map.name.to_owned(), shown_key(key));
            return Ok(Err(KeyedRejection::WrongPolicy { map, key, is_ordered: true }.into()));
        }
    };
    accept(applying, changed, key, version, &update)
}

/// A key, with what is known of it.
struct OneKey<'update, 'entry, 'map> {
    applying: &'update mut Applying<'entry>,
    changed: &'update mut ChangedMap<'map>,
    prefix: &'update Key,
    key: &'update [u8],
    row: Option<Bytes>,
}

/// What became of an update, or why it is refused.
pub(super) type Updating = Result<Result<UpdateOutcome, Rejection>, Halt>;

impl<'update, 'entry, 'map> OneKey<'update, 'entry, 'map> {
    fn read(
        applying: &'update mut Applying<'entry>,
        changed: &'update mut ChangedMap<'map>,
        prefix: &'update Key,
        key: &'update [u8],
    ) -> Result<Self, Halt> {
        let row = applying.state.get(&Keys::entry_at(prefix, key))?;
        Ok(Self { applying, changed, prefix, key, row })
    }

    /// Does an update of a monotonic map.
    fn at_once(&mut self, update: Update<'_>, in_commit: bool) -> Updating {
        let (map, key) = (self.changed.map.name, self.key);
        match update {
            Update::Put { version, value } => self.versioned(version, KeyState::Put { version, value }),
            Update::Delete(version) => self.versioned(version, KeyState::Deleted(version)),
            Update::Merge(merge, operand) if in_commit => self.merge(merge, operand),
            Update::Remove if in_commit => self.remove(),
            Update::Merge(..) | Update::Remove => {
                Ok(Err(KeyedRejection::MergeOutsideCommit { map: map.to_owned(), key: shown_key(key) }.into()))
            }
            Update::MergeAt(..) => {
                let (map, key) = (map.to_owned(), shown_key(key));
                Ok(Err(KeyedRejection::WrongPolicy { map, key, is_ordered: false }.into()))
            }
        }
    }

    /// Puts or deletes the key with a version.
    fn versioned(&mut self, version: LogicalTime, after: KeyState<'_>) -> Updating {
        let content = self.changed.head.content;
        let row = self.row.clone();
        let before = row.as_deref().map(Entry::decode).transpose()?;
        let stale = |current: LogicalTime| {
            let current = content.seal.map_or(current, |seal| current.max(seal));
            Ok(Ok(UpdateOutcome::Stale { current }))
        };
        let known = match before.map(|entry| entry.state) {
            Some(KeyState::Merged(_)) => return Ok(Err(self.wrong_use(true))),
            // Whether it is there still depends on the sweep, and nothing else may.
            Some(KeyState::Deleted(known)) if content.seals(known) => None,
            Some(state @ (KeyState::Deleted(known) | KeyState::Put { version: known, .. })) => Some((state, known)),
            Some(KeyState::Nothing(_)) | None => None,
        };
        #[cfg(feature = "canary")]
        let known = known.filter(|_| !crate::canary::versions_are_skipped());
        match known {
            Some((state, known)) if version == known => Ok(Ok(match state == after {
                true => UpdateOutcome::Duplicate,
                false => UpdateOutcome::VersionConflict,
            })),
            Some((_, known)) if version < known => stale(known),
            _ if content.seals(version) => stale(version),
            _ => self.write(before, Some(after)),
        }
    }

    fn merge(&mut self, merge: Merge, operand: i64) -> Updating {
        let content = self.changed.head.content;
        let row = self.row.clone();
        let before = row.as_deref().map(Entry::decode).transpose()?;
        let value = match before.map(|entry| entry.state) {
            Some(KeyState::Put { .. }) => return Ok(Err(self.wrong_use(false))),
            Some(KeyState::Deleted(known)) if !content.seals(known) => return Ok(Err(self.wrong_use(false))),
            Some(KeyState::Merged(value)) => match merge.of(value, operand) {
                Some(merged) => merged,
                None => {
                    let (map, key) = (self.changed.map.name.to_owned(), shown_key(self.key));
                    return Ok(Err(KeyedRejection::Overflow { map, key, value, operand }.into()));
                }
            },
            Some(KeyState::Deleted(_) | KeyState::Nothing(_)) | None => operand,
        };
        self.write(before, Some(KeyState::Merged(value)))
    }

    fn remove(&mut self) -> Updating {
        let content = self.changed.head.content;
        let row = self.row.clone();
        let before = row.as_deref().map(Entry::decode).transpose()?;
        match before.map(|entry| entry.state) {
            Some(KeyState::Merged(_)) => self.write(before, None),
            Some(KeyState::Deleted(known)) if content.seals(known) => Ok(Ok(UpdateOutcome::Duplicate)),
            Some(KeyState::Put { .. } | KeyState::Deleted(_)) => Ok(Err(self.wrong_use(false))),
            Some(KeyState::Nothing(_)) | None => Ok(Ok(UpdateOutcome::Duplicate)),
        }
    }

    fn write(&mut self, before: Option<Entry<'_>>, after: Option<KeyState<'_>>) -> Updating {
        let Self { applying, changed, prefix, key, row } = self;
        let content = &mut changed.head.content;
        if let Some(KeyState::Deleted(version)) = before.map(|entry| entry.state) {
            applying.state.delete(applying.keys.deleted_key(changed.map, content.number, version, key));
            content.deleted = one_less(content.deleted)?;
        } else if before.is_some() {
            content.keys = one_less(content.keys)?;
        }
        match after {
            Some(KeyState::Deleted(version)) => {
                let key = applying.keys.deleted_key(changed.map, content.number, version, key);
                applying.state.put(key, Bytes::default());
                content.deleted += 1;
            }
            Some(_) => content.keys += 1,
            None => {
                content.forgotten = applying.call.commit;
                note_gone(applying, changed.map, content, key)?;
            }
        }
        let was = row.as_ref().map(|row| Was::part(row.len()));
        let (row_key, commit) = (Keys::entry_at(prefix, key), applying.call.commit);
        match (after, was) {
            (Some(state), was) => {
                applying.held().put(row_key, was, false, |writer| {
                    Entry { commit, waiting: Waiting::default(), state }.encode(writer)
                });
            }
            (None, Some(was)) => applying.held().delete(row_key, was),
            (None, None) => {}
        }
        Ok(Ok(UpdateOutcome::Applied))
    }

    fn wrong_use(&self, is_merged: bool) -> Rejection {
        let (map, key) = (self.changed.map.name.to_owned(), shown_key(self.key));
        KeyedRejection::WrongUse { map, key, is_merged }.into()
    }
}

/// A number of keys without one of them.
pub(super) fn one_less(count: u64) -> Result<u64, Halt> {
    count.checked_sub(1).ok_or_else(|| Halt::Inconsistent("D1: a map has fewer than no keys".into()))
}
