//! Restores: a content is put aside, and takes the place of another.

use contract::keyed::{InputPosition, Policy};
use contract::{KeyedRejection, Rejection};
use kernel::OpOutcome;
use kernel::keyed::entry::{Entry, KeyState, decode_position};
use kernel::keyed::restore::{RestoredCounts, RestoredMap};
use kernel::keyed::rows::{ContentRow, ContentRows};

use super::updates::{At, value_of};
use super::{Content, Key, Map, Numbered, State, UNUSED_MAX, Waiting};
use crate::model::reference::{Id, Reference};

impl Reference {
    /// Leaves what is put aside to the sweep.
    pub(super) fn give_up_aside(&self, map: &mut Map) -> Result<(), Rejection> {
        map.made_by = None;
        let Some((_, content)) = map.aside.take() else { return Ok(()) };
        Rejection::check_limit("keyed_contents_max", UNUSED_MAX, map.unused.len() + 1)?;
        map.unused.push(content.rows().iter().sum());
        self.sweep_soon(map);
        Ok(())
    }

    pub(super) fn begin_restore(
        &mut self,
        id: &Id,
        mut map: Map,
        mut content: Content,
        restored: &RestoredMap,
    ) -> Result<OpOutcome, Rejection> {
        let is_new = self.content(id).is_none();
        // Of a restore that is given up by this one, too.
        let made_by = if is_new { Some(self.commit) } else { map.made_by };
        self.give_up_aside(&mut map)?;
        map.contents += 1;
        let number = map.contents;
        let RestoredMap { policy, last_number, seal } = *restored;
        map.made_by = made_by;
        if is_new {
            content.policy = policy;
        }
        // Whatever is sent under this number is another transaction.
        let (transaction, outcomes) = (Vec::new(), Vec::new());
        let last = Numbered { number: last_number, transaction, commit: 0, outcomes };
        let last = (last_number > 0).then_some(last);
        map.aside = Some((number, Content { policy, seal, last, ..Content::default() }));
        self.store_unseen(id, map, content);
        Ok(OpOutcome::Assigned(number))
    }

    fn aside(&self, id: &Id, map: &mut Map, number: u32) -> Result<Content, Rejection> {
        let exists = self.content(id).is_some();
        let aside = map.aside.take_if(|(known, _)| exists && *known == number);
        let lost = || KeyedRejection::RestoreLost { map: id.name.clone(), number };
        Ok(aside.ok_or_else(lost)?.1)
    }

    pub(super) fn restore_rows(
        &mut self,
        id: &Id,
        mut map: Map,
        content: Content,
        number: u32,
        rows: &ContentRows<'_>,
    ) -> Result<OpOutcome, Rejection> {
        let mut aside = self.aside(id, &mut map, number)?;
        let seal = aside.seal.take();
        for row in rows.iter() {
            aside.put_row(&id.name, &row, self.commit)?;
        }
        aside.seal = seal;
        map.aside = Some((number, aside));
        self.store_unseen(id, map, content);
        Ok(OpOutcome::Existing(self.commit))
    }

    pub(super) fn end_restore(
        &mut self,
        id: &Id,
        mut map: Map,
        content: Content,
        number: u32,
        counts: &RestoredCounts,
    ) -> Result<OpOutcome, Rejection> {
        let aside = self.aside(id, &mut map, number)?;
        if aside.counts() != *counts || aside.keeps_answer != aside.last.is_some() {
            return Err(KeyedRejection::RestoreIncomplete { map: id.name.clone(), number }.into());
        }
        Rejection::check_limit("keyed_contents_max", UNUSED_MAX, map.unused.len() + 1)?;
        map.unused.push(content.rows().iter().sum());
        map.made_by = None;
        self.sweep_soon(&mut map);
        self.happened.restores += 1;
        let restored = Content { since: self.commit, forgotten: self.commit, ..aside };
        Ok(OpOutcome::Written(self.store_map(id, map, restored)))
    }

    pub(super) fn abandon_restore(
        &mut self,
        id: &Id,
        mut map: Map,
        content: Content,
        number: u32,
    ) -> Result<OpOutcome, Rejection> {
        let Ok(aside) = self.aside(id, &mut map, number) else { return Ok(OpOutcome::Nothing) };
        map.aside = Some((number, aside));
        let was_made = map.made_by == Some(map.commit);
        self.give_up_aside(&mut map)?;
        let is_empty = content.keys.is_empty() && content.seal.is_none() && content.last.is_none();
        if was_made && is_empty {
            let (commit, updated_us) = (self.commit, self.wall_us);
            self.set_map(id, Some(Map { content: None, commit, updated_us, ..map }));
        } else {
            self.store_unseen(id, map, content);
        }
        Ok(OpOutcome::Existing(self.commit))
    }
}

impl Content {
    /// How many rows of each kind that is counted.
    pub(crate) fn counts(&self) -> RestoredCounts {
        RestoredCounts {
            keys: self.keys.values().filter(|key| key.state.value().is_some()).count() as u64,
            deleted: self.deleted() as u64,
            waiting: self.waiting.len() as u64,
        }
    }

    fn put_row(&mut self, map: &str, row: &ContentRow<'_>, commit: u64) -> Result<(), Rejection> {
        let is_ordered = self.policy == Policy::Ordered;
        match row {
            ContentRow::Key(key, row) => {
                let state = match Entry::decode(row).expect("the generator makes rows").state {
                    KeyState::Deleted(_) if is_ordered => return Err(At { map, key }.wrong_policy(true)),
                    KeyState::Deleted(version) => State::Deleted(version),
                    KeyState::Put { version, value } => State::Put(value_of(value), version),
                    KeyState::Merged(value) => State::Merged(value),
                    KeyState::Nothing(_) => return Ok(()),
                };
                let is_merged = Some(matches!(state, State::Merged(_)));
                self.keys.entry(key.to_vec()).or_insert(Key { commit: 0, state, is_merged, extreme: 0 });
            }
            ContentRow::Waiting(_, key, _) if !is_ordered => return Err(At { map, key }.wrong_policy(false)),
            ContentRow::Waiting(version, key, row) => {
                // A format, a kind, and what the kind needs.
                let integer = |bytes: &[u8]| i64::from_le_bytes(bytes.try_into().expect("eight bytes"));
                let update = match row[1] {
                    1 => Waiting::Put(value_of(&row[2..])),
                    2 => Waiting::Delete,
                    3 => Waiting::Merge(contract::keyed::Merge::Add, integer(&row[2..])),
                    other => unreachable!("the generator makes no waiting update of the kind {other}"),
                };
                self.wait(&At { map, key }, *version, update)?;
            }
            ContentRow::Position(input, row) => {
                let InputPosition { position, updated_at, .. } =
                    decode_position(row).expect("the generator makes rows");
                self.positions.insert((*input).to_owned(), InputPosition::new(position, commit, updated_at));
            }
            ContentRow::Answer(_) => self.keeps_answer = true,
            ContentRow::Gone(_) => {}
        }
        Ok(())
    }
}
