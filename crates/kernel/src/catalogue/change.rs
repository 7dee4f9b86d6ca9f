//! Changes of the catalogue: checked first, then applied, each raising the revision by one.

use contract::access::audit::SYSTEM_SPACE;
use contract::catalogue::MAIN_BRANCH;
use contract::guards::GroupGuard;
use contract::{Limits, RefusalReason, Rejection, Retention};
use kv::{DecodeError, Reader, Staging, Writer};

use super::{AccessChange, BranchId, Catalogue, FillProgress, FilledType, SpaceId, TypeDeclaration, guards};
use crate::keys::Keys;
use crate::sessions::brought::FIRST_NUMBER;

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CatalogueChange {
    /// Creates a space with the branch `main`.
    CreateSpace {
        /// Its name.
        name: String,
    },
    /// Creates an empty branch.
    CreateBranch {
        /// In which space.
        space: SpaceId,
        /// Its name.
        name: String,
    },
    /// Deletes a branch. Its rows are removed in the background, in bounded steps.
    DeleteBranch {
        /// In which space.
        space: SpaceId,
        /// Which branch.
        branch: BranchId,
    },
    /// Sets how much history the cells of a space keep.
    SetRetention {
        /// Which space.
        space: SpaceId,
        /// The new retention.
        retention: Retention,
    },
    /// Sets the limits that change how a command is applied.
    SetLimits(Limits),
    /// Declares a record type for a prefix of names.
    DeclareType(TypeDeclaration),
    /// Sets or removes the guard of the groups whose names begin with a prefix.
    SetGuard {
        /// In which space.
        space: SpaceId,
        /// The prefix.
        prefix: String,
        /// The guard, or none to remove it.
        guard: Option<GroupGuard>,
    },
    /// Registers a user's machine, or a newer version of it.
    RegisterMachine {
        /// Its number.
        machine: u16,
        /// Its version.
        version: u16,
    },
    /// Changes who may do what.
    Access(AccessChange),
}

impl Catalogue {
    /// Applies a change at a time, here and in the rows. Returns the assigned number, if there is one.
    pub(crate) fn change(
        &mut self,
        change: &CatalogueChange,
        now_us: u64,
        keys: &Keys,
        state: &mut Staging,
    ) -> Result<Option<u32>, Rejection> {
        if let Some(space) = change.space()
            && self.system_space() == Some(space)
        {
            // Nobody changes what the store keeps for itself.
            return Err(Rejection::NoSuchSpace { space: SYSTEM_SPACE.to_owned() });
        }
        let assigned = match change {
            CatalogueChange::CreateSpace { name } => {
                if self.space_named(name).is_ok() {
                    return Err(Rejection::AlreadyExists { what: "space", name: name.clone() });
                }
                let of_users = self.spaces.len() - self.system_space().map_or(0, |_| 1);
                Rejection::check_limit("spaces_max", self.limits.spaces_max as usize, of_users + 1)?;
                Some(self.create_space(name, keys, state)?)
            }
            CatalogueChange::CreateBranch { space, name } => {
                let found = self.space(*space)?;
                if found.branch_named(name).is_ok() {
                    return Err(Rejection::AlreadyExists { what: "branch", name: name.clone() });
                }
                let live = found.branches().filter(|(_, branch)| !branch.deleted).count();
                Rejection::check_limit(
                    "branches_per_space_max",
                    self.limits.branches_per_space_max as usize,
                    live + 1,
                )?;
                let branch = self.add_branch(*space, name);
                self.write_branch(keys, state, *space, branch);
                Some(branch)
            }
            CatalogueChange::DeleteBranch { space, branch } => {
                if self.space(*space)?.live_branch(*branch)?.name == MAIN_BRANCH {
                    return Err(Rejection::MainBranch);
                }
                self.spaces.get_mut(space).expect("it was just looked up").mark_deleted(*branch);
                self.write_branch(keys, state, *space, *branch);
                None
            }
            CatalogueChange::SetRetention { space, retention } => {
                self.space(*space)?;
                self.spaces.get_mut(space).expect("it was just looked up").retention = *retention;
                self.write_space(keys, state, *space);
                None
            }
            CatalogueChange::SetLimits(limits) => {
                self.limits = *limits;
                None
            }
            CatalogueChange::DeclareType(declaration) => {
                let space = &declaration.space;
                self.space(*space)?.types.check_level(self.level, &declaration.record_type)?;
                let found = self.spaces.get_mut(space).expect("it was just looked up");
                let before = found.types.declared(&declaration.record_type.name);
                let before = before.map_or(0, |before| before.definition.indexes.len());
                let id = found.types.declare(&declaration.prefix, &declaration.record_type)?;
                let declared = found.types.get(id).expect("it was just declared");
                if declared.is_filling() && declared.definition.indexes.len() > before {
                    let progress = FillProgress::begin(declared.filled);
                    state.put_encoded(keys.index_fill(*space, id), |writer| progress.encode(writer));
                }
                self.write_types(keys, state, *space);
                Some(id)
            }
            CatalogueChange::SetGuard { space, prefix, guard } => {
                self.space(*space)?;
                let guards = &mut self.spaces.get_mut(space).expect("it was just looked up").guards;
                match guard {
                    Some(guard) => guards.set(prefix, guard)?,
                    None if guards.remove(prefix) => {}
                    None => return Err(Rejection::NoSuchGuard { prefix: prefix.clone() }),
                }
                self.write_guard(keys, state, *space, prefix);
                None
            }
            CatalogueChange::RegisterMachine { machine, version } => {
                let refused =
                    |reason| Err(Rejection::InvalidDeclaration { what: format!("machine {machine}"), reason });
                if *machine < FIRST_NUMBER {
                    return refused(RefusalReason::ReservedNumber);
                }
                if self.machine(*machine).is_some_and(|registered| registered > *version) {
                    return refused(RefusalReason::NewerRegistered);
                }
                self.machines.insert(*machine, *version);
                self.write_machine(keys, state, *machine);
                None
            }
            CatalogueChange::Access(change) => {
                self.change_access(change, now_us, keys, state)?;
                if self.system_space().is_none() {
                    // From now on somebody is known, and there is an audit.
                    self.create_space(SYSTEM_SPACE, keys, state)?;
                }
                None
            }
        };
        self.revision += 1;
        self.write_meta(keys, state);
        Ok(assigned)
    }

    fn create_space(&mut self, name: &str, keys: &Keys, state: &mut Staging) -> Result<SpaceId, Rejection> {
        let space = self.add_space(name);
        self.write_space(keys, state, space);
        let main = self.space(space)?.branch_named(MAIN_BRANCH)?;
        self.write_branch(keys, state, space, main);
        self.write_types(keys, state, space);
        Ok(space)
    }

    /// Forgets a deleted branch that has no rows left.
    pub(crate) fn forget_branch(&mut self, keys: &Keys, state: &mut Staging, space: SpaceId, branch: BranchId) {
        let Some(found) = self.spaces.get_mut(&space) else {
            return;
        };
        if found.branches.get(&branch).is_some_and(|branch| branch.deleted) {
            found.branches.remove(&branch);
            state.delete(keys.catalogue_branch(space, branch));
            self.revision += 1;
            self.write_meta(keys, state);
        }
    }

    /// The indexes of a type are all filled.
    pub(crate) fn finish_filling(&mut self, keys: &Keys, state: &mut Staging, filled: FilledType) {
        if let Some(found) = self.spaces.get_mut(&filled.space) {
            found.types.set_filled(filled.record_type, u8::MAX);
            self.revision += 1;
            self.write_meta(keys, state);
        }
    }

    /// Raises the level; a lower one changes nothing.
    pub(crate) fn raise_level(&mut self, keys: &Keys, state: &mut Staging, level: u32) {
        self.level = self.level.max(level);
        self.revision += 1;
        self.write_meta(keys, state);
    }
}

const CREATE_SPACE: u8 = 1;
const CREATE_BRANCH: u8 = 2;
const DELETE_BRANCH: u8 = 3;
const SET_RETENTION: u8 = 4;
/// Without a format of the limits: six numbers.
const SET_LIMITS_V1: u8 = 5;
const SET_LIMITS: u8 = 6;

/// The layout of limits. The first layout had no format number.
const LIMITS_FORMAT: u8 = 4;
/// Without that of messages.
const LIMITS_FORMAT_V3: u8 = 3;
/// Without the limits of sessions.
const LIMITS_FORMAT_V2: u8 = 2;
const DECLARE_TYPE: u8 = 7;
const REGISTER_MACHINE: u8 = 8;
const SET_GUARD: u8 = 9;
const REMOVE_GUARD: u8 = 10;
const ACCESS: u8 = 11;

impl CatalogueChange {
    /// The space that it changes, if it changes one.
    fn space(&self) -> Option<SpaceId> {
        match self {
            CatalogueChange::CreateBranch { space, .. }
            | CatalogueChange::DeleteBranch { space, .. }
            | CatalogueChange::SetRetention { space, .. }
            | CatalogueChange::SetGuard { space, .. } => Some(*space),
            CatalogueChange::DeclareType(declaration) => Some(declaration.space),
            CatalogueChange::CreateSpace { .. }
            | CatalogueChange::SetLimits(_)
            | CatalogueChange::RegisterMachine { .. }
            | CatalogueChange::Access(_) => None,
        }
    }

    pub(crate) fn encode(&self, writer: &mut Writer) {
        match self {
            CatalogueChange::CreateSpace { name } => writer.u8(CREATE_SPACE).bytes(name.as_bytes()),
            CatalogueChange::CreateBranch { space, name } => {
                writer.u8(CREATE_BRANCH).u32(*space).bytes(name.as_bytes())
            }
            CatalogueChange::DeleteBranch { space, branch } => writer.u8(DELETE_BRANCH).u32(*space).u32(*branch),
            CatalogueChange::SetRetention { space, retention } => {
                encode_retention(writer.u8(SET_RETENTION).u32(*space), retention)
            }
            CatalogueChange::SetLimits(limits) => encode_limits(writer.u8(SET_LIMITS), limits),
            CatalogueChange::DeclareType(declaration) => declaration.encode(writer.u8(DECLARE_TYPE)),
            CatalogueChange::SetGuard { space, prefix, guard: Some(guard) } => {
                guards::encode(writer.u8(SET_GUARD).u32(*space).bytes(prefix.as_bytes()), guard)
            }
            CatalogueChange::SetGuard { space, prefix, guard: None } => {
                writer.u8(REMOVE_GUARD).u32(*space).bytes(prefix.as_bytes())
            }
            CatalogueChange::RegisterMachine { machine, version } => {
                writer.u8(REGISTER_MACHINE).u16(*machine).u16(*version)
            }
            CatalogueChange::Access(change) => change.encode(writer.u8(ACCESS)),
        };
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match reader.u8()? {
            CREATE_SPACE => CatalogueChange::CreateSpace { name: reader.text()?.to_owned() },
            CREATE_BRANCH => CatalogueChange::CreateBranch { space: reader.u32()?, name: reader.text()?.to_owned() },
            DELETE_BRANCH => CatalogueChange::DeleteBranch { space: reader.u32()?, branch: reader.u32()? },
            SET_RETENTION => {
                CatalogueChange::SetRetention { space: reader.u32()?, retention: decode_retention(reader)? }
            }
            SET_LIMITS_V1 => CatalogueChange::SetLimits(decode_limits_v1(reader)?),
            SET_LIMITS => CatalogueChange::SetLimits(decode_limits(reader)?),
            DECLARE_TYPE => CatalogueChange::DeclareType(TypeDeclaration::decode(reader)?),
            SET_GUARD => {
                let (space, prefix) = (reader.u32()?, reader.text()?.to_owned());
                CatalogueChange::SetGuard { space, prefix, guard: Some(guards::decode(reader)?) }
            }
            REMOVE_GUARD => {
                CatalogueChange::SetGuard { space: reader.u32()?, prefix: reader.text()?.to_owned(), guard: None }
            }
            REGISTER_MACHINE => CatalogueChange::RegisterMachine { machine: reader.u16()?, version: reader.u16()? },
            ACCESS => CatalogueChange::Access(AccessChange::decode(reader)?),
            _ => {
                return Err(DecodeError { what: "a catalogue change of an unknown kind" });
            }
        })
    }
}

pub(super) fn encode_retention<'writer>(writer: &'writer mut Writer, retention: &Retention) -> &'writer mut Writer {
    writer.u64(retention.versions_max).u64(retention.age_us_max)
}

pub(super) fn decode_retention(reader: &mut Reader<'_>) -> Result<Retention, DecodeError> {
    Ok(Retention { versions_max: reader.u64()?.max(1), age_us_max: reader.u64()? })
}

pub(super) fn encode_limits<'writer>(writer: &'writer mut Writer, limits: &Limits) -> &'writer mut Writer {
    writer.u8(LIMITS_FORMAT);
    writer.u32(limits.value_bytes_max).u32(limits.transaction_ops_max).u32(limits.transaction_bytes_max);
    writer.u32(limits.write_trim_rows_max).u32(limits.spaces_max).u32(limits.branches_per_space_max);
    writer.u64(limits.changes_commits_max).u64(limits.changes_age_us_max);
    writer.u32(limits.record_fields_max).u32(limits.record_bytes_max);
    writer.u32(limits.claim_records_max).u32(limits.claim_bytes_max).u32(limits.tick_steps_max);
    writer.u64(limits.tombstone_age_us);
    writer.u32(limits.sessions_max).u32(limits.session_answers_max).u32(limits.session_answer_bytes_max);
    writer.u32(limits.session_pushes_max).u32(limits.session_push_bytes_max).u32(limits.messages_waiting_max)
}

pub(super) fn decode_limits(reader: &mut Reader<'_>) -> Result<Limits, DecodeError> {
    let format = reader.u8()?;
    if !(LIMITS_FORMAT_V2..=LIMITS_FORMAT).contains(&format) {
        return Err(DecodeError { what: "bytes of an unknown format" });
    }
    let mut limits = decode_limits_v1(reader)?;
    limits.changes_commits_max = reader.u64()?;
    limits.changes_age_us_max = reader.u64()?;
    limits.record_fields_max = reader.u32()?;
    limits.record_bytes_max = reader.u32()?;
    limits.claim_records_max = reader.u32()?;
    limits.claim_bytes_max = reader.u32()?;
    limits.tick_steps_max = reader.u32()?;
    limits.tombstone_age_us = reader.u64()?;
    if format >= LIMITS_FORMAT_V3 {
        limits.sessions_max = reader.u32()?;
        limits.session_answers_max = reader.u32()?;
        limits.session_answer_bytes_max = reader.u32()?;
        limits.session_pushes_max = reader.u32()?;
        limits.session_push_bytes_max = reader.u32()?;
    }
    if format >= LIMITS_FORMAT {
        limits.messages_waiting_max = reader.u32()?;
    }
    Ok(limits)
}

/// Limits that did not exist yet get their defaults.
pub(super) fn decode_limits_v1(reader: &mut Reader<'_>) -> Result<Limits, DecodeError> {
    let mut limits = Limits::default();
    limits.value_bytes_max = reader.u32()?;
    limits.transaction_ops_max = reader.u32()?;
    limits.transaction_bytes_max = reader.u32()?;
    limits.write_trim_rows_max = reader.u32()?;
    limits.spaces_max = reader.u32()?;
    limits.branches_per_space_max = reader.u32()?;
    Ok(limits)
}
