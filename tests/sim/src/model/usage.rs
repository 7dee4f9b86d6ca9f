//! What spaces take, against a recount of their rows that knows the keys by their bytes.

use std::collections::BTreeMap;

use contract::{SpaceUsage, Usage};
use kernel::cells::row::Head;
use kernel::keyed::head::MapHead;
use kernel::keys::names::is_name_in_group;
use kernel::keys::{GENERATION_BYTES, Kind};
use kernel::records::row::decode_numbers;
use kernel::runs::row::RunHead;
use kernel::usage::{read, recount};
use kv::{Order, View};

use super::compare::same;
use super::instance::{Instance, halted, text};

/// The contracts, each with the kind of row by which its things exist, and the kinds that hold their parts.
const HOLDERS: [(&str, Kind, &[Kind]); 4] = [
    ("cells", Kind::CellHead, &[Kind::CellOld]),
    ("records", Kind::Record, &[Kind::RecordField]),
    ("runs", Kind::Run, &[Kind::RunEvent, Kind::RunStep]),
    ("keyed", Kind::KeyedMap, &[Kind::KeyedEntry, Kind::KeyedPosition, Kind::KeyedWaiting]),
];

/// U1: the usage of every space is what its rows take.
pub(crate) fn check(instance: &Instance, view: &dyn View) -> Result<(), String> {
    let catalogue = instance.kernel.catalogue();
    let nothing = SpaceUsage { by_contract: HOLDERS.map(|(name, ..)| (name.to_owned(), Usage::default())).into() };
    let mut expected: BTreeMap<u32, SpaceUsage> =
        catalogue.spaces().map(|(space, _)| (space, nothing.clone())).collect();
    for row in view.scan(&instance.keys.all(), Order::Ascending) {
        let (key, row) = row.map_err(text)?;
        let counted = &key[GENERATION_BYTES..];
        if counted.starts_with(&[0xff, 0xff]) {
            continue; // A row of the shard itself.
        }
        let is = |kind: &Kind| counted[2] == *kind as u8;
        let Some((name, head, _)) = HOLDERS.iter().find(|(_, head, parts)| is(head) || parts.iter().any(is)) else {
            continue;
        };
        if is(head) && is_name_in_group(&key) {
            continue;
        }
        let exists = match head {
            _ if !is(head) => false,
            Kind::CellHead => Head::decode(&row).map_err(halted)?.exists(),
            Kind::Record => !decode_numbers(&row).map_err(halted)?.deleted,
            Kind::KeyedMap => !MapHead::decode(&row).map_err(halted)?.deleted,
            _ => !RunHead::decode(&row).map_err(halted)?.deleted,
        };
        let space = u32::from_be_bytes(counted[3..7].try_into().map_err(text)?);
        let of = expected.get_mut(&space).and_then(|usage| usage.by_contract.get_mut(*name));
        let of = of.ok_or_else(|| format!("U1: a row of {name} is in space {space}, which is unknown"))?;
        of.things += u64::from(exists);
        of.bytes += (counted.len() + row.len()) as u64;
    }
    for (space, expected) in expected {
        let counted = read(view, &instance.keys, space).map_err(halted)?;
        same(|| format!("U1: what space {space} takes"), &counted, &expected)?;
        let recounted = recount(view, &instance.keys, catalogue, space).map_err(halted)?;
        same(|| format!("U1: the recount of space {space}"), &recounted, &expected)?;
    }
    Ok(())
}
