//! The catalogue's rows: one for its own numbers, one for each space, one for each branch, and so on; `docs/formats/keys.md`.

use std::collections::BTreeMap;
use std::sync::Arc;

use kv::{Bytes, DecodeError, KeyRange, Order, Reader, Staging, View, Writer};
use session::Halt;

use super::change::{decode_limits, decode_limits_v1, decode_retention, encode_limits, encode_retention};
use super::{
    Branch, BranchId, Catalogue, FillProgress, Principals, Space, SpaceId, Types, guards, principals, type_bytes,
};
use crate::keys::Keys;
use crate::keys::catalogue::read_index_fill;
use crate::place::{BucketRange, Buckets};

const FORMAT: u8 = 1;

/// Of the row of the catalogue's own numbers. In format 1 the limits are the six first ones, without their own format.
const META_FORMAT: u8 = 2;
const META_FORMAT_V1: u8 = 1;

impl Catalogue {
    /// Writes every row.
    pub(crate) fn write_all(&self, keys: &Keys, state: &mut Staging) {
        self.write_meta(keys, state);
        for (space, found) in &self.spaces {
            self.write_space(keys, state, *space);
            for branch in found.branches.keys() {
                self.write_branch(keys, state, *space, *branch);
            }
            self.write_types(keys, state, *space);
            for (prefix, guard) in found.guards.iter() {
                state.put(keys.catalogue_guard(*space, prefix), guards::encode_row(*space, prefix, guard));
            }
        }
        for principal in self.principals.iter() {
            state.put(keys.catalogue_principal(&principal.name), principals::encode_row(principal));
        }
    }

    pub(super) fn write_meta(&self, keys: &Keys, state: &mut Staging) {
        let mut writer = Writer::new();
        writer.u8(META_FORMAT).u64(self.revision).u32(self.level).u16(self.buckets.count());
        writer.u32(self.next_space).u32(self.next_branch);
        encode_limits(&mut writer, &self.limits);
        state.put(keys.catalogue_meta(), writer.finish());
    }

    pub(super) fn write_space(&self, keys: &Keys, state: &mut Staging, space: SpaceId) {
        let found = &self.spaces[&space];
        let mut writer = Writer::new();
        writer.u8(FORMAT).u32(space).bytes(found.name.as_bytes());
        encode_retention(&mut writer, &found.retention);
        state.put(keys.catalogue_space(space), writer.finish());
    }

    pub(super) fn write_branch(&self, keys: &Keys, state: &mut Staging, space: SpaceId, branch: BranchId) {
        let found = &self.spaces[&space].branches[&branch];
        let mut writer = Writer::new();
        writer.u8(FORMAT).u32(space).u32(branch).bytes(found.name.as_bytes()).bool(found.deleted);
        state.put(keys.catalogue_branch(space, branch), writer.finish());
    }

    /// Writes the rows of a space's types.
    pub(super) fn write_types(&self, keys: &Keys, state: &mut Staging, space: SpaceId) {
        for declared in self.spaces[&space].types.iter() {
            state.put(keys.catalogue_type(space, declared.id), type_bytes::encode_row(space, declared));
        }
    }

    /// Writes or removes the row of a guard.
    pub(super) fn write_guard(&self, keys: &Keys, state: &mut Staging, space: SpaceId, prefix: &str) {
        let key = keys.catalogue_guard(space, prefix);
        match self.spaces[&space].guards.get(prefix) {
            Some(guard) => state.put(key, guards::encode_row(space, prefix, guard)),
            None => state.delete(key),
        }
    }

    pub(super) fn write_machine(&self, keys: &Keys, state: &mut Staging, machine: u16) {
        let mut writer = Writer::new();
        writer.u8(FORMAT).u16(machine).u16(self.machines[&machine]);
        state.put(keys.catalogue_machine(machine), writer.finish());
    }

    /// Reads the rows.
    pub fn load(view: &dyn View, keys: &Keys) -> Result<Self, Halt> {
        let meta = view.get(&keys.catalogue_meta())?;
        let meta = meta.ok_or_else(|| Halt::Inconsistent("the catalogue has no row of its own".into()))?;
        let mut catalogue = decode_meta(&meta, keys.buckets()).map_err(undecodable)?;
        for row in rows(view, keys.catalogue_spaces()) {
            let (space, found) = decode_space(&row?).map_err(undecodable)?;
            catalogue.insert_space(space, found);
        }
        for row in rows(view, keys.catalogue_branches()) {
            let (space, branch, found) = decode_branch(&row?).map_err(undecodable)?;
            let space = catalogue.spaces.get_mut(&space);
            let space = space.ok_or_else(|| Halt::Inconsistent("a branch belongs to no space".into()))?;
            space.insert_branch(branch, found);
        }
        for row in rows(view, keys.catalogue_types()) {
            let (space, declared) = type_bytes::decode_row(&row?).map_err(undecodable)?;
            let space = catalogue.spaces.get_mut(&space);
            let space = space.ok_or_else(|| Halt::Inconsistent("a record type belongs to no space".into()))?;
            space.types.insert(declared);
        }
        for row in rows(view, keys.catalogue_guards()) {
            let (space, prefix, guard) = guards::decode_row(&row?).map_err(undecodable)?;
            let space = catalogue.spaces.get_mut(&space);
            let space = space.ok_or_else(|| Halt::Inconsistent("a guard belongs to no space".into()))?;
            space.guards.insert(prefix, guard);
        }
        for row in view.scan(&keys.index_fills(), Order::Ascending) {
            let (key, row) = row?;
            let (space, record_type) =
                read_index_fill(&key).ok_or_else(|| Halt::Inconsistent("a foreign key among fills".into()))?;
            let progress = FillProgress::decode(&row)?;
            let space = catalogue.spaces.get_mut(&space);
            let space = space.ok_or_else(|| Halt::Inconsistent("an index belongs to no space".into()))?;
            space.types.set_filled(record_type, progress.filled);
        }
        for row in rows(view, keys.catalogue_machines()) {
            let (machine, version) = decode_machine(&row?).map_err(undecodable)?;
            catalogue.machines.insert(machine, version);
        }
        let mut principals = Principals::default();
        for row in rows(view, keys.catalogue_principals()) {
            principals.put(principals::decode_row(&row?).map_err(undecodable)?);
        }
        catalogue.principals = Arc::new(principals);
        Ok(catalogue)
    }
}

fn undecodable(error: DecodeError) -> Halt {
    Halt::Undecodable { what: "a row of the catalogue", error }
}

fn rows(view: &dyn View, range: KeyRange) -> impl Iterator<Item = Result<Bytes, Halt>> {
    view.scan(&range, Order::Ascending).map(|row| Ok(row?.1))
}

fn decode_meta(bytes: &[u8], here: BucketRange) -> Result<Catalogue, DecodeError> {
    let mut reader = Reader::new(bytes);
    let format = reader.u8()?;
    let revision = reader.u64()?;
    let level = reader.u32()?;
    let buckets = Buckets::new(reader.u16()?).ok_or(DecodeError { what: "an impossible number of buckets" })?;
    let next_space = reader.u32()?;
    let next_branch = reader.u32()?;
    let limits = match format {
        META_FORMAT => decode_limits(&mut reader)?,
        META_FORMAT_V1 => decode_limits_v1(&mut reader)?,
        _ => return Err(DecodeError { what: "bytes of an unknown format" }),
    };
    reader.end()?;
    Ok(Catalogue {
        revision,
        level,
        buckets,
        here,
        limits,
        next_space,
        next_branch,
        spaces: BTreeMap::new(),
        space_names: BTreeMap::new(),
        machines: BTreeMap::new(),
        principals: Arc::default(),
    })
}

fn decode_space(bytes: &[u8]) -> Result<(SpaceId, Space), DecodeError> {
    let mut reader = Reader::new(bytes);
    reader.format(FORMAT)?;
    let space = reader.u32()?;
    let name = reader.text()?;
    let retention = decode_retention(&mut reader)?;
    reader.end()?;
    Ok((space, Space { types: Types::without_rows(), ..Space::new(name, retention) }))
}

fn decode_branch(bytes: &[u8]) -> Result<(SpaceId, BranchId, Branch), DecodeError> {
    let mut reader = Reader::new(bytes);
    reader.format(FORMAT)?;
    let (space, branch) = (reader.u32()?, reader.u32()?);
    let name = reader.text()?.to_owned();
    let deleted = reader.bool()?;
    reader.end()?;
    Ok((space, branch, Branch { name, deleted }))
}

fn decode_machine(bytes: &[u8]) -> Result<(u16, u16), DecodeError> {
    let mut reader = Reader::new(bytes);
    reader.format(FORMAT)?;
    let machine = (reader.u16()?, reader.u16()?);
    reader.end().map(|()| machine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_format_1_is_read_with_defaults_for_what_it_lacks() {
        let mut writer = Writer::new();
        writer.u8(1).u64(7).u32(1).u16(16).u32(3).u32(4);
        writer.u32(10).u32(11).u32(12).u32(13).u32(14).u32(15);
        let read = decode_meta(writer.as_slice(), BucketRange::ALL).expect("readable");
        let mut expected = contract::Limits::default();
        expected.value_bytes_max = 10;
        expected.transaction_ops_max = 11;
        expected.transaction_bytes_max = 12;
        expected.write_trim_rows_max = 13;
        expected.spaces_max = 14;
        expected.branches_per_space_max = 15;
        assert_eq!((read.revision, read.limits), (7, expected));
        writer.u8(0);
        assert!(decode_meta(writer.as_slice(), BucketRange::ALL).is_err(), "bytes after the end");
        assert!(decode_meta(&[3], BucketRange::ALL).is_err(), "a newer format");
    }
}
