//! Records as JSON, written as they are read: a tree of values in between took a fifth of the CPU time of a claim.

use contract::NameInGroup;
use contract::time::{iso, millis};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use statehouse::records::{Claimed, Holder, Record};

/// A record under its name.
pub(crate) struct RecordJson<'a> {
    pub(crate) name: &'a str,
    pub(crate) record: &'a Record,
}

impl Serialize for RecordJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", self.name)?;
        members(self.record, &mut map)?;
        map.end()
    }
}

/// A record of a list, with its group.
pub(crate) struct ListedRecord<'a> {
    pub(crate) name: &'a NameInGroup,
    pub(crate) record: &'a Record,
}

impl Serialize for ListedRecord<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &self.name.name)?;
        map.serialize_entry("group", &self.name.group)?;
        members(self.record, &mut map)?;
        map.end()
    }
}

/// A record that was claimed, with what its worker needs.
pub(crate) struct ClaimedJson(pub(crate) Claimed);

impl Serialize for ClaimedJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("record", &self.0.name)?;
        map.serialize_entry("group", &self.0.group)?;
        map.serialize_entry("token", &self.0.token)?;
        map.serialize_entry("lease_ms", &millis(self.0.lease))?;
        members(&self.0.record, &mut map)?;
        map.end()
    }
}

fn members<M: SerializeMap>(record: &Record, map: &mut M) -> Result<(), M::Error> {
    map.serialize_entry("type", &record.record_type)?;
    map.serialize_entry("fields", &Values(record))?;
    map.serialize_entry("field_versions", &Versions(record))?;
    map.serialize_entry("version", &record.version)?;
    map.serialize_entry("commit", &record.commit)?;
    map.serialize_entry("created_at", &iso(record.created_at))?;
    map.serialize_entry("updated_at", &iso(record.updated_at))?;
    map.serialize_entry("ttl_ms", &record.ttl.map(millis))?;
    map.serialize_entry("attempt", &record.attempt)?;
    map.serialize_entry("failures", &record.failures)?;
    map.serialize_entry("ready_in_ms", &record.ready_in.map(millis))?;
    map.serialize_entry("holder", &record.holder.as_ref().map(HolderJson))
}

struct Values<'a>(&'a Record);

impl Serialize for Values<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.fields.iter().map(|(name, field)| (name, &field.value)))
    }
}

struct Versions<'a>(&'a Record);

impl Serialize for Versions<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.fields.iter().map(|(name, field)| (name, field.version)))
    }
}

struct HolderJson<'a>(&'a Holder);

impl Serialize for HolderJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("worker", &self.0.worker)?;
        map.serialize_entry("session", &self.0.session)?;
        map.serialize_entry("lease_ms", &millis(self.0.lease_left))?;
        map.end()
    }
}
