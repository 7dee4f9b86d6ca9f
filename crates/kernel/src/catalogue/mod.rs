//! The catalogue: spaces, branches, retention, limits and principals, as state of the shard.
//!
//! Touches: the catalogue rows. Keeps: K6 (numbers of spaces and branches are never reused), and that everything which
//! changes how a command is applied is state, changed only by a [`CatalogueChange`] in the journal.

pub mod assemble;
mod change;
mod fill_progress;
pub mod guards;
pub mod principals;
mod rows;
mod type_bytes;
pub mod types;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use contract::access::audit::SYSTEM_SPACE;
use contract::catalogue::{DEFAULT_SPACE, MAIN_BRANCH};
use contract::{Limits, Rejection, Retention};

use session::SessionLimits;

pub use change::CatalogueChange;
pub(crate) use fill_progress::{FillProgress, FilledType};
pub use guards::GuardedGroups;
pub use principals::{AccessChange, Principals};
pub use type_bytes::TypeDeclaration;
pub use types::{Declared, TypeId, Types};

use crate::keys::ThingId;
use crate::place::{BucketRange, Buckets};

/// The number of a space.
pub type SpaceId = u32;

/// The number of a branch; unique in the whole shard.
pub type BranchId = u32;

/// The decoded catalogue; the rows are the truth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Catalogue {
    /// Counts the changes.
    pub revision: u64,
    /// The level of behaviour in force.
    pub level: u32,
    /// The number of buckets in the directory.
    pub buckets: Buckets,
    /// Those that this shard owns.
    pub(crate) here: BucketRange,
    /// Limits that change how a command is applied.
    pub limits: Limits,
    next_space: SpaceId,
    next_branch: BranchId,
    spaces: BTreeMap<SpaceId, Space>,
    space_names: BTreeMap<String, SpaceId>,
    /// Users' machines by number, with the version in force.
    machines: BTreeMap<u16, u16>,
    /// Who may do what. Most changes of a catalogue do not touch it.
    principals: Arc<Principals>,
}

/// One tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Space {
    /// Its name, which never changes.
    pub name: String,
    /// How much history its cells keep.
    pub retention: Retention,
    /// Its record types.
    pub types: Types,
    /// Its guarded groups.
    pub guards: GuardedGroups,
    branches: BTreeMap<BranchId, Branch>,
    /// The branches that are not deleted.
    branch_names: BTreeMap<String, BranchId>,
}

/// One line of a space's data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Its name; a deleted branch's name may be used again.
    pub name: String,
    /// Whether it was deleted, and waits for its rows to be removed.
    pub deleted: bool,
}

impl Catalogue {
    /// The catalogue of a new directory: one space with one branch.
    pub fn genesis(buckets: Buckets) -> Self {
        let mut catalogue = Self {
            revision: 1,
            level: crate::LEVEL,
            buckets,
            here: BucketRange::ALL,
            limits: Limits::default(),
            next_space: 1,
            next_branch: 1,
            spaces: BTreeMap::new(),
            space_names: BTreeMap::new(),
            machines: BTreeMap::new(),
            principals: Arc::default(),
        };
        catalogue.add_space(DEFAULT_SPACE);
        catalogue
    }

    fn add_space(&mut self, name: &str) -> SpaceId {
        let space = self.next_space;
        self.next_space += 1;
        self.insert_space(space, Space::new(name, Retention::default()));
        self.add_branch(space, MAIN_BRANCH);
        space
    }

    fn insert_space(&mut self, space: SpaceId, added: Space) {
        self.space_names.insert(added.name.clone(), space);
        self.spaces.insert(space, added);
    }

    fn add_branch(&mut self, space: SpaceId, name: &str) -> BranchId {
        let branch = self.next_branch;
        self.next_branch += 1;
        let found = self.spaces.get_mut(&space).expect("the space was looked up");
        found.insert_branch(branch, Branch { name: name.to_owned(), deleted: false });
        branch
    }

    /// A space by number.
    pub fn space(&self, space: SpaceId) -> Result<&Space, Rejection> {
        self.spaces.get(&space).ok_or_else(|| Rejection::NoSuchSpace { space: format!("#{space}") })
    }

    /// The number of a space by name.
    pub fn space_named(&self, name: &str) -> Result<SpaceId, Rejection> {
        let found = self.space_names.get(name).copied();
        found.ok_or_else(|| Rejection::NoSuchSpace { space: name.to_owned() })
    }

    /// A record type by number; none for a record without a type.
    pub fn record_type(&self, space: SpaceId, record_type: TypeId) -> Option<&Declared> {
        self.spaces.get(&space)?.types.get(record_type)
    }

    /// The version in force of a user's machine, if it is registered.
    pub fn machine(&self, number: u16) -> Option<u16> {
        self.machines.get(&number).copied()
    }

    /// All registered users' machines, with the versions in force.
    pub fn machines(&self) -> impl Iterator<Item = (u16, u16)> {
        self.machines.iter().map(|(number, version)| (*number, *version))
    }

    /// The space of the store itself, once it has one.
    pub fn system_space(&self) -> Option<SpaceId> {
        self.space_names.get(SYSTEM_SPACE).copied()
    }

    /// Who may do what.
    pub fn principals(&self) -> &Arc<Principals> {
        &self.principals
    }

    /// The limits of sessions.
    pub fn session_limits(&self) -> SessionLimits {
        let limits = &self.limits;
        SessionLimits {
            sessions_max: limits.sessions_max,
            session_answers_max: limits.session_answers_max,
            session_answer_bytes_max: limits.session_answer_bytes_max,
            session_pushes_max: limits.session_pushes_max,
            session_push_bytes_max: limits.session_push_bytes_max,
        }
    }

    /// All spaces, by number, with that of the store itself.
    pub fn spaces(&self) -> impl Iterator<Item = (SpaceId, &Space)> {
        self.spaces.iter().map(|(id, space)| (*id, space))
    }

    /// The same without that of the store itself, which is in no listing and no export.
    pub fn spaces_of_users(&self) -> impl Iterator<Item = (SpaceId, &Space)> {
        let system = self.system_space();
        self.spaces().filter(move |(space, _)| Some(*space) != system)
    }

    /// The buckets of this shard.
    pub fn buckets_here(&self) -> Range<u16> {
        self.here.of(self.buckets)
    }

    /// The bucket of a group, if this shard owns it.
    pub(crate) fn bucket_here(&self, space: &Space, group: &str) -> Result<u16, Rejection> {
        let bucket = self.buckets.of_group(space.name.as_bytes(), group.as_bytes());
        match self.here.contains(bucket) {
            true => Ok(bucket),
            false => Err(Rejection::NotHere { bucket }),
        }
    }

    /// The thing with this name, for keys; `group` is none for a thing without a group.
    pub fn thing<'name>(
        &self,
        space: SpaceId,
        branch: BranchId,
        group: Option<&'name str>,
        name: &'name str,
    ) -> Result<ThingId<'name>, Rejection> {
        let found = self.space(space)?;
        found.live_branch(branch)?;
        let group = group.filter(|group| *group != name);
        let bucket = self.bucket_here(found, group.unwrap_or(name))?;
        Ok(ThingId { bucket, space, branch, group, name })
    }
}

impl Space {
    fn new(name: &str, retention: Retention) -> Self {
        Self {
            name: name.to_owned(),
            retention,
            types: Types::default(),
            guards: GuardedGroups::default(),
            branches: BTreeMap::new(),
            branch_names: BTreeMap::new(),
        }
    }

    fn insert_branch(&mut self, branch: BranchId, added: Branch) {
        if !added.deleted {
            self.branch_names.insert(added.name.clone(), branch);
        }
        self.branches.insert(branch, added);
    }

    fn mark_deleted(&mut self, branch: BranchId) {
        let found = self.branches.get_mut(&branch).expect("the branch was looked up");
        found.deleted = true;
        self.branch_names.remove(&found.name);
    }

    /// A branch by number, unless it was deleted.
    pub fn live_branch(&self, branch: BranchId) -> Result<&Branch, Rejection> {
        let live = self.branches.get(&branch).filter(|branch| !branch.deleted);
        live.ok_or_else(|| Rejection::NoSuchBranch { branch: format!("#{branch}") })
    }

    /// The number of a branch by name, unless it was deleted.
    pub fn branch_named(&self, name: &str) -> Result<BranchId, Rejection> {
        let found = self.branch_names.get(name).copied();
        found.ok_or_else(|| Rejection::NoSuchBranch { branch: name.to_owned() })
    }

    /// All branches, deleted ones that still have rows included, by number.
    pub fn branches(&self) -> impl Iterator<Item = (BranchId, &Branch)> {
        self.branches.iter().map(|(id, branch)| (*id, branch))
    }
}
