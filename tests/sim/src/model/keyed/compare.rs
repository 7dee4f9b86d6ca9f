//! Compares what a store holds with the reference, by every read of maps there is.

use std::collections::BTreeMap;

use contract::NameInGroup;
use contract::keyed::{InputPosition, KeyedValue};
use kernel::keyed::head::MapHead;
use kernel::keyed::list::{MapPage, list};
use kernel::keyed::read::{self, Bounds, KeysFrom};
use kernel::keys::ThingId;
use kernel::names::InGroup;
use kv::View;
use testkit::random::Random;

use super::generator::any_key;
use super::names::{INPUTS, MAPS};
use crate::model::compare::same;
use crate::model::instance::{Instance, halted};
use crate::model::places::GROUPS;
use crate::model::reference::{Content, Id, Reference};

/// Pages after which a list must have ended.
const PAGES_MAX: usize = 10_000;

/// A store and the reference beside it.
pub(crate) struct Both<'both> {
    pub(crate) instance: &'both Instance,
    pub(crate) view: &'both dyn View,
    pub(crate) reference: &'both Reference,
}

impl Both<'_> {
    pub(super) fn thing<'id>(&self, id: &'id Id) -> ThingId<'id> {
        let (space, branch, group, name) = (id.space, id.branch, id.group.as_deref(), id.name.as_str());
        ThingId { bucket: self.reference.bucket(id), space, branch, group, name }
    }

    fn head(&self, id: &Id) -> Result<Option<MapHead>, String> {
        read::head(self.view, &self.instance.keys, &self.thing(id)).map_err(halted)
    }

    /// One map: its summary, one key, one input, and its keys and inputs by pages.
    pub(crate) fn map(&self, id: &Id, random: &mut Random) -> Result<(), String> {
        let head = self.head(id)?;
        let map = self.reference.maps.get(id);
        let summary = head.as_ref().map(MapHead::summary);
        same(|| format!("(1) map {id:?} as a whole"), &summary, &map.and_then(|map| map.summary()))?;
        let (Some(head), Some(content)) = (head, self.reference.content(id)) else { return Ok(()) };
        let (keys, thing) = (&self.instance.keys, self.thing(id));
        let key = any_key(random);
        let found = read::get(self.view, keys, &thing, &head, key).map_err(halted)?;
        same(|| format!("(1) key {key:?} of {id:?}"), &found, &value(content, key))?;
        let input = random.pick(&INPUTS);
        let found = read::position(self.view, keys, &thing, &head, input).map_err(halted)?;
        same(|| format!("(3) input {input:?} of {id:?}"), &found, &content.positions.get(input).copied())?;
        self.keys(id, &head, content, random)?;
        self.positions(id, &head, content, random)
    }

    fn keys(&self, id: &Id, head: &MapHead, content: &Content, random: &mut Random) -> Result<(), String> {
        let prefix = if random.one_in(2) { &[] } else { &any_key(random)[..1] };
        let some_key = |random: &mut Random| random.one_in(3).then(|| any_key(random));
        let (from, to, first_after) = (some_key(random), some_key(random), some_key(random));
        let bounds = Bounds {
            keys_max: random.pick(&[1, 3, 1_000]),
            rows_max: random.pick(&[1, 5, 2_000]),
            bytes_max: random.pick(&[1, 400, 1 << 20]),
        };
        let (mut found, mut after) = (Vec::new(), first_after.map(<[u8]>::to_vec));
        for page in 0.. {
            if page == PAGES_MAX {
                return Err(format!("(1) the keys of {id:?} do not end"));
            }
            let which = KeysFrom { prefix, from, to, after: after.as_deref() };
            let scanned = read::scan(self.view, &self.instance.keys, &self.thing(id), head, &which, &bounds);
            let scanned = scanned.map_err(halted)?;
            if scanned.keys.len() > bounds.keys_max {
                return Err(format!("(1) a page of the keys of {id:?} is too long"));
            }
            found.extend(scanned.keys);
            after = scanned.next_after;
            if after.is_none() {
                break;
            }
        }
        let wanted = |key: &[u8]| {
            key.starts_with(prefix)
                && from.is_none_or(|from| key >= from)
                && to.is_none_or(|to| key < to)
                && first_after.is_none_or(|after| key > after)
        };
        let keys = content.keys.keys().filter(|key| wanted(key));
        let expected: Vec<_> = keys.filter_map(|key| Some((key.clone(), value(content, key)?))).collect();
        same(|| format!("(1) the keys of {id:?} from {from:?} to {to:?} after {first_after:?}"), &found, &expected)
    }

    fn positions(&self, id: &Id, head: &MapHead, content: &Content, random: &mut Random) -> Result<(), String> {
        let limit = random.pick(&[1, 2, 100]);
        let mut found: Vec<(String, InputPosition)> = Vec::new();
        loop {
            let after = found.last().map(|(input, _)| input.as_str());
            let page = read::positions(self.view, &self.instance.keys, &self.thing(id), head, after, limit);
            let page = page.map_err(halted)?;
            if page.is_empty() {
                break;
            }
            found.extend(page);
        }
        let expected: Vec<_> = content.positions.iter().map(|(input, at)| (input.clone(), *at)).collect();
        same(|| format!("(3) the inputs of {id:?}"), &found, &expected)
    }

    /// Every map, and lists of them. Gives how many reads that were.
    pub(crate) fn everything(&self, random: &mut Random) -> Result<u64, String> {
        let mut reads = 0;
        for id in self.reference.maps.keys().filter(|id| self.reference.is_live(id.space, id.branch)) {
            self.map(id, random)?;
            reads += 4;
        }
        for place in self.reference.live_places() {
            self.list(place, random)?;
            reads += 1;
        }
        Ok(reads)
    }

    fn list(&self, (space, branch): (u32, u32), random: &mut Random) -> Result<(), String> {
        let groups = match random.below(4) {
            0 => InGroup::Own,
            1 => InGroup::Named(random.pick(&GROUPS)),
            _ => InGroup::Any,
        };
        let prefix = if random.one_in(2) { "" } else { &random.pick(&MAPS)[..1] };
        let limit = random.pick(&[1, 3, 100]);
        let (mut found, mut after) = (Vec::new(), None::<NameInGroup>);
        for page in 0.. {
            if page == PAGES_MAX {
                return Err("(5) the list of maps does not end".to_owned());
            }
            let page = MapPage { groups, prefix, after: after.as_ref(), limit };
            let catalogue = self.instance.kernel.catalogue();
            let listed = list(self.view, &self.instance.keys, catalogue, (space, branch), &page).map_err(halted)?;
            found.extend(listed.maps);
            after = listed.next_after;
            if after.is_none() {
                break;
            }
        }
        let of_groups = |id: &Id| match groups {
            InGroup::Any => true,
            InGroup::Own => id.group.is_none(),
            InGroup::Named(group) => id.home() == group,
        };
        let here = self.reference.maps.iter().filter(|(id, _)| id.place() == (space, branch));
        let wanted = here.filter(|(id, _)| of_groups(id) && id.name.starts_with(prefix));
        let expected: BTreeMap<_, _> = wanted
            .filter_map(|(id, map)| Some((NameInGroup::new(&*id.name, id.group.clone()), map.summary()?)))
            .collect();
        let what = || format!("(5) the maps of {space}/{branch} in {groups:?} with prefix {prefix:?}");
        same(what, &found, &expected.into_iter().collect())
    }
}

fn value(content: &Content, key: &[u8]) -> Option<KeyedValue> {
    let known = content.keys.get(key)?;
    Some(KeyedValue::new(known.state.value()?, known.state.version(), content.changed_at(known)))
}
