//! Draws what operators and the walk do: branches that come and go with everything in them, and history that is given up.

use contract::Retention;
use kernel::CellTrim;
use kernel::keys::things::ThingKey;
use kernel::trim::TrimStep;
use kernel::{Body, CatalogueChange};
use testkit::random::Random;

use crate::model::drawn::Drawn;
use crate::model::places::PLACES;
use crate::model::reference::{Id, Reference};

/// Rows of one kind that one step of the walk removes, at least.
const ROWS_PER_STEP: usize = 64;

/// A command of an operator, or of the walk.
pub(crate) fn command(random: &mut Random, reference: &Reference) -> Drawn {
    let deleted = reference.deleted_places();
    let change = match random.below(10) {
        0..=1 if !deleted.is_empty() => {
            let place = *random.choose(&deleted);
            return erase(random, reference, place);
        }
        2..=4 => return trim_cells(random, reference),
        5..=6 => CatalogueChange::CreateBranch {
            space: random.pick(&[1, 1, 2, 9]),
            name: random.pick(&["extra", "more", "main"]).to_owned(),
        },
        7..=8 => {
            let mut places = reference.live_places();
            // Most things happen in those that are there from the beginning.
            if !random.one_in(10) {
                places.retain(|place| !PLACES.contains(place));
            }
            let (space, branch) = if places.is_empty() { (1, 99) } else { *random.choose(&places) };
            match PLACES.contains(&(space, branch)) && (space, branch) != PLACES[0] {
                true => CatalogueChange::SetRetention { space: 2, retention: retention(random) },
                false => CatalogueChange::DeleteBranch { space, branch },
            }
        }
        _ => CatalogueChange::SetRetention { space: 2, retention: retention(random) },
    };
    Drawn::plain(&Body::Catalogue(change))
}

fn retention(random: &mut Random) -> Retention {
    match random.below(4) {
        0 => Retention::ALL,
        1 => Retention::NONE,
        2 => Retention::versions(1 + random.below(5)),
        _ => Retention { age_us_max: random.below(20_000), ..Retention::ALL },
    }
}

/// As the walk does, but of any cells.
fn trim_cells(random: &mut Random, reference: &Reference) -> Drawn {
    let ids: Vec<_> = reference.cells.keys().cloned().collect();
    let mut steps = Vec::new();
    while !ids.is_empty() && steps.len() < 10 {
        let key = key(reference, random.choose(&ids));
        steps.push(if random.one_in(2) { CellTrim::Due(key).into() } else { CellTrim::Forget(key).into() });
    }
    Drawn::plain(&Body::Trim(steps))
}

fn key(reference: &Reference, id: &Id) -> ThingKey {
    let bucket = reference.bucket(id);
    ThingKey { bucket, space: id.space, branch: id.branch, group: id.group.clone(), name: id.name.clone() }
}

/// Removes what is in a deleted branch: from one bucket, or all of it with the branch itself. Each step is repeated until
/// nothing is left for it.
fn erase(random: &mut Random, reference: &Reference, place: (u32, u32)) -> Drawn {
    let only = random.one_in(2).then(|| random.below(reference.buckets.count().into()));
    erase_from(reference, place, only)
}

/// The same, of one bucket or of all.
pub(crate) fn erase_from(reference: &Reference, (space, branch): (u32, u32), only: Option<u64>) -> Drawn {
    let here = |id: &Id| id.place() == (space, branch);
    let of_runs =
        reference.runs.iter().filter(|(id, _)| here(id)).map(|(_, run)| run.life.rows.iter().sum::<usize>() + 2);
    let of_maps = reference.maps.iter().filter(|(id, _)| here(id)).map(|(_, map)| {
        let contents = map.content.iter().chain(map.aside.as_ref().map(|(_, content)| content));
        let rows = contents.map(|content| content.rows().iter().sum::<usize>());
        rows.sum::<usize>() + map.unused.iter().sum::<usize>() + 2
    });
    let things = reference.records.keys().filter(|id| here(id)).count();
    let letters = reference.letters.values().filter(|letter| (letter.space, letter.branch) == (space, branch)).count();
    let repeats = 2
        + (4 * things + letters + of_runs.sum::<usize>() + of_maps.sum::<usize>() + reference.lanes.len())
            / ROWS_PER_STEP;
    let mut steps = Vec::new();
    for bucket in 0..reference.buckets.count() {
        if only.is_none_or(|only| only == u64::from(bucket)) {
            steps.extend(std::iter::repeat_n(TrimStep::Erase { bucket, space, branch }, repeats));
        }
    }
    if only.is_none() {
        for (id, cell) in reference.cells.iter().filter(|(id, _)| here(id)) {
            let repeats = 1 + cell.writes.len() / ROWS_PER_STEP;
            steps.extend(std::iter::repeat_n(CellTrim::Due(key(reference, id)).into(), repeats));
        }
        steps.extend(std::iter::repeat_n(TrimStep::Branch { space, branch }, repeats));
    }
    Drawn::plain(&Body::Trim(steps))
}
