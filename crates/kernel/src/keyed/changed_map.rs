//! A map while an operation changes it: its head is read once and written once.

use contract::KeyedRejection;
use contract::keyed::Policy;
use session::Halt;

use super::head::{Content, MapHead, Noting};
use crate::changes::{Noted, Reason, Subject};
use crate::context::Applying;
use crate::keys::due::{DueClock, DueOf};
use crate::keys::{Kind, ThingId};
use crate::names;

/// A map while an operation changes it.
pub(super) struct ChangedMap<'map> {
    pub(super) map: &'map ThingId<'map>,
    before: Option<MapHead>,
    pub(super) head: MapHead,
}

/// The head of a map, if it has one. A deleted map has one until its rows are gone.
pub(super) fn read_head(applying: &Applying<'_>, map: &ThingId<'_>) -> Result<Option<MapHead>, Halt> {
    applying.state.get(&applying.keys.map(map))?.map(|row| MapHead::decode(&row)).transpose()
}

impl<'map> ChangedMap<'map> {
    /// The map, or a new one if there is none.
    pub(super) fn open(applying: &Applying<'_>, map: &'map ThingId<'map>) -> Result<Self, Halt> {
        let before = read_head(applying, map)?;
        let head = match &before {
            None => MapHead::new(),
            Some(head) if head.deleted => {
                let number = next_content(head)?;
                // Every key was changed when the map was deleted.
                let content = Content { number, forgotten: head.commit, ..Content::default() };
                let building = None;
                let policy = Policy::default();
                MapHead { deleted: false, policy, content, building, last_content: number, ..head.clone() }
            }
            Some(head) => head.clone(),
        };
        Ok(Self { map, before, head })
    }

    /// The map, if it exists.
    pub(super) fn existing(
        applying: &Applying<'_>,
        map: &'map ThingId<'map>,
    ) -> Result<Result<Self, KeyedRejection>, Halt> {
        Ok(match read_head(applying, map)? {
            Some(head) if !head.deleted => Ok(Self { map, before: Some(head.clone()), head }),
            _ => Err(KeyedRejection::NoSuchMap { map: map.name.to_owned() }),
        })
    }

    /// Whether it does not exist yet.
    pub(super) fn is_new(&self) -> bool {
        self.before.as_ref().is_none_or(|before| before.deleted)
    }

    /// The map with this head, for the sweep, which writes the head itself.
    pub(super) fn sweeping(map: &'map ThingId<'map>, head: MapHead) -> Self {
        Self { map, before: Some(head.clone()), head }
    }

    /// What a restore puts aside, as a map that nobody sees.
    pub(super) fn aside(map: &'map ThingId<'map>, policy: Policy, content: Content) -> Self {
        Self { map, before: None, head: MapHead { policy, content, ..MapHead::default() } }
    }

    /// Has the sweep look for rows that nobody needs any more.
    pub(super) fn schedule_sweep(&mut self, applying: &mut Applying<'_>) {
        let now_us = applying.call.stamp.wall_us;
        let at_us = self.head.sweep_us.map_or(now_us, |at_us| at_us.min(now_us));
        if let Some(later_us) = self.head.sweep_us.filter(|known_us| *known_us > at_us) {
            applying.delete_due(DueClock::Wall, later_us, DueOf::Sweep, self.map);
        }
        // Also if it is overdue: a tick that met a damaged row has removed the entry, and left the head as it was.
        applying.put_due(DueClock::Wall, at_us, DueOf::Sweep, self.map);
        self.head.sweep_us = Some(at_us);
    }

    /// Has the sweep remove what was noted for checkpoints, if nothing is noted any more.
    fn sweep_noted(&mut self, applying: &mut Applying<'_>) {
        let Noting { from, count, .. } = self.head.content.noting;
        let now_us = applying.call.stamp.wall_us;
        if from == 0 && count > 0 && self.head.sweep_us.is_none_or(|at_us| at_us <= now_us) {
            self.schedule_sweep(applying);
        }
    }

    /// Writes the head after a change that readers do not see, unless the map is new.
    pub(super) fn store_unseen(mut self, applying: &mut Applying<'_>) {
        self.sweep_noted(applying);
        match &self.before {
            Some(before) if !before.deleted => put_head(applying, self.map, self.before.as_ref(), &self.head),
            _ => self.store(applying, Reason::Written),
        }
    }

    /// Writes the head after a change that readers see, and notes it in the change feed.
    pub(super) fn store(mut self, applying: &mut Applying<'_>, reason: Reason) {
        self.sweep_noted(applying);
        self.head.commit = applying.call.commit;
        self.head.updated_us = applying.call.stamp.wall_us;
        let existed = self.before.as_ref().is_some_and(|head| !head.deleted);
        if existed == self.head.deleted {
            names::set_listed(applying.state, &applying.keys, Kind::KeyedMap, self.map, !self.head.deleted);
        }
        put_head(applying, self.map, self.before.as_ref(), &self.head);
        note(applying, self.map, &self.head, reason);
    }
}

/// Notes a change of a map in the change feed.
pub(super) fn note(applying: &mut Applying<'_>, map: &ThingId<'_>, head: &MapHead, reason: Reason) {
    let ThingId { space, branch, group, name, .. } = *map;
    let change = Noted { subject: Subject::Map, reason, space, branch, group, name, version: head.commit };
    applying.folded.changes.note(applying.call.commit, &change);
}

/// Writes the head of a map alone.
pub(super) fn put_head(applying: &mut Applying<'_>, map: &ThingId<'_>, before: Option<&MapHead>, after: &MapHead) {
    let seal = |head: &MapHead| (head.content.number, head.content.seal);
    let goes_back = before.is_some_and(|before| seal(before).0 == seal(after).0 && seal(before).1 > seal(after).1);
    assert!(!goes_back, "D3: the seal of {map:?} goes back: {before:?} then {after:?}");
    let key = applying.keys.map(map);
    applying.held().put(key, before.map(MapHead::counted), !after.deleted, |writer| after.encode(writer));
}

/// The number of the next content of a map.
pub(super) fn next_content(head: &MapHead) -> Result<u32, Halt> {
    let next = head.last_content.checked_add(1);
    next.ok_or_else(|| Halt::Inconsistent("a map has had more contents than there are numbers".into()))
}
