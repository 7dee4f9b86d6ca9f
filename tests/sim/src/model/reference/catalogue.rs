//! Spaces, branches and types.

use std::collections::BTreeMap;

use contract::catalogue::{DEFAULT_SPACE, MAIN_BRANCH};
use contract::guards::{GroupGuard, OWNER};
use contract::records::types::{RecordType, TASK_PREFIX};
use contract::{Rejection, Retention};
use kernel::catalogue::TypeDeclaration;
use kernel::{CatalogueChange, OpOutcome};

use super::{ANY_REASON, Declared, Outcome, Reference};

#[derive(Clone, Debug)]
pub(crate) struct Space {
    pub(crate) name: String,
    pub(crate) retention: Retention,
    /// With the names of deleted ones, until they are forgotten.
    pub(crate) branches: BTreeMap<u32, Branch>,
    pub(crate) types: Vec<Declared>,
    /// By the prefixes of the groups.
    pub(crate) guards: BTreeMap<String, GroupGuard>,
}

#[derive(Clone, Debug)]
pub(crate) struct Branch {
    pub(crate) name: String,
    pub(crate) deleted: bool,
}

impl Reference {
    pub(super) fn add_default_space(&mut self) {
        self.add_space(DEFAULT_SPACE);
    }

    fn add_space(&mut self, name: &str) -> u32 {
        let space = u32::try_from(self.spaces.len()).expect("few spaces") + 1;
        let (definition, prefixes) = (RecordType::task(), vec![TASK_PREFIX.to_owned()]);
        let task = Declared { filled: definition.indexes.clone(), definition, prefixes };
        let (name, retention, branches) = (name.to_owned(), Retention::default(), BTreeMap::new());
        self.spaces.insert(space, Space { name, retention, branches, types: vec![task], guards: BTreeMap::new() });
        self.add_branch(space, MAIN_BRANCH);
        space
    }

    fn add_branch(&mut self, space: u32, name: &str) -> u32 {
        self.last_branch += 1;
        let branches = &mut self.spaces.get_mut(&space).expect("the caller has looked").branches;
        branches.insert(self.last_branch, Branch { name: name.to_owned(), deleted: false });
        self.last_branch
    }

    /// Whether the branch exists and was not deleted.
    pub(crate) fn is_live(&self, space: u32, branch: u32) -> bool {
        let branch = self.spaces.get(&space).and_then(|space| space.branches.get(&branch));
        branch.is_some_and(|branch| !branch.deleted)
    }

    fn branches(&self, deleted: bool) -> Vec<(u32, u32)> {
        let branches = self.spaces.iter().flat_map(|(space, found)| {
            let wanted = found.branches.iter().filter(move |(_, branch)| branch.deleted == deleted);
            wanted.map(|(branch, _)| (*space, *branch))
        });
        branches.collect()
    }

    /// The space and branch of every branch that was not deleted.
    pub(crate) fn live_places(&self) -> Vec<(u32, u32)> {
        self.branches(false)
    }

    /// Those that were deleted and have rows left.
    pub(crate) fn deleted_places(&self) -> Vec<(u32, u32)> {
        self.branches(true)
    }

    pub(super) fn change(&mut self, change: &CatalogueChange) -> Result<Vec<Outcome>, Rejection> {
        let missing = |space: &u32| Rejection::NoSuchSpace { space: format!("#{space}") };
        let mut assigned = None;
        match change {
            CatalogueChange::CreateSpace { name } => {
                if self.spaces.values().any(|space| space.name == *name) {
                    return Err(Rejection::AlreadyExists { what: "space", name: name.clone() });
                }
                let (max, got) = (self.limits.spaces_max as usize, self.spaces.len() + 1);
                if got > max {
                    return Err(Rejection::too_large("spaces_max", max, got));
                }
                assigned = Some(self.add_space(name));
            }
            CatalogueChange::CreateBranch { space, name } => {
                let found = self.spaces.get(space).ok_or_else(|| missing(space))?;
                let live = found.branches.values().filter(|branch| !branch.deleted);
                if live.clone().any(|branch| branch.name == *name) {
                    return Err(Rejection::AlreadyExists { what: "branch", name: name.clone() });
                }
                let (max, got) = (self.limits.branches_per_space_max as usize, live.count() + 1);
                if got > max {
                    return Err(Rejection::too_large("branches_per_space_max", max, got));
                }
                assigned = Some(self.add_branch(*space, name));
            }
            CatalogueChange::DeleteBranch { space, branch } => {
                let found = self.spaces.get_mut(space).ok_or_else(|| missing(space))?;
                let live = found.branches.get_mut(branch).filter(|branch| !branch.deleted);
                let live = live.ok_or_else(|| Rejection::NoSuchBranch { branch: format!("#{branch}") })?;
                if live.name == MAIN_BRANCH {
                    return Err(Rejection::MainBranch);
                }
                live.deleted = true;
                self.happened.branches_deleted += 1;
            }
            CatalogueChange::SetRetention { space, retention } => {
                self.spaces.get_mut(space).ok_or_else(|| missing(space))?.retention = *retention;
            }
            CatalogueChange::DeclareType(TypeDeclaration { space, prefix, record_type }) => {
                let types = &mut self.spaces.get_mut(space).ok_or_else(|| missing(space))?.types;
                let known = types.iter().position(|declared| declared.definition.name == record_type.name);
                let number = known.unwrap_or(types.len());
                // Drawn as an addition, it can be executed after another that added more.
                if known.is_some_and(|known| takes_away(&types[known].definition, record_type)) {
                    let what = format!("type {:?}", record_type.name);
                    return Err(Rejection::InvalidDeclaration { what, reason: ANY_REASON });
                }
                if known.is_none() {
                    let definition = (**record_type).clone();
                    types.push(Declared { filled: definition.indexes.clone(), definition, prefixes: Vec::new() });
                }
                types.iter_mut().for_each(|declared| declared.prefixes.retain(|other| other != prefix));
                types[number].definition = (**record_type).clone();
                types[number].prefixes.push(prefix.clone());
                // Numbers of types begin with 1.
                assigned = Some(u32::try_from(number).expect("few types") + 1);
            }
            CatalogueChange::SetLimits(limits) => self.limits = *limits,
            CatalogueChange::RegisterMachine { .. } => {}
            CatalogueChange::Access(_) => unreachable!("nobody draws a principal"),
            CatalogueChange::SetGuard { space, prefix, guard } => {
                let guards = &mut self.spaces.get_mut(space).ok_or_else(|| missing(space))?.guards;
                match guard {
                    Some(guard) => drop(guards.insert(prefix.clone(), guard.clone())),
                    None if guards.remove(prefix).is_some() => {}
                    None => return Err(Rejection::NoSuchGuard { prefix: prefix.clone() }),
                }
            }
        }
        self.revision += 1;
        Ok(assigned.map(|number| Outcome::Is(OpOutcome::Assigned(number))).into_iter().collect())
    }

    /// A type by name.
    pub(crate) fn type_named(&self, space: u32, name: &str) -> Option<&Declared> {
        let declared = self.spaces[&space].types.iter().find(|declared| declared.definition.name == name);
        declared.or_else(|| Some(&self.owner_type).filter(|_| name == OWNER))
    }

    /// The type for the longest prefix of a record's name.
    pub(super) fn type_of_name(&self, space: u32, name: &str) -> Option<Declared> {
        let mut longest: Option<(usize, &Declared)> = None;
        for declared in &self.spaces[&space].types {
            for prefix in declared.prefixes.iter().filter(|prefix| name.starts_with(prefix.as_str())) {
                if longest.is_none_or(|(length, _)| prefix.len() > length) {
                    longest = Some((prefix.len(), declared));
                }
            }
        }
        longest.map(|(_, declared)| declared.clone())
    }
}

/// Whether a declaration has less than the one before, or something else in its place.
fn takes_away(before: &RecordType, after: &RecordType) -> bool {
    let lacks_state = before.states.iter().enumerate().any(|(number, state)| after.states.get(number) != Some(state));
    let lacks_index = before.indexes.iter().any(|index| !after.indexes.contains(index));
    let another = (&before.state_field, &before.ready_order) != (&after.state_field, &after.ready_order);
    lacks_state || lacks_index || another
}
