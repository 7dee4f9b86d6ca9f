//! Compares sessions, what they own and what is pushed to them with the reference.

use std::collections::BTreeSet;

use kernel::keys::sessions::{Owned, read_owned_suffix};
use kv::{KeyRange, Order, View};
use session::{pushes, row, status};

use crate::model::compare::same;
use crate::model::instance::{Instance, halted, text};
use crate::model::reference::{Id, Owns, Reference};

/// Every session. Gives how many reads that were.
pub(crate) fn sessions(instance: &Instance, view: &dyn View, reference: &Reference) -> Result<u64, String> {
    let keys = instance.keys.sessions();
    let listed =
        row::sessions(view, &keys, 0).map(|row| row.map(|(session, _)| session)).collect::<Result<Vec<_>, _>>();
    let expected: Vec<u64> = reference.sessions.keys().copied().collect();
    same(|| "the sessions".into(), &listed.map_err(text)?, &expected)?;
    for (number, session) in &reference.sessions {
        let status = status::status(view, &keys, *number).map_err(halted)?;
        let status = status.ok_or_else(|| format!("session {number} is listed and not there"))?;
        let found = (status.row.broken, status.floor, status.answers, status.acknowledged, status.last_push);
        let expected = (session.broken, session.floor, session.answers.len(), session.acknowledged, session.last_push);
        same(|| format!("broken, floor, answers, acknowledged, last push of session {number}"), &found, &expected)?;
        let found = pushes::pushes_after(view, &keys, *number, 0, usize::MAX).map_err(text)?;
        let found: Vec<_> = found.into_iter().map(|push| (push.number, push.payload)).collect();
        let expected: Vec<_> = session.pushes.iter().map(|(number, payload)| (*number, payload.clone())).collect();
        same(|| format!("the pushes of session {number}"), &found, &expected)?;
    }
    owned(instance, view, reference)?;
    Ok(2 * reference.sessions.len() as u64 + 1)
}

/// E6: a row for each thing that ends with a session, and none besides.
fn owned(instance: &Instance, view: &dyn View, reference: &Reference) -> Result<(), String> {
    let prefix = instance.keys.all_owned();
    let mut found = BTreeSet::new();
    for row in view.scan(&KeyRange::prefix(&prefix), Order::Ascending) {
        let (key, _) = row.map_err(text)?;
        let (session, suffix) = key[prefix.len()..].split_first_chunk::<8>().ok_or("a short key of what is owned")?;
        let (bucket, owned) = read_owned_suffix(suffix).ok_or("a foreign key of what is owned")?;
        let (owns, id) = match owned {
            Owned::Claim(id) => (Owns::Claim, id),
            Owned::Life(id) => (Owns::Life, id),
            Owned::Member { .. } => return Err("a machine has met a session, and there is none".into()),
        };
        let id = Id { space: id.space, branch: id.branch, group: id.group, name: id.name };
        found.insert((u64::from_be_bytes(*session), (bucket, owns, id)));
    }
    let mut sessions = BTreeSet::new();
    for live in reference.records.values().filter_map(|kept| kept.live.as_ref()) {
        sessions.extend(live.holder.into_iter().chain(live.life));
    }
    let owned = sessions.iter().flat_map(|session| reference.owned(*session).into_iter().map(|one| (*session, one)));
    same(|| "E6: what sessions own".into(), &found, &owned.collect())
}
