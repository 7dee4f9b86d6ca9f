//! Compares sessions, what they own, what is pushed to them, and the state of the machine with the reference.

use std::collections::BTreeSet;

use kernel::keys::sessions::{HostedId, Owned, OwnedOf, read_owned_suffix};
use kv::{KeyRange, Order, View};
use session::{UserMachine, pushes, row, status};

use super::machine::{Counters, OwnRow};
use crate::model::compare::same;
use crate::model::instance::{Instance, halted, text};
use crate::model::reference::{Id, Owns, Reference};

/// Every session. Gives how many reads that were.
pub(crate) fn everything(instance: &Instance, view: &dyn View, reference: &Reference) -> Result<u64, String> {
    let keys = instance.keys.sessions();
    let listed =
        row::sessions(view, &keys, 0).map(|row| row.map(|(session, _)| session)).collect::<Result<Vec<_>, _>>();
    let expected: Vec<u64> = reference.sessions.keys().copied().collect();
    same(|| "the list of sessions".into(), &listed.map_err(text)?, &expected)?;
    for number in reference.sessions.keys() {
        session(instance, view, reference, *number)?;
    }
    hints(instance, view, reference)?;
    owned(instance, view, reference)?;
    machines(instance, view, reference)?;
    Ok(2 * reference.sessions.len() as u64 + 1)
}

/// One session, which may not exist.
pub(crate) fn session(instance: &Instance, view: &dyn View, reference: &Reference, session: u64) -> Result<(), String> {
    let keys = instance.keys.sessions();
    let status = status::status(view, &keys, session).map_err(halted)?;
    let pending = pushes::pushes_after(view, &keys, session, 0, usize::MAX).map_err(text)?;
    let known = reference.sessions.get(&session);
    let (Some(status), Some(known)) = (&status, known) else {
        same(|| format!("whether session {session} is known"), &status.is_some(), &known.is_some())?;
        return same(|| format!("(6) pushes left of session {session}"), &pending.len(), &0);
    };
    let about = |what: &str| format!("{what} of session {session}");
    same(|| about("the row"), &status.row, &known.row)?;
    same(|| about("the floor"), &status.floor, &known.floor)?;
    same(|| about("(2) how many answers are stored"), &status.answers, &known.answers.len())?;
    same(|| about("the last request"), &status.last_request, &known.answers.keys().next_back().copied())?;
    same(|| about("(3) what is acknowledged"), &status.acknowledged, &known.acknowledged)?;
    same(|| about("(4) the last push"), &status.last_push, &known.last_push)?;
    let numbers: Vec<u64> = pending.iter().map(|push| push.number).collect();
    let without_gap: Vec<u64> = (status.acknowledged + 1..=status.last_push).collect();
    same(|| about("(4) the numbers of pushes"), &numbers, &without_gap)?;
    let expected: Vec<_> =
        known.pushes.iter().map(|(number, (sent_us, payload))| (*number, *sent_us, payload)).collect();
    let found: Vec<_> = pending.iter().map(|push| (push.number, push.last_sent_us, &push.payload)).collect();
    same(|| about("(3) the pending pushes"), &found, &expected)
}

/// Hints say nothing less than what is pending.
fn hints(instance: &Instance, view: &dyn View, reference: &Reference) -> Result<(), String> {
    let keys = instance.keys.sessions();
    let pending = reference.sessions.values().any(|known| !known.pushes.is_empty());
    same(|| "(4) whether a push is pending".into(), &pushes::has_pending(view, &keys).map_err(text)?, &pending)?;
    let all_sent = reference.sessions.values().flat_map(|known| known.pushes.values().map(|(sent_us, _)| *sent_us));
    for before_us in [all_sent.clone().min(), all_sent.max()].into_iter().flatten().flat_map(|at| [at, at + 1]) {
        let may_be = reference.sessions.values().any(|known| known.sent_hint_us.is_some_and(|at| at < before_us));
        let is = reference.sessions.values().any(|known| known.pushes.values().any(|(at, _)| *at < before_us));
        assert!(may_be || !is, "the reference's own hint misses a push");
        let hint = pushes::has_overdue(view, &keys, before_us).map_err(text)?;
        same(|| format!("(4) whether a push was last sent before {before_us}"), &hint, &may_be)?;
    }
    Ok(())
}

/// E6: a row for each thing that ends with a session, and none besides.
fn owned(instance: &Instance, view: &dyn View, reference: &Reference) -> Result<(), String> {
    let mut found = BTreeSet::new();
    let rows = |bucket: u16| {
        let prefix = instance.keys.owned_of_bucket(bucket);
        let rows = view.scan(&KeyRange::prefix(&prefix), Order::Ascending);
        rows.map(move |row| row.map(|(key, _)| (bucket, key[prefix.len()..].to_vec())))
    };
    for row in (0..reference.buckets.count()).flat_map(rows) {
        let (bucket, key) = row.map_err(text)?;
        let (session, suffix) = key.split_first_chunk::<8>().ok_or("a short key of what is owned")?;
        let owned = read_owned_suffix(suffix).ok_or("a foreign key of what is owned")?;
        let (owns, id) = match owned {
            Owned::Thing(OwnedOf::Claim, id) => (Owns::Claim, id),
            Owned::Thing(OwnedOf::Life, id) => (Owns::Life, id),
            Owned::Member { space, group, .. } => {
                found.insert((u64::from_be_bytes(*session), (bucket, Owns::Member, Id::new(space, 0, None, &group))));
                continue;
            }
        };
        let id = Id { space: id.space, branch: id.branch, group: id.group, name: id.name };
        found.insert((u64::from_be_bytes(*session), (bucket, owns, id)));
    }
    let mut sessions: BTreeSet<_> = reference.members.iter().map(|(session, _)| *session).collect();
    for live in reference.records.values().filter_map(|kept| kept.live.as_ref()) {
        sessions.extend(live.holder.into_iter().chain(live.life));
    }
    let owned = sessions.iter().flat_map(|session| reference.owned(*session).into_iter().map(|one| (*session, one)));
    same(|| "E6: what sessions own".into(), &found, &owned.collect())
}

/// E3: the machine's rows, in the place of each group, and none elsewhere.
fn machines(instance: &Instance, view: &dyn View, reference: &Reference) -> Result<(), String> {
    let (mut seen, mut expected) = (0, 0);
    for bucket in 0..reference.buckets.count() {
        seen += view.scan(&instance.keys.hosted_of_bucket(bucket), Order::Ascending).count();
    }
    for ((space, group), counters) in &reference.machines {
        let bucket = reference.bucket(&Id::new(*space, 0, None, group));
        let id = HostedId { bucket, space: *space, machine: Counters::NUMBER, group };
        let prefix = instance.keys.hosted(&id);
        let rows = view.scan(&KeyRange::prefix(&prefix), Order::Ascending);
        let rows = rows.map(|row| row.map(|(key, value)| OwnRow::read(&key[prefix.len()..], &value)));
        let rows =
            rows.collect::<Result<Option<Vec<_>>, _>>().map_err(text)?.ok_or("E3: a foreign row of a machine")?;
        let values = counters.values.iter().map(|(name, value)| OwnRow::Counter { name: name.clone(), value: *value });
        let newest = (counters.newest != 0).then_some(OwnRow::Newest(counters.newest));
        let ended = reference.left.contains(&(*space, group.clone())).then_some(OwnRow::Ended(counters.ended));
        // (1) Each request is executed once.
        let executed = counters.executed.iter().map(|(session, request)| OwnRow::Executed {
            session: *session,
            request: *request,
            times: 1,
        });
        let all: Vec<_> = values.chain(executed).chain(newest).chain(ended).collect();
        expected += all.len();
        let what = || format!("the rows of the machine in {space} {group:?}");
        same(what, &rows.len(), &all.len())?;
        if let Some(wrong) = rows.iter().find(|row| !all.contains(row)) {
            return Err(format!("E3 or (1): {} has {wrong:?}", what()));
        }
    }
    same(|| "E3: how many rows machines have".into(), &seen, &expected)
}
