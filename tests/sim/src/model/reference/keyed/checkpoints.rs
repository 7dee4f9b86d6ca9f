//! What is noted for checkpoints of what has changed.

use contract::{KeyedRejection, Rejection};
use kernel::OpOutcome;

use super::{Content, Map};
use crate::model::reference::{Id, Reference};

impl Content {
    /// Nothing is known of a key any more.
    pub(super) fn note_gone(&mut self, key: &[u8]) {
        if let Some((_, last)) = self.checkpoints {
            self.gone.insert((last, key.to_vec()));
        }
    }

    /// Removes some of what no checkpoint needs.
    pub(super) fn forget_gone(&mut self, left: &mut usize) {
        let from = self.checkpoints.map_or(0, |(from, _)| from);
        while *left > 0
            && let Some(first) = self.gone.first().filter(|(noted, _)| *noted < from).cloned()
        {
            self.gone.remove(&first);
            *left -= 1;
        }
    }
}

impl Reference {
    pub(super) fn begin_checkpoint(&mut self, id: &Id, map: Map, mut content: Content) -> Result<OpOutcome, Rejection> {
        if self.content(id).is_none() {
            return Err(KeyedRejection::NoSuchMap { map: id.name.clone() }.into());
        }
        let from = content.checkpoints.map_or(self.commit, |(from, _)| from);
        content.checkpoints = Some((from, self.commit));
        self.store_unseen(id, map, content);
        Ok(OpOutcome::Written(self.commit))
    }

    pub(super) fn end_checkpoint(
        &mut self,
        id: &Id,
        mut map: Map,
        mut content: Content,
        begun: u64,
    ) -> Result<OpOutcome, Rejection> {
        let name = || id.name.clone();
        if self.content(id).is_none() {
            return Err(KeyedRejection::NoSuchMap { map: name() }.into());
        }
        match content.checkpoints {
            Some((from, _)) if begun <= from => Ok(OpOutcome::Existing(from)),
            None if begun == 0 => Ok(OpOutcome::Existing(0)),
            Some((_, last)) if begun <= last => {
                content.checkpoints = Some((begun, last));
                if !content.gone.is_empty() {
                    self.happened.keys_noted += content.gone.len() as u64;
                    self.sweep_soon(&mut map);
                }
                self.store_unseen(id, map, content);
                Ok(OpOutcome::Written(begun))
            }
            _ => Err(KeyedRejection::NoSuchCheckpoint { map: name(), number: begun }.into()),
        }
    }
}
