//! Maps, keys and positions as answers.

use contract::NameInGroup;
use contract::time::iso;
use statehouse::keyed::{InputPosition, KeyedValue, MapSummary};
use wire::keyed::key::MapKey;
use wire::keyed::operators::ShownPartition;
use wire::keyed::version::Version;
use wire::keyed::{KeyEntry, ShownMap, ShownPosition};
use wire::values::UserJson;

pub(super) fn map(name: NameInGroup, summary: &MapSummary) -> ShownMap {
    let NameInGroup { name, group } = name;
    ShownMap {
        name,
        group,
        keys: summary.keys,
        deleted: summary.deleted,
        policy: summary.policy.into(),
        waiting: summary.waiting,
        last_number: summary.last_number,
        seal: summary.seal.map(Version),
        commit: summary.commit,
        restored: summary.restored,
        updated_at: iso(summary.updated_at),
    }
}

pub(super) fn partition(partition: u32, group: String, summary: &MapSummary) -> ShownPartition {
    let ShownMap { keys, deleted, policy, waiting, last_number, seal, commit, updated_at, .. } =
        map(NameInGroup::new("", None), summary);
    ShownPartition { partition, group, keys, deleted, policy, waiting, last_number, seal, commit, updated_at }
}

pub(super) fn entry(key: Vec<u8>, found: KeyedValue) -> KeyEntry {
    let KeyedValue { value, version, commit, .. } = found;
    KeyEntry { key: MapKey(key), value: UserJson(value), version: version.map(Version), commit }
}

pub(super) fn position((input, found): (String, InputPosition)) -> ShownPosition {
    let InputPosition { position, commit, updated_at, .. } = found;
    ShownPosition { input, position, commit, updated_at: iso(updated_at) }
}
