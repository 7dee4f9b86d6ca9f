//! Assembles a catalogue from its parts, for a shard that is built from named things.
//!
//! Keeps: K6. The parts keep their numbers, and the next numbers are above them.

use contract::catalogue::{DEFAULT_SPACE, MAIN_BRANCH};
use contract::guards::GroupGuard;
use contract::{Limits, Retention};
use kv::Staging;

use super::types::OWNER_ID;
use super::{Branch, BranchId, Catalogue, Declared, Space, SpaceId};
use crate::keys::Keys;
use crate::place::Buckets;

/// The parts of a catalogue besides spaces, branches, types and machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// Counts the changes.
    pub revision: u64,
    /// The level of behaviour in force.
    pub level: u32,
    /// The number of buckets.
    pub buckets: Buckets,
    /// The number of the next space.
    pub next_space: SpaceId,
    /// The number of the next branch.
    pub next_branch: BranchId,
    /// Limits that change how a command is applied.
    pub limits: Limits,
}

/// Why a part does not fit.
pub type Unfit = &'static str;

impl Catalogue {
    /// Its parts besides spaces, branches, types and machines.
    pub fn numbers(&self) -> Numbers {
        let Self { revision, level, buckets, next_space, next_branch, limits, .. } = *self;
        Numbers { revision, level, buckets, next_space, next_branch, limits }
    }

    /// A catalogue without any space.
    pub fn begin(numbers: Numbers) -> Result<Self, Unfit> {
        if numbers.level > crate::LEVEL {
            return Err("this release does not know its level of behaviour");
        }
        let Numbers { revision, level, buckets, next_space, next_branch, limits } = numbers;
        let empty = Self::genesis(buckets);
        Ok(Self {
            revision,
            level,
            limits,
            next_space,
            next_branch,
            spaces: Default::default(),
            space_names: Default::default(),
            ..empty
        })
    }

    /// Adds a space without branches.
    pub fn put_space(&mut self, space: SpaceId, name: &str, retention: Retention) -> Result<(), Unfit> {
        if space == 0 || space >= self.next_space || self.spaces.contains_key(&space) {
            return Err("the number of the space is taken, or was never assigned");
        }
        if name.is_empty() || self.space_names.contains_key(name) {
            return Err("the name of the space is taken, or empty");
        }
        self.insert_space(space, Space::new(name, retention));
        Ok(())
    }

    /// Adds a branch.
    pub fn put_branch(&mut self, space: SpaceId, branch: BranchId, name: &str) -> Result<(), Unfit> {
        let known = self.spaces.values().any(|space| space.branches.contains_key(&branch));
        if branch == 0 || branch >= self.next_branch || known {
            return Err("the number of the branch is taken, or was never assigned");
        }
        let found = self.spaces.get_mut(&space).ok_or("there is no such space")?;
        if name.is_empty() || found.branch_names.contains_key(name) {
            return Err("the name of the branch is taken, or empty");
        }
        found.insert_branch(branch, Branch { name: name.to_owned(), deleted: false });
        Ok(())
    }

    /// Adds a record type, or replaces the built-in one.
    pub fn put_type(&mut self, space: SpaceId, declared: Declared) -> Result<(), Unfit> {
        let found = self.spaces.get_mut(&space).ok_or("there is no such space")?;
        if declared.definition.fault().is_some() {
            return Err("the type is invalid");
        }
        // The built-in type of owners has no row, so one that was declared before it may have its name.
        let same_name = found.types.declared(&declared.definition.name);
        if [0, OWNER_ID].contains(&declared.id) || same_name.is_some_and(|same| same.id != declared.id) {
            return Err("the number or the name of the type is taken");
        }
        found.types.insert(declared);
        Ok(())
    }

    /// Adds a guard.
    pub fn put_guard(&mut self, space: SpaceId, prefix: &str, guard: &GroupGuard) -> Result<(), Unfit> {
        let found = self.spaces.get_mut(&space).ok_or("there is no such space")?;
        found.guards.set(prefix, guard).map_err(|_| "the guard is invalid, or one too many")
    }

    /// Registers a user's machine.
    pub fn put_machine(&mut self, number: u16, version: u16) {
        self.machines.insert(number, version);
    }

    /// Adds what every catalogue has, and checks that nothing is missing.
    pub fn complete(&mut self) -> Result<(), Unfit> {
        if self.space_named(DEFAULT_SPACE).is_err() {
            // Of all spaces one was chosen, and it was not this one, whose numbers are the first.
            let first = Self::genesis(self.buckets);
            let (space, found) = first.spaces().next().ok_or("a new catalogue has a space")?;
            self.put_space(space, DEFAULT_SPACE, found.retention)?;
            for (branch, main) in found.branches() {
                self.put_branch(space, branch, &main.name)?;
            }
        }
        match self.spaces.values().all(|space| space.branch_named(MAIN_BRANCH).is_ok()) {
            true => Ok(()),
            false => Err("a space has no branch main"),
        }
    }

    /// Writes every row, those of types and machines included.
    pub(crate) fn write_everything(&self, keys: &Keys, state: &mut Staging) {
        self.write_all(keys, state);
        for machine in self.machines.keys() {
            self.write_machine(keys, state, *machine);
        }
    }
}
