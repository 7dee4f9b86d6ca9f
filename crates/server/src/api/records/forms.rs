//! Records as answers. Values are moved, never copied into an intermediate tree: that took a fifth of the CPU time of a
//! claim.

use contract::NameInGroup;
use contract::time::{iso, millis};
use statehouse::records::{Claimed, Holder as StoredHolder, Record as StoredRecord};
use wire::owners::Holder;
use wire::records::Record;
use wire::records::claims::ClaimedRecord;
use wire::values::{Members, SessionId, UserJson};

/// A record under its name.
pub(super) fn record(name: NameInGroup, stored: StoredRecord) -> Record {
    let NameInGroup { name, group } = name;
    let (version, commit, attempt, failures) = (stored.version, stored.commit, stored.attempt, stored.failures);
    let (created_at, updated_at) = (iso(stored.created_at), iso(stored.updated_at));
    let (ttl_ms, ready_in_ms) = (stored.ttl.map(millis), stored.ready_in.map(millis));
    let (record_type, holder) = (stored.record_type, stored.holder.map(holder));
    let (fields, field_versions) = fields(stored.fields);
    Record {
        name,
        group,
        record_type,
        fields,
        field_versions,
        version,
        commit,
        created_at,
        updated_at,
        ttl_ms,
        attempt,
        failures,
        ready_in_ms,
        holder,
    }
}

/// A claimed record.
pub(super) fn claimed(claimed: Claimed) -> ClaimedRecord {
    let Claimed { name, group, lease, token, record: stored, .. } = claimed;
    let Record {
        name,
        group,
        record_type,
        fields,
        field_versions,
        version,
        commit,
        created_at,
        updated_at,
        ttl_ms,
        attempt,
        failures,
        ready_in_ms,
        holder,
    } = record(NameInGroup::new(name, group), stored);
    ClaimedRecord {
        record: name,
        group,
        token,
        lease_ms: millis(lease),
        record_type,
        fields,
        field_versions,
        version,
        commit,
        created_at,
        updated_at,
        ttl_ms,
        attempt,
        failures,
        ready_in_ms,
        holder,
    }
}

type StoredFields = std::collections::BTreeMap<String, contract::records::Field>;

fn fields(stored: StoredFields) -> (Members<UserJson>, Members<u64>) {
    let versions = stored.iter().map(|(name, field)| (name.clone(), field.version)).collect();
    let values = stored.into_iter().map(|(name, field)| (name, UserJson(field.value))).collect();
    (values, versions)
}

pub(super) fn holder(stored: StoredHolder) -> Holder {
    Holder { worker: stored.worker, session: stored.session.map(SessionId), lease_ms: millis(stored.lease_left) }
}
