//! Reads of the reference: a record, a field, a scan, counts.

use std::collections::BTreeMap;
use std::time::Duration;

use contract::guards::{OWNER, OWNER_RECORD};
use contract::records::filter::Filter;
use contract::records::types::IndexKind;
use contract::records::{Field, Holder, Record};
use contract::{NameInGroup, Value};
use kernel::names::InGroup;

use super::{Id, Reference};

impl Reference {
    /// The record as it is read now.
    pub(crate) fn record(&self, id: &Id) -> Option<Record> {
        let kept = self.records.get(id).filter(|_| self.exists(id))?;
        let live = kept.live.as_ref()?;
        let mut record = Record::empty(kept.version, kept.commit, kept.created_us, kept.updated_us);
        for (field, (value, version)) in &live.fields {
            record.fields.insert(field.clone(), Field { value: value.clone(), version: *version });
        }
        record.attempt = kept.attempt;
        record.failures = live.failures;
        let pausing = live.waiting && live.ready_us > self.wall_us;
        record.ready_in = pausing.then(|| Duration::from_micros(live.ready_us - self.wall_us));
        record.ttl = kept.expires_us.map(|at| Duration::from_micros(at - self.wall_us));
        let Some(declared) = self.declared(id, live) else {
            return Some(record);
        };
        record.record_type = live.record_type.clone();
        let mut keep = |field: &str, value: Option<Value>| match value {
            None => {}
            Some(value) => drop(record.fields.insert(field.to_owned(), Field { value, version: kept.version })),
        };
        let ms = |us: u64| Value::Integer(i64::try_from(us / 1_000).unwrap_or(i64::MAX));
        keep(&declared.definition.state_field, Some(live.state.as_str().into()));
        keep("created_at", Some(ms(kept.created_us)));
        keep("updated_at", Some(ms(kept.updated_us)));
        keep("worker", live.worker.as_deref().map(Value::from));
        if let Some(lease_us) = live.lease_us {
            let until = i128::from(self.wall_us) + i128::from(lease_us) - i128::from(self.cluster_us);
            keep("timeout_at", Some(ms(u64::try_from(until).unwrap_or(0))));
            let lease_left = Duration::from_micros(lease_us.saturating_sub(self.cluster_us));
            record.holder = Some(Holder { worker: live.worker.clone(), session: live.holder, lease_left });
        }
        Some(record)
    }

    pub(super) fn field(&self, id: &Id, field: &str) -> Option<Value> {
        self.record(id)?.value(field).cloned()
    }

    /// The records of all groups, of one, or of those that are their own, in the order of a scan: by name, or by an index.
    pub(crate) fn scan(
        &self,
        (space, branch, groups): (u32, u32, InGroup<'_>),
        prefix: &str,
        record_type: Option<&str>,
        filter: &Filter,
    ) -> Vec<(NameInGroup, Record)> {
        let of_group = |id: &Id| match groups {
            InGroup::Any => true,
            InGroup::Own => id.group.is_none(),
            InGroup::Named(group) => id.home() == group,
        };
        let ids = self.records.keys().filter(|id| (id.space, id.branch) == (space, branch));
        let ids = ids.filter(|id| of_group(id) && id.name.starts_with(prefix));
        // Owners are found by those who ask for them.
        let asks_for_owners = !prefix.is_empty() || record_type == Some(OWNER);
        let ids = ids.filter(|id| id.name != OWNER_RECORD || asks_for_owners);
        let found = ids.filter_map(|id| Some((id, self.record(id)?)));
        let of_type = |record: &Record| record_type.is_none_or(|wanted| record.record_type.as_deref() == Some(wanted));
        let matches = |record: &Record| of_type(record) && filter.matches(|field| record.value(field).cloned());
        let mut found: Vec<_> = found.filter(|(_, record)| matches(record)).collect();
        match self.index_for(space, record_type, filter) {
            None => found.sort_by(|(a, _), (b, _)| (&a.name, &a.group).cmp(&(&b.name, &b.group))),
            Some((field, _)) => found.sort_by(|(a, left), (b, right)| {
                let value = |record: &Record| sortable(&field, record.value(&field).expect("the filter tests it"));
                (value(left), &a.group, &a.name).cmp(&(value(right), &b.group, &b.name))
            }),
        }
        found.into_iter().map(|(id, record)| (NameInGroup::new(&*id.name, id.group.clone()), record)).collect()
    }

    /// The index that serves a scan: the first test of a field with a filled index, by order or equality.
    fn index_for(&self, space: u32, record_type: Option<&str>, filter: &Filter) -> Option<(String, IndexKind)> {
        use contract::records::filter::Test::{Eq, Gt, Gte, Lt, Lte};
        let declared = self.type_named(space, record_type?)?;
        filter.tests.iter().find_map(|(field, test)| {
            let (_, kind) = declared.filled.iter().find(|(name, _)| name == field)?;
            let (Eq(value) | Lt(value) | Lte(value) | Gt(value) | Gte(value)) = test else {
                return None;
            };
            let fits = matches!(
                (kind, value),
                (IndexKind::Bytes, Value::Bytes(_))
                    | (IndexKind::Text, Value::Text(_))
                    | (IndexKind::Unsigned | IndexKind::Signed | IndexKind::Time, Value::Integer(_))
            );
            fits.then(|| (field.clone(), *kind))
        })
    }

    /// How many records there are of each type and state, of the queues with a prefix, in all groups or in one.
    pub(crate) fn counts(
        &self,
        space: u32,
        branch: u32,
        group: Option<&str>,
        prefix: &str,
    ) -> BTreeMap<(String, String), u64> {
        let mut counts = BTreeMap::new();
        let of_branch = self.records.iter().filter(|(id, _)| (id.space, id.branch) == (space, branch));
        let of_branch = of_branch.filter(|(id, _)| group.is_none_or(|group| id.home() == group));
        for (_, kept) in of_branch.filter(|(id, _)| id.queue().starts_with(prefix)) {
            if let Some(live) = &kept.live
                && let Some(record_type) = live.record_type.as_ref().filter(|name| *name != OWNER)
            {
                *counts.entry((record_type.clone(), live.state.clone())).or_default() += 1;
            }
        }
        counts
    }
}

/// Values of one kind in their order; long ones count up to the length that an index holds, and `updated_at` by its minute.
fn sortable(field: &str, value: &Value) -> (i64, Vec<u8>) {
    let cut = |bytes: &[u8]| bytes[..bytes.len().min(kernel::records::index::INDEXED_BYTES_MAX)].to_vec();
    match value {
        Value::Integer(ms) if field == "updated_at" => (*ms / 60_000, Vec::new()),
        Value::Integer(integer) => (*integer, Vec::new()),
        Value::Text(text) => (0, cut(text.as_bytes())),
        Value::Bytes(bytes) => (0, cut(bytes)),
        _ => (0, Vec::new()),
    }
}
