//! Follows the change feed entry by entry, and keeps a book of every record by it.
//!
//! Checks (1) to (5), as far as they are about what happens between two moments. They are judged by the feed and the
//! stored rows alone, not by the reference.

use std::collections::BTreeMap;

use contract::guards::OWNER_RECORD;
use contract::records::types::StateKind;
use contract::{Change, Followed, Reason, Subject};
use kernel::changes::{Filter, changes_after};
use kernel::keys::ThingId;
use kernel::names::InGroup;
use kernel::records::row::{Numbers, decode_numbers};
use kv::View;

use crate::model::instance::{Instance, halted, text};
use crate::model::reference::{Id, Reference};
use crate::model::tally::{Tally, add};

/// What the book says of a record.
#[derive(Clone, Debug, Default)]
struct Known {
    version: u64,
    attempt: u64,
    /// Its row as it was last seen.
    row: Option<Numbers>,
}

/// What the change feed has told about every record.
#[derive(Default)]
pub(crate) struct Book {
    known: BTreeMap<Id, Known>,
    /// Up to which command the feed was followed.
    cursor: u64,
}

impl Book {
    /// Enters what the last entry changed.
    pub(crate) fn enter(
        &mut self,
        instance: &Instance,
        view: &dyn View,
        reference: &Reference,
        tally: &Tally,
    ) -> Result<(), String> {
        let mut by_record: BTreeMap<Id, Vec<Change>> = BTreeMap::new();
        for (space, branch) in reference.live_places() {
            let filter = Filter { space, branch, subject: Some(Subject::Record), group: InGroup::Any, prefix: "" };
            let followed = changes_after(view, &instance.keys, self.cursor, &filter, usize::MAX).map_err(halted)?;
            let Followed::Page(page) = followed else {
                return Err(format!("the feed has no page after {}: {followed:?}", self.cursor));
            };
            for change in page.changes {
                for (reason, count) in [(Reason::Rescued, &tally.rescues), (Reason::Expired, &tally.expiries)] {
                    add(count, u64::from(change.reason == reason));
                }
                let id = Id { space, branch, group: change.group.clone(), name: change.name.clone() };
                by_record.entry(id).or_default().push(change);
            }
        }
        self.cursor = instance.kernel.applied().commit;
        for (id, changes) in by_record {
            let cell = ThingId {
                bucket: reference.bucket(&id),
                space: id.space,
                branch: id.branch,
                group: id.group.as_deref(),
                name: &id.name,
            };
            let row = view.get(&instance.keys.record(&cell)).map_err(text)?;
            let row = row.map(|row| decode_numbers(&row)).transpose().map_err(halted)?;
            let before = self.known.remove(&id).unwrap_or_default();
            let kind = |numbers: &Numbers| {
                let types = &instance.kernel.catalogue().space(id.space).expect("it exists").types;
                types.get(numbers.record_type).map(|declared| declared.kind(numbers.state))
            };
            let wall_us = instance.kernel.applied().stamp.wall_us;
            let after = judge(&before, &changes, row, wall_us, kind).map_err(|what| format!("{what}\n  {id:?}"))?;
            self.known.insert(id, after);
        }
        Ok(())
    }
}

fn judge(
    before: &Known,
    changes: &[Change],
    row: Option<Numbers>,
    wall_us: u64,
    kind: impl Fn(&Numbers) -> Option<StateKind>,
) -> Result<Known, String> {
    let context = || format!("before {before:?}\n  changes {changes:?}\n  row {row:?} at {wall_us}");
    let is = |change: &Change, reason: Reason| change.reason == reason;
    let lived = before.row.filter(|row| !row.deleted);
    let held = held_before(lived.map(|row| row.is_held()), changes);
    // The end of a session gives back what is held; what it does not hold it may end.
    let may_end = |place: usize| {
        let change = &changes[place];
        let by_session = is(change, Reason::SessionEnded) && held[place] != Some(true);
        by_session || is(change, Reason::Deleted) || is(change, Reason::Expired)
    };
    let ended = (0..changes.len()).any(may_end);

    // (4), (5): what was over can only be said to be over.
    if let Some(row) = lived.filter(|row| row.expired_at(wall_us))
        && !changes.first().is_some_and(|change| is(change, Reason::Expired))
    {
        return Err(format!("(4) nothing expired is ever read or written: {row:?} was over, {}", context()));
    }
    // (5): versions go on, without a gap while the row was there.
    let mut version = before.version;
    let mut may_jump = lived.is_none();
    for (place, change) in changes.iter().enumerate() {
        let next = version + 1;
        if change.version < next || (change.version > next && !may_jump) {
            return Err(format!("(5) nothing comes back: version {} after {version}, {}", change.version, context()));
        }
        version = change.version;
        may_jump = may_end(place);
    }
    // (1): a claim is of a record that nobody holds.
    // Only an owner is claimed by force.
    let by_force = |change: &Change| change.name == OWNER_RECORD;
    let claimed = changes
        .iter()
        .zip(&held)
        .find(|(change, held)| is(change, Reason::Claimed) && **held == Some(true) && !by_force(change));
    if claimed.is_some() {
        return Err(format!("(1) one holder per record: claimed while it was held, {}", context()));
    }
    // (2), (5): attempts rise by one with every claim, and never fall.
    let claims = changes.iter().filter(|change| is(change, Reason::Claimed)).count() as u64;
    let attempt = row.map_or(before.attempt + claims, |row| row.attempt);
    let exact = lived.is_some() && !ended;
    if attempt < before.attempt + claims || (exact && attempt != before.attempt + claims) {
        return Err(format!("(2) attempts rise by one: {claims} claims after {}, {}", before.attempt, context()));
    }
    // (3): a terminal state is left only by the end of the record.
    if let (Some(old), Some(new)) = (lived, row)
        && kind(&old) == Some(StateKind::Terminal)
        && !ended
        && (old.state, old.record_type) != (new.state, new.record_type)
    {
        return Err(format!("(3) a terminal state is never left: {}", context()));
    }
    Ok(Known { version, attempt, row })
}

/// Whether the record was held before each of its changes, as far as they tell.
fn held_before(first: Option<bool>, changes: &[Change]) -> Vec<Option<bool>> {
    let mut held = first;
    let before = changes.iter().map(|change| {
        let after = match change.reason {
            Reason::Claimed => Some(true),
            // A replacement by the holder may give it back.
            Reason::Written => held.filter(|held| !held),
            _ => Some(false),
        };
        std::mem::replace(&mut held, after)
    });
    before.collect()
}
