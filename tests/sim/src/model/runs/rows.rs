//! Checks of the stored rows of runs: what is derived is derived again from the heads, and nothing else is left over.

use std::collections::{BTreeMap, BTreeSet};

use kernel::keys::names::is_name_in_group;
use kernel::keys::runs::RUN_ROWS;
use kernel::keys::things::read_thing_key;
use kernel::keys::{GENERATION_BYTES, Kind};
use kernel::runs::read;
use kernel::runs::row::RunHead;
use kv::{KeyRange, Order, View};

use super::compare::Both;
use crate::model::compare::same;
use crate::model::instance::{Instance, halted, text};
use crate::model::reference::Id;

/// How far an entry of the index may stand before its run's last event.
const LAG_US_MAX: u64 = 60_000_000;

/// Checks (5) and (6). When everything that is due is done, nothing is left of deleted runs but their heads.
pub(crate) fn check(both: &Both<'_>, drained: bool) -> Result<(), String> {
    let heads = heads(both)?;
    let known: Vec<_> = both.reference.runs.keys().collect();
    same(|| "(6) the heads of runs".into(), &heads.keys().collect(), &known)?;
    index(both, &heads)?;
    let mut total = [0; 4];
    for (id, head) in &heads {
        let run = &both.reference.runs[id];
        let thing = both.thing(id);
        let count = |kind| both.view.scan(&both.instance.keys.run_rows(kind, &thing), Order::Ascending).count();
        let found = RUN_ROWS.map(count);
        total = std::array::from_fn(|kind| total[kind] + found[kind]);
        same(|| format!("(6) the rows of {id:?}, {head:?}"), &found, &run.life.rows)?;
        same(|| format!("(6) the forks of {id:?}"), &head.forks, &run.life.forks)?;
        // In a branch that was deleted they go with the branch.
        if drained && head.deleted && head.forks == 0 && both.reference.is_live(id.space, id.branch) {
            same(|| format!("(6) the rows that are left of {id:?}"), &found, &[0; 4])?;
        }
    }
    let everywhere: Vec<_> = RUN_ROWS.into_iter().map(|kind| rows_of(both, kind).map(|rows| rows.len())).collect();
    let everywhere = everywhere.into_iter().collect::<Result<Vec<_>, _>>()?;
    same(|| "(6) rows of runs that are nobody's".into(), &everywhere, &total.to_vec())
}

fn heads(both: &Both<'_>) -> Result<BTreeMap<Id, RunHead>, String> {
    let mut heads = BTreeMap::new();
    for (key, row) in rows_of(both, Kind::Run)? {
        if is_name_in_group(&key) {
            continue;
        }
        let number = |at: usize| u32::from_be_bytes(key[at..at + 4].try_into().expect("four bytes"));
        // Generation, bucket, kind; then space and branch.
        let place = (number(GENERATION_BYTES + 3), number(GENERATION_BYTES + 7));
        let id = read_thing_key(&key, place.0, place.1).ok_or("(6) a foreign key among heads")?;
        heads.insert(Id::new(place.0, place.1, id.group.as_deref(), &id.name), RunHead::decode(&row).map_err(halted)?);
    }
    Ok(heads)
}

/// Check (5): one entry for each run, at its status and kind, and counts that are a recount.
fn index(both: &Both<'_>, heads: &BTreeMap<Id, RunHead>) -> Result<(), String> {
    let keys = both.instance.keys;
    let mut expected = BTreeSet::new();
    let mut recount = BTreeMap::new();
    for (id, head) in heads.iter().filter(|(_, head)| !head.deleted) {
        let at_us = head.index_us;
        if at_us > head.last_event_us || head.last_event_us - at_us > LAG_US_MAX {
            return Err(format!("(5) {id:?} stands at {at_us} in the index: {head:?}"));
        }
        let thing = both.thing(id);
        expected.insert(keys.run_index(&thing, head.status as u8, &head.run_type, at_us).to_vec());
        if !both.reference.is_live(id.space, id.branch) {
            // Its counts may be gone already.
            continue;
        }
        *recount.entry((id.place(), head.run_type.clone(), head.status)).or_insert(0) += 1;
    }
    let found: BTreeSet<_> = rows_of(both, Kind::RunIndex)?.into_iter().map(|(key, _)| key).collect();
    as_expected("(5) rows of the index", &found, &expected)?;
    let rows = rows_of(both, Kind::Run)?.into_iter().map(|(key, _)| key);
    let found: BTreeSet<_> = rows.filter(|key| is_name_in_group(key)).collect();
    let mut expected = BTreeSet::new();
    for (id, _) in heads.iter().filter(|(_, head)| !head.deleted) {
        expected.extend(keys.name_in_group(Kind::Run, &both.thing(id)).map(|key| key.to_vec()));
    }
    as_expected("(5) K8: names in groups", &found, &expected)?;
    let mut counted = BTreeMap::new();
    for place in both.reference.live_places() {
        let counts = read::counts(both.view, &keys, place.0, place.1).map_err(halted)?;
        counted.extend(counts.into_iter().map(|(kind, status, count)| ((place, kind, status), count)));
    }
    same(|| "(5) counts are a recount of the heads".into(), &counted, &recount)
}

fn as_expected(what: &str, found: &BTreeSet<Vec<u8>>, expected: &BTreeSet<Vec<u8>>) -> Result<(), String> {
    let surplus: Vec<_> = found.difference(expected).map(|key| key.escape_ascii().to_string()).collect();
    let missing: Vec<_> = expected.difference(found).map(|key| key.escape_ascii().to_string()).collect();
    match surplus.is_empty() && missing.is_empty() {
        true => Ok(()),
        false => Err(format!("{what}: too many {surplus:?}, too few {missing:?}")),
    }
}

fn rows_of(both: &Both<'_>, kind: Kind) -> Result<Vec<(Vec<u8>, kv::Bytes)>, String> {
    let Both { instance, view, .. } = both;
    let mut found = Vec::new();
    for bucket in 0..instance.kernel.catalogue().buckets.count() {
        found.extend(rows_of_bucket(instance, *view, bucket, kind)?);
    }
    Ok(found)
}

fn rows_of_bucket(
    instance: &Instance,
    view: &dyn View,
    bucket: u16,
    kind: Kind,
) -> Result<Vec<(Vec<u8>, kv::Bytes)>, String> {
    let prefix = [&bucket.to_be_bytes()[..], &[kind as u8]].concat();
    let rows = view.scan(&KeyRange::prefix(&instance.keys.in_generation(&prefix)), Order::Ascending);
    rows.map(|row| row.map(|(key, row)| (key.to_vec(), row)).map_err(text)).collect()
}
