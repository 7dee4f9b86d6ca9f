//! Compares the catalogue, and lists under names that several contracts have, with the reference.

use contract::NameInGroup;
use kernel::names::InGroup;
use testkit::random::Random;

use crate::model::cells;
use crate::model::compare::same;
use crate::model::instance::Instance;
use crate::model::places::GROUPS;
use crate::model::records::names::{NAMES, PREFIXES};
use crate::model::reference::Reference;

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
