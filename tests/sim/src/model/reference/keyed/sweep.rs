//! What ticks remove of maps, and what they apply.

use super::{Map, State};
use crate::model::reference::{Id, Reference};

/// Rows that one step removes, and waiting updates that it applies.
const SWEPT_ROWS_MAX: usize = 512;

impl Reference {
    /// A sweep is due now, unless one is overdue.
    pub(super) fn sweep_soon(&self, map: &mut Map) {
        map.sweep_us = Some(map.sweep_us.map_or(self.wall_us, |at_us| at_us.min(self.wall_us)));
    }

    /// What a tick does for a map. Gives the number of its steps: that of the rows. Their bytes are not counted here, since the
    /// values of this model are too small for the limit.
    pub(in super::super) fn sweep(&mut self, id: &Id) -> u32 {
        let mut map = self.maps[id].clone();
        map.sweep_us = None;
        if !self.is_live(id.space, id.branch) {
            // Its rows go with its branch.
            self.set_map(id, Some(map));
            return 1;
        }
        let was_deleted_us = map.updated_us;
        let mut left = SWEPT_ROWS_MAX;
        let applied = map
            .content
            .as_mut()
            .map_or(0, |content| content.apply_sealed(self.commit, &mut left, &mut self.sealed_left));
        if applied > 0 {
            (map.commit, map.updated_us) = (self.commit, self.wall_us);
        }
        while let Some(rows) = map.unused.first_mut() {
            let removed = left.min(*rows);
            *rows -= removed;
            left -= removed;
            if left == 0 {
                break;
            }
            map.unused.remove(0);
        }
        if let Some(content) = &mut map.content {
            let deleted = content.keys.iter().filter_map(|(name, key)| match key.state {
                State::Deleted(version) if content.seals(version) => Some((version, name.clone())),
                _ => None,
            });
            let mut deleted: Vec<_> = deleted.collect();
            deleted.sort();
            for (_, name) in deleted.into_iter().take(left) {
                let key = content.keys.remove(&name).expect("just found");
                content.forgotten = content.forgotten.max(content.changed_at(&key));
                content.note_gone(&name);
                left -= 1;
            }
            content.forget_gone(&mut left);
        }
        let steps = u32::try_from(SWEPT_ROWS_MAX - left).expect("few").max(1);
        let forget_us = was_deleted_us.saturating_add(self.limits.tombstone_age_us);
        map.sweep_us = match map.content {
            _ if left == 0 => Some(self.wall_us + 1),
            Some(_) => None,
            None if forget_us > self.wall_us => Some(forget_us),
            None => {
                self.set_map(id, None);
                return steps;
            }
        };
        self.set_map(id, Some(map));
        steps
    }
}
