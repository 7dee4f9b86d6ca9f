//! Compares the catalogue, sessions, what they own, what is pushed to them, and the state of a user's machine with the reference.

use std::collections::BTreeSet;

use contract::NameInGroup;
use kernel::keys::sessions::{HostedId, Owned, read_owned_suffix};
use kernel::names::InGroup;
use kv::{KeyRange, Order, View};
use session::{UserMachine, pushes, row, status};
use testkit::random::Random;

use crate::model::cells;
use crate::model::compare::same;
use crate::model::instance::{Instance, halted, text};
use crate::model::places::GROUPS;
use crate::model::records::names::{NAMES, PREFIXES};
use crate::model::reference::{Id, Owns, Reference};
use crate::model::sessions::machine::{Counters, OwnRow};

/// Spaces and branches, limits, and how often they were changed.
pub(crate) fn catalogue(instance: &Instance, reference: &Reference) -> Result<(), String> {
    let catalogue = instance.kernel.catalogue();
    let found: Vec<_> = catalogue
        .spaces()
        .map(|(id, space)| {
            let branches = space.branches().map(|(id, branch)| (id, branch.name.clone(), branch.deleted));
            (id, space.name.clone(), space.retention, branches.collect::<Vec<_>>())
        })
        .collect();
    let spaces = reference.spaces.iter().map(|(id, space)| {
        let branches = space.branches.iter().map(|(id, branch)| (*id, branch.name.clone(), branch.deleted));
        (*id, space.name.clone(), space.retention, branches.collect::<Vec<_>>())
    });
    same(|| "the spaces".into(), &found, &spaces.collect())?;
    same(|| "the limits".into(), &catalogue.limits, &reference.limits)?;
    same(|| "the catalogue's revision".into(), &catalogue.revision, &reference.revision)
}

/// A list of cells, under the names that records have too.
pub(crate) fn list_of_cells(both: &cells::compare::Both<'_>, random: &mut Random) -> Result<u64, String> {
    let place = *random.choose(&both.reference.live_places());
    let groups = match random.below(4) {
        0 => InGroup::Own,
        1 => InGroup::Named(random.pick(&GROUPS)),
        _ => InGroup::Any,
    };
    let after = random.one_in(4).then(|| {
        let (name, group) = (random.pick(&NAMES), random.pick(&GROUPS));
        NameInGroup::new(name, (group != name && random.one_in(2)).then(|| group.to_owned()))
    });
    both.list(place, groups, random.pick(&PREFIXES), after, random)
}

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
    machines(instance, view, reference)?;
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
        let all: Vec<_> = values.chain(newest).chain(ended).collect();
        expected += all.len();
        let what = || format!("the rows of the machine in {space} {group:?}");
        same(what, &rows.len(), &all.len())?;
        same(what, &rows.iter().all(|row| all.contains(row)), &true)?;
    }
    same(|| "E3: how many rows machines have".into(), &seen, &expected)
}
