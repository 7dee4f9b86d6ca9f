//! Checks of the stored rows of maps: as many as there is something to say, and none that are nobody's.

use kernel::keyed::head::MapHead;
use kernel::keys::keyed::CONTENT_ROWS;
use kernel::keys::names::is_name_in_group;
use kernel::keys::things::read_thing_key;
use kernel::keys::{GENERATION_BYTES, Kind};
use kv::{KeyRange, Order};

use super::compare::Both;
use crate::model::compare::same;
use crate::model::instance::{halted, text};
use crate::model::reference::Id;

/// Check (5). When everything that is due is done, nothing is left of maps that were deleted.
pub(crate) fn check(both: &Both<'_>, drained: bool) -> Result<(), String> {
    let (mut heads, mut total) = (Vec::new(), [0; 6]);
    for (key, row) in rows_of(both, Kind::KeyedMap)? {
        if is_name_in_group(&key) {
            continue;
        }
        let number = |at: usize| u32::from_be_bytes(key[at..at + 4].try_into().expect("four bytes"));
        // Generation, bucket, kind; then space and branch.
        let (space, branch) = (number(GENERATION_BYTES + 3), number(GENERATION_BYTES + 7));
        let id = read_thing_key(&key, space, branch).ok_or("(5) a foreign key among heads")?;
        let id = Id::new(space, branch, id.group.as_deref(), &id.name);
        let head = MapHead::decode(&row).map_err(halted)?;
        let map = both.reference.maps.get(&id).ok_or_else(|| format!("(5) {id:?} is nobody's"))?;
        let thing = both.thing(&id);
        let count = |number: u32| {
            CONTENT_ROWS.map(|kind| {
                both.view.scan(&both.instance.keys.map_rows(kind, &thing, number), Order::Ascending).count()
            })
        };
        let found = count(head.content.number);
        let unused: Vec<_> = head.unused.iter().map(|number| count(*number)).collect();
        let aside = head.building.map_or([0; 6], |building| count(building.content.number));
        let others = |kind: usize| unused.iter().chain([&aside]).map(|of| of[kind]).sum::<usize>();
        total = std::array::from_fn(|kind| total[kind] + found[kind] + others(kind));
        let expected = map.aside.as_ref().map(|(_, content)| content.rows()).unwrap_or_default();
        same(|| format!("(5) the rows that a restore of {id:?} has put aside"), &aside, &expected)?;
        let expected = map.content.as_ref().map(|content| content.rows()).unwrap_or_default();
        same(|| format!("(5) the rows of {id:?}, {head:?}"), &found, &expected)?;
        let unused: Vec<usize> = unused.iter().map(|of| of.iter().sum()).collect();
        same(|| format!("(5) the rows that are left of earlier contents of {id:?}"), &unused, &map.unused)?;
        if both.reference.is_live(space, branch) {
            same(|| format!("(5) when {id:?} is swept"), &head.sweep_us, &map.sweep_us)?;
        }
        if drained && head.deleted && both.reference.is_live(space, branch) {
            return Err(format!("(5) {id:?} was deleted and is still there: {head:?}"));
        }
        heads.push(id);
    }
    heads.sort();
    same(|| "(5) the heads of maps".into(), &heads, &both.reference.maps.keys().cloned().collect())?;
    let mut everywhere = [0; 6];
    for (kind, count) in CONTENT_ROWS.into_iter().zip(&mut everywhere) {
        *count = rows_of(both, kind)?.len();
    }
    same(|| "(5) rows of maps that are nobody's".into(), &everywhere, &total)
}

type Row = (Vec<u8>, kv::Bytes);

fn rows_of(both: &Both<'_>, kind: Kind) -> Result<Vec<Row>, String> {
    let mut found = Vec::new();
    for bucket in 0..both.instance.kernel.catalogue().buckets.count() {
        let prefix = [&bucket.to_be_bytes()[..], &[kind as u8]].concat();
        let range = KeyRange::prefix(&both.instance.keys.in_generation(&prefix));
        for row in both.view.scan(&range, Order::Ascending) {
            let (key, row) = row.map_err(text)?;
            found.push((key.to_vec(), row));
        }
    }
    Ok(found)
}
