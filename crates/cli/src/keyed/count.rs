//! Counts the keys of the maps of a directory and compares them with what each map says, for `doctor`.

use statehouse::keyed::KeysRange;
use statehouse::{Maps, Statehouse};

use crate::checks::{Checked, number};
use crate::doctor::RESTORE;

/// Maps to look at in each branch.
const MAPS_MAX: usize = 1_000;

/// Maps with more keys are not counted.
const KEYS_MAX: u64 = 1_000_000;

/// Keys of one page.
const PAGE_KEYS: usize = 1_000;

/// What was counted.
#[derive(Default)]
struct Counted {
    maps: u64,
    of: u64,
    differing: Vec<String>,
}

/// Whether the maps hold as many keys as they say.
pub(super) fn check(house: &Statehouse) -> Checked {
    match count(house) {
        Ok(Counted { maps, of, differing }) if differing.is_empty() => {
            Checked::new("maps", true, format!("{maps} of {of} counted, all hold as many keys as they say"))
                .measured(number(maps), "maps")
        }
        Ok(Counted { differing, .. }) => {
            Checked::new("maps", false, format!("{} hold other numbers of keys than they say", differing.join(", ")))
                .next("keep the directory and report this defect")
        }
        Err(error) => Checked::new("maps", false, error.to_string()).next(RESTORE),
    }
}

fn count(house: &Statehouse) -> Result<Counted, statehouse::Error> {
    let mut counted = Counted::default();
    for space in house.spaces()? {
        let space = house.space(&space);
        for branch in space.branches()? {
            let branch = space.branch(&branch);
            for (found, summary) in branch.maps().list("", None, MAPS_MAX)?.maps {
                counted.of += 1;
                if summary.keys > KEYS_MAX {
                    continue;
                }
                let maps = match &found.group {
                    Some(group) => branch.group(group).maps(),
                    None => branch.maps(),
                };
                if keys_of(&maps, &found.name)? != summary.keys {
                    counted.differing.push(found.name);
                }
                counted.maps += 1;
            }
        }
    }
    Ok(counted)
}

/// How many keys a map holds.
fn keys_of(maps: &Maps, map: &str) -> Result<u64, statehouse::Error> {
    let (mut keys, mut range) = (0, KeysRange::default().limit(PAGE_KEYS));
    loop {
        let page = maps.scan(map, &range)?;
        keys += page.keys.len() as u64;
        match page.next_after {
            Some(last) => range = range.after(&last),
            None => return Ok(keys),
        }
    }
}
